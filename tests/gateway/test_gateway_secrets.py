"""The agent never holds the credential, and its own never go out."""

from __future__ import annotations

import json
import logging
import re
from itertools import pairwise
from typing import TYPE_CHECKING
from urllib.parse import quote

import anyio
import pytest
from encoded import ENCODINGS
from gateway.box import SECRET, box, provider
from gateway.upstream import Answer, upstream
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr

from pipeline.agents.gateway.rules import Mask, MaskedStream

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.anyio

COVERED = "*" * len(SECRET)


async def test_credentials_of_the_agent_are_dropped(log: Path) -> None:
    own = {
        "Authorization": "Bearer mine",
        "X-API-Key": "mine",
        "x-goog-api-key": "mine",
        "api-key": "mine",
        "Cookie": "session=mine",
        "Proxy-Authorization": "Basic mine",
        "Proxy-Connection": "keep-alive",
        "X-Goog-User-Project": "mine",
        "OpenAI-Organization": "mine",
        "X-HTTP-Method-Override": "DELETE",
        "X-Original-URL": "/v1/files/mine",
        "X-Forwarded-Host": "mine",
        "Forwarded": "for=mine",
        "TE": "trailers",
        "Trailer": "X-API-Key",
        "Keep-Alive": "timeout=5",
        "Connection": "keep-alive, x-hop",
        "X-Hop": "mine",
        "Accept-Encoding": "gzip",
        "Expect": "nothing",
        "Host": "127.0.0.1",
    }
    kept = {"Content-Type": "application/json", "User-Agent": "bot/1", "anthropic-beta": "x", "X-Stainless-OS": "L"}
    headers = "".join(f"{name}: {value}\r\n" for name, value in (own | kept).items() if name != "Host")
    async with upstream(Answer()) as model, box(provider(model.url), log) as agent:
        await agent.post(headers=headers)
    sent = dict(model.requests[0].headers)
    assert sent == {
        "host": model.url.removeprefix("http://"),
        "x-api-key": SECRET,
        "accept-encoding": "identity",
        "connection": "close",
        "content-type": "application/json",
        "user-agent": "bot/1",
        "anthropic-beta": "x",
        "x-stainless-os": "L",
        "content-length": "2",
    }


@pytest.mark.parametrize(
    ("query", "kept"),
    [
        ("?alt=sse&key=mine", "?alt=sse"),
        ("?key=mine", ""),
        ("?k%65y=mine&beta=true", "?beta=true"),
        ("?KEY=mine", ""),
        ("?access_token=mine&oauth_token=mine&$httpMethod=DELETE&$key=mine", ""),
        ("?beta=true;key=mine", "?beta=true"),
        ("?key", ""),
        ("?", ""),
    ],
)
async def test_credentials_in_the_query_are_dropped(log: Path, query: str, kept: str) -> None:
    async with upstream(Answer()) as model, box(provider(model.url), log) as agent:
        await agent.post("/v1/messages" + query)
    assert model.requests[0].target == "/v1/messages" + kept
    assert "mine" not in agent.written()


@pytest.mark.parametrize("form", [SECRET, quote(SECRET, safe=""), SECRET.replace("/", "\\/")])
async def test_a_service_that_echoes_the_credential_is_covered(log: Path, form: str) -> None:
    body = json.dumps({"error": f"bad key '{form}'"}).encode().replace(b"\\\\", b"\\")
    echo = Answer((body,), 401, [("x-echo", f"<{form}>"), (f"x-{SECRET.replace('/', '')}", "1")])
    async with upstream(echo) as model, box(provider(model.url), log) as agent:
        reply = await agent.post()
    assert form.encode() not in reply.body
    assert reply.body == body.replace(form.encode(), b"*" * len(form))
    assert reply.headers["x-echo"] == f"<{'*' * len(form)}>"
    assert reply.status == 401


async def test_a_service_without_credential_is_given_none(log: Path) -> None:
    said = "Authorization: Bearer mine\r\nx-api-key: mine\r\n"
    async with (
        upstream(Answer()) as model,
        box(provider(model.url, credential_env=None), log, credential=None) as agent,
    ):
        reply = await agent.post(headers=said)
    assert (reply.status, reply.body) == (200, b'{"ok": true}')
    sent = {name for name, _ in model.requests[0].headers}
    assert sent == {"host", "accept-encoding", "connection", "content-length"}


async def test_an_echo_in_pieces_is_covered_and_nothing_else_is_held_back(log: Path) -> None:
    later = anyio.Event()
    pieces = (b"data: " + SECRET[:9].encode(), SECRET[9:].encode() + b"\n\n", later, b"data: sk-", b"the")
    seen = b""
    async with (
        upstream(Answer(pieces)) as model,
        box(provider(model.url), log) as agent,
        await agent.connect() as stream,
    ):
        await stream.send(b"POST /v1/messages HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n")
        with anyio.fail_after(60):
            while b"\n\n\r\n" not in seen:
                seen += await stream.receive()
            later.set()
            while b"\r\n0\r\n\r\n" not in seen:
                seen += await stream.receive()
    assert SECRET[9:].encode() not in seen
    assert seen.count(b"*") == len(SECRET)
    text = b"".join(seen.split(b"\r\n\r\n", 1)[1].split(b"\r\n")[1::2])
    assert text == f"data: {COVERED}\n\ndata: sk-the".encode()


async def test_the_length_of_a_covered_answer_holds(log: Path) -> None:
    body = f"your key is {SECRET}".encode()
    echo = Answer((body,), headers=[("content-length", str(len(body)))])
    async with upstream(echo) as model, box(provider(model.url), log) as agent:
        reply = await agent.post()
    assert (reply.body, reply.whole) == (f"your key is {COVERED}".encode(), True)


async def test_an_encoded_answer_is_refused_since_nobody_can_look_into_it(log: Path) -> None:
    encoded = Answer((b"\x1f\x8b",), headers=[("content-encoding", "gzip")])
    async with upstream(encoded) as model, box(provider(model.url), log) as agent:
        reply = await agent.post()
    assert (reply.status, reply.error["code"]) == (502, "encoded")
    assert model.requests[0].all("accept-encoding") == ["identity"]


async def test_headers_that_are_the_services_business_with_the_user_stay_here(log: Path) -> None:
    private = ["set-cookie", "alt-svc", "strict-transport-security", "openai-organization", "anthropic-organization-id"]
    answer = Answer(headers=[*((name, "x") for name in private), ("keep-alive", "timeout=5"), ("x-request-id", "7")])
    async with upstream(answer) as model, box(provider(model.url), log) as agent:
        reply = await agent.post()
    assert reply.headers == {"x-request-id": "7", "connection": "close", "transfer-encoding": "chunked"}


@pytest.mark.parametrize(
    ("location", "passed"),
    [
        ("/v1/models/b", "/v1/models/b"),
        ("{url}/v1/models/b", "/v1/models/b"),
        ("https://example.org/v1/models/b", None),
        ("//example.org/", None),
        ("/\\example.org/", None),
        ("{url}.example.org/", None),
        ("{url}@example.org/", None),
        ("{url}//example.org/", None),
    ],
)
async def test_a_redirect_is_not_followed_and_leads_nowhere_else(log: Path, location: str, passed: str | None) -> None:
    async with upstream() as model, box(provider(model.url), log) as agent:
        model.answers.append(Answer((), 307, [("location", location.format(url=model.url))]))
        reply = await agent.post()
    assert (reply.status, reply.headers.get("location"), len(model.requests)) == (307, passed, 1)


async def test_the_credential_is_in_no_log_and_no_text(log: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    async with upstream(Answer((SECRET.encode(),))) as model, box(provider(model.url), log) as agent:
        await agent.post()
        await agent.post(f"/{SECRET}")
        await agent.raw(f"GET /v1/models/{SECRET} HTTP/1.1\r\n\r\n".encode())
        texts = [repr(agent.gateway), str(vars(agent.gateway)), agent.written(), caplog.text]
    assert not [text for text in texts if SECRET in text]


async def test_an_agent_cannot_forge_lines_of_the_log(log: Path) -> None:
    target = '/v1/"},{"a":"\\u001b[2J' + "x" * 500
    async with upstream() as model, box(provider(model.url), log) as agent:
        await agent.raw(f"GET {target} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        await agent.raw(b"GET /a\n{} HTTP/1.1\r\nHost: x\r\n\r\n")
        await agent.raw("GET /\u202egnp.exe HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    first, second, third = agent.lines()
    assert first["path"] == target[:300]
    assert (second["path"], third["path"]) == (None, None)
    assert agent.written().isascii()


CREDENTIALS = st.text([chr(code) for code in range(0x21, 0x7F)], min_size=8, max_size=60)


@pytest.mark.broad(but_first=3)
@pytest.mark.parametrize("encoding", ENCODINGS)
@given(CREDENTIALS, st.lists(st.integers(0, 200), max_size=4))
@pytest.mark.slow
def test_the_credential_is_masked_in_every_encoding_and_across_pieces(
    encoding: str, credential: str, cuts: list[int]
) -> None:
    hidden = ENCODINGS[encoding](credential)
    text = f"your key was {hidden} here".encode()
    mask = Mask(SecretStr(credential))
    stream = MaskedStream(mask)
    edges = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    pieces = [text[start:end] for start, end in pairwise(edges)]
    passed = b"".join([*(stream.feed(piece) for piece in pieces), stream.rest()])
    assert len(passed) == len(text)
    shown = passed.removeprefix(b"your key was ").removesuffix(b" here")
    longest = max(map(len, re.split(rb"\*+", shown)))
    assert b"*" in shown
    assert longest <= (len("LCBhbmQgbW9yZQ==") if "in a text" in encoding else 4)


@pytest.mark.parametrize("encoding", sorted(ENCODINGS.keys() - {"plain"}))
def test_a_short_credential_is_masked_as_it_is_and_nothing_else_for_it(encoding: str) -> None:
    text = ENCODINGS[encoding]("ollama").encode()
    assert text == b"ollama" or Mask(SecretStr("ollama")).cover(text) == text
    assert Mask(SecretStr("ollama")).cover(b"ollama") == b"******"


@given(st.lists(st.binary(max_size=6) | st.sampled_from([b"abc", b"ab", b"abcabcab", b"cab"]), max_size=12))
def test_a_masked_stream_equals_the_masked_whole(pieces: list[bytes]) -> None:
    mask = Mask(SecretStr("abcabcab"))
    stream = MaskedStream(mask)
    passed = b"".join([*(stream.feed(piece) for piece in pieces), stream.rest()])
    whole = b"".join(pieces)
    assert len(passed) == len(whole)
    assert b"abcabcab" not in passed
    assert all(a in (b, ord("*")) for a, b in zip(passed, whole, strict=True))
