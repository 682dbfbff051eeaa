"""What a confined process asks its supervisor for: to change modes, owners and times of files.

Landlock knows nothing of chmod(2), chown(2) and utime(2): a process could change every file of its user. The filter
(`seccomp.SUPERVISED`) therefore refuses none of these calls but hands them over, and the supervisor makes them in the
caller's place, on what lies in a folder that the box may write. The kernel is never told to go on with such a call:
what the caller's memory says by then is not looked at. What the call is about is looked up once, as the caller sees it,
and held without being opened; the kernel says where that very object is, and the change is made on it and on no name.
So there is nothing to race: a confined process cannot move anything into its folders from outside, or out of them.

Calls that start processes are not asked about, though it would bound their number: a signal that comes before the
question is heard makes a call fail with EINTR, which no program expects of fork(2).
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import struct
from collections.abc import Callable, Mapping, Sequence  # noqa: TC003  (a named tuple reads them at run time)
from typing import Final, NamedTuple

from pipeline.dispatch.landlock_kernel import (
    AT_EMPTY_PATH,
    AT_FDCWD,
    AT_SYMLINK_NOFOLLOW,
    NO_MAGICLINKS,
    open_path,
    set_owner,
    set_times,
)

_RECEIVE, _SEND, _STILL_THERE = 0xC0502100, 0xC0182101, 0x40082102
_QUESTION: Final = struct.Struct("=QIIiIQ6Q")
_ANSWER: Final = struct.Struct("=QqiI")
_PATH_MAX: Final = 4096
_PAGE: Final = 4096
_MODE: Final = 0o7777
_OWN_DESCRIPTORS: Final = (b"/proc/self/fd/", b"/proc/thread-self/fd/", b"/dev/fd/")
_FOUND: Final = os.O_PATH | os.O_CLOEXEC
_MICROSECONDS: Final = 1_000_000


class Writable:
    """The folders, and single files, whose content a box may change."""

    def __init__(self, paths: Sequence[str]) -> None:
        """Take note of where they really are."""
        self._roots = [os.fsencode(os.path.realpath(path)) for path in paths]

    def __contains__(self, found: int) -> bool:
        """Return whether what a descriptor holds lies there, and be it without a name since."""
        path = os.readlink(f"/proc/self/fd/{found}".encode())  # noqa: PTH115  (bytes)
        return any(path == root or path.startswith(root + b"/") for root in self._roots)


class _Caller:
    """The thread that asks: its memory, its open files, its working folder."""

    def __init__(self, thread: int) -> None:
        self._folder = os.open(f"/proc/{thread}", _FOUND | os.O_DIRECTORY)

    def close(self) -> None:
        os.close(self._folder)

    def memory(self, address: int, size: int) -> bytes:
        """Return `size` bytes of its memory.

        Raises:
            OSError: they are not all there.
        """
        memory = os.open("mem", os.O_RDONLY | os.O_CLOEXEC, dir_fd=self._folder)
        try:
            read = os.pread(memory, size, address)
        except (OSError, OverflowError):
            read = b""
        finally:
            os.close(memory)
        if len(read) < size:
            raise _error(errno.EFAULT)
        return read

    def text(self, address: int) -> bytes:
        """Return the string that begins there, read by pages: the one behind its end may not exist."""
        read = b""
        while b"\0" not in read and len(read) < _PATH_MAX:
            read += self.memory(address + len(read), _PAGE - (address + len(read)) % _PAGE)
        text, end, _ = read.partition(b"\0")
        if not end or len(text) >= _PATH_MAX:
            raise _error(errno.ENAMETOOLONG)
        return text

    def descriptor(self, number: int) -> int:
        """Find what one of its descriptors is."""
        try:
            return os.open(f"fd/{_int(number)}", _FOUND, dir_fd=self._folder)
        except FileNotFoundError:
            raise _error(errno.EBADF) from None

    def path(self, folder: int, address: int, flags: int = 0) -> int:
        """Find what a path means to it; a path below /proc is followed only if it names one of its descriptors."""
        text = self.text(address)
        follow = not flags & AT_SYMLINK_NOFOLLOW
        if not text:
            if not flags & AT_EMPTY_PATH:
                raise _error(errno.ENOENT)
            return self._start(folder)
        for prefix in _OWN_DESCRIPTORS:
            if follow and text.startswith(prefix) and text[len(prefix) :].isdigit():
                return self.descriptor(int(text[len(prefix) :]))
        start = self._start(AT_FDCWD if text.startswith(b"/") else folder)
        try:
            return open_path(text, start, resolve=NO_MAGICLINKS, follow=follow)
        finally:
            os.close(start)

    def _start(self, folder: int) -> int:
        if _int(folder) == AT_FDCWD:
            return os.open("cwd", _FOUND, dir_fd=self._folder)
        return self.descriptor(folder)


class Supervision:
    """Answers what arrives at a listener, one question at a time.

    Args:
        listener: Where they arrive.
        names: The name of each call by its number.
        writable: What may be changed.
    """

    def __init__(self, listener: int, names: Mapping[int, str], writable: Writable) -> None:
        """Begin; nothing is answered yet."""
        self.listener = listener
        self._names = names
        self._writable = writable

    def answer(self) -> None:
        """Answer one question, if the one who asked is still alive."""
        question = bytearray(_QUESTION.size)
        with contextlib.suppress(FileNotFoundError):  # the one who asked was killed meanwhile
            _ioctl(self.listener, _RECEIVE, question)
            identity, thread, _, number, _, _, *arguments = _QUESTION.unpack(question)
            failed = self._decide(identity, thread, _CHANGING[self._names[number]], arguments)
            _ioctl(self.listener, _SEND, _ANSWER.pack(identity, 0, -failed, 0))

    def _decide(self, identity: int, thread: int, call: _Call, arguments: Sequence[int]) -> int:
        """Return 0 if the call was made, or the error number."""
        try:
            caller = _Caller(thread)
            try:
                # Only now is it certain that the number of the thread has not become another's.
                _ioctl(self.listener, _STILL_THERE, struct.pack("=Q", identity))
                self._carry_out(caller, call, arguments)
            finally:
                caller.close()
        except OSError as error:
            return error.errno or errno.EPERM
        return 0

    def _carry_out(self, caller: _Caller, call: _Call, arguments: Sequence[int]) -> None:
        found = call.find(caller, arguments)
        try:
            if found not in self._writable:
                raise _error(errno.EPERM)
            call.change(caller, arguments[call.at :], found)
        finally:
            os.close(found)


def _mode(_: _Caller, words: Sequence[int], target: int) -> None:
    os.chmod(f"/proc/self/fd/{target}", words[0] & _MODE)  # noqa: PTH101  (a descriptor that can do nothing itself)


def _owner(_: _Caller, words: Sequence[int], target: int) -> None:
    set_owner(target, _int(words[0]), _int(words[1]))


def _seconds(caller: _Caller, words: Sequence[int], target: int) -> None:
    access, change = struct.unpack("=qq", caller.memory(words[0], 16)) if words[0] else (0, 0)
    set_times(target, struct.pack("=qqqq", access, 0, change, 0) if words[0] else None)


def _microseconds(caller: _Caller, words: Sequence[int], target: int) -> None:
    if not words[0]:
        set_times(target, None)
        return
    access, access_part, change, change_part = struct.unpack("=qqqq", caller.memory(words[0], 32))
    if not (0 <= access_part < _MICROSECONDS and 0 <= change_part < _MICROSECONDS):
        raise _error(errno.EINVAL)
    set_times(target, struct.pack("=qqqq", access, access_part * 1000, change, change_part * 1000))


def _nanoseconds(caller: _Caller, words: Sequence[int], target: int) -> None:
    set_times(target, caller.memory(words[0], 32) if words[0] else None)


class _Call(NamedTuple):
    """Which argument means what. The change is made with the rights of the caller's user, without capabilities."""

    change: Callable[[_Caller, Sequence[int], int], None]
    at: int
    path: int | None = 0
    folder: int | None = None
    flags: int | None = None
    follow: bool = True

    def find(self, caller: _Caller, arguments: Sequence[int]) -> int:
        """Return a descriptor of what the call is about."""
        if self.path is None:
            return caller.descriptor(arguments[0])
        if self.folder is None:
            return caller.path(AT_FDCWD, arguments[self.path], 0 if self.follow else AT_SYMLINK_NOFOLLOW)
        if not arguments[self.path]:
            return caller.descriptor(arguments[self.folder])  # how libc makes futimens(3)
        flags = 0 if self.flags is None else arguments[self.flags]
        return caller.path(arguments[self.folder], arguments[self.path], flags)


_CHANGING: Final[Mapping[str, _Call]] = {
    "chmod": _Call(_mode, 1),
    "fchmod": _Call(_mode, 1, path=None),
    "fchmodat": _Call(_mode, 2, path=1, folder=0),
    "fchmodat2": _Call(_mode, 2, path=1, folder=0, flags=3),
    "chown": _Call(_owner, 1),
    "lchown": _Call(_owner, 1, follow=False),
    "fchown": _Call(_owner, 1, path=None),
    "fchownat": _Call(_owner, 2, path=1, folder=0, flags=4),
    "utime": _Call(_seconds, 1),
    "utimes": _Call(_microseconds, 1),
    "futimesat": _Call(_microseconds, 2, path=1, folder=0),
    "utimensat": _Call(_nanoseconds, 2, path=1, folder=0, flags=3),
}


def _ioctl(descriptor: int, request: int, value: bytes | bytearray) -> None:
    while True:
        try:
            fcntl.ioctl(descriptor, request, value)
        except InterruptedError:
            continue
        return


def _error(number: int) -> OSError:
    return OSError(number, os.strerror(number))


def _int(word: int) -> int:
    """Return an argument as the kernel reads an `int`: its lower half, with a sign."""
    word &= 0xFFFFFFFF
    return word - (1 << 32) if word >> 31 else word
