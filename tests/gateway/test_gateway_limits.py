"""Caps, time, and how an exchange ends when one side is not there any more."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio
import anyio.lowlevel
import pytest
from gateway.box import Box, box, provider, read_reply
from gateway.upstream import Answer, upstream

from pipeline.agents.gateway.failing_service import Trouble
from pipeline.agents.gateway.spending import AT_ONCE, GatewayUse, Spent

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.config.providers import Provider

pytestmark = pytest.mark.anyio

HEAD = b"POST /v1/messages HTTP/1.1\r\nHost: x\r\n"


def hasty(url: str) -> Provider:
    return provider(url).model_copy(update={"timeout_s": 0.2})


async def test_the_number_of_requests_is_capped(log: Path) -> None:
    async with upstream(Answer(), Answer()) as model, box(provider(model.url, max_requests=2), log) as agent:
        statuses = [(await agent.post()).status for _ in range(2)]
        reply = await agent.post()
    assert (statuses, reply.status, reply.error["code"]) == ([200, 200], 402, "max_requests")
    assert "A cap of redfirst, max_requests, is reached" in reply.error["message"]
    assert reply.headers["x-should-retry"] == "false"
    halt = agent.gateway.halt
    assert halt is not None
    assert (halt.trouble, halt.why) == (Trouble.STEPS, reply.error["message"].removeprefix("redfirst: ")), (
        "no outage: nobody is asked again"
    )
    assert agent.gateway.use == GatewayUse(2, 1, bytes_up=4, bytes_down=24, spent=Spent(answers=2, unmetered=2))
    assert [line["refused"] for line in agent.lines()] == [None, None, "max_requests"]


async def test_what_is_sent_is_capped_over_all_requests(log: Path) -> None:
    async with upstream(Answer(), Answer()) as model, box(provider(model.url, max_request_bytes=10), log) as agent:
        assert (await agent.post(body=b"12345678")).status == 200
        reply = await agent.post(body=b"123")
        assert (await agent.post(body=b"12")).status == 402, "it is over, whatever is asked next"
    assert (reply.status, reply.error["code"], len(model.requests)) == (402, "max_request_bytes", 1)


async def test_a_body_of_unsaid_length_is_stopped_at_the_cap(log: Path) -> None:
    async with (
        upstream(Answer()) as model,
        box(provider(model.url, max_request_bytes=10), log) as agent,
        await agent.connect() as stream,
    ):
        await stream.send(HEAD + b"Transfer-Encoding: chunked\r\n\r\n8\r\n12345678\r\n")
        await stream.send(b"8\r\n12345678\r\n")
        reply = await read_reply(stream)
    assert (reply.status, reply.error["code"]) == (402, "max_request_bytes")
    assert not any(asked.whole for asked in model.requests)
    assert agent.gateway.use.bytes_up <= 10


async def test_what_comes_back_is_capped_and_a_cut_answer_looks_cut(log: Path) -> None:
    service = (Answer((b"1" * 6, b"2" * 6)), Answer())
    async with upstream(*service) as model, box(provider(model.url, max_response_bytes=10), log) as agent:
        cut, refused = await agent.post(), await agent.post()
    assert (cut.status, cut.whole) == (200, False)
    assert len(cut.body) <= 10
    assert (refused.status, refused.error["code"]) == (402, "max_response_bytes")
    assert [(line["status"], line["refused"]) for line in agent.lines()] == [
        (200, "max_response_bytes"),
        (402, "max_response_bytes"),
    ]


async def test_requests_at_once_are_capped(log: Path) -> None:
    gate = anyio.Event()
    answers = [Answer((gate, b"x")) for _ in range(AT_ONCE)]
    async with upstream(*answers) as model, box(provider(model.url), log) as agent:
        async with anyio.create_task_group() as group:
            for _ in range(AT_ONCE):
                group.start_soon(agent.post)
            with anyio.fail_after(60):
                while len(model.requests) < AT_ONCE:
                    await anyio.lowlevel.checkpoint()
                reply = await agent.post()
            assert (reply.status, reply.error["code"], reply.headers["retry-after"]) == (429, "at-once", "1")
            gate.set()
        model.answers.append(Answer())
        assert (await agent.post()).status == 200


async def test_a_service_that_takes_too_long_is_given_up(log: Path) -> None:
    async with (
        upstream(Answer((anyio.Event(),), raw=b"")) as model,
        box(hasty(model.url), log) as agent,
    ):
        reply = await agent.post()
        with anyio.fail_after(60):
            await model.left.wait()
    assert (reply.status, reply.error["code"]) == (429, "timeout_s")


async def test_an_answer_that_takes_too_long_is_cut(log: Path) -> None:
    async with upstream(Answer((b"a", anyio.Event()))) as model, box(hasty(model.url), log) as agent:
        reply = await agent.post()
    assert (reply.status, reply.body, reply.whole) == (200, b"a", False)
    assert agent.lines()[0]["refused"] == "timeout_s"


@pytest.mark.parametrize(
    "raw", [b"", b"HTTP/1.1 2", b"no HTTP\r\n\r\n", b"HTTP/1.1 101 Switching\r\n\r\n", b"\x00" * 99]
)
async def test_a_service_that_answers_with_something_else(log: Path, raw: bytes) -> None:
    async with upstream(Answer((), raw=raw)) as model, box(provider(model.url), log) as agent:
        reply = await agent.post()
    assert (reply.status, reply.error["code"], reply.whole) == (502, "upstream", True)


async def test_a_head_without_end_is_not_kept(log: Path) -> None:
    endless = Answer((), raw=b"HTTP/1.1 200 OK\r\nx: " + b"a" * 500_000)
    async with upstream(endless) as model, box(provider(model.url), log) as agent:
        reply = await agent.post()
    assert (reply.status, reply.error["code"]) == (502, "upstream")


@pytest.mark.parametrize(
    "cut",
    [
        Answer((b"data: 1\n\n",), cut=True),
        Answer((), raw=b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nab"),
        Answer((), raw=b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nab"),
    ],
)
async def test_an_answer_that_breaks_off_looks_broken_off(log: Path, cut: Answer) -> None:
    async with upstream(cut) as model, box(provider(model.url), log) as agent:
        reply = await agent.post()
    assert (reply.status, reply.whole) == (200, False)
    assert agent.lines()[0]["refused"] == "upstream"


async def test_an_answer_that_ends_with_its_connection_is_whole(log: Path) -> None:
    old = Answer((), raw=b"HTTP/1.1 103 Early\r\n\r\nHTTP/1.0 200 OK\r\nx-a: 1\r\n\r\nabc")
    async with upstream(old) as model, box(provider(model.url), log) as agent:
        reply = await agent.post()
    assert (reply.status, reply.body, reply.whole, reply.headers["x-a"]) == (200, b"abc", True, "1")


@pytest.mark.parametrize("pieces", [(anyio.Event(),), (b"data: 1\n\n", anyio.Event())])
async def test_when_the_agent_hangs_up_the_service_is_hung_up_on(
    log: Path, pieces: tuple[bytes | anyio.Event, ...]
) -> None:
    answer = Answer(pieces, raw=None if len(pieces) > 1 else b"")
    async with upstream(answer) as model, box(provider(model.url), log) as agent:
        async with await agent.connect() as stream:
            await stream.send(HEAD + b"Content-Length: 2\r\n\r\n{}")
            with anyio.fail_after(60):
                await model.asked.wait()
        with anyio.fail_after(60):
            await model.left.wait()
            while not agent.written():
                await anyio.lowlevel.checkpoint()
    assert agent.lines()[0]["refused"] is None


async def test_the_end_of_the_dispatch_ends_everything(log: Path) -> None:
    async with upstream(Answer((b"a", anyio.Event()))) as model:
        async with box(provider(model.url), log) as agent:
            stream = await agent.connect()
            await stream.send(HEAD + b"Content-Length: 2\r\n\r\n{}")
            assert await stream.receive()
            idle = await agent.connect()
        with anyio.fail_after(60):
            await model.left.wait()
            for open_end in (stream, idle):
                assert not (await read_reply(open_end)).whole
                await open_end.aclose()
        with pytest.raises(OSError, match="connection"):
            await agent.connect()
    assert [line["status"] for line in agent.lines()] == [200]


async def test_a_dispatch_that_is_cancelled_ends_everything(log: Path) -> None:
    serving, agents = anyio.CancelScope(), list[Box]()
    async with upstream(Answer((anyio.Event(),), raw=b"")) as model, anyio.create_task_group() as group:

        async def dispatch() -> None:
            with serving:
                async with box(provider(model.url), log) as agent:
                    agents.append(agent)
                    await agent.post()

        group.start_soon(dispatch)
        with anyio.fail_after(60):
            await model.asked.wait()
            serving.cancel()
            await model.left.wait()
    assert [line["status"] for line in agents[0].lines()] == [None]
