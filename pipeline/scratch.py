"""Creates temporary folders below one folder of this process; a later process removes them if this one was killed.

That folder is called `redfirst-scratch-*`, lies in the temporary folder, and is this process's as long as it holds the
lock in it: the kernel gives the lock back when the process dies, however it dies.
"""

from __future__ import annotations

import atexit
import fcntl
import itertools
import os
import stat
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pipeline.trees import opened, remove_entry, remove_tree

if TYPE_CHECKING:
    from collections.abc import Generator

_PREFIX: Final = "redfirst-scratch-"
_UNLOCKED: Final = ".redfirst-unlocked-"
"""The prefix of a process's folder until it is locked, so that nobody takes it for a dead process's."""
_LOCK: Final = "lock"
_numbers: Final = itertools.count(1)


@contextmanager
def scratch_folder(name: str) -> Generator[Path]:
    """Yield a new folder that only this user can open, and remove it with its content afterwards."""
    import tempfile  # noqa: PLC0415  (slow to load, and most commands write nothing)

    place = _own(os.getpid(), Path(tempfile.gettempdir())) / f"{name}-{next(_numbers)}"
    place.mkdir(mode=0o700)
    try:
        yield place
    finally:
        remove_tree(place)


@cache
def _own(process: int, parent: Path) -> Path:
    """Return the folder of this process, after the folders of dead processes are removed."""
    import tempfile  # noqa: PLC0415  (the same)

    temporary = parent.resolve()
    _remove_left(temporary)
    unlocked = Path(tempfile.mkdtemp(prefix=_UNLOCKED, dir=temporary))
    handle = os.open(unlocked / _LOCK, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    fcntl.flock(handle, fcntl.LOCK_EX)
    place = temporary / unlocked.name.replace(_UNLOCKED, _PREFIX)
    unlocked.rename(place)
    atexit.register(_end, process, place)
    return place


def _end(process: int, place: Path) -> None:
    if process == os.getpid():  # not in a fork of it
        with suppress(OSError):
            _remove(place)


def _remove_left(temporary: Path) -> None:
    """Remove the folders of this user's dead processes; one that cannot be removed stays."""
    with os.scandir(temporary) as entries:
        found = [temporary / entry.name for entry in entries if entry.name.startswith(_PREFIX)]
    for place in found:
        with suppress(OSError):
            about = place.lstat()
            if stat.S_ISDIR(about.st_mode) and about.st_uid == os.geteuid():
                _remove_if_left(place)


def _remove_if_left(place: Path) -> None:
    handle = os.open(place / _LOCK, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        _remove(place)
    finally:
        os.close(handle)


def _remove(place: Path) -> None:
    """Remove a folder, its lock last, so that a half-removed one is still recognised."""
    with opened(place) as folder:
        for name in os.listdir(folder):  # noqa: PTH208  (of a descriptor)
            if name != _LOCK:
                remove_entry(folder, name)
        os.unlink(_LOCK, dir_fd=folder)
    place.rmdir()
