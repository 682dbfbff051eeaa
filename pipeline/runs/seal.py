"""Tells by what lstat says of each name whether a folder of ours is still as we left it: no content is read again.

The change time is what makes that sound: a program can set a file's modification time back, but not this one, short of
setting the clock (ADR-R23).
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

Facts = tuple[int, ...]


@dataclass(frozen=True)
class Seal:
    """How everything in and below some places stood. Of a folder only its kind, permissions and names count."""

    places: tuple[Path, ...]
    facts: Mapping[str, Facts]

    @classmethod
    def of(cls, *places: Path) -> Seal:
        """Return how these folders and files stand now; a place may be missing."""
        return cls(places, dict(_facts(places)))

    def broken(self) -> tuple[str, ...]:
        """Return the paths that are not as they were, sorted; empty when nobody has touched anything."""
        now = dict(_facts(self.places))
        if now == self.facts:
            return ()
        return tuple(sorted(path for path in now.keys() | self.facts.keys() if now.get(path) != self.facts.get(path)))


def _facts(places: tuple[Path, ...]) -> Iterator[tuple[str, Facts]]:
    folders: list[str] = []
    for place in places:
        try:
            status = place.lstat()
        except OSError as error:
            yield str(place), _unseen(error)
            continue
        yield str(place), _of(status)
        if stat.S_ISDIR(status.st_mode):
            folders.append(str(place))
    while folders:
        folder = folders.pop()
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    yield entry.path, _of(entry.stat(follow_symlinks=False))
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(entry.path)
        except OSError as error:  # permissions taken away, a path beyond what the system accepts: not as we left it
            yield f"{folder}/", _unseen(error)


def _unseen(error: OSError) -> Facts:
    return (-(error.errno or 1),)


def _of(status: os.stat_result) -> Facts:
    if stat.S_ISDIR(status.st_mode):
        return (status.st_mode, status.st_uid)
    return (status.st_mode, status.st_uid, status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)
