"""Reads and writes JSON-RPC messages, one per line; the agent may send anything (see `acp`).

What is no message is noted and passed over; what would cost memory without end breaks the wire. The SDK's own transport
does neither, and says on our terminal what it could not read.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, cast

import anyio
import anyio.lowlevel

if TYPE_CHECKING:
    from anyio.abc import ByteReceiveStream, ByteSendStream

    from pipeline.backends.acp_turn import Turn

LONGEST: Final = 32_000_000
"""The largest message in bytes: agents send whole files, before and after an edit."""
UNANSWERED: Final = 200
"""The most unanswered requests of an agent."""
_UPDATE: Final = "session/update"
_Json = dict[str, Any]


class Wire:
    """A message transport for `acp.connection.Connection`.

    Args:
        stdin: The agent's.
        stdout: The agent's.
        turn: What updates are given to, in their order and before any answer that comes after them.
    """

    def __init__(self, stdin: ByteSendStream, stdout: ByteReceiveStream, turn: Turn) -> None:
        self._stdin = stdin
        self._stdout = stdout
        self._turn = turn
        self._read = bytearray()
        self._seen = 0
        self._waiting = 0
        self.broken: str | None = None
        """Why nothing more is read from the agent, in one sentence; None while it behaves, or when it has ended."""

    async def send(self, message: _Json) -> None:
        """Send one message; if the agent is gone, the wait for its answer fails."""
        # A pydantic error in an answer of the SDK may hold what JSON cannot say.
        line = json.dumps(message, separators=(",", ":"), default=str).encode() + b"\n"
        try:
            await self._stdin.send(line)
        except (anyio.BrokenResourceError, anyio.ClosedResourceError, OSError):
            return
        if "method" not in message:
            self._waiting -= 1

    async def receive(self) -> _Json | None:
        """Return the next request or answer; None after the last one."""
        while (line := await self._line()) is not None:
            await anyio.lowlevel.checkpoint()  # what has come is dealt with before more is taken
            message = _message(line)
            if message is None:
                self._turn.noise(line)
            elif message.get("method") == _UPDATE:
                self._turn.update(message.get("params"))
            elif self._waits_too_long(message):
                self.broken = f"The agent had more than {UNANSWERED} requests waiting for an answer."
                return None
            else:
                return message
        return None

    async def close(self) -> None:
        """Do nothing: the streams belong to the box."""

    def _waits_too_long(self, message: _Json) -> bool:
        self._waiting += "method" in message and "id" in message
        return self._waiting > UNANSWERED

    async def _line(self) -> bytes | None:
        while (end := self._read.find(b"\n", self._seen)) < 0:
            self._seen = len(self._read)
            if self._seen > LONGEST:
                self.broken = f"The agent sent a message of more than {LONGEST} bytes."
                return None
            try:
                self._read += await self._stdout.receive()
            except (anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError):
                return self._last()
        line = bytes(self._read[:end])
        del self._read[: end + 1]
        self._seen = 0
        return line

    def _last(self) -> bytes | None:
        line, self._seen = bytes(self._read), 0
        self._read.clear()
        return line or None


def _message(line: bytes) -> _Json | None:
    """Return the message in `line` if the SDK accepts it: a request, a notification or an answer; else None."""
    try:
        value: object = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict):
        return None
    message = cast("_Json", value)
    named = isinstance(message.get("method", ""), str) and isinstance(message.get("id"), int | str | None)
    return message if named and isinstance(message.get("error"), dict | None) else None
