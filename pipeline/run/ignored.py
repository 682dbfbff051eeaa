"""The ignored files that `.worktreeinclude` names, which tests need: kept once for a run, and put into each copy.

They are no part of a tree: what becomes of them in a copy is no change of the project. No link of the worktree or of a
copy is followed.
"""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING, BinaryIO, Final

from pipeline.errors import UserError
from pipeline.outcomes import Reason
from pipeline.run.checkout import remove_tree
from pipeline.trees import NotRegularError, opened, opened_parent, opened_regular, read_regular, remove_entry, write_new

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.repo import Repository

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


INCLUDE_FILE: Final = ".worktreeinclude"
"""One that the repository tracks needs trust (`app.trust_requests`)."""

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
    """Keep the ignored files that `.worktreeinclude` names, as they are now, for every later copy of a tree.

    Args:
        repository: Whose worktree has them.
        place: The run's own folder, which nobody else writes.

    Raises:
        UserError: one of them cannot be read.
    """
    kept = kept_ignored(place)
    if kept.exists() or not include_patterns(repository.worktree):
        return
    staging = kept.with_name("include.tmp")
    remove_tree(staging)
    staging.mkdir(parents=True)
    _copy(repository, repository.worktree / INCLUDE_FILE, staging)
    staging.rename(kept)


def forget_ignored(place: Path) -> None:
    """Remove the kept files, so that they are kept anew: only before anything is measured that counts."""
    remove_tree(kept_ignored(place))


def bring_ignored(repository: Repository, made: Path) -> None:
    """Copy the ignored files that the list of a new worktree names from the worktree that somebody stands in.

    Args:
        repository: Whose worktree has them.
        made: The new worktree, as git has made it: nothing that is ignored is in it.

    Raises:
        UserError: the list or one of the files cannot be read.
    """
    if include_patterns(made):
        _copy(repository, made / INCLUDE_FILE, made)


def _copy(repository: Repository, patterns: Path, target: Path) -> None:
    """Copy the ignored files that match the patterns from the repository's worktree, but no links and pipes."""
    with opened(repository.worktree.resolve()) as top:
        for name in repository.ignored_matching(patterns):
            try:
                with opened_parent(top, name) as (parent, last), opened_regular(last, parent) as file:
                    put_file(target, name, file)
            except NotRegularError:
                continue
            except OSError as error:
                raise UserError(
                    f"{INCLUDE_FILE} names {name}, which cannot be read: {error.strerror}.", Reason.DISK, path=name
                ) from error
