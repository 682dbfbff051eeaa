"""Lists the ignored files of the user's worktree that every copy of a tree gets, for agents and measurements alike.

`runs.worktree_include` keeps them, once for a run, beside its checkout. They are no part of a tree: what becomes of
them in a copy is no change of the project. No link of a copy is followed.
"""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING, BinaryIO, Final

from pipeline.trees import opened, opened_parent, remove_entry, write_new

if TYPE_CHECKING:
    from pathlib import Path

_KEPT: Final = "include"


def kept_ignored(place: Path) -> Path:
    """Return the folder of the kept files below *place*, the run's own; it is not there where none are kept."""
    return place / _KEPT


def ignored_names(place: Path) -> frozenset[str]:
    """Return the paths of the kept files of *place*."""
    kept = kept_ignored(place)
    found = kept.rglob("*") if kept.exists() else ()
    return frozenset(path.relative_to(kept).as_posix() for path in found if path.is_file())


def put_ignored(place: Path, folder: Path) -> None:
    """Put the kept files of *place* into a copy of a tree; what the tree has in their places gives way."""
    kept = kept_ignored(place)
    for name in sorted(ignored_names(place)):
        with (kept / name).open("rb") as file:
            put_file(folder, name, file)


def put_file(folder: Path, name: str, file: BinaryIO) -> None:
    """Write the content and the mode of *file* below *folder*, in the place of whatever is there."""
    with opened(folder) as top, opened_parent(top, name, create=True) as (parent, last):
        remove_entry(parent, last)
        write_new(parent, last, file.read(), stat.S_IMODE(os.fstat(file.fileno()).st_mode))
