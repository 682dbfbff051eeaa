"""PUBLISH (phase 9): code, tracker and follow-ups as commits on the branch, in one publication.

Before anything is written the suite over the result is held against the baseline once more (`hold`). Where the user has
committed since the run began, the commits are built on the new tip, and what each claims is measured again there. The
order makes a crash harmless anywhere: commits as objects, kept by a ref and named in the journal; then the user's
tracker files put back; then index and files; then compare-and-swap of the branch; then `published`. A crash in between
leaves our change staged on the old branch, never the reverse.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeline.errors import UserError
from pipeline.judge.reports.markdown import bullets
from pipeline.matrix.routing.state import Event
from pipeline.progress import counted
from pipeline.repo import SigningError
from pipeline.run.journal_kinds import PublishIntended
from pipeline.run.run_ref import drop_publication, give_back_claim
from pipeline.steps.asking.dispatches import stopped
from pipeline.steps.publication import moving
from pipeline.steps.publication.commits import build_commits, planned
from pipeline.steps.publication.follow_ups import evidence, notes, word
from pipeline.steps.publication.moving import move
from pipeline.steps.publication.publisher import Base, Blocked, blocked, choose, note_published, start_of
from pipeline.steps.publication.suite_check import held_md, hold
from pipeline.steps.publication.summary import write_summary
from pipeline.vocabulary import Signal

if TYPE_CHECKING:
    from pipeline.steps.context import Context


async def run(ctx: Context) -> Event:
    """Return PUBLISHED, or why the branch cannot be moved now; then nothing of the user's has changed.

    REGRESSION is returned where a test that passed before the run does not pass over its result, TIP_MOVED where
    somebody moved the branch meanwhile.
    """
    tried = ctx.run.journal.of(PublishIntended)
    if not tried or not moving.is_published(ctx, tried[-1].data.commits[-1]):
        refusal = await _publish(ctx)
        if refusal is not None:
            return refusal
    said = note_published(ctx)
    drop_publication(ctx.repository, ctx.run)
    give_back_claim(ctx.repository, ctx.run)
    told = notes(ctx)
    name = write_summary(ctx, commits=said.commits, follow_ups=(*said.follow_ups, *told))
    onto = () if said.base is None else (f"on top of {said.base[:12]}, and measured there",)
    note = "; ".join((f"{counted(len(said.commits), 'commit')} on {ctx.run.info.branch}", *onto, *told))
    return Event(signal=Signal.PUBLISHED, note=note, evidence=(name, *evidence(ctx)))


async def _publish(ctx: Context) -> Event | None:
    """Move the branch to the run's commits, which are made before if they are not; return what refuses it."""
    tried = ctx.run.journal.of(PublishIntended)
    if not tried and ctx.stopping != "no":
        return stopped(ctx)
    if not tried and not ctx.state.nothing_changed and (broken := await _regression(ctx)) is not None:
        return broken
    base = choose(ctx)
    if isinstance(base, Blocked):
        return await _parked(ctx, base)
    if not tried or (tried[-1].data.base or start_of(ctx).commit) != base.commit:
        refusal = await _make(ctx, base)
        if refusal is not None:
            return refusal
    new = ctx.run.journal.of(PublishIntended)[-1].data.commits[-1]
    if ctx.hub is not None and (why := await ctx.hub.checkpoint(ctx.run, commit=new, ends=True)) is not None:
        return Event(signal=Signal.BRANCH_MOVED, note=why)
    return move(ctx, new, base, first=not tried)


async def _make(ctx: Context, base: Base) -> Event | None:
    """Make the commits on *base*, to be published next; return why they cannot be."""
    moved = base.commit != start_of(ctx).commit
    refused = moving.refusal_of_files(ctx, base, planned(ctx, base))
    if refused is not None:
        return await _parked(ctx, refused)
    worded = await word(ctx)
    if isinstance(worded, Event):
        return worded
    try:
        commits, follow_ups = build_commits(ctx, worded.items, base)
        lost = await moving.unproven(ctx, base, commits[:-1]) if moved else ()
    except SigningError as error:
        return _unsigned(ctx, error)
    except UserError as error:
        if not moved or not (error.path or "").startswith(ctx.config.tracker.folder):
            raise
        return await _parked(ctx, blocked(ctx, base, (error.message,)))
    if lost:
        return await _parked(ctx, blocked(ctx, base, lost))
    if ctx.stopping != "no":  # the last moment: what is intended is brought to its end
        return stopped(ctx)
    moving.intend(ctx, commits, follow_ups, base.commit if moved else None)
    return None


async def _parked(ctx: Context, blocked: Blocked) -> Event:
    """Return BRANCH_MOVED with what a person can do; for it the commits are made on the start, if they are not yet."""
    known = None if blocked.tip is None else moving.carried(ctx, blocked.tip)
    if known is not None:
        return Event(signal=Signal.BRANCH_MOVED, note=known)
    name = ctx.write("evidence/branch-moved.md", f"# The branch moved\n\n{blocked.why}\n\n{bullets(blocked.details)}\n")
    if blocked.mergeable:
        then = f"the changes merge as text; to have that measured and published: {moving.onto_line(ctx)}"
        return Event(signal=Signal.BRANCH_MOVED, note=f"{blocked.why}; {then}", evidence=(name,))
    on_start = [line.data.commits for line in ctx.run.journal.of(PublishIntended) if line.data.base is None]
    if not on_start and blocked.tip is not None:
        worded = await word(ctx)
        if isinstance(worded, Event):
            return worded
        try:
            commits, follow_ups = build_commits(ctx, worded.items, start_of(ctx))
        except SigningError as error:
            return _unsigned(ctx, error)
        moving.intend(ctx, commits, follow_ups, None)
        on_start = [commits]
    then = moving.by_hand(ctx, blocked.tip, on_start[-1]) if blocked.tip is not None else ""
    return Event(signal=Signal.BRANCH_MOVED, note="; ".join(filter(None, (blocked.why, then))), evidence=(name,))


def _unsigned(ctx: Context, error: SigningError) -> Event:
    """Return why there is no signature: Ctrl-C at the question for a passphrase is no failure."""
    return stopped(ctx) if ctx.stopping != "no" else Event(signal=Signal.SIGNING_FAILED, note=str(error))


async def _regression(ctx: Context) -> Event | None:
    """Return why the result cannot go out, whatever was said of it; None where nothing is lost."""
    held = await hold(ctx, ctx.state.head)
    if not held.lost:
        return None
    name = ctx.write("evidence/published.md", held_md(held))
    return Event(signal=Signal.REGRESSION, note=f"not published: {held.in_short}", evidence=(name,))
