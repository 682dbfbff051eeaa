"""Starts the reading child process when it is first needed, sends it requests, and replaces it after a failure.

There is one for each process. It outlives nobody: its input ends with its driver, and while it reads, the time of the
processor that it was allowed ends it.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import pickle
import select
import signal
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pipeline.sandbox.limited import child
from pipeline.sandbox.limited.values import NonsenseError, load

if TYPE_CHECKING:
    from collections.abc import Mapping

LARGEST: Final = 64 << 20
"""The largest request, and the largest answer, in bytes."""
_SECONDS: Final = 5
_SECONDS_A_MEGABYTE: Final = 30
_PATIENCE: Final = 3
"""The child may take its processor limit this many times over in real time, for a busy machine."""
_START_S: Final = 60
_ALLOWANCE_S: Final = 60
"""The seconds that unreadable sources may cost in all; later requests get what is left of it, at least one second."""
_CHUNK: Final = 1 << 20
_PROGRAM: Final = "import sys; sys.path[:] = sys.argv[1:]; from pipeline.sandbox.limited.child import main; main()"
_KEPT_VARIABLES: Final = ("LD_LIBRARY_PATH",)


class UnreadableError(Exception):
    """The source cannot be read within the limits. The message is a clause that follows the file's name."""

    def __init__(self, why: str) -> None:
        super().__init__(f"cannot be read: {why}")


class _EndedError(Exception):
    """The child process has ended, or was ended after its time limit."""


@dataclass
class _State:
    lock: threading.Lock
    child: _Child | None = None
    lost_s: float = 0


@dataclass(frozen=True)
class _Child:
    pid: int
    requests: int
    answers: int

    @classmethod
    def start(cls) -> _Child:
        """Start a child process and wait until it is ready.

        Raises:
            RuntimeError: it did not start.
        """
        theirs, requests = os.pipe()
        answers, also_theirs = os.pipe()
        folders = [str(Path(__file__).parents[3]), *(path for path in sys.path if Path(path).is_absolute())]
        try:
            pid = os.posix_spawn(
                sys.executable,
                [sys.executable, "-I", "-S", "-B", "-c", _PROGRAM, *folders],
                {name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ},
                file_actions=[
                    (os.POSIX_SPAWN_DUP2, theirs, 0),
                    (os.POSIX_SPAWN_DUP2, also_theirs, 1),
                ],
                setpgroup=0,  # a Ctrl-C at the terminal is for the driver
            )
        finally:
            os.close(theirs)
            os.close(also_theirs)
        os.set_blocking(requests, False)
        os.set_blocking(answers, False)
        made = cls(pid, requests, answers)
        try:
            made.answer(b"", time.monotonic() + _START_S)
        except (_EndedError, UnreadableError):
            made.kill()
            raise RuntimeError("the process that reads sources did not start") from None
        return made

    def answer(self, request: bytes, deadline: float) -> bytes:
        """Send a request to the child and return its answer.

        Raises:
            UnreadableError: it says that it failed.
            _EndedError: there is no answer.
        """
        left = memoryview(request)
        while left:
            self._wait(self.requests, select.POLLOUT, deadline)
            with contextlib.suppress(BlockingIOError):
                try:
                    left = left[os.write(self.requests, left[:_CHUNK]) :]
                except BrokenPipeError:
                    raise _EndedError from None
        head = self._read(1 + child.LENGTH.size, deadline)
        (length,) = child.LENGTH.unpack(head[1:])
        if length > LARGEST:
            raise _EndedError
        said = self._read(length, deadline)
        if head[:1] != child.DONE:
            raise UnreadableError(said[:200].decode("ascii", "replace"))
        return said

    def _read(self, size: int, deadline: float) -> bytes:
        parts: list[bytes] = []
        while size:
            self._wait(self.answers, select.POLLIN, deadline)
            with contextlib.suppress(BlockingIOError):
                part = os.read(self.answers, min(size, _CHUNK))
                if not part:
                    raise _EndedError
                parts.append(part)
                size -= len(part)
        return b"".join(parts)

    @staticmethod
    def _wait(descriptor: int, event: int, deadline: float) -> None:
        poll = select.poll()
        poll.register(descriptor, event)
        left = deadline - time.monotonic()
        if left <= 0 or not poll.poll(left * 1000):
            raise _EndedError

    def kill(self) -> str:
        """Kill the child and return a description of how it ended."""
        self.let_go()
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        try:
            code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        except ChildProcessError:  # a fork of the driver has it in its memory, and is not its parent
            return ""
        crashed = code not in {-signal.SIGKILL, -signal.SIGXCPU}
        return "its reader crashed" if crashed else "it takes too long"

    def let_go(self) -> None:
        """Close the pipes to the child: it ends when no process holds them."""
        os.close(self.requests)
        os.close(self.answers)


_state = _State(threading.Lock())


def ask(module: str, name: str, args: tuple[object, ...], kwargs: Mapping[str, object]) -> object:
    """Call a function by module and name in the child, and return its result.

    Raises:
        UnreadableError: it reached a limit, or failed.
        RuntimeError: the child cannot be started.
    """
    asked = pickle.dumps((module, name, args, kwargs))
    if len(asked) > LARGEST:
        raise UnreadableError("it is too large")
    with _state.lock:
        seconds = _SECONDS + _SECONDS_A_MEGABYTE * len(asked) // (1 << 20)
        seconds = max(1, min(seconds, int(_ALLOWANCE_S - _state.lost_s)))
        begun = time.monotonic()
        try:
            return load(_answer(child.HEAD.pack(len(asked), seconds) + asked, begun + _PATIENCE * (seconds + 1)))
        except UnreadableError:
            _state.lost_s += time.monotonic() - begun
            raise
        except NonsenseError:
            _end()
            raise UnreadableError("its reader gave no answer that means anything") from None


def _answer(request: bytes, deadline: float) -> bytes:
    _state.child = _state.child or _Child.start()
    try:
        return _state.child.answer(request, deadline)
    except _EndedError:
        raise UnreadableError(_end()) from None
    except UnreadableError:
        raise
    except BaseException:  # what it will say is the answer to a question that nobody asks any more
        _end()
        raise


def _end() -> str:
    ended, _state.child = _state.child, None
    return ended.kill() if ended is not None else ""


def _forget() -> None:
    """Drop the child after a fork: it belongs to the parent process, and this one starts its own."""
    _state.lock = threading.Lock()
    if _state.child is not None:
        _state.child.let_go()
        _state.child = None


atexit.register(_end)
os.register_at_fork(after_in_child=_forget)
