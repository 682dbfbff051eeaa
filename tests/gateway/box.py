"""What stands in for a box here: a listening socket, a gateway behind it, and raw bytes through a client's socket."""

from __future__ import annotations

import json
import socket
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

import anyio
import h11
from pydantic import SecretStr

from pipeline.agents.gateway.proxy import ModelGateway
from pipeline.config.providers import CredentialHeader, Provider

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncGenerator, Mapping
    from pathlib import Path

    from anyio.abc import SocketStream

    from pipeline.agents.gateway.failing_service import Patience
    from pipeline.agents.gateway.route import Proxy
    from pipeline.agents.gateway.spending import Allowance
    from pipeline.config.providers import PriceTable

SECRET = "sk-the-real-credential/0123456789"


def provider(url: str, **changes: Any) -> Provider:
    """Return a provider that can be asked for /v1/messages and below /v1/models."""
    known: dict[str, Any] = {
        "url": url,
        "credential_env": "THE_KEY",
        "header": CredentialHeader.X_API_KEY,
        "paths": ("POST /v1/messages", "GET /v1/models/*"),
    }
    return Provider.model_validate(known | changes)


class Terms(TypedDict, total=False):
    """What a gateway can be told beside its service, credential and log."""

    name: str
    allowance: Allowance
    prices: Mapping[str, PriceTable]
    patience: Patience
    proxy: Proxy | None
    tls: ssl.SSLContext | None


@dataclass
class Reply:
    """What came back; `whole` is false where the connection ended in the middle."""

    status: int
    headers: dict[str, str]
    body: bytes
    whole: bool

    @property
    def error(self) -> dict[str, str]:
        """Return the error that the gateway itself says."""
        return json.loads(self.body)["error"]


@dataclass
class Box:
    """The address that a command in a box would have."""

    gateway: ModelGateway
    port: int
    log: Path

    async def connect(self) -> SocketStream:
        """Return a connection to the gateway."""
        return await anyio.connect_tcp("127.0.0.1", self.port)

    async def raw(self, request: bytes) -> Reply:
        """Send bytes and read what comes back, to the end of the connection."""
        async with await self.connect() as stream:
            await stream.send(request)
            return await read_reply(stream)

    async def post(self, path: str = "/v1/messages", body: bytes = b"{}", headers: str = "") -> Reply:
        """Send an ordinary request."""
        head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\n{headers}Content-Length: {len(body)}\r\n\r\n"
        return await self.raw(head.encode() + body)

    def written(self) -> str:
        """Return the log."""
        return self.log.read_text("ascii") if self.log.exists() else ""

    def lines(self) -> list[dict[str, Any]]:
        """Return what the log says."""
        return [json.loads(line) for line in self.written().splitlines()]


@asynccontextmanager
async def box(
    service: Provider, log: Path, *, credential: str | None = SECRET, **terms: Unpack[Terms]
) -> AsyncGenerator[Box]:
    """Serve a gateway for *service* until the end of the block."""
    listener = socket.create_server(("127.0.0.1", 0))
    port: int = listener.getsockname()[1]
    gateway = ModelGateway(service, SecretStr(credential) if credential else None, log, **terms)
    async with gateway.serve(listener):
        yield Box(gateway, port, log)


async def read_reply(stream: SocketStream) -> Reply:
    """Read one answer."""
    http = h11.Connection(h11.CLIENT)
    http.send(h11.Request(method="GET", target="/", headers=[("host", "x")]))
    http.send(h11.EndOfMessage())
    reply = Reply(0, {}, b"", whole=False)
    while True:
        try:
            event = http.next_event()
        except h11.RemoteProtocolError:
            return reply
        match event:
            case h11.Response():
                reply.status = event.status_code
                reply.headers = {name.decode(): value.decode() for name, value in event.headers}
            case h11.Data():
                reply.body += event.data
            case h11.EndOfMessage():
                reply.whole = True
                return reply
            case _ if event is h11.NEED_DATA:
                try:
                    http.receive_data(await stream.receive())
                except (anyio.EndOfStream, anyio.BrokenResourceError):
                    http.receive_data(b"")
            case _:
                return reply
