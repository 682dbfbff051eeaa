"""REVIEW_SPLIT (phase 5.5): @check alone, with six named answers (ADR-9, ADR-R2)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from pipeline.reports import reduce
from pipeline.routing.state import Event
from pipeline.routing.vocabulary import Role, Signal
from pipeline.steps.asking.dispatches import ask
from pipeline.steps.asking.reviews import Review, both, check_of, review_artifacts, summarise
from pipeline.steps.asking.task_reviews import task_artifacts, unfounded

if TYPE_CHECKING:
    from pipeline.steps.context import Context


async def run(ctx: Context) -> Event:
    """Return the review's signal, with the open blockers on record; NOT_ASKED where the recipe has no reviewer."""
    if ctx.state.phases.passes(ctx.lane.step):
        return Event(signal=Signal.NOT_ASKED)
    review = Review(ctx)
    artifacts = review_artifacts(ctx, review)
    artifacts |= task_artifacts(ctx, review, {name: ctx.task(name) for name in ctx.state.queue})
    artifacts |= review.changes("\n".join(ctx.read(f"task-{name}.md") for name in ctx.state.queue))
    accept = both(review.forgotten, partial(unfounded, review))
    asked = review.request(Role.CHECK, "review-split", ctx.state.head, artifacts, accept=accept)
    answer = await ask(ctx, asked)
    if isinstance(answer, Event):
        return answer
    check = check_of([answer])
    reviewed = reduce.review_split(review.ledger, review.number, check)
    written = review.record(reviewed, check, None, ctx.state.head)
    left = reviewed.outcome.on_record
    return Event(signal=reviewed.signal, blockers=left, note=summarise(reviewed), evidence=written)
