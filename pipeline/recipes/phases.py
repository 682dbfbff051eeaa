"""What a recipe decides about an issue's way, for the matrix; and whether it is such a recipe at all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeline.recipes.model import Kind
from pipeline.routing.phases import Phases
from pipeline.routing.vocabulary import Role

if TYPE_CHECKING:
    from pipeline.recipes.model import Recipe


def can_run(recipe: Recipe) -> bool:
    """Return whether a sound recipe can be run: its steps are all phases of an issue, or none is."""
    return phases_of(recipe) is not None or all(step.phase is None for step in recipe.steps)


def phases_of(recipe: Recipe) -> Phases | None:
    """Return who is asked on the way of an issue, None where a sound recipe has steps that are none of it."""
    if any(step.kind is not Kind.PHASE for step in recipe.steps):
        return None
    reviewers = {step.phase: tuple(map(Role, step.review)) for step in recipe.steps}
    return Phases(
        plan=reviewers["plan"],
        split=reviewers.get("split", ()),
        result=reviewers["review"],
        own_split="split" in reviewers,
        given=any(step.given is not None for step in recipe.steps),
    )
