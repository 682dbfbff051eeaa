"""ISSUE (phase 2): claim the issue, flip it to In Progress, propagate; in the user's own files, at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeline.errors import UserError
from pipeline.judge.reports.taskfile import task_md
from pipeline.judge.reports.tasks import task_of_issue
from pipeline.judge.reports.untrusted_text import legible
from pipeline.matrix.routing.state import Event, NewTask
from pipeline.outcomes import Reason
from pipeline.run import tracker
from pipeline.run.drafts import task_file, write_draft
from pipeline.run.hub import HeldElsewhereError
from pipeline.run.journal_kinds import ClaimTaken
from pipeline.run.run_ref import give_back_claim
from pipeline.run.store import take_claim
from pipeline.vocabulary import Signal
from todo import ErrorKind, Issue, Status

if TYPE_CHECKING:
    from pipeline.steps.context import Context

_SIGNALS = {
    ErrorKind.ISSUE_NOT_FOUND: Signal.NOT_FOUND,
    ErrorKind.ISSUE_NOT_TODO: Signal.NOT_TODO,
    ErrorKind.DEPENDENCY_UNMET: Signal.DEPENDENCY_UNMET,
    ErrorKind.DEPENDENCY_MISSING: Signal.DEPENDENCY_MISSING,
}


async def run(ctx: Context) -> Event:
    """Return CLAIMED, or why the issue cannot be worked on.

    Raises:
        UserError: the tracker is broken, or the disk does not take the change.
    """
    info = ctx.run.info
    committed = tracker.in_tree(ctx.repository, info.start_tree)
    with tracker.as_user_errors(committed):
        obstacle = committed.prerequisites(ctx.issue)
    if obstacle is not None:
        return Event(signal=_SIGNALS[obstacle.kind], reason=Reason(obstacle.kind.value), note=obstacle.message)
    holder = take_claim(ctx.repository, ctx.issue, info.run_id)
    if holder is not None:
        return Event(signal=Signal.CLAIMED_ELSEWHERE, reason=Reason.CLAIMED_ELSEWHERE, note=f"claimed by {holder}")
    try:
        if ctx.hub is not None:
            await ctx.hub.checkpoint(ctx.run)
    except HeldElsewhereError as error:
        give_back_claim(ctx.repository, ctx.run)
        note = f"claimed at the hub by {error}"
        return Event(signal=Signal.CLAIMED_ELSEWHERE, reason=Reason.CLAIMED_ELSEWHERE, note=note)
    if not ctx.run.journal.of(ClaimTaken):
        ctx.run.journal.append(ClaimTaken(issue=ctx.issue))
    raw = committed.raw(f"{ctx.issue}.md")
    if raw is None:
        path = f"{committed.folder}/{ctx.issue}.md"
        raise UserError(f"{path} is not in the start commit. Commit it.", Reason.ISSUE_NOT_FOUND)
    evidence = ctx.write("issue.md", legible(raw.decode()))
    shown = tracker.in_worktree(ctx.repository.worktree)
    with tracker.as_user_errors(shown):
        # from the user's own bytes, which may differ from the committed ones by line endings
        edits = shown.set_status(ctx.issue, Status.IN_PROGRESS)
    tracker.show_in_progress(ctx.run, ctx.repository.worktree, edits)
    tasks, names = _taken_as_task(ctx, committed.read(ctx.issue)) if ctx.state.one_writer else ((), ())
    note = f"{ctx.issue} is In Progress"
    return Event(signal=Signal.CLAIMED, tasks=tasks, note=note, evidence=(evidence, *names))


def _taken_as_task(ctx: Context, issue: Issue) -> tuple[tuple[NewTask, ...], tuple[str, ...]]:
    """Write the issue down as the one task that it is, where nobody plans it."""
    task = task_of_issue(issue.title, issue.body)
    name = write_draft(ctx.run, task_file(task.id), task_md(task))
    return (NewTask(id=task.id, title=task.title),), (name,)
