"""What an agent may not ask: each case never reaches the service, and the answer says why."""

from __future__ import annotations

from typing import TYPE_CHECKING

import h11
import pytest
from gateway.box import box, provider
from gateway.upstream import Answer, upstream
from hypothesis import given
from hypothesis import strategies as st

from pipeline.agents.gateway.rules import Admitted, judge_bytes, judge_lines, judge_request

if TYPE_CHECKING:
    from pathlib import Path


def request(line: str = "POST /v1/messages HTTP/1.1", *headers: str, body: str = "") -> bytes:
    return ("\r\n".join([line, "Host: 127.0.0.1", *headers]) + "\r\n\r\n" + body).encode("latin-1")


BODY = "Content-Length: 2"

TARGETS = {
    "another-endpoint": "POST /v1/files HTTP/1.1",
    "another-method-of-an-endpoint": "GET /v1/messages HTTP/1.1",
    "below-an-endpoint": "POST /v1/messages/batches HTTP/1.1",
    "a-longer-word": "POST /v1/messagesx HTTP/1.1",
    "the-start-of-an-endpoint": "GET /v1/models HTTP/1.1",
    "a-slash-more": "POST /v1/messages/ HTTP/1.1",
    "two-slashes": "POST //v1/messages HTTP/1.1",
    "two-slashes-inside": "GET /v1/models//x HTTP/1.1",
    "the-root": "POST / HTTP/1.1",
    "up": "GET /v1/models/../files HTTP/1.1",
    "up-at-the-end": "GET /v1/models/.. HTTP/1.1",
    "here": "GET /v1/./models/x HTTP/1.1",
    "encoded-dots": "GET /v1/models/%2e%2e/files HTTP/1.1",
    "encoded-slash": "GET /v1/models/a%2Ffiles HTTP/1.1",
    "encoded-twice": "GET /v1/models/%252e%252e/files HTTP/1.1",
    "up-with-a-parameter": "GET /v1/models/..;/files HTTP/1.1",
    "a-backslash": "GET /v1/models/..\\files HTTP/1.1",
    "a-fragment": "GET /v1/models/x#y HTTP/1.1",
    "absolute-form": "POST http://127.0.0.1/v1/messages HTTP/1.1",
    "another-host": "POST https://example.org/v1/messages HTTP/1.1",
    "another-host-in-the-path": "POST //example.org/v1/messages HTTP/1.1",
    "asterisk": "GET * HTTP/1.1",
    "in-other-letters": "POST /V1/Messages HTTP/1.1",
}


@pytest.mark.anyio
@pytest.mark.parametrize("line", TARGETS.values(), ids=TARGETS)
async def test_a_target_that_is_not_plainly_allowed_is_refused(log: Path, line: str) -> None:
    async with upstream(Answer()) as model, box(provider(model.url), log) as agent:
        reply = await agent.raw(request(line))
    assert reply.status == 403
    assert reply.error["code"] in {"path", "target"}
    assert model.requests == []
    assert agent.lines()[0]["refused"] == reply.error["code"]


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("line", "headers", "status", "code"),
    [
        ("CONNECT example.org:443 HTTP/1.1", (), 405, "method"),
        ("DELETE /v1/messages HTTP/1.1", (), 405, "method"),
        ("PUT /v1/messages HTTP/1.1", (BODY,), 405, "method"),
        ("TRACE /v1/messages HTTP/1.1", (), 405, "method"),
        ("post /v1/messages HTTP/1.1", (BODY,), 405, "method"),
        ("HEAD /v1/models/x HTTP/1.1", (), 405, "method"),
        ("GET /v1/models/x HTTP/1.1", ("Upgrade: websocket", "Connection: Upgrade"), 403, "upgrade"),
        ("POST /v1/messages HTTP/1.1", ("Upgrade: h2c", "Connection: Upgrade", BODY), 403, "upgrade"),
        ("POST /v1/messages HTTP/1.0", (BODY,), 505, "http-version"),
        ("POST /v1/messages HTTP/1.1", tuple(f"X-{n}: 1" for n in range(101)), 431, "head-size"),
        ("POST /v1/messages HTTP/1.1", (f"X-Long: {'a' * 33000}",), 431, "head-size"),
    ],
)
async def test_what_is_no_plain_request_is_refused(
    log: Path, line: str, headers: tuple[str, ...], status: int, code: str
) -> None:
    async with upstream(Answer()) as model, box(provider(model.url), log) as agent:
        reply = await agent.raw(request(line, *headers))
    assert reply.status == status
    assert model.requests == []
    assert agent.lines()[0]["refused"] == code
    assert agent.gateway.use.refused == 1


CHUNKS = "2\r\n{}\r\n0\r\n\r\n"
SMUGGLED = "0\r\n\r\nPOST /v1/files HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n"
SHAPES = {
    "length-and-chunks": request("POST /v1/messages HTTP/1.1", BODY, "Transfer-Encoding: chunked", body=CHUNKS),
    "chunks-and-length": request("POST /v1/messages HTTP/1.1", "Transfer-Encoding: chunked", BODY, body=SMUGGLED),
    "two-lengths": request("POST /v1/messages HTTP/1.1", BODY, "Content-Length: 200", body="{}"),
    "the-same-length-twice": request("POST /v1/messages HTTP/1.1", BODY, BODY, body="{}"),
    "a-list-of-lengths": request("POST /v1/messages HTTP/1.1", "Content-Length: 2, 2", body="{}"),
    "a-signed-length": request("POST /v1/messages HTTP/1.1", "Content-Length: +2", body="{}"),
    "a-negative-length": request("POST /v1/messages HTTP/1.1", "Content-Length: -2", body="{}"),
    "a-hexadecimal-length": request("POST /v1/messages HTTP/1.1", "Content-Length: 0x2", body="{}"),
    "an-endless-length": request("POST /v1/messages HTTP/1.1", f"Content-Length: {'9' * 19}", body="{}"),
    "chunks-twice": request(
        "POST /v1/messages HTTP/1.1", "Transfer-Encoding: chunked", "Transfer-Encoding: chunked", body=CHUNKS
    ),
    "a-coding-that-is-not-known": request("POST /v1/messages HTTP/1.1", "Transfer-Encoding: xchunked", body=CHUNKS),
    "two-codings": request("POST /v1/messages HTTP/1.1", "Transfer-Encoding: gzip, chunked", body=CHUNKS),
    "a-tab-before-the-colon": request("POST /v1/messages HTTP/1.1", "Transfer-Encoding\t: chunked", BODY, body="{}"),
    "a-blank-before-the-colon": request("POST /v1/messages HTTP/1.1", "Content-Length : 2", body="{}"),
    "a-folded-header": request("POST /v1/messages HTTP/1.1", "X-Note: a\r\n b", BODY, body="{}"),
    "a-folded-length": request("POST /v1/messages HTTP/1.1", "Content-Length:\r\n 2", body="{}"),
    "a-header-before-the-first": b"POST /v1/messages HTTP/1.1\r\n Host: x\r\n\r\n",
    "line-feeds-alone": b"POST /v1/messages HTTP/1.1\nHost: x\nContent-Length: 0\n\n",
    "one-line-feed-alone": request("POST /v1/messages HTTP/1.1", "X: a\nTransfer-Encoding: chunked", BODY, body="{}"),
    "a-carriage-return-alone": request("POST /v1/messages HTTP/1.1", "X: a\rTransfer-Encoding: chunked", BODY),
    "a-nul-in-a-header": request("POST /v1/messages HTTP/1.1", "X-Note: a\0b", BODY, body="{}"),
    "a-nul-in-the-target": request("POST /v1/messages\0/x HTTP/1.1", BODY, body="{}"),
    "an-escape": request("POST /v1/messages HTTP/1.1", "X-Note: \x1b[2J", BODY, body="{}"),
    "a-letter-beyond-ascii": request("POST /v1/m\xe9ssages HTTP/1.1", BODY, body="{}"),
    "a-long-s-in-a-name": "POST /v1/messages HTTP/1.1\r\nHost: x\r\nTran\u017ffer-Encoding: chunked\r\n\r\n".encode(),
    "two-hosts": request("POST /v1/messages HTTP/1.1", "Host: example.org", BODY, body="{}"),
    "no-host": b"POST /v1/messages HTTP/1.1\r\nContent-Length: 0\r\n\r\n",
    "blanks-in-the-line": request("POST  /v1/messages HTTP/1.1", BODY, body="{}"),
    "a-blank-in-the-target": request("POST /v1/messages x HTTP/1.1", BODY, body="{}"),
    "no-version": request("POST /v1/messages", BODY, body="{}"),
    "an-empty-line-first": b"\r\n" + request(),
    "a-greeting-of-tls": b"\x16\x03\x01\x02\x00\x01\x00\x01",
    "a-preface-of-http-2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
}


@pytest.mark.anyio
@pytest.mark.parametrize("sent", SHAPES.values(), ids=SHAPES)
async def test_a_shape_that_two_readers_may_read_differently_is_refused(log: Path, sent: bytes) -> None:
    async with upstream(Answer()) as model, box(provider(model.url), log) as agent:
        reply = await agent.raw(sent)
    assert (reply.status, reply.error["code"]) in {(400, "malformed"), (501, "malformed"), (505, "http-version")}
    assert model.requests == []
    assert agent.lines()[0]["refused"] == reply.error["code"]


@pytest.mark.anyio
@pytest.mark.parametrize(
    "body", [b"2\n{}\r\n0\n\n", b"2\r\n{}xx0\r\n\r\n", b"-2\r\n{}\r\n0\r\n\r\n", b"zz\r\n", b"1" * 30 + b"\r\n{}"]
)
async def test_a_body_with_broken_chunks_is_refused_and_never_whole(log: Path, body: bytes) -> None:
    async with upstream(Answer()) as model, box(provider(model.url), log) as agent:
        reply = await agent.raw(request("POST /v1/messages HTTP/1.1", "Transfer-Encoding: chunked") + body)
    assert (reply.status, reply.error["code"]) == (400, "malformed")
    assert not any(asked.whole for asked in model.requests)


@pytest.mark.anyio
async def test_a_second_request_on_the_connection_is_not_looked_at(log: Path) -> None:
    async with upstream(Answer(), Answer()) as model, box(provider(model.url), log) as agent:
        reply = await agent.raw(2 * request("POST /v1/messages HTTP/1.1", BODY, body="{}"))
    assert (reply.status, reply.headers["connection"], len(model.requests)) == (200, "close", 1)


@pytest.mark.anyio
async def test_the_reason_is_read_even_when_the_caller_sends_on(log: Path) -> None:
    async with upstream() as model, box(provider(model.url), log) as agent:
        reply = await agent.post("/v1/files", b"x" * 20_000_000)
    assert (reply.status, reply.error["code"], reply.whole) == (403, "path", True)
    assert reply.error["message"].startswith("redfirst: Not among what may be asked of the model service: POST /v1/me")
    assert reply.headers["x-should-retry"] == "false"


@pytest.mark.anyio
async def test_a_caller_that_says_nothing_is_none_of_the_log(log: Path) -> None:
    async with upstream() as model, box(provider(model.url), log) as agent:
        await (await agent.connect()).aclose()
        async with await agent.connect() as stream:
            await stream.send(b"POST /v1/mess")
        assert (await agent.post("/nowhere")).status == 403
    assert len(agent.lines()) == 1


@given(st.binary(max_size=80) | st.text("/.%;\\?#:v1modelsabc", max_size=40).map(str.encode))
def test_no_other_path_is_ever_admitted(path: bytes) -> None:
    head = b"GET " + path + b" HTTP/1.1\r\nHost: x\r\n\r\n"
    if judge_bytes(head) or judge_lines(head):
        return
    connection = h11.Connection(h11.SERVER)
    connection.receive_data(head)
    try:
        event = connection.next_event()
    except h11.RemoteProtocolError:
        return
    assert isinstance(event, h11.Request)
    admitted = judge_request(event, ["GET /v1/models/*"])
    if isinstance(admitted, Admitted):
        below = admitted.target.partition("?")[0].split("/")
        assert below[:3] == ["", "v1", "models"]
        assert not {"", ".", ".."} & set(below[3:])
        assert not set("%;\\# ") & set("/".join(below))
