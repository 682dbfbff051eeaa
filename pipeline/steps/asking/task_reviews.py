"""Collects what a review of tasks is given and has to answer: with the split, or with a plan of one task."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeline.engine.events import DecisionMade
from pipeline.reports.decode import Malformed
from pipeline.reports.fields import Verdict
from pipeline.reports.markdown import bullets
from pipeline.reports.reviews import SplitReview
from pipeline.routing.vocabulary import Role, Step
from pipeline.steps.asking.drafts import planned
from pipeline.steps.asking.task_drafts import CUT, WITH_PLAN
from pipeline.steps.evidence.records import baseline_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from pipeline.reports.fields import Report
    from pipeline.reports.tasks import Task
    from pipeline.steps.asking.reviews import Review
    from pipeline.steps.context import Context


def task_artifacts(ctx: Context, review: Review, tasks: Mapping[str, Task]) -> dict[str, list[Path]]:
    """Return the task files, and which files only they name, or only the plan."""
    artifacts = {"tasks": [ctx.path(f"task-{name}.md") for name in tasks]}
    differences = _differences(ctx, tasks)
    if differences:
        name = ctx.write(f"reviews/{review.stage}-{review.ordinal}-differences.md", bullets(differences) + "\n")
        artifacts["differences"] = [ctx.path(name)]
    return artifacts


def review_of_tasks(ctx: Context) -> Step:
    """Return the step that reviewed the present tasks."""
    cut = [line.data.row for line in ctx.run.journal.of(DecisionMade) if line.data.row in CUT]
    return Step.REVIEW_PLAN if cut and cut[-1] in WITH_PLAN else Step.REVIEW_SPLIT


def _differences(ctx: Context, tasks: Mapping[str, Task]) -> tuple[str, ...]:
    """Return one sentence for each file that only the tasks name, or only the plan."""
    of_plan = _of_plan(ctx)
    named = {path for task in tasks.values() for file in task.files for path in (file.path, file.origin) if path}
    tests = {file.path for task in tasks.values() for file in task.test_files}
    found = [
        f"task {name} changes `{path}`, which the plan does not name"
        for name, path in outside_plan(ctx, tasks.values())
    ]
    return (*found, *(f"no task changes `{path}`, which the plan names" for path in sorted(of_plan - named - tests)))


def outside_plan(ctx: Context, tasks: Iterable[Task]) -> list[tuple[str, str]]:
    """Return each file of a task that the plan does not name, with the task's id before it.

    A plan that names no file of tests leaves these to its tasks.
    """
    of_plan = _of_plan(ctx)
    names_tests = any(map(baseline_of(ctx).layout.is_test_side, of_plan))
    return [
        (task.id, file.path)
        for task in tasks
        for file in (*task.files, *(task.test_files if names_tests else ()))
        if file.path not in of_plan
    ]


def _of_plan(ctx: Context) -> frozenset[str]:
    return frozenset(path for file in planned(ctx).files for path in (file.path, file.origin) if path)


def unfounded(review: Review, report: Report) -> Malformed | None:
    """Return what is wrong with a review that accepts tasks and leaves one of its questions open; None once told.

    A question is open without an answer, and with one that is not `true` while no finding says what is to be mended.
    """
    told = Role.CHECK in review.ctx.lane.reasks
    return open_questions(report) if review.is_first and not told else None


def open_questions(report: Report) -> Malformed | None:
    """Return which questions a review that accepts tasks leaves open, as `unfounded` says it."""
    if not isinstance(report, SplitReview) or report.verdict is not Verdict.ACCEPTABLE:
        return None
    answers = report.answers.model_dump()
    unanswered = [name for name, said in answers.items() if said == ""]
    if unanswered:
        words = f"the verdict is ACCEPTABLE, and there is no answer to {', '.join(unanswered)}"
    elif not report.findings and (denied := [name for name, said in answers.items() if said is not True]):
        words = f"the verdict is ACCEPTABLE, {', '.join(denied)} is not answered with `true`, and no finding says why"
    else:
        return None
    said = f"At /answers: {words}. `true` means that all is well with it; else a finding says what is not."
    return Malformed(said, "/answers")
