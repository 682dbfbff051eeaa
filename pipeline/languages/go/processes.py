"""Processes inside the box: started, limited in time and output, and told of in records with a nonce.

`go.runner` uses it there: the standard library only. Streams are read while a process runs, so that what prints without
end fills neither memory nor disk.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import time
from collections import deque
from typing import Any

from pipeline.languages.watched import Watch, start

WHOLE = 64_000_000
"""Bytes that are kept of the answer of a tool."""
SAID = 64_000

_END = 128_000
_FRAMES = 20_000
_FOLLOWING = 60
_BEFORE = 40
_WIDTH = 2_000
_KEPT = 4_000_000
_WAIT_S = 0.25


class Ends:
    """The beginning and the end of a stream, `limit` bytes of each."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._head = bytearray()
        self._tail = bytearray()
        self._cut = False

    def feed(self, data: bytes) -> None:
        """Take the next bytes."""
        room = self._limit - len(self._head)
        self._head += data[:room] if room > 0 else b""
        self._tail += data[max(room, 0) :]
        if len(self._tail) > 2 * self._limit:
            self._cut = True
            del self._tail[: -self._limit]

    def text(self) -> str:
        """Return both, with a mark between them where something is left out."""
        middle = b"\n[...]\n" if self._cut else b""
        return (bytes(self._head) + middle + bytes(self._tail)).decode("utf-8", "replace")


class Frames:
    """The lines in which `testing` says what begins and ends, with a few of those around each."""

    def __init__(self) -> None:
        self._rest = b""
        self._lines: list[bytes] = []
        self._before: deque[bytes] = deque(maxlen=_BEFORE)
        self._following = _FOLLOWING
        self._size = 0
        self._frames = 0

    def feed(self, data: bytes) -> None:
        """Take the next bytes."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._line(line)
        if len(self._rest) > SAID:  # a line without an end
            self._line(self._rest)
            self._rest = b""

    def text(self) -> str:
        """Return what is kept; the last lines always are."""
        lines = [*self._lines, *self._before, self._rest[:_WIDTH]]
        return b"\n".join(lines).decode("utf-8", "replace")

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


class Ended:
    """How one process ended, with what it printed; a code below 0 is a signal."""

    def __init__(self, code: int, stdout: str, stderr: str, *, timed_out: bool, watch: Watch | None = None) -> None:
        self.code = code
        self.stdout = stdout
        self.stderr = stderr
        self.timed_out = timed_out
        self.watch = watch or Watch()

    def facts(self) -> dict[str, Any]:
        """Return the same for a record."""
        said = {"code": self.code, "stdout": self.stdout, "stderr": self.stderr, "timed_out": self.timed_out}
        return {**said, **self.watch.facts()}


def run(argv: list[str], limit_s: float, cwd: str, out: Ends | Frames | None = None, *, watched: bool = False) -> Ended:
    """Run to the end or to the limit; its whole process group is dead on return, whoever holds its streams.

    `watched` if no other program may take its place.
    """
    keepers = (out or Ends(WHOLE), Ends(_END))
    try:
        process, watch = start(
            argv,
            watched=watched,
            cwd=cwd,
            env={**os.environ, "PWD": cwd},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except OSError as error:
        return Ended(127, "", f"{argv[0]}: {error.strerror}", timed_out=False)
    deadline = time.monotonic() + max(limit_s, 0.1)
    with selectors.DefaultSelector() as selector, process:
        for stream, keeper in zip((process.stdout, process.stderr), keepers, strict=True):
            assert stream is not None  # noqa: S101  (both were asked for)
            os.set_blocking(stream.fileno(), False)
            selector.register(stream, selectors.EVENT_READ, keeper)
        while process.poll() is None and time.monotonic() < deadline:
            pump(selector, min(_WAIT_S, deadline - time.monotonic()))
        timed_out = process.poll() is None
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        # whoever left the group may hold the streams for ever: only what is there by now is read
        for _ in range(WHOLE // SAID):
            if not pump(selector, 0):
                break
    return Ended(process.returncode, keepers[0].text(), keepers[1].text(), timed_out=timed_out, watch=watch)


def pump(selector: selectors.BaseSelector, wait_s: float) -> bool:
    """Read once from each stream that has something; return whether any had. An ended process wakes no selector."""
    if not selector.get_map():
        time.sleep(max(min(wait_s, 0.01), 0))
        return False
    found = False
    for key, _ in selector.select(wait_s):
        data = os.read(key.fd, SAID)
        if data:
            key.data.feed(data)
            found = True
        else:
            selector.unregister(key.fileobj)
    return found
