"""Runs processes of Rust tests in the box: detects from output whether tests still end, and ends what they leave.

`rust.runner` uses it there: the standard library only.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import signal
import time
from pathlib import Path

from pipeline.languages.runners.processes import Ended, Tail, run

TEXT_LIMIT = 64_000
"""The most bytes that are kept of a process's output."""

_SET_CHILD_SUBREAPER = 36
# what libtest prints when it begins, for each example that has ended, and at the end
_STEP = re.compile(rb"(?:running \d+ tests?|test (?P<over>result): .*|test .+ \.\.\. (?:ok|FAILED|ignored).*)")


class Steps(Tail):
    """The end of libtest's output, and the time since one of its tests last ended.

    `stall_s` is how long one may take after the one before it, None for as long as it likes.
    """

    def __init__(self, limit: int, stall_s: float | None) -> None:
        super().__init__(limit)
        self._stall_s = stall_s
        self._since: float | None = None
        self._rest = b""

    def feed(self, data: bytes) -> None:
        """Add the next bytes of output."""
        super().feed(data)
        *lines, self._rest = (self._rest[-TEXT_LIMIT:] + data).split(b"\n")
        for step in filter(None, map(_STEP.fullmatch, lines)):
            self._since = time.monotonic() if step["over"] is None else None

    def is_stuck(self, now: float) -> bool:
        """Return whether one test has been running for too long."""
        return self._stall_s is not None and self._since is not None and now - self._since >= self._stall_s


def alone(
    argv: list[str],
    limit_s: float,
    cwd: str | None = None,
    env: dict[str, str] | None = None,
    *,
    keep: int = TEXT_LIMIT,
    stall_s: float | None = None,
    watched: bool = False,
) -> Ended:
    """Run a program until it ends or meets the limit; none of its processes is left on return.

    With `stall_s` the limit is also that long without the end of one more of the tests that it runs.
    """
    out, err = Steps(keep, stall_s), Tail(keep)
    ended = run(argv, limit_s, out, err, cwd, env, watched=watched, ends=True)
    end_the_rest()
    return ended


def adopt() -> None:
    """Make this process the parent of all processes that our own ones leave behind."""
    ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def end_the_rest() -> None:
    """Kill all descendants of this process and wait until they have ended."""
    while True:
        for child in children():
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        try:
            os.waitpid(-1, 0)  # what it leaves in its turn is ours by then
        except ChildProcessError:
            return


def children() -> list[int]:
    """Return this process's children, including those that have ended and were not waited for."""
    found: list[int] = []
    for process in Path("/proc").iterdir():
        if process.name.isdecimal():
            with contextlib.suppress(OSError):
                # the name in parentheses may hold anything
                said = (process / "stat").read_bytes().rpartition(b")")[2].split()
                if int(said[1]) == os.getpid():
                    found.append(int(process.name))
    return found
