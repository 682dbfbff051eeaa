"""FAILURE: the issue goes back to Todo with a dated comment, what was seen is filed, the work is kept.

Also `abandon`, which ends a run that cannot or shall not go on, without any commit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeline.errors import UserError
from pipeline.matrix.routing.state import Event
from pipeline.outcomes import Reason
from pipeline.repo import SigningError
from pipeline.run import tracker
from pipeline.run.journal_kinds import PublishIntended
from pipeline.run.run_ref import drop_publication, give_back_claim
from pipeline.run.summary_facts import work_tree
from pipeline.steps.publication.commits import in_form, message_of, run_time, signature, trailers
from pipeline.steps.publication.follow_ups import file_items, items
from pipeline.steps.publication.moving import intend, is_published, move, take_back
from pipeline.steps.publication.publisher import Base, Blocked, choose, note_published
from pipeline.steps.publication.summary import write_summary
from pipeline.steps.publication.trees import put_on
from pipeline.vocabulary import Signal
from todo import NO_EDITS, Status

if TYPE_CHECKING:
    from pipeline.steps.context import Context

WORK_PATCH = "work.patch"


async def run(ctx: Context) -> Event:
    """Return HANDLED, or HANDLER_FAILED with what is left to clean up in the note."""
    work = work_tree(ctx.run)
    if work != ctx.state.start:
        ctx.write(WORK_PATCH, ctx.repository.patch(ctx.state.start, work))
    if ctx.state.failure is Reason.ESCAPE:
        # Something reached the repository itself: nothing more is written to it than what we put there ourselves.
        left = tracker.put_back(ctx.run, ctx.repository.worktree)
        give_back_claim(ctx.repository, ctx.run)
        name = write_summary(ctx)
        if left:
            return Event(signal=Signal.HANDLER_FAILED, note=f"left In Progress: {', '.join(left)}", evidence=(name,))
        return Event(signal=Signal.HANDLED, reason=Reason.ESCAPE, note="an escape: read the summary", evidence=(name,))
    try:
        refused = _commit(ctx, work)
    except (SigningError, UserError) as error:
        refused = Event(signal=Signal.HANDLER_FAILED, note=str(error))
    give_back_claim(ctx.repository, ctx.run)
    name = write_summary(ctx)
    if refused is not None:
        tracker.put_back(ctx.run, ctx.repository.worktree)
        return Event(signal=Signal.HANDLER_FAILED, note=refused.note, evidence=(name,))
    return Event(signal=Signal.HANDLED, note=f"{ctx.issue} is Todo again; the work is kept", evidence=(name,))


def _commit(ctx: Context, work: str) -> Event | None:
    """Publish the failure: `chore(todo)`, before it the wip commit when `[failure] keep = "wip"`.

    They go on what the user has committed meanwhile, too; a wip commit that does not fit there is left out.
    """
    repository, info = ctx.repository, ctx.run.info
    tried = ctx.run.journal.of(PublishIntended)
    base = choose(ctx)
    if isinstance(base, Blocked):
        return Event(signal=Signal.HANDLER_FAILED, note=base.why)
    if not tried or not is_published(ctx, tried[-1].data.commits[-1]):
        if not tried or (tried[-1].data.base or info.start_commit) != base.commit:
            _build(ctx, work, base)
        refused = move(ctx, ctx.run.journal.of(PublishIntended)[-1].data.commits[-1], base, first=not tried)
        if refused is not None:
            return refused
    note_published(ctx)
    drop_publication(repository, ctx.run)
    return None


def _build(ctx: Context, work: str, base: Base) -> None:
    repository, info = ctx.repository, ctx.run.info
    who, key = signature(ctx), repository.signing_key()
    parent, tree = base.commit, repository.tree_of(base.commit)
    commits: list[str] = []
    if ctx.config.failure.keep == "wip" and work != info.start_tree:
        put = put_on(repository, tree, info.start_tree, work)
        if not put.conflicts:
            message = message_of(f"wip: incomplete workflow run for {ctx.issue}", "", trailers(ctx))
            parent = repository.commit_tree(put.tree, (parent,), in_form(ctx, message, who), who, sign=key)
            tree = put.tree
            commits.append(parent)
    issues = tracker.in_tree(repository, tree)
    with tracker.as_user_errors(issues):
        why = ctx.state.failure.value if ctx.state.failure else "failed"
        text = f"{info.run_id} failed ({why}); branch `{info.branch}`. The work is kept; see its summary."
        began = issues.read(ctx.issue).status is Status.IN_PROGRESS  # the user has committed it so
        edits = issues.set_status(ctx.issue, Status.TODO) if began else NO_EDITS
        edits = edits.then(issues.with_edits(edits).comment(ctx.issue, run_time(ctx).date(), text))
        filed, more = file_items(issues.with_edits(edits), ctx.issue, items(ctx))
    final = tracker.tree_with(repository, tree, issues, edits.then(more))
    message = message_of(f"chore(todo): {ctx.issue} back to Todo", "", trailers(ctx))
    commits.append(repository.commit_tree(final, (parent,), in_form(ctx, message, who), who, sign=key))
    intend(ctx, commits, filed, None if base.commit == info.start_commit else base.commit)


def abandon(ctx: Context) -> tuple[str, ...]:
    """End the run without a commit: tracker files put back, claim released, work kept as a patch and on the ref.

    Returns:
        The files that the user changed meanwhile, which are left as they are.
    """
    work = work_tree(ctx.run)
    if work != ctx.state.start:
        ctx.write(WORK_PATCH, ctx.repository.patch(ctx.state.start, work))
    left = (*take_back(ctx), *tracker.put_back(ctx.run, ctx.repository.worktree))
    if left and tracker.set_todo(ctx.run, ctx.repository.worktree):
        ctx.say(f"{ctx.issue} is Todo again; whatever else you changed in its file is as you left it")
        left = tuple(path for path in left if path != f"{ctx.config.tracker.folder}/{ctx.issue}.md")
    give_back_claim(ctx.repository, ctx.run)
    drop_publication(ctx.repository, ctx.run)
    write_summary(ctx)
    return left
