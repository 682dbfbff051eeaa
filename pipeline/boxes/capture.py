"""Keeps the beginning and the end of an output of any length, and passes its lines on while they come.

The beginning has the first error, the end the report.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

_BREAK: Final = re.compile(rb"[\r\n]+")
_LONGEST: Final = 256_000
"""The longest line, in bytes, that is passed on; of a longer one nothing is: half of it might be half of a secret."""


@dataclass
class Lines:
    """Passes each whole line of a stream on to `on_line`; a carriage return ends one, too."""

    on_line: Callable[[bytes], None]
    _begun: bytearray = field(default_factory=bytearray)
    _too_long: bool = False

    def take(self, chunk: bytes) -> None:
        """Add the stream's next bytes."""
        *whole, rest = _BREAK.split(chunk)
        for line in whole:
            self._add(line)
            if self._begun and not self._too_long:
                self.on_line(bytes(self._begun))
            self._begun.clear()
            self._too_long = False
        self._add(rest)

    def _add(self, more: bytes) -> None:
        if self._too_long or len(self._begun) + len(more) > _LONGEST:
            self._too_long = True
            self._begun.clear()
            return
        self._begun += more


@dataclass
class Capture:
    """Collects the beginning and the end of a stream, at most `limit` bytes together; `lines` hear of all of it."""

    limit: int
    lines: Lines | None = None
    head: bytearray = field(default_factory=bytearray)
    tail: bytearray = field(default_factory=bytearray)
    total: int = 0

    def take(self, chunk: bytes) -> None:
        """Add the stream's next bytes."""
        if self.lines is not None:
            self.lines.take(chunk)
        self.total += len(chunk)
        room = self.limit // 2 - len(self.head)
        self.head += chunk[:room]
        self.tail += chunk[room:]
        if len(self.tail) > 2 * self.limit:
            del self.tail[: -self.limit]

    @property
    def truncated(self) -> bool:
        """Return whether bytes in the middle were dropped."""
        return self.total > self.limit

    def content(self) -> bytes:
        """Return the kept bytes, with a line in the place of dropped ones."""
        if not self.truncated:
            return bytes(self.head + self.tail)
        end = self.tail[len(self.head) - self.limit :]
        dropped = self.total - len(self.head) - len(end)
        return bytes(self.head) + f"\n[... {dropped} bytes left out ...]\n".encode() + bytes(end)
