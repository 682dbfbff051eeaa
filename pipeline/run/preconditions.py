"""Checks what must hold before anything is written (contract 2): cheap, read-only, each with what to do.

`redfirst run` asks before it makes a run folder, so that a refused run leaves nothing; SANITY asks where a run goes on.
"""

from __future__ import annotations

import os
import shlex
from dataclasses import dataclass
from datetime import date
from functools import partial
from typing import TYPE_CHECKING

from pipeline.characters import visible
from pipeline.data_types import is_branch_name
from pipeline.errors import UserError, check_all
from pipeline.matrix.engine.run import sha256_hex
from pipeline.outcomes import Reason
from pipeline.run.preflight import listed, refuse_hidden, refuse_ignored, refuse_unusable, uncommitted
from pipeline.run.run import Run
from pipeline.run.runs_of_repository import Roster, claimant
from pipeline.run.store import WORKFLOW, claim_holders, claim_on, runs_folder, worktree_key
from pipeline.run.tracker import as_user_errors, in_tree, in_worktree, shown_files, shown_paths
from todo import Status

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.repo import Repository

_COMMIT = "git add --all && git commit"
_ANY_DAY = date(2000, 1, 1)


@dataclass(frozen=True)
class Start:
    """Where a run starts: the branch, its tip, and the base branch, which it must not be."""

    branch: str
    base_branch: str
    commit: str
    tree: str


def examine(repository: Repository, issue: str, base: str | None, *, ours: str | None = None) -> Start:
    """Return where the run starts.

    Args:
        repository: Seen from the worktree that the user stands in.
        issue: The issue's id.
        base: The base branch, if the user names one.
        ours: The run that asks; its own claim and tracker files do not count against it.

    Raises:
        UserError: a precondition does not hold (contract 2, exit 2; a foreign claim: exit 75).
    """
    _check_named(repository, issue)
    start = _start(repository, issue, base)
    if start.branch == start.base_branch:  # what is advised then would find the issue claimed
        refuse_claimed(repository, issue, ours=ours)
    check_all(
        partial(_check_tracker, repository, issue, ours),
        partial(_check_branch, repository, start, issue, f"redfirst run {issue} --worktree"),
        partial(runs_folder, repository),
        partial(_check_alone, repository, issue, f"redfirst run {issue} --worktree"),
        partial(_check_clean, repository),
        partial(refuse_hidden, repository),
        partial(refuse_ignored, repository, f"{in_worktree(repository.worktree).folder}/{issue}.md"),
    )
    refuse_claimed(repository, issue, ours=ours)
    return start


def refuse_base_branch(repository: Repository, name: str, base: str | None) -> None:
    """Refuse the branch that the user stands on where no run could commit to it.

    Raises:
        UserError: it is the base branch, or there is none.
    """
    _check_branch(repository, _start(repository, name, base), name, f"redfirst run {name} --worktree")


def examine_recipe(repository: Repository, name: str, base: str | None, *, files_alone: bool) -> Start:
    """Return where a run of a recipe starts that commits to the branch.

    Args:
        repository: Seen from the worktree that the user stands in.
        name: The recipe's name.
        base: The base branch, if the user names one.
        files_alone: Whether it files issues and commits nothing else: then only their folder has to be clean.

    Raises:
        UserError: a precondition does not hold (contract 2, exit 2).
    """
    start = _start(repository, name, base)
    check_all(
        partial(_check_branch, repository, start, name),
        partial(runs_folder, repository),
        partial(_check_filing, repository, start.tree),
        partial(_check_alone, repository, name),
        partial(_check_clean_tracker if files_alone else _check_clean, repository),
        partial(refuse_hidden, repository),
    )
    return start


def _start(repository: Repository, name: str, base: str | None) -> Start:
    """Return where a run starts; *name* is of its issue or recipe, as a branch for it would be called."""
    refuse_unusable(repository)  # first: git would refuse what is advised or asked below
    branch = repository.branch()
    if branch is None:
        raise UserError(
            f"HEAD is detached: there is no branch to commit to. Go to one: {_switch(repository, name)}",
            Reason.DETACHED_HEAD,
            actions=(_switch(repository, name),),
        )
    if not is_branch_name(branch):
        raise UserError(
            f"The name of the branch {visible(branch)} holds a space, a control or bytes that are no text, and a run "
            "could not write it down. Rename it: git branch -m NAME",
            Reason.USAGE,
            actions=("git branch -m NAME",),
        )
    commit = repository.resolve("HEAD")
    if commit is None:
        raise UserError(
            f"The branch {branch} has no commit yet. Commit the project first.", Reason.USAGE, actions=(_COMMIT,)
        )
    against = base_branch(repository, name, base)
    _check_writable(repository.worktree)
    return Start(branch, against, commit, repository.tree_of(commit))


def _check_named(repository: Repository, issue: str) -> None:
    """Refuse an id that no issue has, before all else: the right one may have nothing in its way.

    Raises:
        UserError: it is no id, or there is no such issue in the worktree.
    """
    issues = in_worktree(repository.worktree)
    try:
        with as_user_errors(issues):
            issues.read(issue)
    except UserError as error:
        if error.reason in {Reason.ISSUE_NOT_FOUND, Reason.USAGE}:
            raise  # any other is said among what else is in the way


def _check_branch(repository: Repository, start: Start, name: str, *ways: str) -> None:
    if start.branch == start.base_branch:
        switch = _switch(repository, name)
        raise UserError(
            f"You stand on {start.branch}, which is the base branch. Work happens on a branch of its own: {switch}",
            Reason.BRANCH_IS_BASE,
            actions=(switch, *ways),
        )


def _switch(repository: Repository, name: str) -> str:
    """Return the command that goes to the branch of an issue, or of a recipe."""
    own = name.lower()
    return f"git switch {own}" if repository.resolve(f"refs/heads/{own}") else f"git switch -c {own}"


def refuse_claimed(repository: Repository, issue: str, *, ours: str | None = None) -> None:
    """Refuse an issue that another run has.

    Raises:
        UserError: it is claimed (exit 75), or the claim cannot be read.
    """
    claim = claim_on(repository, issue)
    if claim is not None and claim.run != f"{worktree_key(repository)}/{ours}":
        raise claimant(Roster(repository), issue, claim).refusal()


def base_branch(repository: Repository, name: str, base: str | None) -> str:
    """Return the branch that work is compared with and lands on: the one that is named, else `known_base`.

    Raises:
        UserError: there is none.
    """
    if base is not None:
        if not is_branch_name(base) or repository.resolve(base) is None:
            raise UserError(
                f"There is no {base} to compare with: --base takes a branch of this repository.",
                Reason.USAGE,
                actions=("git branch --all",),
            )
        return base
    if (known := known_base(repository)) is not None:
        return known
    raise UserError(
        'There is neither main nor master. Name the base branch: --base REF, or base = "REF" in redfirst.toml',
        Reason.USAGE,
        actions=(f"redfirst run {name} --base REF",),
    )


def known_base(repository: Repository) -> str | None:
    """Return main, else master, else what origin has as its own: the branch of that name, else the remote's."""
    for branch in ("main", "master"):
        if repository.resolve(f"refs/heads/{branch}") is not None:
            return branch
    there = repository.default_of_origin()
    if there is None or not is_branch_name(there):
        return None
    here = there.partition("/")[2]
    return here if repository.resolve(f"refs/heads/{here}") is not None else there


def _check_writable(worktree: Path) -> None:
    if not os.access(worktree, os.W_OK | os.X_OK):
        raise UserError(
            f"{worktree} cannot be written. Mend its permissions, or remount the disk.",
            Reason.DISK,
            path=str(worktree),
        )


def _check_tracker(repository: Repository, issue: str, ours: str | None) -> None:
    tracker = in_worktree(repository.worktree)
    with as_user_errors(tracker):
        obstacle = tracker.prerequisites(issue)
        if obstacle is None:  # what publication writes at the end must be possible before any agent is paid
            tracker.set_status(issue, Status.DONE)
            tracker.comment(issue, _ANY_DAY, "closed")
    if obstacle is None or (ours is not None and obstacle.kind.value == Reason.ISSUE_NOT_TODO.value):
        return
    if obstacle.kind.value == Reason.ISSUE_NOT_TODO.value and claim_on(repository, issue) is not None:
        return  # In Progress because another run holds it: that is the clearer word
    raise UserError(
        obstacle.message,
        Reason(obstacle.kind.value),
        path=f"{tracker.folder}/{issue}.md",
        details={"issues": list(obstacle.issues)},
        actions=("redfirst issue list", "redfirst issue ready"),
    )


def _check_filing(repository: Repository, tree: str) -> None:
    """Refuse a tracker that nothing can be filed in, before anybody is asked what to file."""
    issues = in_tree(repository, tree)
    with as_user_errors(issues):
        for broken in issues.unreadable():
            raise broken


def _check_clean_tracker(repository: Repository) -> None:
    folder = in_worktree(repository.worktree).folder
    found = [line[3:] for line in repository.status(WORKFLOW) if line[3:].startswith(f"{folder}/")]
    if found:
        raise UserError(
            f"{listed(found)} is not committed, and the run files issues in {folder}. Commit it first.",
            Reason.DIRTY_TREE,
            details={"paths": found},
            actions=(f"git add {shlex.quote(folder)} && git commit",),
        )


def _check_alone(repository: Repository, issue: str, *ways: str) -> None:
    """Refuse a second unfinished run in one worktree: only one of two could publish to its branch."""
    for other, holder in claim_holders(repository).items():
        where, _, run = holder.partition("/")
        if other != issue and where == worktree_key(repository):
            elsewhere = "".join(f"; or start this one elsewhere: {way}" for way in ways)
            raise UserError(
                f"{run} is unfinished in this worktree, and only one run can publish to its branch. Finish it, or: "
                f"redfirst abandon {run}{elsewhere}",
                Reason.LOCKED,
                details={"holder": f"{where}/{run}"},
                actions=(f"redfirst show {run}", f"redfirst abandon {run}", *ways),
            )


def _check_clean(repository: Repository) -> None:
    found = uncommitted(repository, WORKFLOW, *shown_by_live_runs(repository))
    if not found.paths:
        return
    said, advice = "", found.advice()
    if found.work:
        said = f" ({listed(found.work)}). Commit or stash these first: a run starts from a commit."
    raise UserError(
        f"The working tree is not clean{said}{(' ' if said else ': ') + advice if advice else ''}",
        Reason.DIRTY_TREE,
        details={"paths": list(found.paths), "ignorable": list(found.patterns)},
        actions=(
            *found.actions(),  # first: the others would take what tools made with them
            *(("git status", "git stash --include-untracked", _COMMIT) if found.work else ()),
        ),
    )


def shown_by_live_runs(repository: Repository) -> tuple[str, ...]:
    """Return the tracker files that runs holding a claim have rewritten here, while they are as we wrote them."""
    found: list[str] = []
    here = worktree_key(repository)
    for holder in claim_holders(repository).values():
        where, _, name = holder.partition("/")
        folder = repository.worktree / WORKFLOW / name
        if where != here or not (folder / "run.json").exists():
            continue
        run = Run.load(folder, driving=False)
        paths = shown_paths(run, repository.worktree)
        for file, (_, after) in shown_files(run).items():
            path = repository.worktree / paths[file]
            if path.is_file() and sha256_hex(path.read_bytes()) == after:
                found.append(paths[file])
    return tuple(found)
