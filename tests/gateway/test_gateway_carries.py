"""An agent's honest request reaches its model, and the answer comes back as it comes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio
import pytest
from gateway.box import SECRET, box, provider, read_reply
from gateway.upstream import Answer, certificate, upstream

from pipeline.agents.gateway.spending import GatewayUse, Spent
from pipeline.config.providers import CredentialHeader

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.anyio

POST = b"POST /v1/messages HTTP/1.1\r\nHost: 127.0.0.1\r\n"


async def test_a_request_gets_the_credential_and_its_answer_comes_back(log: Path) -> None:
    headers = [("content-type", "application/json"), ("request-id", "r-1"), ("retry-after", "7")]
    async with upstream(Answer((b'{"a"', b": 1}"), 201, headers)) as model, box(provider(model.url), log) as agent:
        reply = await agent.post(body=b'{"q": 1}', headers="anthropic-version: 2023-06-01\r\n")
    (asked,) = model.requests
    assert (asked.method, asked.target, asked.body) == ("POST", "/v1/messages", b'{"q": 1}')
    assert asked.all("x-api-key") == [SECRET]
    assert asked.all("host") == [model.url.removeprefix("http://")]
    assert asked.all("anthropic-version") == ["2023-06-01"]
    assert (reply.status, reply.body, reply.whole) == (201, b'{"a": 1}', True)
    assert (reply.headers["request-id"], reply.headers["retry-after"]) == ("r-1", "7")


@pytest.mark.parametrize(
    ("header", "name", "value"),
    [
        (CredentialHeader.BEARER, "authorization", f"Bearer {SECRET}"),
        (CredentialHeader.X_API_KEY, "x-api-key", SECRET),
        (CredentialHeader.X_GOOG_API_KEY, "x-goog-api-key", SECRET),
    ],
)
async def test_each_kind_of_service_gets_the_credential_in_its_header(
    log: Path, header: CredentialHeader, name: str, value: str
) -> None:
    async with upstream(Answer()) as model, box(provider(model.url, header=header), log) as agent:
        await agent.post()
    sent = {key: model.requests[0].all(key) for key in ("authorization", "x-api-key", "x-goog-api-key")}
    assert {key: values for key, values in sent.items() if values} == {name: [value]}


async def test_over_tls_with_a_certificate_that_is_trusted(log: Path) -> None:
    serving, trusting = certificate()
    async with (
        upstream(Answer((b"data: 1\n\n", b"data: 2\n\n")), tls=serving) as model,
        box(provider(model.url), log, tls=trusting) as agent,
    ):
        reply = await agent.post()
    assert (reply.status, reply.body, reply.whole) == (200, b"data: 1\n\ndata: 2\n\n", True)
    assert model.requests[0].all("x-api-key") == [SECRET]


async def test_a_certificate_that_is_not_trusted_is_not_given_the_credential(log: Path) -> None:
    serving, _ = certificate()
    async with upstream(Answer(), tls=serving) as model, box(provider(model.url), log) as agent:
        reply = await agent.post()
    assert (reply.status, reply.error["code"]) == (502, "certificate")
    assert model.requests == []


async def test_an_answer_is_passed_on_piece_by_piece(log: Path) -> None:
    second, third = anyio.Event(), anyio.Event()
    stream_of_events = Answer(
        (b"data: 1\n\n", second, b"data: 2\n\n", third), headers=[("content-type", "text/event-stream")]
    )
    async with (
        upstream(stream_of_events) as model,
        box(provider(model.url), log) as agent,
        await agent.connect() as stream,
    ):
        await stream.send(POST + b"Content-Length: 2\r\n\r\n{}")
        await until(stream, b"data: 1\n\n")
        second.set()
        await until(stream, b"data: 2\n\n")
        third.set()
        await until(stream, b"0\r\n\r\n")


async def until(stream: anyio.abc.ByteStream, words: bytes) -> None:
    seen = b""
    with anyio.fail_after(60):
        while words not in seen:
            seen += await stream.receive()


async def test_a_chunked_body_is_passed_on(log: Path) -> None:
    async with upstream(Answer()) as model, box(provider(model.url), log) as agent:
        body = b"3\r\nabc\r\n4;note=x\r\ndefg\r\n0\r\nX-Api-Key: mine\r\n\r\n"
        reply = await agent.raw(POST + b"Transfer-Encoding: chunked\r\n\r\n" + body)
    assert reply.status == 200
    assert (model.requests[0].body, model.requests[0].whole) == (b"abcdefg", True)
    assert agent.gateway.use == GatewayUse(requests=1, bytes_up=7, bytes_down=12, spent=Spent(answers=1, unmetered=1))


async def test_a_caller_that_waits_to_be_asked_for_its_body_is_asked(log: Path) -> None:
    async with upstream(Answer()) as model, box(provider(model.url), log) as agent, await agent.connect() as stream:
        await stream.send(POST + b"Content-Length: 2\r\nExpect: 100-continue\r\n\r\n")
        await until(stream, b"HTTP/1.1 100 ")
        await stream.send(b"{}")
        reply = await read_reply(stream)
    assert reply.status == 200
    assert model.requests[0].all("expect") == []


async def test_a_greeting_is_answered_here(log: Path) -> None:
    async with upstream() as model, box(provider(model.url), log) as agent:
        reply = await agent.raw(b"HEAD / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
    assert (reply.status, model.requests, agent.gateway.use) == (200, [], GatewayUse())
    assert agent.lines()[0]["status"] == 200


async def test_errors_of_the_service_are_its_own(log: Path) -> None:
    async with upstream(Answer((b'{"error": 1}',), 529)) as model, box(provider(model.url), log) as agent:
        reply = await agent.post()
    assert (reply.status, reply.body) == (529, b'{"error": 1}')
    assert agent.lines()[0] | {"time": "", "seconds": 0} == {
        "time": "",
        "method": "POST",
        "path": "/v1/messages",
        "status": 529,
        "bytes_up": 2,
        "bytes_down": 12,
        "seconds": 0,
        "refused": None,
    }


async def test_an_answer_before_the_end_of_the_request_counts(log: Path) -> None:
    early = Answer((b'{"error": "too long"}',), 413, early=True)
    async with upstream(early) as model, box(provider(model.url), log) as agent, await agent.connect() as stream:
        await stream.send(POST + b"Content-Length: 100\r\n\r\n{")
        reply = await read_reply(stream)
    assert (reply.status, reply.body) == (413, b'{"error": "too long"}')


async def test_a_service_below_a_path_is_asked_there(log: Path) -> None:
    async with upstream(Answer()) as model, box(provider(model.url + "/anthropic"), log) as agent:
        await agent.post()
    assert model.requests[0].target == "/anthropic/v1/messages"


async def test_a_service_that_speaks_no_tls_is_not_given_the_credential(log: Path) -> None:
    async with upstream(Answer()) as model, box(provider(model.url.replace("http", "https")), log) as agent:
        reply = await agent.post()
    assert (reply.status, reply.error["code"], model.requests) == (502, "upstream", [])
