"""Reads the plan and tasks that a recipe of an issue brings as the first draft, which nobody is asked for. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

from pydantic import ValidationError

from pipeline.recipes.problems import Problem
from pipeline.recipes.references import Scope, of_text
from pipeline.recipes.templates import filled
from pipeline.reports.decode import Malformed
from pipeline.reports.drafts import PlanAndTasks, SplitReport
from pipeline.reports.schema_errors import explain
from pipeline.reports.tasks import tasks_from_split

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pipeline.recipes.model import Recipe, Step
    from pipeline.recipes.templates import Reference


def given_of(recipe: Recipe, values: Mapping[str, str]) -> tuple[PlanAndTasks | None, tuple[Problem, ...]]:
    """Return the plan that a sound recipe brings along with these inputs, None where none is, and what is wrong."""
    for number, step in enumerate(recipe.steps):
        if step.given is not None:
            return _read(f"/steps/{number}/given", step.given, lambda one: values[one.input or ""])
    return None, ()


def of_given(at: str, step: Step, inputs: tuple[str, ...]) -> Iterator[Problem]:
    """Yield what is wrong with the plan that a step brings along."""
    if step.given is None or step.phase is None:
        return
    if step.phase != "plan":
        yield Problem("unknown_key", f"{at}/given", "'given' is what the phase 'plan' would draft")
        return
    at, scope = f"{at}/given", Scope(inputs, (), frozenset())
    found = [problem for place, text in _texts(at, step.given) for problem in of_text(place, text, scope)]
    yield from found or _read(at, step.given, lambda _: "x")[1]


def _read(
    at: str, given: Mapping[str, object], value_of: Callable[[Reference], str]
) -> tuple[PlanAndTasks | None, tuple[Problem, ...]]:
    value = cast("dict[str, object]", _with(given, lambda text: filled(text, value_of)))
    try:
        plan = PlanAndTasks.model_validate_json(json.dumps(value))
    except ValidationError as error:
        faults = explain(error.errors(), value, PlanAndTasks.model_json_schema())
        return None, tuple(Problem("wrong_type", f"{at}{fault.pointer}", fault.text) for fault in faults)
    tasks = tasks_from_split(SplitReport(tasks=plan.tasks), map(str, range(1, len(plan.tasks) + 1)))
    if isinstance(tasks, Malformed):
        return None, (Problem("wrong_type", f"{at}{tasks.pointer}", tasks.sentence),)
    return plan, ()


def _with(value: object, fill: Callable[[str], str]) -> object:
    if isinstance(value, str):
        return fill(value)
    if isinstance(value, Mapping):
        return {key: _with(one, fill) for key, one in cast("Mapping[str, object]", value).items()}
    if isinstance(value, list | tuple):
        return [_with(one, fill) for one in cast("list[object]", value)]
    return value


def _texts(at: str, value: object) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield at, value
    elif isinstance(value, Mapping):
        for key, one in cast("Mapping[str, object]", value).items():
            yield from _texts(f"{at}/{key}", one)
    elif isinstance(value, list | tuple):
        for number, one in enumerate(cast("list[object]", value)):
            yield from _texts(f"{at}/{number}", one)
