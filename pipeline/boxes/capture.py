"""Keeps the beginning and the end of an output of any length: one has the first error, the other the report."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Capture:
    """Collects the beginning and the end of a stream, at most `limit` bytes together."""

    limit: int
    head: bytearray = field(default_factory=bytearray)
    tail: bytearray = field(default_factory=bytearray)
    total: int = 0

    def take(self, chunk: bytes) -> None:
        """Add the stream's next bytes."""
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
