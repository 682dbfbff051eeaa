"""Holds a person's draft against the rules for drafts before it is handed in, as the run does behind it (matrix 1)."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Final, cast

from pipeline.boxes.nobox import NoBox
from pipeline.errors import UserError
from pipeline.git import Repository
from pipeline.reports.decode import Malformed, pointer_of
from pipeline.reports.drafts import SplitReport
from pipeline.reports.problems import Weight
from pipeline.reports.schema_errors import Fault
from pipeline.runs.run import Run
from pipeline.service.answer import config_of
from pipeline.service.ports import context_of
from pipeline.steps.asking.task_drafts import lint_tasks, tasks_of, tasks_of_plan
from pipeline.steps.context import Context
from pipeline.steps.plan import linted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pipeline.backends.desk import Asked
    from pipeline.reports.drafts import PlanAndTasks, PlanReport
    from pipeline.reports.problems import Problem
    from pipeline.reports.tasks import Task

    Place = tuple[str | int, ...]

_PATHS: Final = frozenset({"path", "from"})


def draft_faults(
    asked: Asked, content: Mapping[str, Any], report: PlanReport | PlanAndTasks | SplitReport
) -> list[Fault]:
    """Return what the run would send a plan or a split back for; none where no run asks for one.

    Args:
        asked: What is asked.
        content: The report as it was written.
        report: The same, parsed.
    """
    if report.question:
        return []
    try:
        run = Run.load(asked.run_folder, driving=False)
    except UserError:  # a trial is no run; what is wrong with one is told by the command that drives it
        return []
    if asked.dispatch not in {record.dispatch for record in run.records.values()}:
        return []
    repository = Repository.find(asked.run_folder.parents[1])
    ctx = context_of(Context, repository, run, config_of(run), NoBox(), dict(os.environ), lambda _: None)
    tasks = tasks_of(ctx, report) if isinstance(report, SplitReport) else tasks_of_plan(ctx, report)
    if isinstance(tasks, Malformed):
        return [Fault("/task/depends_on" if "task" in content else tasks.pointer, tasks.sentence)]
    is_split = isinstance(report, SplitReport)
    text, problems = ("", lint_tasks(ctx, tasks)) if is_split else linted(ctx, report, tasks, 1)
    return [
        Fault(_place(content, problem, text.split("\n"), tasks), f"{problem.message} ({problem.rule}).")
        for problem in problems
        if problem.severity is Weight.ERROR
    ]


def _place(content: Mapping[str, Any], problem: Problem, lines: Sequence[str], tasks: Sequence[Task]) -> str:
    """Return where in a report the words are that a problem is about, as far as it can be told."""
    for number, task in enumerate(tasks):
        if problem.message.startswith(f"task {task.id}: "):
            place: Place = ("tasks", number) if "tasks" in content else ("task",)
            inside = content["tasks"][number] if "tasks" in content else content["task"]
            return pointer_of((*place, *_longest(inside, problem.message, paths=True)))
    line = lines[problem.line - 1] if problem.line <= len(lines) else ""
    return pointer_of(_longest(content, problem.message, paths=True) or _longest(content, line, paths=False))


def _longest(content: object, words: str, *, paths: bool) -> Place:
    """Return the place of the longest text of a report that stands in some words."""
    found = ((len(text), place) for place, text in _texts(content, ()) if text in words)
    known = [(length, place) for length, place in found if not paths or place[-1] in _PATHS]
    return max(known, key=lambda each: each[0], default=(0, ()))[1]


def _texts(content: object, place: Place) -> Iterator[tuple[Place, str]]:
    parts: Iterable[tuple[str | int, object]] = ()
    if isinstance(content, dict):
        parts = cast("dict[str, object]", content).items()
    elif isinstance(content, list):
        parts = enumerate(cast("list[object]", content))
    elif isinstance(content, str) and content.strip():
        yield place, content.strip()
    for key, part in parts:
        yield from _texts(part, (*place, key))
