"""Starts a process that cannot replace itself by execve, and records which of its threads ends it.

Runners inside the box use it: the standard library only. What a test process says is believed because of what was
started, so nothing else may say it: execve(2) puts another program in its place, with its number and its streams. The
filter of system calls that the process is started with asks here before each such call. The first that asks is the
process that is started; what asks later in the same process is refused, whichever thread it is; its children start
what they like. Nothing that a process has in its memory is looked at, so there is nothing to race.

A thread of this program has the filter and starts the process, which inherits it; the listener has a number in this
program alone. What asks while nobody listens any more is refused.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import os
import queue
import select
import struct
import subprocess
import threading
from typing import Any

_NO_NEW_PRIVILEGES, _SET_FILTER, _NEW_LISTENER, _WAIT_KILLABLE = 38, 1, 1 << 3, 1 << 5
_RECEIVE, _SEND, _GO_ON = 0xC0502100, 0xC0182101, 1
_QUESTION, _ANSWER = struct.Struct("=QIIi"), struct.Struct("=QqiI")
_QUESTION_SIZE = 80
# as `uname -m` says it: AUDIT_ARCH_*, and the numbers of seccomp, execve, execveat, exit_group
_MACHINES = {"x86_64": (0xC000003E, 317, 59, 322, 231), "aarch64": (0xC00000B7, 277, 221, 281, 94)}
_LOAD, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_NUMBER, _MACHINE = 0, 4  # offsets in struct seccomp_data
_ALLOW, _ASK, _REFUSE = 0x7FFF0000, 0x7FC00000, 0x00050000
_X32 = 1 << 30
_UNSUPPORTED = frozenset({errno.ENOSYS, errno.EINVAL, errno.EBUSY, errno.EPERM, errno.EACCES})
_LIBC = ctypes.CDLL(None, use_errno=True)


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


class Watch:
    """The forbidden system calls that a watched process attempted.

    `replaced`: to become another program, which was refused; `left_aside`: to end, in another than its first thread.
    `off` says why it was not watched, or is empty.
    """

    def __init__(self, programs: int = 1, off: str = "") -> None:
        self.replaced = False
        self.left_aside = False
        self.off = off
        self._programs = programs
        self._process = 0

    def facts(self) -> dict[str, Any]:
        """Return the attempts as fields of a record."""
        return {"replaced": self.replaced, "left_aside": self.left_aside, "unwatched": self.off}

    def listen(self, listener: int) -> None:
        """Answer the kernel's requests until no watched process is left; after an error all calls are refused."""
        poll = select.poll()
        poll.register(listener, select.POLLIN)
        try:
            while poll.poll()[0][1] & select.POLLIN:
                self._answer(listener)
        except OSError:
            pass  # where it is the first answer, the start fails and says so
        finally:
            os.close(listener)

    def _answer(self, listener: int) -> None:
        question = bytearray(_QUESTION_SIZE)
        with contextlib.suppress(FileNotFoundError):  # who asked was killed meanwhile
            _ioctl(listener, _RECEIVE, question)
            identity, thread, _, call = _QUESTION.unpack_from(question)
            answer = (0, _GO_ON) if self._may(thread, call) else (-errno.EPERM, 0)
            _ioctl(listener, _SEND, _ANSWER.pack(identity, 0, *answer))

    def _may(self, thread: int, call: int) -> bool:
        self._process = self._process or thread
        # the process has its number until somebody has waited for it
        if not os.path.exists(f"/proc/{self._process}/task/{thread}"):  # noqa: PTH110  (as fast as it can be)
            return True
        if call == _MACHINES[os.uname().machine][-1]:
            self.left_aside = self.left_aside or thread != self._process
            return True
        self._programs -= 1
        self.replaced = self.replaced or self._programs < 0
        return self._programs >= 0


REPLACED = "the test process asked to become another program, which is refused"
"""The message for `Watch.replaced`."""

UNWATCHED = "it could not be watched whether a test process became another program"
"""The message for `Watch.off`."""


def start(
    argv: list[str], *, watched: bool = True, programs: int = 1, ends: bool = False, **how: Any
) -> tuple[subprocess.Popen[bytes], Watch]:
    """Start a process like `Popen` and watch it.

    Args:
        argv: The program, by its path, and its arguments.
        watched: Watch it at all.
        programs: How many programs the process becomes by our own doing.
        ends: Notice as well which thread ends the process.
        how: What else `Popen` takes.

    Raises:
        OSError: it could not be started.
    """
    watch = Watch(programs)
    if not watched:
        return _popen(argv, how), watch
    # with vfork the thread that starts would hold the interpreter's lock until the question is answered
    subprocess._USE_VFORK = False  # type: ignore[attr-defined]  # noqa: SLF001
    listeners: queue.SimpleQueue[int | Exception] = queue.SimpleQueue()
    done: list[subprocess.Popen[bytes] | Exception] = []

    def begin() -> None:
        try:
            listeners.put(_install(ends=ends))
        except Exception as error:  # noqa: BLE001  (raised below, as the next one)
            listeners.put(error)
            return
        try:
            done.append(_popen(argv, how))
        except Exception as error:  # noqa: BLE001
            done.append(error)

    starter = threading.Thread(target=begin)
    starter.start()
    listener = listeners.get()
    if isinstance(listener, int):
        threading.Thread(target=watch.listen, args=(listener,), daemon=True).start()
    starter.join()
    failed = done[0] if isinstance(listener, int) else listener
    if isinstance(failed, subprocess.Popen):
        return failed, watch
    # the kernel says ENOSYS of a call that it cannot ask about; no code under test has run by then
    unsupported = {errno.ENOSYS} if isinstance(listener, int) else _UNSUPPORTED
    if isinstance(failed, OSError) and failed.errno in unsupported:
        return _popen(argv, how), Watch(off=failed.strerror or str(failed.errno))
    raise failed


def _popen(argv: list[str], how: dict[str, Any]) -> subprocess.Popen[bytes]:
    process: subprocess.Popen[Any] = subprocess.Popen(argv, **how)
    return process


def _ioctl(descriptor: int, request: int, value: bytes | bytearray) -> None:
    while True:
        try:
            fcntl.ioctl(descriptor, request, value)
        except InterruptedError:
            continue
        return


def _install(*, ends: bool) -> int:
    """Install the filter for this thread and its children; return the descriptor of its requests.

    Raises:
        OSError: it is not to be had.
    """
    machine = os.uname().machine
    if machine not in _MACHINES:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    architecture, seccomp, *calls = _MACHINES[machine]
    asked = calls if ends else calls[:-1]
    instructions = [
        (_LOAD, 0, 0, _MACHINE),
        (_EQUAL, 1, 0, architecture),
        (_RETURN, 0, 0, _REFUSE | errno.EPERM),  # another binary interface has other numbers
        (_LOAD, 0, 0, _NUMBER),
        (_AT_LEAST, 0, 1, _X32),
        (_RETURN, 0, 0, _REFUSE | errno.ENOSYS),
        *((_EQUAL, len(asked) - at, 0, number) for at, number in enumerate(asked)),
        (_RETURN, 0, 0, _ALLOW),
        (_RETURN, 0, 0, _ASK),
    ]
    packed = b"".join(struct.pack("=HBBI", *instruction) for instruction in instructions)
    program = _Program(len(instructions), packed)
    _LIBC.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    for flags in (_NEW_LISTENER | _WAIT_KILLABLE, _NEW_LISTENER):  # a signal is to interrupt none of these calls
        listener: int = _LIBC.syscall(seccomp, _SET_FILTER, flags, ctypes.byref(program))
        if listener >= 0:
            return listener
    number = ctypes.get_errno()
    raise OSError(number, os.strerror(number))


def how_ended(code: int) -> str:
    """Return in words how a process ended that had not said its result."""
    return f"ended by signal {-code}" if code < 0 else f"exited by itself with {code}"
