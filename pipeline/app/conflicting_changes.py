"""Finds the user's changes that would be in the way of a run's publication, before anything more is paid.

What they have not committed in files that the run writes refuses to go on; anywhere else it is told, and stays.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final

from pipeline.errors import UserError
from pipeline.matrix.routing.state import TaskStatus
from pipeline.outcomes import Reason
from pipeline.progress import few
from pipeline.run import tracker
from pipeline.run.journal_kinds import PublishIntended
from pipeline.run.store import WORKFLOW
from pipeline.steps.publication.moving import put_away, refusal_of_files
from pipeline.steps.publication.publisher import Base, Blocked, Publisher, choose
from pipeline.vocabulary import Step

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pipeline.steps.context import Context
    from pipeline.steps.publication.commits import Planned

_SHOWN: Final = 5


def look(ctx: Context) -> None:
    """Say what of the user's is there that the run did not begin with.

    Raises:
        UserError: something is still to be paid, and as things stand it could not be published.
    """
    if ctx.run.journal.of(PublishIntended):
        return  # publication was tried, and may have left changes of its own; it says itself what is in the way
    ours = _written(ctx)
    dirty = _uncommitted(ctx)
    below = {path: [one for one in ours if path.endswith("/") and one.startswith(path)] for path in dirty}
    met = [path for path in dirty if path in ours or any(_is_there(ctx, one) for one in below[path])]
    if met and (ctx.lane.step in {Step.PUBLISH, Step.FAILURE} or ctx.lane.gate == "commit"):
        ctx.say(f"    not committed: {few(met, _SHOWN)}, where the run writes: publication will refuse to overwrite it")
    elif met:
        name, names, put = ctx.run.info.run_id, few(met, _SHOWN), put_away(ctx.repository, met)
        raise UserError(
            f"You have changes in {names} that are not committed, and {name} writes there. It could not publish "
            f"over them. {put[0].upper()}{put[1:]}",
            Reason.DIRTY_TREE,
            details={"paths": met},
            actions=("git status", f"redfirst show {name}"),
        )
    own = f"{ctx.config.tracker.folder}/{ctx.issue}.md"
    if own in dirty:
        ctx.say(
            f"    {own}: you changed it after the run began, and that does not count: {ctx.run.info.run_id} goes by"
        )
        ctx.say("    the issue as it was at its start (issue.md). Commit or undo your change before it publishes")
    if elsewhere := [path for path in dirty if path not in {*met, own}]:
        ctx.say(f"    not committed: {few(elsewhere, _SHOWN)}: left as it is; what the run writes has to be elsewhere")
    base = choose(ctx)
    if isinstance(base, Blocked):
        ctx.say(f"    as things stand nothing could be published: {base.why}")
    elif base.commit != ctx.run.info.start_commit:
        _tell_of_commits(ctx, base, ours)


def onto(ctx: Publisher, revision: str, work: Callable[[Base], Sequence[Planned]]) -> str:
    """Return the commit that a person wants the run's commits put on.

    Args:
        ctx: Who publishes.
        revision: What the person calls it.
        work: Returns the commits as they are to be put on a base.

    Raises:
        UserError: there is no such commit, the run's cannot be put there, or files meet that cannot be merged.
    """
    repository, info = ctx.repository, ctx.run.info
    commit = repository.resolve(f"{revision}^{{commit}}")
    if commit is None:
        raise UserError(f"There is no commit {revision}: --onto takes a branch or a commit.", Reason.USAGE)
    tip = repository.resolve(f"refs/heads/{info.branch}") or info.start_commit
    for known, what in ((info.start_commit, "where the run began"), (tip, f"where {info.branch} is")):
        if not repository.is_ancestor(known, commit):
            raise UserError(
                f"{revision} ({commit[:12]}) does not hold {known[:12]}, {what}: nothing can be put on it.",
                Reason.BRANCH_MOVED,
                actions=(f"git log {commit[:12]}..{known[:12]}",),
            )
    base = Base(commit, tip, merging=True)
    refused = refusal_of_files(ctx, base, work(base))
    if refused is not None:
        raise UserError(
            f"Nothing was changed: {refused.why}.",
            Reason.BRANCH_MOVED,
            details={"meetings": list(refused.details)},
            actions=(f"redfirst diff {info.run_id}", f"git log {info.start_commit[:12]}..{commit[:12]}"),
        )
    return commit


def _tell_of_commits(ctx: Context, base: Base, ours: frozenset[str]) -> None:
    branch, start = ctx.run.info.branch, ctx.run.info.start_commit
    met = sorted(ours.intersection(change.path for change in ctx.repository.diff(start, base.commit)))
    told = f"{branch} is at {base.tip[:12]} now"
    if met:
        ctx.say(f"    {told}; {few(met, _SHOWN)} changed there, and the run writes there, too")
    else:
        ctx.say(f"    {told}; the result is put on top of it, and measured there")


def _written(ctx: Context) -> frozenset[str]:
    """Return the paths that the run has changed so far, and those that its tasks name."""
    found = {change.path for change in ctx.repository.diff(ctx.state.start, ctx.state.head)}
    for state in ctx.state.tasks.values():
        if state.status is not TaskStatus.DROPPED:
            task = ctx.task(state.id)
            found.update(path for each in (*task.files, *task.test_files) for path in (each.path, each.origin) if path)
    return frozenset(found)


def _uncommitted(ctx: Context) -> list[str]:
    """Return what differs from HEAD in the worktree or is new there; tracker files only where the user changed them."""
    shown: set[str] = set()
    paths = tracker.shown_paths(ctx.run, ctx.repository.worktree)
    for name, known in tracker.shown_files(ctx.run).items():
        place = ctx.repository.worktree / paths[name]
        if place.is_file() and hashlib.sha256(place.read_bytes()).hexdigest() in known:
            shown.add(paths[name])
    return sorted(line[3:] for line in ctx.repository.status(WORKFLOW) if line[3:] not in shown)


def _is_there(ctx: Context, path: str) -> bool:
    place = ctx.repository.worktree / path
    return place.is_symlink() or place.exists()
