"""REVIEW_PLAN (phase 4): @check and @simplify side by side."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from pipeline.dispatch.request import Request
from pipeline.reports import reduce
from pipeline.reports.reviews import CheckReview, SimplifyReview
from pipeline.reports.taskfile import task_md
from pipeline.routing.state import Event
from pipeline.routing.vocabulary import Role, Signal
from pipeline.steps.asking import ask_all
from pipeline.steps.plan import planned
from pipeline.steps.reviews import Review
from pipeline.steps.task_drafts import accepted, tasks_of_plan
from pipeline.steps.task_review import task_artifacts, unfounded

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from pipeline.reports.decode import Malformed
    from pipeline.reports.fields import Report
    from pipeline.steps.asking import Answer
    from pipeline.steps.context import Context

    Refusal = Callable[[Report], Malformed | None]
    """Says what is wrong with a well-formed report that cannot be true here."""


_FOR_ADVICE: Final = frozenset({"issue", "plan", "diff", "changes"})
"""What @simplify is given of a review's artifacts: what was measured, and what is open, is for @check to judge."""


async def run(ctx: Context) -> Event:
    """Return the review's signal, with the open blockers on record."""
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
        blockers=blockers(reviewed),
        note=summarise(reviewed),
        evidence=names,
    )


def review_artifacts(ctx: Context, review: Review) -> dict[str, list[Path]]:
    """Return what every review is given: the issue, the plan, and the findings it must answer."""
    artifacts = {"issue": [ctx.path("issue.md")], "plan": [ctx.path("plan.md")]}
    findings = review.open_findings()
    if findings:
        artifacts["open_findings"] = list(findings)
    return artifacts


async def ask_reviewers(
    review: Review,
    kind: str,
    tree: str,
    artifacts: Mapping[str, list[Path]],
    accept: Refusal | None = None,
) -> list[Answer] | Event:
    """Ask @check, whose report *accept* may refuse, and @simplify unless it is off or was left out of this visit."""
    ctx = review.ctx
    asks = [Request(Role.CHECK, kind, tree, artifacts=artifacts, accept=both(review.forgotten, accept))]
    if not ctx.role_is_off(Role.SIMPLIFY) and Role.SIMPLIFY not in ctx.lane.left_out:
        fewer = {name: paths for name, paths in artifacts.items() if name in _FOR_ADVICE}
        asks.append(Request(Role.SIMPLIFY, kind, tree, artifacts=fewer))
    return await ask_all(ctx, asks)


def both(first: Refusal, second: Refusal | None) -> Refusal:
    """Return what refuses a report that one of the two does, for the reason of the first that does."""
    return first if second is None else lambda report: first(report) or second(report)


def check_of(answers: list[Answer]) -> CheckReview:
    """Return @check's review."""
    report: Report = answers[0].report
    if not isinstance(report, CheckReview):
        raise TypeError(f"@check answered a review with {type(report).__name__}")
    return report


def simplify_of(answers: list[Answer]) -> SimplifyReview | None:
    """Return @simplify's review, None where it was not asked."""
    report = answers[1].report if len(answers) > 1 else None
    return report if isinstance(report, SimplifyReview) else None


def blockers(reviewed: reduce.Reviewed) -> tuple[str, ...]:
    """Return the ids of the open BLOCK and HIGH findings; none when the review is satisfied."""
    if reviewed.signal is Signal.ACCEPTABLE:
        return ()
    return tuple(finding.id for finding in reviewed.ledger.blockers)


def summarise(reviewed: reduce.Reviewed) -> str:
    """Return one line on what must be fixed."""
    must = [f for f in reviewed.ledger.open if f.id in reviewed.outcome.must_fix]
    if not must:
        return "; ".join(reviewed.outcome.notes)
    return "; ".join(f"{finding.id} [{finding.severity}] {finding.headline}" for finding in must[:3])
