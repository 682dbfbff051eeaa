"""Runs a command that has no box and ends all its processes, also after the driver: `supervisor.py DRIVER ARGV...`.

Whatever the command starts stays below this process, also what leaves the session and empties its environment: a child
subreaper inherits what others leave behind. All of it is dead when this process ends, and this process ends when the
command does, when it is told to (SIGTERM), or when the driver dies, by whatever signal. It ends as the command did.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import signal
import sys
from typing import Final

_PR_SET_PDEATHSIG: Final = 1
_PR_SET_CHILD_SUBREAPER: Final = 36
_ENDING: Final = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP}
_KILLED: Final = signal.SIGKILL
_AT_ONCE: Final = 256
NOBODY: Final = -1
"""The pid that no child has."""


def main(driver: int, argv: list[str]) -> int:
    """Run `argv` until it ends or this process is to end; return its wait status when no process of it is left."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD, *_ENDING})
    prctl = ctypes.CDLL(None).prctl
    prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    prctl(_PR_SET_PDEATHSIG, int(signal.SIGTERM), 0, 0, 0)
    if os.getppid() != driver:  # it died before we could ask to be told
        return _KILLED
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    child = os.posix_spawn(  # Python ignores two signals that a program expects to have
        argv[0], argv, os.environ, setsigmask=(), setsigdef=(signal.SIGPIPE, signal.SIGXFSZ)
    )
    status = None
    while status is None:
        # Of two signals that wait, the one to end comes first: its number is lower.
        status = reap(child) if signal.sigwait({signal.SIGCHLD, *_ENDING}) is signal.SIGCHLD else _KILLED
    end_all()
    return status


def reap(child: int) -> int | None:
    """Wait for children that have ended; return the wait status of *child*, None if it still runs.

    After it no other is waited for: one of them may have got its number, and would be taken for it. Nor are all of them
    at once: where processes start and end all the time, it would never be over. For the rest there is another SIGCHLD.
    """
    for _ in range(_AT_ONCE):
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return None
        if pid == child:
            return status
        if pid == 0:
            return None
    os.kill(os.getpid(), signal.SIGCHLD)
    return None


def end_all() -> None:
    """Kill all descendants, generation by generation: children of a killed child become ours.

    A group dies at one blow, however fast its processes start others; what leaves its group at every step is chased.
    """
    while True:
        for pid in _children():  # ours until they are waited for, so that the number, and its group, is not another's
            # It may have become another user's, and the driver will complain; or it has just left its group.
            with contextlib.suppress(PermissionError, ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
                group = os.getpgid(pid)
                if group not in {0, 1, os.getpgrp()}:  # 0 is our own to killpg, and 1 is everybody
                    os.killpg(group, signal.SIGKILL)
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return
        reap(NOBODY)  # with thousands of them, one by one would take seconds


def _children() -> list[int]:
    own = os.getpid()
    try:
        with open(f"/proc/{own}/task/{own}/children") as file:  # noqa: PTH123  (pathlib is half of the start time)
            return [int(word) for word in file.read().split()]
    except FileNotFoundError:  # a kernel that does not keep the list
        return [pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if _parent(pid) == own]  # noqa: PTH208


def _parent(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:  # noqa: PTH123
            return int(file.read().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def _end_as(status: int) -> None:
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        if number != signal.SIGKILL:
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        os.kill(os.getpid(), number)
    os._exit(os.waitstatus_to_exitcode(status))


if __name__ == "__main__":
    _end_as(main(int(sys.argv[1]), sys.argv[2:]))
