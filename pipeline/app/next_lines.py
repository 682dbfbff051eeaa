"""Lists the commands that are safe to type next, by how a run, its branch, its base and its issue stand.

The last of them removes a worktree with its branch: only where nothing else goes with it, since git removes ignored
files of a worktree without a word, and `branch -D` any commit.
"""

from __future__ import annotations

import shlex
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from pipeline.characters import visible
from pipeline.errors import UserError
from pipeline.outcomes import COMPLETED, Outcome, Reason
from pipeline.progress import few
from pipeline.run import tracker
from pipeline.run.checkout import has_submodules
from pipeline.run.gates import begun_again, safe_next_actions
from pipeline.run.run import Run
from pipeline.run.runs_of_repository import Roster
from pipeline.run.store import WORKFLOW, Claim, base_tip, claims, gone_on, is_on, is_remote, push_of, run_names, run_ref
from pipeline.run.summary_facts import commits_of
from todo import Status, TrackerError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pipeline.repo import Repository
    from pipeline.vocabulary import Role


def landed(repository: Repository, run: Run) -> bool | None:
    """Return whether the base has the commits of a run; None where there is nothing to merge.

    Args:
        repository: Seen from the worktree of the run.
        run: The run.
    """
    done = run.state.outcome in COMPLETED  # a failed one commits a note
    commits, base = commits_of(run) if done else (), base_tip(repository, run.info.base_branch)
    if not commits or base is None:
        return None
    if is_on(repository, commits, run.info.start_commit, base):
        return True
    tip = repository.resolve(f"refs/heads/{run.info.branch}")
    return None if tip is None or not repository.is_ancestor(commits[-1], tip) else False


def _landing(repository: Repository, run: Run) -> tuple[str, ...]:
    """Return the commands that get the commits of the run onto its base, the run to finish first where there is one.

    The first is `land`, which measures them there; behind it stands why git alone would refuse, where it would. The
    index and the files of the worktree that has the base are looked at, too; where none has it and it has moved, those
    of the run's.
    """
    info = run.info
    if is_remote(repository, info.base_branch):
        return (f"{push_of(info.branch, info.base_branch)}   # redfirst pushes to no forge",)
    first = unfinished_on(repository, info.base_branch)
    if first is not None:
        return (f"redfirst show {first}   # finish it first: it is at work on {info.base_branch}, and publishes there",)
    by_git, why = _by_git(repository, run)
    land = f"redfirst land {info.run_id}   # onto {info.base_branch}, measured there{why and f'; git alone: {why}'}"
    return (land, *by_git)


def unfinished_on(repository: Repository, branch: str) -> str | None:
    """Return what the run is called that has an issue and is to publish to a branch; None where there is none."""
    for claim in claims(repository).values():
        with suppress(UserError, OSError):  # `runs` says what is wrong with it
            if isinstance(claim, Claim) and Run.load(claim.folder, driving=False).info.branch == branch:
                return Roster(repository).spoken(claim.folder)
    return None


def _by_git(repository: Repository, run: Run) -> tuple[tuple[str, ...], str]:
    """Return the command of git that merges the branch of the run into the base as both are now, or why it refuses."""
    info = run.info
    base, tip = f"refs/heads/{info.base_branch}", f"refs/heads/{info.branch}"
    fast = repository.is_ancestor(repository.resolve(base) or base, repository.resolve(tip) or tip)
    place = next((each for each in repository.worktrees() if _has(repository.at(each), info.base_branch)), None)
    if place is None and fast:
        both = shlex.quote(f"{info.branch}:{info.base_branch}")
        return (f"git fetch . {both}   # moves {info.base_branch} forward to it",), ""
    parted = repository.merge_base(base, tip)
    if parted is None or not (fast or repository.merges(base, tip)):
        return (), f"conflicts with changes of {info.base_branch}"
    if place is None:
        return (
            ((), "something is not committed") if repository.status() else ((_switch_and_merge(repository, run),), "")
        )
    there = repository.at(place)
    touched = [change.path for change in repository.diff(parted, tip)]
    uncommitted = [line[3:] for line in there.status()]
    if _meet(touched, uncommitted) or (there.staged(base) and not fast):
        return (), f"what it writes is not committed in {visible(str(place.path))}"
    how = "--ff-only" if fast else "--no-edit"
    return (f"git -C {shlex.quote(str(place.path))} merge {how} {shlex.quote(info.branch)}",), ""


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


_SHOWN: Final = 5


def removal(repository: Repository, run: Run, *, has_landed: bool) -> tuple[str, ...]:
    """Return the command that removes the worktree and the branch of a run that was rejected, abandoned, or has landed.

    There is none where git would refuse, or something be lost.

    Args:
        repository: Seen from the worktree of the run.
        run: The run.
        has_landed: Whether its base has its commits.
    """
    is_linked = repository.git_dir != repository.common_dir
    is_over = has_landed or run.state.reason is Reason.ABANDONED or run.state.outcome is Outcome.REJECTED
    if not (is_linked and is_over) or any(_in_the_way(repository, run)):
        return ()
    main = f"git -C {shlex.quote(str(repository.main_checkout))}"
    ref = run_ref(repository, run.info.run_id)
    place, branch = shlex.quote(str(repository.worktree)), shlex.quote(run.info.branch)
    return (f"{main} worktree remove {place} && {main} branch -D {branch}   # its record stays in {ref}",)


def what_stays(repository: Repository, run: Run) -> str | None:
    """Return, in words, what keeps the worktree and the branch of an abandoned run; None where nothing does."""
    reasons = list(_in_the_way(repository, run)) if repository.git_dir != repository.common_dir else []
    return f"the worktree {repository.worktree} and its branch stay: {'; '.join(reasons)}" if reasons else None


def _in_the_way(repository: Repository, run: Run) -> Iterator[str]:
    info, stands_on = run.info, repository.branch()
    tip = repository.resolve(f"refs/heads/{info.branch}")
    if stands_on != info.branch or tip is None:
        yield f"it stands on {stands_on or 'no branch'}, not on {info.branch}"
        return
    base = repository.resolve(info.base_branch)
    if base is None or not repository.is_ancestor(tip, base):
        yield f"{info.branch} has commits that {info.base_branch} does not have"
    place = repository.worktree.resolve()
    if any(each.path == place and each.locked is not None for each in repository.worktrees()):
        yield "it is locked"
    if has_submodules(repository, tip):
        yield "it has submodules"
    others = [name for name in run_names(repository) if name != info.run_id]
    if others:
        yield f"records of {', '.join(others)}"
    files = sorted({line[3:] for line in repository.status(ignored=True)} - {f"{WORKFLOW}/"})
    if files:
        yield f"not committed: {few(files, _SHOWN)}"


def next_lines(
    repository: Repository,
    run: Run,
    has_landed: bool | None,
    *,
    live: bool = False,
    desks: Iterable[Role] = (),
    handed_in: bool = False,
) -> tuple[str, ...]:
    """Return the commands, as they work in the worktree of the run.

    Args:
        repository: Seen from the worktree of the run.
        run: The run.
        has_landed: Whether its base has its commits (`landed`).
        live: A process drives it.
        desks: The roles that a person plays, and at whose desks something is asked.
        handed_in: Whether at such a desk the answer lies already.
    """
    found = safe_next_actions(run, live=live, desks=desks)
    if handed_in:
        resume = f"redfirst resume {run.info.run_id}"
        found = tuple(f"{action}   # takes what is handed in" if action == resume else action for action in found)
    if run.state.reason is Reason.ABANDONED and _is_done(repository, run):  # a person has put its result there
        info = run.info
        log = f"git log --stat {info.start_commit[:12]}..{shlex.quote(info.branch)}"
        found = tuple(log if action == begun_again(run) else action for action in found)
    if not live and gone_on(run.folder) is not None:
        found = ("redfirst fleet runs", f"redfirst fleet take {run.info.run_id}   # brings it here, as it stands there")
    landing = _landing(repository, run) if has_landed is False else ()
    return (*found, *landing, *removal(repository, run, has_landed=has_landed is True))


def _is_done(repository: Repository, run: Run) -> bool:
    """Return whether the issue is Done, on the branch or in the files of the worktree."""
    tip = repository.resolve(f"refs/heads/{run.info.branch}")
    committed = () if tip is None else (tracker.in_tree(repository, repository.tree_of(tip)),)
    for issues in (*committed, tracker.in_worktree(repository.worktree)):
        try:
            if issues.read(run.issue).status is Status.DONE:
                return True
        except TrackerError:
            continue
    return False
