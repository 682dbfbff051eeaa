"""Detects with inotify which folders were renamed meanwhile, even if they were put back.

A folder that is renamed, replaced for a moment and renamed back is the same afterwards, with the same files in it, and
their times say nothing. inotify(7) watches the folder itself and not a name, so it hears of it through each mount and
in each namespace, and nothing in a box can take that back. Whoever may write there is hindered in nothing.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import struct
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable
    from pathlib import Path

_MOVED: Final = 0x800  # IN_MOVE_SELF
_OVERFLOW: Final = 0x4000  # IN_Q_OVERFLOW
_ONLY_FOLDERS: Final = 0x01000000 | 0x02000000  # IN_ONLYDIR, IN_DONT_FOLLOW
_EVENT: Final = struct.Struct("iIII")
_MOST: Final = 50_000
"""The most folders that are watched; each costs some microseconds and a kilobyte of the kernel's."""
_LIBC: Final = ctypes.CDLL(None, use_errno=True)


@dataclass
class Renames:
    """The renames that were seen, once the watch is over.

    `moved` are paths; `unwatched` says of which folders nothing is known and why, or is empty.
    """

    moved: frozenset[str] = frozenset()
    unwatched: str = ""
    _paths: dict[int, str] = field(default_factory=dict[int, str])

    def watch(self, descriptor: int, top: Path, paths: list[str]) -> None:
        """Add watches for the folders to an inotify instance."""
        for number, path in enumerate(paths):
            place = os.fsencode(top / path)
            watch = _LIBC.inotify_add_watch(descriptor, place, _MOVED | _ONLY_FOLDERS) if number < _MOST else -1
            if watch < 0:
                why = os.strerror(ctypes.get_errno()) if number < _MOST else "there are too many"
                self.unwatched = f"{len(paths) - number} of {len(paths)} folders could not be watched: {why}"
                return
            self._paths[watch] = path

    def read(self, descriptor: int) -> None:
        """Record the renames so far; no process may be active in the folders any more."""
        moved: set[str] = set()
        with contextlib.suppress(BlockingIOError):
            while events := os.read(descriptor, 1 << 16):
                at = 0
                while at < len(events):
                    watch, mask, _, length = _EVENT.unpack_from(events, at)
                    at += _EVENT.size + length
                    if mask & _MOVED:
                        moved.add(self._paths[watch])
                    if mask & _OVERFLOW:  # which ones nobody knows
                        moved.update(self._paths.values())
        self.moved = frozenset(moved)


@dataclass(frozen=True)
class Traces:
    """The traces of a user in a copy: files written, created or removed, folders renamed, put back or not."""

    touched: frozenset[str]
    renames: Renames


@contextlib.contextmanager
def watched_folders(top: Path, paths: Iterable[str]) -> Generator[Renames]:
    """Watch these folders below `top` for renames while the context lasts.

    Args:
        top: A folder that nobody else has yet.
        paths: Relative to it.
    """
    seen = Renames()
    descriptor: int = _LIBC.inotify_init1(os.O_CLOEXEC | os.O_NONBLOCK)
    if descriptor < 0:
        seen.unwatched = f"folders could not be watched: {os.strerror(ctypes.get_errno())}"
        yield seen
        return
    try:
        seen.watch(descriptor, top, sorted(paths))
        yield seen
        seen.read(descriptor)
    finally:
        os.close(descriptor)
