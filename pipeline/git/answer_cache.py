"""Caches git's answers: those about objects for good, those about settings until a file they come from differs."""

from __future__ import annotations

import os
import threading
from bisect import bisect_left
from collections import OrderedDict
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from pipeline.git.values import Entry

_MOST: Final = 32 << 20
_LARGEST: Final = 4 << 20

FileState = tuple[str, bytes | None, tuple[int, ...]]
"""The state of a file: path, content or link target (None if missing); a large file has its status instead."""


class Answers:
    """A cache of git's output by command line, limited in bytes, that threads may share; the least used goes first."""

    def __init__(self, most: int = _MOST) -> None:
        self._kept: OrderedDict[Hashable, bytes] = OrderedDict()
        self._most, self._size = most, 0
        self._changing = threading.Lock()

    def get(self, asked: Hashable, ask: Callable[[], bytes]) -> bytes:
        """Return the cached answer, else the one that *ask* returns, which is cached."""
        known = self.known(asked)
        if known is None:
            known = ask()
            self.keep(asked, known)
        return known

    def known(self, asked: Hashable) -> bytes | None:
        """Return the cached answer, None if there is none."""
        with self._changing:
            if asked in self._kept:
                self._kept.move_to_end(asked)
            return self._kept.get(asked)

    def keep(self, asked: Hashable, answer: bytes) -> None:
        """Cache an answer, unless it is large."""
        with self._changing:
            if len(answer) > _LARGEST or asked in self._kept:
                return
            self._kept[asked] = answer
            self._size += len(answer)
            while self._size > self._most:
                self._size -= len(self._kept.popitem(last=False)[1])


class Listing:
    """The entries of one tree, to be looked up by path.

    Args:
        entries: Files and gitlinks.
        folders: The object name of each folder.
    """

    def __init__(self, entries: Sequence[Entry], folders: Mapping[str, str]) -> None:
        self.entries = tuple(entries)
        self._folders = folders
        self._children: dict[str, dict[str, tuple[str, str]]] = {}
        self._sorted = sorted(entries, key=lambda entry: entry.path)
        self._paths = [entry.path for entry in self._sorted]

    def below(self, paths: Iterable[str]) -> tuple[Entry, ...]:
        """Return the entries at or below *paths*; for `folder/` only those below it."""
        found: dict[int, Entry] = {}
        for path in paths:
            for beginning in {path, f"{path.rstrip('/')}/"}:
                found.update(self._beginning(beginning))
        return tuple(found[at] for at in sorted(found))

    def children(self, folder: str) -> Mapping[str, tuple[str, str]]:
        """Return mode and object name of the entries directly in a folder ("" = the top), by name."""
        if not self._children:
            found: dict[str, dict[str, tuple[str, str]]] = {"": {}}
            below = ((path, "040000", oid) for path, oid in self._folders.items())
            for path, mode, oid in (*below, *((entry.path, entry.mode, entry.oid) for entry in self.entries)):
                above, _, name = path.rpartition("/")
                found.setdefault(above, {})[name] = (mode, oid)
            self._children = found
        return self._children.get(folder, {})

    def _beginning(self, beginning: str) -> Iterator[tuple[int, Entry]]:
        at = bisect_left(self._paths, beginning)
        whole = not beginning.endswith("/")
        while at < len(self._paths) and self._paths[at].startswith(beginning):
            if whole and self._paths[at] != beginning:
                return
            yield at, self._sorted[at]
            at += 1


def state_of(path: Path) -> FileState:
    """Return the state of one file."""
    try:
        status = path.lstat()
        if path.is_symlink():
            return str(path), os.fsencode(path.readlink()), ()
        if path.is_file() and status.st_size <= _LARGEST:
            return str(path), path.read_bytes(), ()
    except OSError:
        return str(path), None, ()
    kind = (status.st_mode, status.st_ino)
    changed = (status.st_size, status.st_mtime_ns, status.st_ctime_ns) if path.is_file() else ()
    return str(path), None, (*kind, *changed)
