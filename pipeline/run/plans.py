"""Tells which plan a run works by: the last draft that counted, or the one that its recipe brought along."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from pipeline.judge.reports.drafts import PlanAndTasks, PlanReport
from pipeline.matrix.recipes.model import Recipe
from pipeline.matrix.recipes.rules import given_of
from pipeline.run.files import to_json
from pipeline.run.info import RECIPE, DispatchRecord
from pipeline.vocabulary import Step

if TYPE_CHECKING:
    from pipeline.run.run import Run


def kept_recipe(run: Run) -> tuple[Recipe, dict[str, str]]:
    """Return the recipe, and the values of its inputs."""
    kept = json.loads(run.read(RECIPE))
    return Recipe.model_validate_json(json.dumps(kept["recipe"])), kept["inputs"]


BOTH: Final = "plan-and-tasks"
"""The kind of a draft of plan and split in one."""


def planned(run: Run, before: int | None = None) -> PlanReport | PlanAndTasks:
    """Return the last draft that counted.

    Args:
        run: The run.
        before: A visit: of those that were drafted before it; by default of all.

    Raises:
        LookupError: there is none.
    """
    counted = [record for record in _drafted(run) if before is None or record.visit < before]
    if not counted:
        given = _given(run)
        if given is None:
            raise LookupError("there is no plan yet")
        return given
    report = run.results[counted[-1].dispatch].report
    kind = PlanAndTasks if counted[-1].kind == BOTH else PlanReport
    return kind.model_validate_json(to_json(report, pretty=False))


def as_given(run: Run) -> PlanAndTasks | None:
    """Return the plan that the recipe brought along, while nobody has drafted another one."""
    return None if _drafted(run) else _given(run)


def _given(run: Run) -> PlanAndTasks | None:
    if not run.info.phases.given:
        return None
    plan, _ = given_of(*kept_recipe(run))
    return plan


def _drafted(run: Run) -> list[DispatchRecord]:
    """Return the dispatches that drafted a plan which counted, in order."""
    found = [record for record in run.records.values() if record.step == Step.PLAN.value]
    return [one for one in found if one.dispatch in run.results and run.results[one.dispatch].signal is None]
