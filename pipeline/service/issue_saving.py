"""Saves the run of an issue as a recipe: the one that it was of, with the plan and the tasks that it came to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pipeline.errors import UserError
from pipeline.outcomes import Reason
from pipeline.recipes.saving import Marker, document_text, unclear
from pipeline.reports.drafts import PlanAndTasks, SplitReport, SplitTask
from pipeline.reports.edited import plan_reread, task_reread
from pipeline.reports.taskfile import parse_task_md
from pipeline.reports.tasks import Task
from pipeline.routing.state import TaskStatus
from pipeline.routing.vocabulary import Step
from pipeline.runs.drafts import PLAN, counted, task_file
from pipeline.runs.files import to_json
from pipeline.runs.plans import kept_recipe, planned
from pipeline.service.recipe_files import BUILTIN

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pipeline.recipes.reading import Problem
    from pipeline.routing.state import TaskState
    from pipeline.runs.info import RecipeFacts
    from pipeline.runs.run import Decided, Run

_ISSUE: Final = f"{BUILTIN}issue"


def issue_recipe_text(
    run: Run, name: str, wanted: Mapping[str, str]
) -> tuple[str, Mapping[str, list[str]], tuple[Problem, ...]]:
    """Return the text of a recipe that goes the way of a run with its plan and tasks, where the inputs stood, problems.

    Args:
        run: The run of an issue.
        name: What the recipe is called.
        wanted: The value that shall become an input, by the name of the input.

    Raises:
        UserError: the run has no plan with tasks.
    """
    wrong = tuple(unclear(wanted))
    if wrong:
        return "", {}, wrong
    base = kept_recipe(run)[0] if run.info.recipe else None
    step = next((one.id for one in base.steps if one.phase == "plan"), "plan") if base is not None else "plan"
    marker = Marker(wanted)
    given = marker.value("plan", _given(run))
    there = {one.name for one in base.inputs} if base is not None else {"issue"}
    inputs = [{"name": one, "required": True} for one in wanted if one not in there]
    document: dict[str, object] = {"name": name, "extends": _extended(run.info.recipe)}
    document |= {"inputs": inputs} if inputs else {}
    document["edits"] = [{"change": step, "set": {"given": given}}]
    return document_text(document), marker.places, tuple(marker.problems())


def _extended(facts: RecipeFacts | None) -> str:
    """Return how the recipe of a run is named by another one."""
    if facts is None:
        return _ISSUE
    return facts.path if facts.path.startswith(BUILTIN) else facts.name


def _given(run: Run) -> dict[str, Any]:
    """Return plan and tasks as they were drafted and edited, with the files and tests that the tasks came to."""
    tasks = [task for task in run.state.tasks.values() if not task.fix and task.status is not TaskStatus.DROPPED]
    drafts = _drafts(run)
    if not tasks or any(task.id not in drafts for task in tasks):
        raise UserError(
            f"{run.info.run_id} has no plan with tasks yet, so there is nothing of it to be run again.", Reason.USAGE
        )
    numbers = {task.id: number for number, task in enumerate(tasks, 1)}
    plan = planned(run)
    said = {key: getattr(plan, key) for key in type(plan).model_fields if key not in {"task", "tasks", "out_of_scope"}}
    said |= plan_reread(text, plan) if (text := _text(run, PLAN)) else {}
    whole = PlanAndTasks(**said, tasks=tuple(_as_it_came(run, task, drafts[task.id], numbers) for task in tasks))
    return whole.model_dump(mode="json", by_alias=True, exclude_defaults=True)


def _as_it_came(run: Run, task: TaskState, draft: SplitTask, numbers: Mapping[str, int]) -> SplitTask:
    """Return a task as it was drafted, with what people and amendments have made of it."""
    found = parse_task_md(_text(run, task_file(task.id)))
    now = task_reread(found, draft) if isinstance(found, Task) else {}
    above = tuple(numbers[name] for name in task.spec.depends_on if name in numbers)
    return draft.model_copy(update={**now, "depends_on": above})


def _text(run: Run, name: str) -> str:
    """Return a draft as it counts: with what a person made of it at its gate."""
    return (counted(run, name) or b"").decode("utf-8", errors="replace")


def _drafts(run: Run) -> dict[str, SplitTask]:
    """Return each task as it was drafted, by its id."""
    found: dict[str, SplitTask] = {}
    for decided in run.history:
        if decided.decision.step is Step.SPLIT and decided.event.tasks:
            names = [task.id for task in decided.event.tasks]
            found |= dict(zip(names, _tasks_of(run, decided), strict=False))
    return found


def _tasks_of(run: Run, decided: Decided) -> tuple[SplitTask, ...]:
    visit = decided.decision.visit
    for record in run.records.values():
        if record.visit == visit and record.step == Step.SPLIT.value and record.dispatch in run.results:
            result = run.results[record.dispatch]
            if result.signal is None:
                return SplitReport.model_validate_json(to_json(result.report, pretty=False)).tasks
    plan = planned(run, visit)
    return plan.tasks if isinstance(plan, PlanAndTasks) else (plan.task,) if plan.task is not None else ()
