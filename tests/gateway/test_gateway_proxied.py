"""Through the proxy of the user's environment, to services elsewhere only; it learns nothing but their host."""

from __future__ import annotations

import base64
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

import anyio
import pytest
from anyio.abc import SocketAttribute
from anyio.streams.tls import TLSListener
from gateway.answers import ANTHROPIC, ANTHROPIC_TOOK
from gateway.box import SECRET, box, provider
from gateway.upstream import Answer, certificate, upstream
from pydantic import SecretStr

from pipeline.agents.gateway.failing_service import Patience, Trouble
from pipeline.agents.gateway.route import Proxy, proxy_for
from pipeline.errors import UserError
from pipeline.outcomes import Reason

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncGenerator
    from pathlib import Path

    from anyio.abc import ByteStream, SocketListener


@dataclass
class Scripted:
    """A proxy on loopback; `heads` is what it was asked, and `through` what it carried upwards."""

    port: int
    answer: bytes | None = None
    heads: list[str] = field(default_factory=list[str])
    through: bytes = b""

    async def attend(self, stream: ByteStream) -> None:
        async with stream:
            head = b""
            while not head.endswith(b"\r\n\r\n"):
                head += await stream.receive(1)
            self.heads.append(head.decode())
            if self.answer is not None:
                await stream.send(self.answer)
                return
            host, _, port = head.split()[1].decode().rpartition(":")
            async with await anyio.connect_tcp(host, int(port)) as onward, anyio.create_task_group() as group:
                await stream.send(b"HTTP/1.1 200 Connection established\r\nVia: 1.1 test\r\n\r\n")

                async def upward() -> None:
                    async for piece in stream:
                        self.through += piece
                        await onward.send(piece)

                group.start_soon(upward)
                async for piece in onward:
                    await stream.send(piece)
                group.cancel_scope.cancel()


@asynccontextmanager
async def scripted_proxy(answer: bytes | None = None, tls: ssl.SSLContext | None = None) -> AsyncGenerator[Scripted]:
    socket_listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    listener = cast("SocketListener", socket_listener.listeners[0])
    proxy = Scripted(listener.extra_attributes[SocketAttribute.local_port](), answer)

    async def quietly(stream: ByteStream) -> None:
        try:
            await proxy.attend(stream)
        except* (anyio.BrokenResourceError, anyio.ClosedResourceError, anyio.EndOfStream):
            pass

    async with listener, anyio.create_task_group() as group:
        group.start_soon((TLSListener(listener, tls) if tls else listener).serve, quietly)
        yield proxy
        group.cancel_scope.cancel()


@pytest.mark.anyio
@pytest.mark.parametrize("login", [None, "user:pass word/\u00fc"])
async def test_a_request_goes_through_the_proxy_and_the_proxy_cannot_read_it(log: Path, login: str | None) -> None:
    serving, trusting = certificate()
    service = Answer((ANTHROPIC,))
    async with upstream(service, tls=serving) as model, scripted_proxy() as through:
        proxy = Proxy("127.0.0.1", through.port, login=SecretStr(login) if login else None)
        async with box(provider(model.url), log, tls=trusting, proxy=proxy) as agent:
            reply = await agent.post()
    assert (reply.status, reply.body, reply.whole) == (200, ANTHROPIC, True)
    assert agent.gateway.use.spent.by_model == dict([ANTHROPIC_TOOK])
    assert model.requests[0].all("x-api-key") == [SECRET]
    assert model.requests[0].all("proxy-authorization") == []
    authority = model.url.removeprefix("https://")
    said = f"Proxy-Authorization: Basic {base64.b64encode(login.encode()).decode()}\r\n" if login else ""
    (head,) = through.heads
    assert head.lower() == f"CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n{said}\r\n".lower()
    assert SECRET.encode() not in through.through
    assert b"messages" not in through.through


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (b"HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic\r\n\r\n", "answers 407"),
        (b"HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno", "answers 403"),
        (b"HTTP/1.1 502 Bad Gateway\r\n\r\n", "answers 502"),
        (b"SSH-2.0-OpenSSH\r\n", "gives no proper answer"),
        (b"", "gives no proper answer"),
        (b"HTTP/1.1 200 OK", "gives no proper answer"),
    ],
)
async def test_a_proxy_that_refuses_is_told_apart_from_the_service(log: Path, answer: bytes, words: str) -> None:
    serving, trusting = certificate()
    async with upstream(tls=serving) as model, scripted_proxy(answer) as through:
        proxy = Proxy("127.0.0.1", through.port, login=SecretStr("user:hidden"))
        patience = Patience(requests=1, seconds=0.0)
        async with box(provider(model.url), log, tls=trusting, proxy=proxy, patience=patience) as agent:
            reply = await agent.post()
    assert (reply.status, reply.error["code"]) == (502, "proxy")
    assert f"The proxy {words}" in reply.error["message"]
    assert agent.gateway.halt is not None
    assert agent.gateway.halt.trouble is Trouble.UNAVAILABLE
    assert "hidden" not in agent.written() + str(agent.gateway.halt) + repr(proxy)
    assert model.requests == []


@pytest.mark.anyio
async def test_a_proxy_whose_certificate_is_not_trusted_is_not_asked(log: Path) -> None:
    serving, _ = certificate()
    async with scripted_proxy(tls=serving) as through:
        proxy = Proxy("127.0.0.1", through.port, tls=True, login=SecretStr("user:hidden"))
        async with box(provider("https://models.example.org"), log, proxy=proxy) as agent:
            reply = await agent.post()
    assert (reply.status, reply.error["code"], through.heads) == (502, "proxy", [])


@pytest.mark.anyio
async def test_a_service_behind_a_proxy_still_has_to_prove_who_it_is(log: Path) -> None:
    serving, _ = certificate()
    async with (
        upstream(tls=serving) as model,
        scripted_proxy() as through,
        box(provider(model.url), log, proxy=Proxy("127.0.0.1", through.port)) as agent,
    ):
        reply = await agent.post()
    assert (reply.status, reply.error["code"], model.requests) == (502, "certificate", [])


HTTPS = "https://api.example.org/v1"
HERE = Proxy("proxy.example.org", 3128)


@pytest.mark.parametrize(
    ("url", "environ", "proxy"),
    [
        (HTTPS, {}, None),
        (HTTPS, {"HTTPS_PROXY": ""}, None),
        (HTTPS, {"HTTPS_PROXY": "http://proxy.example.org:3128"}, HERE),
        (HTTPS, {"https_proxy": "http://proxy.example.org:3128/", "HTTPS_PROXY": "http://other:1"}, HERE),
        (HTTPS, {"HTTPS_PROXY": "proxy.example.org:3128"}, HERE),
        (HTTPS, {"HTTPS_PROXY": "http://proxy"}, Proxy("proxy", 80)),
        (HTTPS, {"HTTPS_PROXY": "https://proxy"}, Proxy("proxy", 443, tls=True)),
        (HTTPS, {"HTTPS_PROXY": "http://[::1]:3128"}, Proxy("::1", 3128)),
        (HTTPS, {"HTTPS_PROXY": "http://u:p%40ss@proxy:1"}, Proxy("proxy", 1, login=SecretStr("u:p@ss"))),
        (HTTPS, {"HTTPS_PROXY": "http://u@proxy:1"}, Proxy("proxy", 1, login=SecretStr("u:"))),
        (HTTPS, {"HTTP_PROXY": "http://proxy:1", "ALL_PROXY": "http://proxy:1"}, None),
        ("http://127.0.0.1:11434", {"HTTPS_PROXY": "http://proxy:1", "http_proxy": "http://proxy:1"}, None),
    ],
)
def test_the_environment_names_the_proxy(url: str, environ: dict[str, str], proxy: Proxy | None) -> None:
    assert proxy_for(url, environ) == proxy


@pytest.mark.parametrize(
    ("spared", "direct"),
    [
        ("*", True),
        ("api.example.org", True),
        ("API.Example.org", True),
        ("example.org", True),
        (".example.org", True),
        ("*.example.org", True),
        ("localhost, 127.0.0.1 ,example.org", True),
        ("localhost 127.0.0.1 example.org", True),
        ("example.org:443", True),
        ("example.org:8443", False),
        ("ample.org", False),
        ("pi.example.org", False),
        ("example.org.evil", False),
        ("api.example.org.", False),
        ("", False),
        (",", False),
    ],
)
@pytest.mark.parametrize("name", ["NO_PROXY", "no_proxy"])
def test_what_no_proxy_names_is_asked_directly(name: str, spared: str, direct: bool) -> None:
    environ = {"HTTPS_PROXY": "http://proxy:1", name: spared}
    assert (proxy_for(HTTPS, environ) is None) is direct


@pytest.mark.parametrize(
    "address", ["socks5://proxy:1", "http://", "http://:3128", "http://proxy:port", "http://proxy:99999", "/dev/null"]
)
def test_what_is_no_address_of_an_http_proxy_is_refused_and_not_repeated(address: str) -> None:
    hidden = address.replace("://", "://user:hidden@")
    with pytest.raises(UserError, match="HTTPS_PROXY holds no address of an HTTP proxy") as caught:
        proxy_for(HTTPS, {"HTTPS_PROXY": hidden})
    assert caught.value.reason is Reason.CONFIG
    assert "hidden" not in caught.value.message
