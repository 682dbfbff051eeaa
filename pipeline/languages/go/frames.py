"""Reduces the output of a Go test, inside the box, to the part that is kept.

`go.runner` uses it there: the standard library only.
"""

from __future__ import annotations

from collections import deque

from pipeline.languages.runners.processes import READ_AT_ONCE, Tail

_FRAMES = 20_000
_FOLLOWING = 60
_BEFORE = 40
_WIDTH = 2_000
_KEPT = 4_000_000


class Frames(Tail):
    """The lines of `testing` on begins and ends, with a few lines around each, and the last lines."""

    def __init__(self) -> None:
        super().__init__(READ_AT_ONCE)
        self._rest = b""
        self._lines: list[bytes] = []
        self._before: deque[bytes] = deque(maxlen=_BEFORE)
        self._following = _FOLLOWING
        self._size = 0
        self._frames = 0

    def feed(self, data: bytes) -> None:
        """Add the next bytes of output."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._line(line)
        if len(self._rest) > READ_AT_ONCE:  # a line without an end
            self._line(self._rest)
            self._rest = b""

    def _whole(self) -> bytes:
        return b"\n".join([*self._lines, *self._before, self._rest[:_WIDTH]])

    def _line(self, line: bytes) -> None:
        is_frame = b"=== " in line or b"--- " in line
        if is_frame and self._frames < _FRAMES:
            self._frames += 1
            self._keep(*self._before)
            self._before.clear()
            self._lines.append(line[-_WIDTH:])
            self._following = _FOLLOWING
        elif not is_frame and self._following > 0 and self._size < _KEPT:
            self._following -= 1
            self._keep(line)
        else:
            self._following = 0  # from here on the last lines only, in their order
            self._before.append(line[-_WIDTH:] if is_frame else line[:_WIDTH])

    def _keep(self, *lines: bytes) -> None:
        for line in lines:
            if self._size < _KEPT:
                self._lines.append(line[:_WIDTH])
                self._size += len(self._lines[-1])
