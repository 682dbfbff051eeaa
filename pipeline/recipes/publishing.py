"""Finds whose work a `publish` puts on the branch: that of the steps it depends on, and what they wrote over. Pure.

Two writers whose areas meet work one after the other, and the later one's files hold the work of the earlier one. So
that goes along, whether the `publish` names it or not, and nothing goes along that nobody reviews or measures.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeline.recipes.model import Kind
from pipeline.recipes.problems import Problem

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from pipeline.recipes.model import Recipe, Step
    from pipeline.scheduling.graph import Plan


def writes_files(step: Step) -> bool:
    """Return whether a step leaves files for those behind it; a scratch copy is nobody else's."""
    return step.apply_from is not None or (step.agent == "make" and step.workspace_mode != "scratch")


def is_looked_at(step: Step, by_id: Mapping[str, Step]) -> bool:
    """Return whether what a step writes is reviewed or measured; a patch also where it was made."""
    source = by_id.get(step.apply_from or "")
    return any(one is not None and (one.accept or one.review) for one in (step, source))


def going_along(steps: Mapping[str, Step], plan: Plan, above: Collection[str]) -> tuple[str, ...]:
    """Return the ids of these steps and of all that their writers were written over, in order."""
    under = {id_ for one in above if writes_files(steps[one]) for id_ in plan.before(one)}
    return tuple(id_ for id_ in plan.order if id_ in above or id_ in under)


def unreviewed(recipe: Recipe, plan: Plan) -> Iterator[Problem]:
    """Yield the writers that nobody looks at and whose work would be published by way of another one's files."""
    by_id = {step.id: step for step in recipe.steps}
    for number, step in enumerate(recipe.steps):
        if step.kind is not Kind.PUBLISH:
            continue
        for one in going_along(by_id, plan, _ancestors(step, by_id)):
            if writes_files(by_id[one]) and not is_looked_at(by_id[one], by_id):
                message = f"{step.id!r} publishes what {one!r} wrote, too: what it depends on is written over that"
                yield Problem("unreviewed_writer", f"/steps/{number}", message)


def _ancestors(step: Step, by_id: Mapping[str, Step]) -> set[str]:
    found: set[str] = set()
    open_ = list(step.depends_on)
    while open_:
        one = open_.pop()
        if one not in found:
            found.add(one)
            open_ += by_id[one].depends_on
    return found
