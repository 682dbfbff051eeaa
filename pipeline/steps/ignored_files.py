"""`.worktreeinclude`: ignored files of the user's worktree that tests need, kept once and put into each measured copy.

No link is followed on either side: not from the worktree, and not in a copy, where a tree may have links of its own.
"""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING, BinaryIO, Final

from pipeline.errors import UserError
from pipeline.routing.vocabulary import Reason
from pipeline.runs.checkout import remove_tree
from pipeline.trees import (
    NotRegularError,
    opened,
    opened_parent,
    opened_regular,
    read_regular,
    remove_entry,
    write_new,
)

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.git import Repository

INCLUDE_FILE: Final = ".worktreeinclude"
"""One that the repository tracks needs trust (`cli.widening`)."""

_KEPT: Final = "include"
_LIMIT: Final = 1_000_000


def include_patterns(worktree: Path) -> tuple[str, ...]:
    """Return the patterns of `.worktreeinclude`; none where it is not there, or no regular file.

    Raises:
        UserError: it cannot be read, or is larger than such a file is.
    """
    try:
        content = read_regular(worktree / INCLUDE_FILE, _LIMIT)
    except (FileNotFoundError, NotRegularError):
        return ()
    except OSError as error:
        raise UserError(f"{INCLUDE_FILE} cannot be read: {error.strerror}.", Reason.DISK, path=INCLUDE_FILE) from error
    if len(content) > _LIMIT:
        raise UserError(f"{INCLUDE_FILE} is larger than {_LIMIT} bytes.", Reason.CONFIG, path=INCLUDE_FILE)
    lines = content.decode(errors="surrogateescape").splitlines()
    return tuple(line for line in lines if line.strip() and not line.startswith("#"))


def include_ignored(repository: Repository, place: Path) -> None:
    """Keep the ignored files that `.worktreeinclude` names, as they are now, for every later measurement.

    Args:
        repository: Whose worktree has them.
        place: The folder of the measurements, which nobody else writes.

    Raises:
        UserError: one of them cannot be read.
    """
    kept = place / _KEPT
    if kept.exists() or not include_patterns(repository.worktree):
        return
    staging = kept.with_name("include.tmp")
    remove_tree(staging)
    staging.mkdir(parents=True)
    with opened(repository.worktree.resolve()) as top:
        for name in repository.ignored_matching(repository.worktree / INCLUDE_FILE):
            try:
                with opened_parent(top, name) as (parent, last), opened_regular(last, parent) as file:
                    _put(staging, name, file)
            except NotRegularError:
                continue
            except OSError as error:
                raise UserError(
                    f"{INCLUDE_FILE} names {name}, which cannot be read: {error.strerror}.", Reason.DISK, path=name
                ) from error
    staging.rename(kept)


def ignored_names(place: Path) -> frozenset[str]:
    """Return the paths of the kept files of *place*."""
    kept = place / _KEPT
    found = kept.rglob("*") if kept.exists() else ()
    return frozenset(path.relative_to(kept).as_posix() for path in found if path.is_file())


def put_ignored(place: Path, folder: Path) -> None:
    """Put the kept files of *place* into a copy of a tree; what the tree has in their places gives way."""
    kept = place / _KEPT
    for path in sorted(kept.rglob("*")) if kept.exists() else ():
        if path.is_file():
            with path.open("rb") as file:
                _put(folder, path.relative_to(kept).as_posix(), file)


def _put(folder: Path, name: str, file: BinaryIO) -> None:
    with opened(folder) as top, opened_parent(top, name, create=True) as (parent, last):
        remove_entry(parent, last)
        write_new(parent, last, file.read(), stat.S_IMODE(os.fstat(file.fileno()).st_mode))
