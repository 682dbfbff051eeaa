"""Processes inside the box: started, limited in time and output, and none left when they are over.

`cargo.runner` uses it there: the standard library only.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

from pipeline.languages.watched import Watch, start

TEXT_LIMIT = 64_000
"""Bytes that are kept of what a process prints."""

_SET_CHILD_SUBREAPER = 36
_LOOK_S = 0.2
_LOOKED_AT = 1_000_000
# what libtest prints when it begins, for each example that has ended, and at the end
_STEP = re.compile(
    rb"^(?:running \d+ tests?|test (?P<over>result): .*|test .+ \.\.\. (?:ok|FAILED|ignored).*)$", re.MULTILINE
)


class Ended:
    """How one process ended, with the end of what it printed; `is_cut` if that is not all of it."""

    def __init__(self, code: int, stdout: str, stderr: str, *, timed_out: bool, watch: Watch | None = None) -> None:
        self.code = code
        self.stdout = stdout
        self.stderr = stderr
        self.timed_out = timed_out
        self.watch = watch or Watch()
        self.is_cut = False

    def facts(self) -> dict[str, Any]:
        """Return the same for a record; a code below 0 is a signal."""
        said = {"code": self.code, "stdout": self.stdout, "stderr": self.stderr, "timed_out": self.timed_out}
        return {**said, **self.watch.facts()}


def run(
    argv: list[str],
    limit_s: float,
    cwd: str | None = None,
    env: dict[str, str] | None = None,
    keep: int = TEXT_LIMIT,
    stall_s: float | None = None,
    *,
    watched: bool = False,
) -> Ended:
    """Run to the end or to the limit; its whole process group is dead on return, whoever holds its streams.

    With `stall_s` the limit is also that long without the end of one more of the tests that it runs; `watched` if no
    other program may take its place.
    """
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        try:
            process, watch = start(
                argv,
                watched=watched,
                ends=True,
                cwd=cwd,
                env={**os.environ, **(env or {})},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,
            )
        except OSError as error:
            return Ended(127, "", f"{argv[0]}: {error.strerror}", timed_out=False)
        timed_out = not is_over(process, max(limit_s, 0.1), out.fileno(), stall_s)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        code = process.wait()
        ended = Ended(code, tail(out, keep), tail(err, keep), timed_out=timed_out, watch=watch)
        ended.is_cut = os.fstat(out.fileno()).st_size > keep
        return ended


def is_over(process: subprocess.Popen[bytes], limit_s: float, out: int, stall_s: float | None) -> bool:
    """Wait for the end, and return whether it came in time; `out` is what the process prints into."""
    deadline = time.monotonic() + limit_s
    step, since = None, time.monotonic()
    while True:
        left = deadline - time.monotonic()
        try:
            process.wait(left if stall_s is None else max(min(left, _LOOK_S), 0))
        except subprocess.TimeoutExpired:
            pass
        else:
            return True
        now = time.monotonic()
        if stall_s is None or now >= deadline:
            return False
        if (found := last_step(out)) != step:
            step, since = found, now
        if step is not None and step[1] and now - since >= stall_s:
            return False


def last_step(out: int) -> tuple[int, bool] | None:
    """Return where the last sign of progress stands, and whether tests are running since; None before the first."""
    start = max(0, os.fstat(out).st_size - _LOOKED_AT)
    # read without moving to it: the process writes where the file is at
    steps = [
        (start + found.start(), found["over"] is None) for found in _STEP.finditer(os.pread(out, _LOOKED_AT, start))
    ]
    return steps[-1] if steps else None


def tail(file: Any, limit: int = TEXT_LIMIT) -> str:
    """Return the end of what was written."""
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - limit))
    return file.read().decode("utf-8", "replace")


def adopt() -> None:
    """Become the parent of whatever a process of ours leaves behind, in whichever group or session it is."""
    ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def end_the_rest() -> None:
    """End all that is left below this process, which has adopted it; none of it runs on return."""
    while True:
        for child in children():
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        try:
            os.waitpid(-1, 0)  # what it leaves in its turn is ours by then
        except ChildProcessError:
            return


def children() -> list[int]:
    """Return the processes whose parent this one is, those that have ended and were not waited for among them."""
    found: list[int] = []
    for process in Path("/proc").iterdir():
        if process.name.isdecimal():
            with contextlib.suppress(OSError):
                # the name in parentheses may hold anything
                said = (process / "stat").read_bytes().rpartition(b")")[2].split()
                if int(said[1]) == os.getpid():
                    found.append(int(process.name))
    return found
