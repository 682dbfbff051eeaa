"""Runs between the driver and a command in the Landlock box: `landlock_launcher.main`, with three descriptors as argv.

It reads its order from the first: what to run and what that may reach. It starts the command as a child that confines
itself, answers what the child's filter asks (`landlock_calls`), and adopts whatever is left behind. It ends when the
command does, on SIGTERM, or when nobody holds the other end of the third any more: the driver has let go of it, or is
dead, by whatever signal. Then it kills everything that the command started, and writes to the second descriptor what
became of the command.

This process has no privileges left, and can signal nobody but what is below it: "all processes" are these, for kill(2),
and the kernel lets none of them start another while it goes through them. The command is under rules of its own within
that, and can neither signal nor trace this process.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import struct
import sys
import time
from typing import TYPE_CHECKING, Any, Final

from pipeline.dispatch.landlock_calls import Supervision, Writable
from pipeline.dispatch.landlock_kernel import Ruleset, adopt_orphans, drop_privileges, end_with_parent, listen
from pipeline.dispatch.seccomp import SUPERVISED, program
from pipeline.dispatch.supervisor import NOBODY, reap
from pipeline.dispatch.syscalls import NUMBERS

if TYPE_CHECKING:
    from types import FrameType

_STOPPING: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_READY: Final = b"+"
_WORDS: Final = 4096
_BUFFER: Final = 65_536
_MOST_TASKS: Final = 4096
_LOOK_EVERY_S: Final = 0.25

_Order = dict[str, Any]


class _StartError(Exception):
    """The command could not be confined or started."""


def main() -> None:
    """Carry out the order; write `ended STATUS`, as wait(2) says it, or `failed WORDS`."""
    told, answer, held = (int(word) for word in sys.argv[1:])
    for descriptor in (told, answer, held):
        os.set_inheritable(descriptor, False)
    woken = _wake_on_signals()
    with open(told, encoding="utf-8") as file:  # noqa: PTH123  (a descriptor)
        order: _Order = json.load(file)
    adopt_orphans()
    drop_privileges()
    try:
        said = f"ended {_run(order, woken, held)}"
    except (_StartError, OSError) as error:
        said = f"failed {error}"
    os.write(answer, said.encode(errors="replace"))


def _run(order: _Order, woken: int, held: int) -> int:
    """Return the command's wait status, that of a killed one if it was stopped; nothing of it is left then."""
    writable = Writable([*order["write"]])
    _stand_apart(order["driver"])
    child, channel = _fork(order)
    try:
        listener = _listener(channel)
        try:
            _let_go_of_streams()
            names = {number: name for name, number in NUMBERS[os.uname().machine].items() if name in SUPERVISED}
            supervision = Supervision(listener, names, writable)
            return _supervise(child, supervision, woken, held)
        finally:
            os.close(listener)
    finally:
        _end_all()


def _supervise(child: int, supervision: Supervision, woken: int, held: int) -> int:
    poll = select.poll()
    for descriptor in (supervision.listener, woken, held):
        poll.register(descriptor, select.POLLIN)
    census = _Census()
    while not census.finds_too_many():
        for descriptor, events in poll.poll(_LOOK_EVERY_S * 1000):
            if descriptor == woken:
                heard = os.read(woken, _BUFFER)
                if any(number in heard for number in _STOPPING):
                    return signal.SIGKILL
                if (status := reap(child)) is not None:
                    return status
            elif descriptor == held:
                return signal.SIGKILL
            elif events & select.POLLIN:
                supervision.answer()
            elif events & select.POLLHUP:  # but POLLERR only says that a signal came while it looked
                poll.unregister(descriptor)  # nobody is left who could ask
    return signal.SIGKILL


def _stand_apart(driver: int) -> None:
    """Give up the right to signal anybody who is not below this process.

    Raises:
        _StartError: the right is still there, so that to kill all would be to kill what is not ours.
    """
    Ruleset(files=False).restrict()
    try:
        if os.getppid() == driver:
            os.kill(driver, 0)
    except PermissionError:  # it is of the same user: nothing but the rule forbids it
        return
    raise _StartError("its signals are not confined, or its driver has ended")


def _end_all() -> None:
    """Kill what is below this process, at one blow, and wait for it."""
    while True:
        with contextlib.suppress(PermissionError, ProcessLookupError):  # there is nobody
            os.kill(-1, signal.SIGKILL)
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return
        reap(NOBODY)  # with thousands of them, one by one would take seconds


def _wake_on_signals() -> int:
    """Return a descriptor that gets the number of every signal that matters."""
    woken, waking = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    signal.set_wakeup_fd(waking, warn_on_full_buffer=False)
    for number in (signal.SIGCHLD, *_STOPPING):
        signal.signal(number, _note)
    return woken


def _note(_number: int, _frame: FrameType | None) -> None:
    """Do nothing: what matters is that the number was written to the descriptor."""


def _fork(order: _Order) -> tuple[int, socket.socket]:
    """Start the command in a child; return it, and the channel on which it tells how far it came."""
    ours, theirs = socket.socketpair()
    supervisor = os.getpid()
    child = os.fork()
    if child == 0:
        try:
            _become(order, supervisor, theirs)
        except OSError as error:
            theirs.send(str(error).encode(errors="replace")[:_WORDS])
        finally:
            os._exit(1)
    theirs.close()
    return child, ours


def _become(order: _Order, supervisor: int, channel: socket.socket) -> None:
    """Confine this process and turn it into the command.

    Raises:
        OSError: a step failed.
    """
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGCHLD, *_STOPPING, signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores the last two
        signal.signal(number, signal.SIG_DFL)
    os.setsid()
    if not end_with_parent(supervisor, signal.SIGKILL):
        return
    os.chdir(order["cwd"])
    rules = Ruleset()
    for path in order["read"]:
        rules.read(path)
    for path in order["write"]:
        rules.write(path)
    for path in order["use"]:
        rules.use(path)
    rules.restrict()
    listener = listen(program(sockets=False, supervised=True))
    # Nothing that the filter asks about may be called before the supervisor has this.
    channel.sendmsg([_READY], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, struct.pack("i", listener))])
    os.close(listener)
    os.execve(order["argv"][0], order["argv"], order["env"])  # noqa: S606  (this is what the box is for)


def _listener(channel: socket.socket) -> int:
    """Return where the child's questions arrive, once it has become the command.

    Raises:
        _StartError: it has not; the message says why.
    """
    with channel:
        said, attached, _, _ = channel.recvmsg(_WORDS, socket.CMSG_SPACE(4), socket.MSG_CMSG_CLOEXEC)
        listener: int | None = struct.unpack("i", attached[0][2])[0] if attached else None
        failed = channel.recv(_WORDS) if said == _READY else said or b"it ended before it was confined"
    if listener is None or failed:
        if listener is not None:
            os.close(listener)
        raise _StartError(failed.decode(errors="replace"))
    return listener


def _let_go_of_streams() -> None:
    # They are the command's: who reads its output has to see when it closes it.
    nothing = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    for stream in range(3):
        os.dup2(nothing, stream, inheritable=False)
    os.close(nothing)


class _Census:
    """Looks now and then how many processes and threads there are, and closely only where the host has that many."""

    def __init__(self) -> None:
        self._next = 0.0

    def finds_too_many(self) -> bool:
        """Return whether there are too many; False without a look if the last one was just before."""
        now = time.monotonic()
        if now < self._next:
            return False
        self._next = now + _LOOK_EVERY_S
        return _on_host() > _MOST_TASKS and _count() > _MOST_TASKS


def _on_host() -> int:
    with open("/proc/loadavg", encoding="ascii") as file:  # noqa: PTH123  (pathlib is half of the start time)
        return int(file.read().split()[3].partition("/")[2])


def _count() -> int:
    """Return how many threads the processes below this one have."""
    found, pending = 0, [os.getpid()]
    while pending:
        folder = f"/proc/{pending.pop()}/task"
        with contextlib.suppress(OSError):
            for task in os.listdir(folder):  # noqa: PTH208  (pathlib is half of the start time)
                found += 1
                with open(f"{folder}/{task}/children", encoding="ascii") as file:  # noqa: PTH123
                    pending += [int(word) for word in file.read().split()]
    return found
