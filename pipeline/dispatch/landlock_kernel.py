"""The kernel's interfaces behind the Landlock box, by their numbers: libc has no functions for most of them."""

from __future__ import annotations

import ctypes
import os
import struct
from typing import Final

_NEEDED_ABI: Final = 6
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446  # the same on every processor, as is openat2
_OPENAT2: Final = 437
_SECCOMP: Final = {"x86_64": 317, "aarch64": 277}
_UTIMENSAT: Final = {"x86_64": 280, "aarch64": 88}

_READ: Final = 1 << 0 | 1 << 2 | 1 << 3  # execute, read a file, list a folder
_DEVICES: Final = 1 << 6 | 1 << 11 | 1 << 15  # make character and block devices, ioctl on them
_SOCKETS: Final = 1 << 9
_REFER: Final = 1 << 13  # move and link from one folder to another
_EVERYTHING: Final = (1 << 16) - 1
_WRITE: Final = _EVERYTHING & ~(_DEVICES | _SOCKETS)
_USE: Final = 1 << 1 | 1 << 2 | 1 << 14  # write, read, truncate
_ON_FILES: Final = 1 << 0 | 1 << 1 | 1 << 2 | 1 << 14  # execute, write, read, truncate: what a single file can have
_TCP: Final = 1 << 0 | 1 << 1  # bind and connect
_SCOPES: Final = 1 << 0 | 1 << 1  # abstract sockets and signals
_BENEATH: Final = 1

_PDEATHSIG, _SECCOMP_MODE, _CAPBSET_DROP, _SET_SECUREBITS, _SUBREAPER, _NO_NEW_PRIVS = 1, 22, 24, 28, 36, 38
_ROOT_IS_NOBODY: Final = 0xEF  # every SECBIT but KEEP_CAPS, each locked: user 0 gains nothing by being user 0
_CAPABILITIES: Final = 64
_CAPABILITY_VERSION: Final = 0x20080522

_SET_FILTER: Final = 1
_NEW_LISTENER, _WAIT_KILLABLE = 1 << 3, 1 << 5

AT_FDCWD: Final = -100
AT_SYMLINK_NOFOLLOW: Final = 0x100
AT_EMPTY_PATH: Final = 0x1000
NO_MAGICLINKS: Final = 0x02
"""A resolve flag of openat2: not through what /proc has instead of links."""

_libc: Final = ctypes.CDLL(None, use_errno=True)


def call(number: int, *arguments: int | bytes | None) -> int:
    """Make a system call and return its result.

    Raises:
        OSError: it failed.
    """
    words = [ctypes.c_long(word) if isinstance(word, int) else ctypes.c_char_p(word) for word in arguments]
    result: int = _libc.syscall(ctypes.c_long(number), *words)
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def landlock_abi() -> int:
    """Return the version of Landlock that this kernel offers, 0 without it (asked by the call: files may lie)."""
    try:
        return call(_CREATE_RULESET, None, 0, 1)
    except OSError:
        return 0


def missing_landlock() -> str:
    """Return why the box cannot work with this kernel, nothing if it can."""
    found = landlock_abi()
    if found >= _NEEDED_ABI:
        return ""
    offer = f"offers version {found} of Landlock" if found else "offers no Landlock"
    return f"this kernel {offer}, and version {_NEEDED_ABI} is needed (Linux 6.12)"


class Ruleset:
    """What a process may do with which files; TCP, signals and abstract sockets out of the box are never allowed."""

    def __init__(self, *, files: bool = True) -> None:
        """Make an empty one: nothing is allowed; without `files` it says nothing of these, nor of TCP."""
        handled = struct.pack("=QQQ", _EVERYTHING if files else _REFER, _TCP if files else 0, _SCOPES)
        self._descriptor = call(_CREATE_RULESET, handled, len(handled), 0)
        if not files:  # what a ruleset does not allow it forbids, even if it says nothing of it
            self._allow("/", _REFER)

    def read(self, path: str) -> None:
        """Allow to read and execute what is at or below `path`.

        Raises:
            OSError: there is nothing.
        """
        self._allow(path, _READ)

    def write(self, path: str) -> None:
        """Allow everything at or below `path` but devices and sockets.

        Raises:
            OSError: there is nothing.
        """
        self._allow(path, _WRITE)

    def use(self, path: str) -> None:
        """Allow to read and write the one file, or device, `path`.

        Raises:
            OSError: there is nothing.
        """
        self._allow(path, _USE)

    def restrict(self) -> None:
        """Put this process, and all that it starts, under the rules, for good."""
        call(_RESTRICT_SELF, self._descriptor, 0)

    def _allow(self, path: str, rights: int) -> None:
        beneath = os.open(path, os.O_PATH | os.O_CLOEXEC)
        try:
            rights &= _EVERYTHING if os.path.isdir(path) else _ON_FILES  # noqa: PTH112  (pathlib costs a start)
            call(_ADD_RULE, self._descriptor, _BENEATH, struct.pack("=Qi", rights, beneath), 0)
        finally:
            os.close(beneath)


def drop_privileges() -> None:
    """Give up every capability and the way to any: a program of user 0 is then a program like any other.

    Raises:
        OSError: something is left.
    """
    _libc.prctl(_SET_SECUREBITS, _ROOT_IS_NOBODY, 0, 0, 0)  # who may not do this, and the next, has nothing to give up
    for capability in range(_CAPABILITIES):
        _libc.prctl(_CAPBSET_DROP, capability, 0, 0, 0)
    header = struct.pack("=Ii", _CAPABILITY_VERSION, 0)
    if _libc.capset(header, bytes(24)) != 0:
        raise OSError(ctypes.get_errno(), "the capabilities cannot be dropped")
    _prctl(_NO_NEW_PRIVS, 1)


def adopt_orphans() -> None:
    """Become the parent of whatever a descendant leaves behind."""
    _prctl(_SUBREAPER, 1)


def end_with_parent(parent: int, signal: int) -> bool:
    """Ask for `signal` when the parent ends; return whether it still is `parent`."""
    _prctl(_PDEATHSIG, signal)
    return os.getppid() == parent


def listen(rules: bytes) -> int:
    """Put this process under a filter; return the descriptor where its questions arrive."""
    buffer = ctypes.create_string_buffer(rules, len(rules))
    program = struct.pack("=HxxxxxxQ", len(rules) // 8, ctypes.addressof(buffer))
    return call(_SECCOMP[os.uname().machine], _SET_FILTER, _NEW_LISTENER | _WAIT_KILLABLE, program)


def open_path(path: bytes, folder: int, *, resolve: int, follow: bool = True) -> int:
    """Return a descriptor of what is at `path`, seen from `folder`; it is not opened, only found (O_PATH).

    Raises:
        OSError: nothing is there, or the way there is not allowed.
    """
    how = struct.pack("=QQQ", os.O_PATH | os.O_CLOEXEC | (0 if follow else os.O_NOFOLLOW), 0, resolve)
    return call(_OPENAT2, folder, path, how, len(how))


def set_times(descriptor: int, times: bytes | None) -> None:
    """Set the times of what was found: two `struct timespec`, or None for now."""
    call(_UTIMENSAT[os.uname().machine], descriptor, b"", times, AT_EMPTY_PATH)


def set_owner(descriptor: int, user: int, group: int) -> None:
    """Set the owner of what was found; -1 leaves one as it is."""
    if _libc.fchownat(descriptor, b"", user, group, AT_EMPTY_PATH) != 0:
        raise OSError(ctypes.get_errno(), "the owner cannot be changed")


def _prctl(option: int, value: int) -> None:
    if _libc.prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), f"prctl({option}, {value}) failed")
