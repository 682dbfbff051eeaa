"""Lists the commands that are safe to type next, by how a run, its branch, its base and its issue stand."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from pipeline.outcomes import Reason
from pipeline.runs import tracker
from pipeline.runs.gates import begun_again, safe_next_actions
from pipeline.service.landing import landing
from pipeline.service.removal import removal
from todo import Status, TrackerError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pipeline.git import Repository
    from pipeline.routing.vocabulary import Role
    from pipeline.runs.run import Run


def next_lines(
    repository: Repository, run: Run, *, live: bool = False, desks: Iterable[Role] = (), handed_in: bool = False
) -> tuple[str, ...]:
    """Return the commands, as they work in the worktree of the run.

    Args:
        repository: Seen from the worktree of the run.
        run: The run.
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
    return (*found, *landing(repository, run), *removal(repository, run))


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
