"""REVIEW_PLAN (phase 4): @check and @simplify side by side."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from pipeline.reports import reduce
from pipeline.reports.taskfile import task_md
from pipeline.routing.state import Event
from pipeline.routing.vocabulary import Signal
from pipeline.steps.asking.drafts import planned
from pipeline.steps.asking.reviews import (
    Review,
    ask_reviewers,
    check_of,
    review_artifacts,
    simplify_of,
    summarise,
)
from pipeline.steps.asking.task_drafts import accepted, tasks_of_plan
from pipeline.steps.asking.task_reviews import task_artifacts, unfounded

if TYPE_CHECKING:
    from pipeline.steps.context import Context


async def run(ctx: Context) -> Event:
    """Return the review's signal, with the open blockers on record; NOT_ASKED where the recipe has no reviewer."""
    if ctx.state.phases.passes(ctx.lane.step):
        return Event(signal=Signal.NOT_ASKED)
    review = Review(ctx)
    artifacts = review_artifacts(ctx, review)
    tasks = accepted(tasks_of_plan(ctx, planned(ctx)))
    if tasks:
        artifacts |= task_artifacts(ctx, review, {task.id: task for task in tasks})
    artifacts |= review.changes("\n".join([ctx.read("plan.md"), *map(task_md, tasks)]))
    accept = partial(unfounded, review) if tasks else None
    answers = await ask_reviewers(review, "review-plan", ctx.state.start, artifacts, accept)
    if isinstance(answers, Event):
        return answers
    check, simplify = check_of(answers), simplify_of(answers)
    reviewed = reduce.review_plan(review.ledger, review.number, check, simplify)
    names = review.record(reviewed, check, simplify, ctx.state.start)
    return Event(
        signal=reviewed.signal,
        blockers=reviewed.outcome.on_record,
        note=summarise(reviewed),
        evidence=names,
    )
