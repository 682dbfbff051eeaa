"""Checks the files that a person edited at a gate by the rules for drafts, before they count (contract 5)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from pipeline.errors import UserError
from pipeline.outcomes import Reason
from pipeline.reports.edited import plan_form, task_form
from pipeline.reports.hygiene import lint_plan
from pipeline.reports.problems import Problem, Weight
from pipeline.reports.tasks import execution_order
from pipeline.routing.state import TaskStatus
from pipeline.runs.drafts import PLAN, bring_back, differing, task_file
from pipeline.steps.asking.task_drafts import lint_each, lint_together

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pipeline.reports.tasks import Task
    from pipeline.steps.context import Context

_SHOWN: Final = 5


def check_edits(ctx: Context, texts: Mapping[str, str], tasks: Mapping[str, Task]) -> None:
    """Return if everything that was edited at this gate can be used.

    Args:
        ctx: The run.
        texts: The drafts of the gate by their names, as they are to count.
        tasks: What those of them that are tasks say, by id.

    Raises:
        UserError: something cannot; the message has file, line and what is accepted there.
    """
    names = differing(ctx.run, texts)
    if PLAN in names:
        _refuse(ctx, {PLAN: _of_plan(ctx, texts[PLAN])})
    elif names:
        by_id = {task_id: texts[task_file(task_id)] for task_id in tasks}
        _refuse(ctx, {task_file(name): list(_of_ids(ctx, name, task, by_id[name])) for name, task in tasks.items()})
        _refuse(ctx, _of_tasks(ctx, tuple(tasks.values()), by_id))


def refuse_removal(ctx: Context) -> None:
    """Return if no file that a person may edit at this gate is gone.

    Raises:
        UserError: one was; it is put back.
    """
    gone = bring_back(ctx.run)
    if gone:
        run_id = ctx.run.info.run_id
        reject = f'redfirst reject {run_id} --feedback "..."'
        raise UserError(
            f"{', '.join(gone)} was removed, which drops nothing: it is put back. To have a part of it dropped, say "
            f"so: {reject}. To go on with it: redfirst approve {run_id}",
            Reason.USAGE,
            path=str(ctx.path(gone[0])),
            actions=(reject, f"redfirst approve {run_id}"),
        )


def _of_plan(ctx: Context, text: str) -> list[Problem]:
    files, problems = plan_form(text)
    existing = {entry.path for entry in ctx.repository.entries(ctx.state.start)}
    return [*problems, *lint_plan(text, files=files, existing=existing)]


def _of_ids(ctx: Context, given: str, task: Task, text: str) -> Iterator[Problem]:
    """Yield what no draft can have, since our code gives the ids: another one, or a dependency on none of this run."""
    if task.id != given:
        what = f"its id is {task.id!r}. The program gives ids, so it must be {given!r}"
        yield Problem(_line_of(text, "id"), "H014", what)
    known = {task_id for task_id, each in ctx.state.tasks.items() if each.status is not TaskStatus.DROPPED}
    for unknown in sorted(set(task.depends_on) - known):
        what = f"depends_on names {unknown}, which is no task of this run"
        yield Problem(_line_of(text, "depends_on"), "H014", what)


def _of_tasks(ctx: Context, tasks: tuple[Task, ...], texts: Mapping[str, str]) -> dict[str, list[Problem]]:
    found = {task.id: list(task_form(texts[task.id], task)) for task in tasks}
    stuck = {task.id for task in tasks} - {task.id for task in execution_order(tasks)}
    if stuck:
        first, what = min(stuck), f"the tasks {', '.join(sorted(stuck))} wait for each other"
        found[first].append(Problem(_line_of(texts[first], "depends_on"), "H014", what))
    for problem in lint_together(ctx, tasks):
        task_id = tasks[min(problem.line, len(tasks)) - 1].id
        found[task_id].append(replace(problem, line=_line_of(texts[task_id], "files")))
    for task_id, problem in lint_each(ctx, tasks, lambda task: texts[task.id]):
        found[task_id].append(problem)
    return {task_file(task_id): problems for task_id, problems in found.items()}


def _line_of(text: str, key: str) -> int:
    """Return the line of a key of the front matter, from 1."""
    lines = enumerate(text.split("\n"), start=1)
    return next((number for number, line in lines if line.startswith(f"{key}:")), 1)


def _refuse(ctx: Context, found: dict[str, list[Problem]]) -> None:
    """Raise for the first file that cannot be used, with the problems of all.

    Raises:
        UserError: there is one.
    """
    errors = {name: sorted(p for p in problems if p.severity is Weight.ERROR) for name, problems in found.items()}
    errors = {name: problems for name, problems in errors.items() if problems}
    if not errors:
        return
    lines = [f"{name}, line {p.line}: {p.message} ({p.rule})" for name, problems in errors.items() for p in problems]
    more = [f"and {len(lines) - _SHOWN} more"] if len(lines) > _SHOWN else []
    then = f"redfirst approve {ctx.run.info.run_id}"
    first = next(iter(errors))
    raise UserError(
        "\n  ".join([f"Your edits in {ctx.run.folder} cannot be used:", *lines[:_SHOWN], *more])
        + f"\nMend it, then: {then}",
        Reason.USAGE,
        path=str(ctx.path(first)),
        details={
            "problems": [
                {"path": str(ctx.path(name)), "line": p.line, "rule": p.rule, "message": p.message}
                for name, problems in errors.items()
                for p in problems
            ]
        },
        actions=(then,),
    )
