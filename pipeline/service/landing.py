"""How the commits of a run get from its branch to the base: only by a command that was tried (ADR-R165)."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from pipeline.outcomes import Outcome
from pipeline.runs.facts import commits_of
from pipeline.runs.landed import is_on

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pipeline.git import Repository
    from pipeline.runs.run import Run


def landed(repository: Repository, run: Run) -> bool | None:
    """Return whether the base has the commits of a run; None where there is nothing to merge.

    Args:
        repository: Seen from the worktree of the run.
        run: The run.
    """
    done = run.state.outcome in {Outcome.COMPLETED, Outcome.COMPLETED_WITH_BLOCKERS}  # a failed one commits a note
    commits, base = commits_of(run) if done else (), repository.resolve(f"refs/heads/{run.info.base_branch}")
    if not commits or base is None:
        return None
    if is_on(repository, commits, run.info.start_commit, base):
        return True
    tip = repository.resolve(f"refs/heads/{run.info.branch}")
    return None if tip is None or not repository.is_ancestor(commits[-1], tip) else False


def landing(repository: Repository, run: Run) -> tuple[str, ...]:
    """Return the command that merges the branch of the run into the base as both are now; none where git would refuse.

    The index and the files of the worktree that has the base are looked at, too; where none has it and it has moved,
    those of the run's.
    """
    if landed(repository, run) is not False:
        return ()
    info = run.info
    base, tip = f"refs/heads/{info.base_branch}", f"refs/heads/{info.branch}"
    fast = repository.is_ancestor(repository.resolve(base) or base, repository.resolve(tip) or tip)
    place = next((each for each in repository.worktrees() if _has(repository.at(each), info.base_branch)), None)
    if place is None:
        if fast:
            return (f"git fetch . {shlex.quote(f'{info.branch}:{info.base_branch}')}",)
        return (_switch_and_merge(repository, run),) if repository.merges(base, tip) and not repository.status() else ()
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


def _switch_and_merge(repository: Repository, run: Run) -> str:
    git = f"git -C {shlex.quote(str(repository.worktree))}"
    base, branch = shlex.quote(run.info.base_branch), shlex.quote(run.info.branch)
    return f"{git} switch {base} && {git} merge --no-edit {branch}"


def _has(there: Repository, branch: str) -> bool:
    return there.worktree.is_dir() and there.branch() == branch


def _meet(touched: Iterable[str], uncommitted: Iterable[str]) -> bool:
    """Return whether a path of the one lies at, above or below one of the other."""
    ours, theirs = [f"{path}/" for path in touched], [f"{path.rstrip('/')}/" for path in uncommitted]
    return any(one.startswith(other) or other.startswith(one) for one in ours for other in theirs)
