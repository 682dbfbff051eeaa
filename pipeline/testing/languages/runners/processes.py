"""Starts processes inside the box, limits their time and output, and writes records of them to a socket.

Runners inside the box use it: the standard library only. Streams are read while a process runs, so that what prints
without end fills neither memory nor disk. Records go over a socket, since standard streams would not do: the init of
the box has them too, and a pipe can be opened by name through its folder in `/proc`, by whatever a test has left
running.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import selectors
import signal
import subprocess
import threading
import time
from typing import Any

from pipeline.testing.languages.runners.exec_guard import Watch, start

_PR_SET_DUMPABLE = 4


def begin() -> tuple[dict[str, Any], Records]:
    """Return the request and the writer of records; from now on no other process can inspect this one."""
    ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
    descriptor = int(os.environ.pop("REDFIRST_SOCKET"))
    os.set_inheritable(descriptor, False)
    parts: list[bytes] = []
    while part := os.read(descriptor, 1 << 16):
        parts.append(part)
    request: dict[str, Any] = json.loads(b"".join(parts))
    return request, Records(descriptor, request["nonce"])


class Records:
    """Writes numbered records with the nonce to the socket. Several threads may write."""

    def __init__(self, descriptor: int, nonce: str) -> None:
        self._descriptor = descriptor
        self._nonce = nonce
        self._count = 0
        self._lock = threading.Lock()

    def write(self, kind: str, **facts: Any) -> None:
        """Write one record at once."""
        with self._lock:
            line = {**facts, "kind": kind, "nonce": self._nonce, "n": self._count}
            self._count += 1
            left = memoryview(json.dumps(line).encode() + b"\n")
            while left:
                left = left[os.write(self._descriptor, left) :]


WHOLE = 64_000_000
"""The most bytes that are kept of a tool's answer."""
READ_AT_ONCE = 64_000

_WAIT_S = 0.25


class Tail:
    """The last `limit` bytes of a stream; `is_cut` if there were more."""

    def __init__(self, limit: int) -> None:
        self.is_cut = False
        self._limit = limit
        self._kept = bytearray()

    def feed(self, data: bytes) -> None:
        """Add the stream's next bytes."""
        self._kept += data
        self.is_cut = self.is_cut or len(self._kept) > self._limit
        if len(self._kept) > 2 * self._limit:
            del self._kept[: -self._limit]

    def text(self) -> str:
        """Return the kept bytes as text."""
        return self._whole().decode("utf-8", "replace")

    def _whole(self) -> bytes:
        return bytes(self._kept[-self._limit :])

    def is_stuck(self, now: float) -> bool:  # noqa: ARG002  (of those that know better)
        """Return whether the output shows that the process is stuck."""
        return False


class Ends(Tail):
    """The first and last `limit` bytes of a stream, with a mark where bytes are left out."""

    def __init__(self, limit: int) -> None:
        super().__init__(limit)
        self._head = bytearray()

    def feed(self, data: bytes) -> None:
        """Add the stream's next bytes."""
        room = max(self._limit - len(self._head), 0)
        self._head += data[:room]
        super().feed(data[room:])

    def _whole(self) -> bytes:
        return bytes(self._head) + (b"\n[...]\n" if self.is_cut else b"") + super()._whole()


class Ended:
    """How a process ended, with its kept output; a code below 0 is a signal."""

    def __init__(self, code: int, out: Tail, err: Tail, *, timed_out: bool, watch: Watch) -> None:
        self.code = code
        self.stdout, self.is_cut = out.text(), out.is_cut
        self.stderr = err.text()
        self.timed_out = timed_out
        self.watch = watch

    def facts(self) -> dict[str, Any]:
        """Return the facts as fields of a record."""
        said = {"code": self.code, "stdout": self.stdout, "stderr": self.stderr, "timed_out": self.timed_out}
        return {**said, **self.watch.facts()}


def run(
    argv: list[str],
    limit_s: float,
    out: Tail,
    err: Tail,
    cwd: str | None = None,
    env: dict[str, str] | None = None,
    *,
    watched: bool = False,
    ends: bool = False,
) -> Ended:
    """Run a process until it ends or meets its limit; its whole process group is dead on return.

    Args:
        argv: The program and its arguments.
        limit_s: How long it may take.
        out: Keeps what it prints; one that finds it stuck has it ended before the limit.
        err: Keeps what it prints as errors.
        cwd: Where it runs.
        env: Variables beside our own.
        watched: No other program may take its place.
        ends: Notice which of its threads ends it.
    """
    try:
        process, watch = start(
            argv,
            watched=watched,
            ends=ends,
            cwd=cwd,
            env={**os.environ, **(env or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except OSError as error:
        err.feed(f"{argv[0]}: {error.strerror}".encode())
        return Ended(127, out, err, timed_out=False, watch=Watch())
    deadline = time.monotonic() + max(limit_s, 0.1)
    with selectors.DefaultSelector() as selector, process:
        for stream, keeper in ((process.stdout, out), (process.stderr, err)):
            assert stream is not None  # noqa: S101  (both were asked for)
            os.set_blocking(stream.fileno(), False)
            selector.register(stream, selectors.EVENT_READ, keeper)
        while process.poll() is None and (now := time.monotonic()) < deadline and not out.is_stuck(now):
            pump(selector, min(_WAIT_S, deadline - now))
        timed_out = process.poll() is None
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        # whoever left the group may hold the streams for ever: only what is there by now is read
        for _ in range(WHOLE // READ_AT_ONCE):
            if not pump(selector, 0):
                break
    return Ended(process.returncode, out, err, timed_out=timed_out, watch=watch)


def pump(selector: selectors.BaseSelector, wait_s: float) -> bool:
    """Read once from each stream that has data; return whether any had."""
    if not selector.get_map():
        time.sleep(max(min(wait_s, 0.01), 0))
        return False
    found = False
    for key, _ in selector.select(wait_s):
        data = os.read(key.fd, READ_AT_ONCE)
        if data:
            key.data.feed(data)
            found = True
        else:
            selector.unregister(key.fileobj)
    return found
