"""PUBLISH (phase 9): code, tracker and follow-ups as commits on the branch, in one publication (architecture 8).

Before anything is written the suite over the result is held against the baseline once more (`hold`). The order makes
a crash harmless anywhere: commits as objects, kept by a ref and named in the journal; then the user's tracker files put
back; then index and files; then compare-and-swap of the branch; then `published`. A crash in between leaves our change
staged on the old branch, never the reverse.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pipeline.git import SigningError
from pipeline.measure.measuring import UnmeasurableError
from pipeline.routing.state import Event
from pipeline.routing.vocabulary import Signal
from pipeline.runs.events import Published, PublishIntended
from pipeline.runs.store import publish_ref, release_claim
from pipeline.steps.publication.commits import build_commits
from pipeline.steps.publication.holding import held_md, hold
from pipeline.steps.publication.moving import move
from pipeline.steps.publication.summary import write_summary
from pipeline.steps.publication.wording import evidence, notes, word

if TYPE_CHECKING:
    from pipeline.steps.context import Context

_SHOWN: Final = 3


async def run(ctx: Context) -> Event:
    """Return PUBLISHED, or why the branch cannot be moved now; then nothing of the user's has changed.

    REGRESSION is returned where a test that passed before the run does not pass over its result.
    """
    intended = ctx.run.journal.of(PublishIntended)
    again = bool(intended)
    if not intended:
        broken = None if ctx.state.nothing_changed else await _regression(ctx)
        if broken is not None:
            return broken
        worded = await word(ctx)
        if isinstance(worded, Event):
            return worded
        try:
            commits, follow_ups = build_commits(ctx, worded.items)
        except SigningError as error:
            return Event(signal=Signal.SIGNING_FAILED, note=str(error))
        ctx.repository.set_ref(publish_ref(ctx.repository, ctx.run.info.run_id), commits[-1])
        ctx.run.journal.append(PublishIntended(commits=tuple(commits), follow_ups=tuple(follow_ups)))
        intended = ctx.run.journal.of(PublishIntended)
    commits = intended[-1].data.commits
    follow_ups = intended[-1].data.follow_ups
    refusal = move(ctx, commits[-1], again=again)
    if refusal is not None:
        return refusal
    if not ctx.run.journal.of(Published):
        ctx.run.journal.append(Published(branch=ctx.run.info.branch, commits=tuple(commits)))
    ctx.repository.delete_ref(publish_ref(ctx.repository, ctx.run.info.run_id))
    release_claim(ctx.repository, ctx.issue, ctx.run.info.run_id)
    told = notes(ctx)
    name = write_summary(ctx, commits=commits, follow_ups=(*follow_ups, *told))
    note = "; ".join((f"{len(commits)} commit(s) on {ctx.run.info.branch}", *told))
    return Event(signal=Signal.PUBLISHED, note=note, evidence=(name, *evidence(ctx)))


async def _regression(ctx: Context) -> Event | None:
    """Return why the result cannot go out, whatever was said of it; None where nothing is lost."""
    try:
        held = await hold(ctx, ctx.state.head)
    except UnmeasurableError as error:
        return error.event
    if not held.lost:
        return None
    name = ctx.write("evidence/published.md", held_md(held))
    more = f"; and {len(held.lost) - _SHOWN} more" if len(held.lost) > _SHOWN else ""
    note = f"not published: {'; '.join(held.lost[:_SHOWN])}{more}"
    return Event(signal=Signal.REGRESSION, note=note, evidence=(name,))
