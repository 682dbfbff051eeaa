"""How the commits of a run get from the branch of its worktree to the base: only by a command that was tried."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from pipeline.runs.facts import commits_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pipeline.git import Repository
    from pipeline.runs.run import Run


def landed(repository: Repository, run: Run) -> bool | None:
    """Return whether the base has the commits of a run in a linked worktree; None where there is nothing to merge.

    Args:
        repository: Seen from the worktree of the run.
        run: The run.
    """
    commits, base = commits_of(run), repository.resolve(f"refs/heads/{run.info.base_branch}")
    if not commits or base is None or repository.git_dir == repository.common_dir:
        return None
    tip = repository.resolve(f"refs/heads/{run.info.branch}")
    if tip is None or not repository.is_ancestor(commits[-1], tip):
        return None
    return repository.is_ancestor(commits[-1], base)


def landing(repository: Repository, run: Run) -> tuple[str, ...]:
    """Return the command that merges the branch of the run into the base as both are now; none where git would refuse.

    The index and the files of the worktree that has the base are looked at, too.
    """
    if landed(repository, run) is not False:
        return ()
    info = run.info
    base, tip = f"refs/heads/{info.base_branch}", f"refs/heads/{info.branch}"
    fast = repository.is_ancestor(base, tip)
    place = next((each for each in repository.worktrees() if _has(repository.at(each), info.base_branch)), None)
    if place is None:
        return (f"git fetch . {shlex.quote(f'{info.branch}:{info.base_branch}')}",) if fast else ()
    parted = repository.merge_base(base, tip)
    if parted is None or not (fast or repository.merges(base, tip)):
        return ()
    there = repository.at(place)
    touched = [change.path for change in repository.diff(parted, tip)]
    uncommitted = [line[3:] for line in there.status()]
    if _meet(touched, uncommitted) or (there.staged(base) and not fast):
        return ()
    how = "--ff-only" if fast else "--no-edit"
    return (f"git -C {shlex.quote(str(place.path))} merge {how} {shlex.quote(info.branch)}",)


def _has(there: Repository, branch: str) -> bool:
    return there.worktree.is_dir() and there.branch() == branch


def _meet(touched: Iterable[str], uncommitted: Iterable[str]) -> bool:
    """Return whether a path of the one lies at, above or below one of the other."""
    ours, theirs = [f"{path}/" for path in touched], [f"{path.rstrip('/')}/" for path in uncommitted]
    return any(one.startswith(other) or other.startswith(one) for one in ours for other in theirs)
