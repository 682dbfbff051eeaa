"""REVIEW_SPLIT (phase 5.5): @check alone, with six named answers (ADR-9, Q1)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeline.dispatch.request import Request
from pipeline.reports import reduce
from pipeline.routing.state import Event
from pipeline.routing.vocabulary import Role
from pipeline.steps.asking import ask
from pipeline.steps.review_plan import blockers, check_of, review_artifacts, summarise
from pipeline.steps.reviews import Review

if TYPE_CHECKING:
    from pipeline.steps.context import Context


async def run(ctx: Context) -> Event:
    """Return the review's signal, with the open blockers on record."""
    review = Review(ctx)
    artifacts = review_artifacts(ctx, review)
    names = [f"task-{task}.md" for task in ctx.state.queue]
    artifacts["tasks"] = [ctx.path(name) for name in names]
    artifacts |= review.changes("\n".join(ctx.read(name) for name in names))
    asked = Request(Role.CHECK, "review-split", ctx.state.head, artifacts=artifacts, accept=review.forgotten)
    answer = await ask(ctx, asked)
    if isinstance(answer, Event):
        return answer
    check = check_of([answer])
    reviewed = reduce.review_split(review.ledger, review.number, check)
    written = review.record(reviewed, check, None, ctx.state.head)
    return Event(signal=reviewed.signal, blockers=blockers(reviewed), note=summarise(reviewed), evidence=written)
