"""A scripted HTTP service on loopback: answers in order, says what it was asked, waits where the test says so.

A gate is an `anyio.Event` among the pieces of an answer: what follows it is sent once the test has set it.
"""

from __future__ import annotations

import ssl
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

import anyio
import h11
import trustme
from anyio.abc import SocketAttribute
from anyio.streams.tls import TLSListener, TLSStream

if TYPE_CHECKING:
    from anyio.abc import AnyByteStream, SocketListener

Headers = Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Received:
    """One request, as it came; `body` is what came of it, `whole` whether that was all."""

    method: str
    target: str
    headers: tuple[tuple[str, str], ...]
    body: bytes = b""
    whole: bool = True

    def all(self, name: str) -> list[str]:
        """Return the values of a header."""
        return [value for known, value in self.headers if known == name]


@dataclass(frozen=True)
class Answer:
    """What is sent back.

    Args:
        pieces: Chunks of the body, and gates between them.
        status: The status.
        headers: Beside the framing: chunked unless a content-length is among them.
        raw: Sent instead of all that, byte for byte.
        cut: Hang up before the end of the body.
        garbled: End with bytes that are no TLS.
        early: Answer before the request's body is read, and hang up then.
    """

    pieces: Sequence[bytes | anyio.Event] = (b'{"ok": true}',)
    status: int = 200
    headers: Headers = (("content-type", "application/json"),)
    raw: bytes | None = None
    cut: bool = False
    garbled: bool = False
    early: bool = False


@dataclass
class Upstream:
    """The service: `answers` are taken in order; `left` is set when a caller hangs up on an unfinished answer."""

    url: str
    answers: list[Answer] = field(default_factory=list[Answer])
    requests: list[Received] = field(default_factory=list[Received])
    asked: anyio.Event = field(default_factory=anyio.Event)
    left: anyio.Event = field(default_factory=anyio.Event)

    async def attend(self, stream: AnyByteStream) -> None:
        """Take one request and answer it."""
        async with stream:
            http = h11.Connection(h11.SERVER)
            try:
                request = await _next(http, stream)
            except h11.RemoteProtocolError:
                return
            if not isinstance(request, h11.Request):
                return
            answer = self.answers.pop(0) if self.answers else Answer((b"no answer is left",), 500)
            headers = tuple((name.decode(), value.decode()) for name, value in request.headers)
            body, whole = (b"", False) if answer.early else await _body(http, stream)
            self.requests.append(
                Received(request.method.decode(), request.target.decode(), headers, body=body, whole=whole)
            )
            self.asked.set()
            if whole or answer.early:
                await self._answer(http, stream, answer)

    async def _answer(self, http: h11.Connection, stream: AnyByteStream, answer: Answer) -> None:
        async with anyio.create_task_group() as group:

            async def watch() -> None:
                with_nothing = await _receive(stream)
                if not with_nothing:
                    self.left.set()
                    group.cancel_scope.cancel()

            async def say(event: h11.Event) -> None:
                await stream.send(http.send(event) or b"")

            if not answer.early:
                group.start_soon(watch)
            if answer.raw is not None:
                await stream.send(answer.raw)
            else:
                await say(h11.Response(status_code=answer.status, headers=list(answer.headers)))
            for piece in answer.pieces:
                if isinstance(piece, anyio.Event):
                    await piece.wait()
                elif answer.raw is None:
                    await say(h11.Data(data=piece))
            if answer.garbled and isinstance(stream, TLSStream):
                await stream.transport_stream.send(b"this is no TLS" * 9)
            elif answer.raw is None and not answer.cut:
                await say(h11.EndOfMessage())
            group.cancel_scope.cancel()


@asynccontextmanager
async def upstream(*answers: Answer, tls: ssl.SSLContext | None = None) -> AsyncGenerator[Upstream]:
    """Serve *answers* until the end of the block."""
    socket = await anyio.create_tcp_listener(local_host="127.0.0.1")
    listener = cast("SocketListener", socket.listeners[0])
    port = listener.extra_attributes[SocketAttribute.local_port]()
    service = Upstream(f"{'https' if tls else 'http'}://127.0.0.1:{port}", list(answers))

    async def quietly(stream: AnyByteStream) -> None:
        try:
            await service.attend(stream)
        except* (anyio.BrokenResourceError, anyio.ClosedResourceError, anyio.EndOfStream):
            service.left.set()

    async with listener, anyio.create_task_group() as group:
        serving = TLSListener(listener, tls, standard_compatible=False) if tls else listener
        group.start_soon(serving.serve, quietly)
        yield service
        group.cancel_scope.cancel()


def certificate() -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """Return how a service on 127.0.0.1 proves who it is, and how a client checks that."""
    authority = trustme.CA()
    serving, trusting = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.create_default_context()
    # What else these two accept is the type of a library that is not installed.
    authority.issue_cert("127.0.0.1").configure_cert(serving)  # pyright: ignore[reportUnknownMemberType]
    authority.configure_trust(trusting)  # pyright: ignore[reportUnknownMemberType]
    return serving, trusting


async def _next(http: h11.Connection, stream: AnyByteStream) -> object:
    while (event := http.next_event()) is h11.NEED_DATA:
        http.receive_data(await _receive(stream))
    return event


async def _body(http: h11.Connection, stream: AnyByteStream) -> tuple[bytes, bool]:
    body = b""
    try:
        while isinstance(event := await _next(http, stream), h11.Data):
            body += event.data
    except h11.RemoteProtocolError:
        return body, False
    return body, isinstance(event, h11.EndOfMessage)


async def _receive(stream: AnyByteStream) -> bytes:
    try:
        return await stream.receive()
    except (anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError):
        return b""
