"""FAILURE: the issue goes back to Todo with a dated comment, what was seen is filed, the work is kept.

Also `abandon`, which ends a run that cannot or shall not go on, without any commit.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from pipeline.errors import UserError
from pipeline.matrix.routing.state import Event
from pipeline.outcomes import Reason
from pipeline.repo import SigningError
from pipeline.run import tracker
from pipeline.run.run_ref import drop_publication, give_back_claim
from pipeline.run.summary_facts import work_tree
from pipeline.steps.publication.commits import Chain, message_of, trailers
from pipeline.steps.publication.follow_ups import items
from pipeline.steps.publication.moving import put_on_branch, take_back
from pipeline.steps.publication.publisher import Base, Blocked, Built
from pipeline.steps.publication.summary import write_summary
from pipeline.steps.publication.trees import put_on
from pipeline.vocabulary import Signal
from todo import Status

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
        said = await put_on_branch(ctx, partial(_build, ctx, work))
        refused = said.why if isinstance(said, Blocked) else said.note if isinstance(said, Event) else None
    except (SigningError, UserError) as error:
        refused = str(error)
    give_back_claim(ctx.repository, ctx.run)
    name = write_summary(ctx)
    if refused is not None:
        tracker.put_back(ctx.run, ctx.repository.worktree)
        return Event(signal=Signal.HANDLER_FAILED, note=refused, evidence=(name,))
    return Event(signal=Signal.HANDLED, note=f"{ctx.issue} is Todo again; the work is kept", evidence=(name,))


async def _build(ctx: Context, work: str, base: Base) -> Built:
    """Return the commits of the failure: `chore(todo)`, before it the wip commit when `[failure] keep = "wip"`.

    They go on what the user has committed meanwhile, too; a wip commit that does not fit there is left out.
    """
    info, chain = ctx.run.info, Chain(ctx, base)
    if ctx.config.failure.keep == "wip" and work != info.start_tree:
        put = put_on(ctx.repository, chain.tree, info.start_tree, work)
        if not put.conflicts:
            message = message_of(f"wip: incomplete workflow run for {ctx.issue}", "", trailers(ctx))
            chain.add(put.tree, message)
    why = ctx.state.failure.value if ctx.state.failure else "failed"
    text = f"{info.run_id} failed ({why}); branch `{info.branch}`. The work is kept; see its summary."
    final, filed = chain.tracked(ctx.issue, Status.TODO, text, items(ctx))
    chain.add(final, message_of(f"chore(todo): {ctx.issue} back to Todo", "", trailers(ctx)))
    return Built(chain.commits, filed)


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
