"""A socket between the driver and one command: the command reads its request from it and writes its records to it.

A socket cannot be opened by name, not even through `/proc`, so nobody reads what was written, and nothing can be put in
its place: no link, no FIFO, no device. The kernel says which process wrote each piece. What comes is bounded in size
(ADR-R95).
"""

from __future__ import annotations

import contextlib
import socket
import struct
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import anyio
import anyio.lowlevel

from pipeline.process import SOCKET, Answer, Command

if TYPE_CHECKING:
    from collections.abc import Generator


_CHUNK: Final = 1 << 16
_CREDENTIALS: Final = struct.Struct("iII")  # struct ucred: process, user, group


@dataclass
class Channel:
    """Both ends of the socket; the command's end is closed here once the command has started."""

    near: socket.socket
    far: socket.socket
    request: bytes
    limit: int
    _data: bytearray = field(default_factory=bytearray, init=False)
    _writer: int = field(default=0, init=False)
    _fault: str = field(default="", init=False)

    @property
    def number(self) -> int:
        """Return the file descriptor that the command inherits."""
        return self.far.fileno()

    def started(self) -> None:
        """Close the command's end in the driver, after the command has inherited it."""
        self.far.close()

    async def serve(self) -> None:
        """Send the request, then receive records until the command closes its end or breaks a rule."""
        await self._send()
        while not self._fault:
            await anyio.lowlevel.checkpoint()  # who writes without end may not hold up a time limit
            try:
                if not self._receive():
                    return
            except BlockingIOError:
                await anyio.wait_readable(self.near)
        self.near.close()  # what writes on is told so, instead of waiting for a reader

    def answer(self) -> Answer:
        """Return the received records, and the rule that was broken, if any."""
        return Answer(bytes(self._data), self._fault)

    async def _send(self) -> None:
        left = memoryview(self.request)
        while left:
            try:
                left = left[self.near.send(left) :]
            except BlockingIOError:
                await anyio.wait_writable(self.near)
            except OSError:  # it ended, and will not be told
                return
        with contextlib.suppress(OSError):
            self.near.shutdown(socket.SHUT_WR)

    def _receive(self) -> bool:
        """Receive what has arrived; return whether more may come."""
        try:
            data, notes, _, _ = self.near.recvmsg(_CHUNK, socket.CMSG_SPACE(_CREDENTIALS.size))
        except ConnectionError:
            return False
        if not data:
            return False
        writer = next((_CREDENTIALS.unpack(value)[0] for _, kind, value in notes if kind == socket.SCM_CREDENTIALS), 0)
        self._writer = self._writer or writer
        if writer != self._writer:
            self._fault = "another process wrote into the records"
        elif len(self._data) + len(data) > self.limit:
            self._fault = f"the records are larger than {self.limit} bytes"
        else:
            self._data += data
        return True


@contextlib.contextmanager
def opened_channel(command: Command) -> Generator[tuple[Channel | None, dict[str, str]]]:
    """Yield a command's channel and the environment variable that names it; None and {} for one without a request."""
    if command.request is None:
        yield None, {}
        return
    near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    with near, far:
        near.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        near.setblocking(False)
        channel = Channel(near, far, command.request, command.answer_limit)
        yield channel, {SOCKET: str(channel.number)}
