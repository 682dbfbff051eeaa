"""Speaks HTTP/1.1 on a stream through h11: one message each way, with failures as values."""

from __future__ import annotations

import json
from enum import Enum, auto
from typing import TYPE_CHECKING, Final

import anyio
import h11
from anyio.abc import ByteStream, SocketStream

from pipeline.agents.gateway.rules import HEAD_BYTES, Refusal, judge_bytes, judge_lines

if TYPE_CHECKING:
    import socket


_PIECE: Final = 65_536
_LINGER_S: Final = 2.0
_BLANK: Final = b"\r\n\r\n"
# OSError: what TLS says of bytes that are no TLS.
_GONE: Final = (anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError, OSError)


class End(Enum):
    """How a body ended."""

    DONE = auto()
    GONE = auto()
    """The peer closed the connection before the end."""
    MALFORMED = auto()


async def accept(listener: socket.socket) -> socket.socket:
    """Return the next connection to the non-blocking *listener*.

    Not anyio's own listener: on a socket file its streams break when a reader is cancelled as something arrives.

    Raises:
        OSError: there are no descriptors left.
    """
    while True:
        try:
            connection, _ = listener.accept()
        except (BlockingIOError, ConnectionAbortedError):
            await anyio.wait_readable(listener)
        else:
            return connection


async def stream_of(connection: socket.socket) -> SocketStream | None:
    """Return the stream of *connection*; None if the peer is gone already."""
    try:
        return await SocketStream.from_socket(connection)
    except (OSError, ValueError):
        connection.close()
        return None
    except BaseException:
        connection.close()
        raise


class Peer:
    """One side of an exchange: the agent or the service."""

    def __init__(self, stream: ByteStream, role: type[h11.CLIENT | h11.SERVER]) -> None:
        self.stream = stream
        self._http = h11.Connection(role, max_incomplete_event_size=2 * HEAD_BYTES)
        self._closed = False

    async def send(self, event: h11.Event) -> bool:
        """Send *event*; return whether the peer was still connected."""
        data = self._http.send(event)
        try:
            if data:
                await self.stream.send(data)
        except _GONE:
            return False
        return True

    async def piece(self) -> bytes | End:
        """Return the next bytes of the peer's body as soon as some arrive, or how the body ended."""
        event = await self.next_event()
        match event:
            case h11.Data():
                return bytes(event.data)
            case h11.EndOfMessage():
                return End.DONE
            case End():
                return event
            case _:
                return End.GONE

    async def next_event(self) -> h11.Event | End:
        """Return the peer's next HTTP event, or how its message ended."""
        while True:
            try:
                event = self._http.next_event()
            except h11.RemoteProtocolError:
                return End.GONE if self._closed else End.MALFORMED
            if isinstance(event, h11.Event):
                return event
            if event is h11.PAUSED:
                return End.GONE
            self._http.receive_data(await self.receive())

    async def receive(self) -> bytes:
        """Return the next bytes received, empty when the peer has closed the connection."""
        try:
            return await self.stream.receive(_PIECE)
        except _GONE:
            self._closed = True
            return b""


class Caller(Peer):
    """The agent's side of an exchange."""

    def __init__(self, stream: ByteStream) -> None:
        super().__init__(stream, h11.SERVER)
        self.answered = False
        self._asked_for_head = False

    async def request(self) -> h11.Request | Refusal | None:
        """Return the head of the request, or a refusal; None if the agent closed the connection before it."""
        seen = bytearray()
        while (end := seen.find(_BLANK)) < 0:
            known = len(seen)
            seen += await self.receive()
            if self._closed:
                return None
            if _BLANK not in seen and (refusal := judge_bytes(seen, max(0, known - 1))):
                return refusal
        head, rest = bytes(seen[: end + len(_BLANK)]), bytes(seen[end + len(_BLANK) :])
        if refusal := judge_bytes(head) or judge_lines(head):
            return refusal
        self._http.receive_data(head)
        try:
            event = self._http.next_event()
        except h11.RemoteProtocolError as error:
            return Refusal(error.error_status_hint, "malformed", "The request is malformed.")
        if not isinstance(event, h11.Request):
            return Refusal(400, "malformed", "The request is malformed.")
        self._asked_for_head = event.method == b"HEAD"
        if rest:  # to h11, nothing means that the caller has gone
            self._http.receive_data(rest)
        return event

    async def ask_for_body(self) -> None:
        """Send `100 Continue` if the agent waits for it before its body."""
        if self._http.they_are_waiting_for_100_continue:
            await self.send(h11.InformationalResponse(status_code=100, headers=[]))

    async def hung_up(self) -> None:
        """Return when the agent has closed the connection; further input is discarded."""
        while not self._closed:
            await self.receive()

    async def answer(self, status: int, headers: tuple[tuple[bytes, bytes], ...]) -> bool:
        """Send the head of the answer; return whether the agent is still connected."""
        self.answered = True
        return await self.send(h11.Response(status_code=status, headers=list(headers)))

    async def refuse(self, refusal: Refusal) -> None:
        """Answer with the refusal in a form that the agents' libraries show to their users."""
        message = {"type": "redfirst", "code": refusal.rule, "message": f"redfirst: {refusal.why}"}
        body = json.dumps({"type": "error", "error": message}).encode()
        headers = (
            (b"content-type", b"application/json"),
            (b"content-length", str(len(body)).encode()),
            (b"retry-after", b"1") if refusal.again else (b"x-should-retry", b"false"),
            (b"connection", b"close"),
        )
        there = await self.answer(refusal.status, headers)
        if there and not self._asked_for_head:
            there = await self.send(h11.Data(data=body))
        if there:
            await self.send(h11.EndOfMessage())

    async def linger(self) -> None:
        """Wait until the agent has read the answer: closing while it still sends would lose it (RFC 9112, 9.6)."""
        with anyio.move_on_after(_LINGER_S):
            try:
                await self.stream.send_eof()
            except _GONE:
                return
            await self.hung_up()


class Service(Peer):
    """The model service's side of an exchange."""

    def __init__(self, stream: ByteStream) -> None:
        super().__init__(stream, h11.CLIENT)

    async def response(self) -> h11.Response | None:
        """Return the head of the answer; None if it is missing or broken."""
        while isinstance(event := await self.next_event(), h11.InformationalResponse):
            pass
        return event if isinstance(event, h11.Response) else None
