"""PUBLISH (phase 9): code, tracker and follow-ups as commits on the branch, in one publication.

Before anything is written the suite over the result is held against the baseline once more (`hold`). Where the user has
committed since the run began, the commits are built on the new tip, and what each claims is measured again there.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from pipeline.errors import UserError
from pipeline.judge.reports.markdown import bullets
from pipeline.matrix.routing.state import Event
from pipeline.progress import counted
from pipeline.repo import SigningError
from pipeline.run.run_ref import give_back_claim
from pipeline.steps.asking.dispatches import stopped
from pipeline.steps.publication import moving
from pipeline.steps.publication.commits import build_commits, planned
from pipeline.steps.publication.follow_ups import evidence, notes, word
from pipeline.steps.publication.publisher import Base, Blocked, Built, blocked, start_of
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
    tried = moving.intended(ctx)
    if not tried and ctx.stopping != "no":
        return stopped(ctx)
    if not tried and not ctx.state.nothing_changed and (broken := await _regression(ctx)) is not None:
        return broken
    said = await moving.put_on_branch(ctx, partial(_build, ctx), ctx.hub)
    if isinstance(said, Blocked):
        return await _parked(ctx, said)
    if isinstance(said, Event):
        return said
    give_back_claim(ctx.repository, ctx.run)
    told = notes(ctx)
    name = write_summary(ctx, commits=said.commits, follow_ups=(*said.follow_ups, *told))
    onto = () if said.base is None else (f"on top of {said.base[:12]}, and measured there",)
    note = "; ".join((f"{counted(len(said.commits), 'commit')} on {ctx.run.info.branch}", *onto, *told))
    return Event(signal=Signal.PUBLISHED, note=note, evidence=(name, *evidence(ctx)))


async def _build(ctx: Context, base: Base) -> Built | Blocked | Event:
    """Return the commits on *base*, to be published next; or why they cannot be."""
    moved = base.commit != start_of(ctx).commit
    refused = moving.refusal_of_files(ctx, base, planned(ctx, base))
    if refused is not None:
        return refused
    worded = await word(ctx)
    if isinstance(worded, Event):
        return worded
    try:
        built = build_commits(ctx, worded.items, base)
        lost = await moving.unproven(ctx, base, built.commits[:-1]) if moved else ()
    except SigningError as error:
        return _unsigned(ctx, error)
    except UserError as error:
        if not moved or not (error.path or "").startswith(ctx.config.tracker.folder):
            raise
        return blocked(ctx, base, (error.message,))
    if lost:
        return blocked(ctx, base, lost)
    return built if ctx.stopping == "no" else stopped(ctx)  # the last moment: what is intended is brought to its end


async def _parked(ctx: Context, blocked: Blocked) -> Event:
    """Return BRANCH_MOVED with what a person can do; for it the commits are made on the start, if they are not yet."""
    known = None if blocked.tip is None else moving.carried(ctx, blocked.tip)
    if known is not None:
        return Event(signal=Signal.BRANCH_MOVED, note=known)
    name = ctx.write("evidence/branch-moved.md", f"# The branch moved\n\n{blocked.why}\n\n{bullets(blocked.details)}\n")
    if blocked.mergeable:
        then = f"the changes merge as text; to have that measured and published: {moving.onto_line(ctx)}"
        return Event(signal=Signal.BRANCH_MOVED, note=f"{blocked.why}; {then}", evidence=(name,))
    on_start = [one.commits for one in moving.intended(ctx) if one.base is None]
    if not on_start and blocked.tip is not None:
        worded = await word(ctx)
        if isinstance(worded, Event):
            return worded
        try:
            built = build_commits(ctx, worded.items, start_of(ctx))
        except SigningError as error:
            return _unsigned(ctx, error)
        moving.intend(ctx, built, start_of(ctx))
        on_start = [built.commits]
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
