"""Reads what a recipe decides about an issue's way, for the matrix, and whether it is such a recipe at all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pipeline.recipes.model import Kind
from pipeline.recipes.templates import references
from pipeline.routing.matrix import BOUNDS
from pipeline.routing.phases import Phases
from pipeline.routing.vocabulary import Loop, Role
from pipeline.scheduling.graph import Step as Node
from pipeline.scheduling.graph import planned

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pipeline.recipes.model import Recipe, Step

MOST_OWN: Final = BOUNDS[Loop.OWN_STEPS].limit or 0
"""So many steps of its own may stand between the tasks of an issue and the review of the result."""
_KEYS: Final = frozenset(
    {"id", "agent", "prompt", "depends_on", "write_set", "attempts", "model", "effort", "timeout_s"}
)
"""What such a step may say."""


def phases_of(recipe: Recipe) -> Phases | None:
    """Return who is asked on the way of an issue, None where a sound recipe is none, or cannot be run (`why_not`)."""
    reviewers = {step.phase: tuple(map(Role, step.review)) for step in recipe.steps if step.phase is not None}
    if not reviewers or why_not(recipe) is not None:
        return None
    own = _own(recipe)
    order = planned([Node(step.id, step.depends_on) for step in recipe.steps], side_by_side=1).order
    return Phases(
        plan=reviewers.get("plan", ()),
        split=reviewers.get("split", ()),
        result=reviewers["review"],
        own_split="split" in reviewers,
        given=any(step.given is not None for step in recipe.steps),
        one_writer="build" in reviewers,
        own=tuple(id_ for id_ in order if id_ in own),
    )


def why_not(recipe: Recipe) -> str | None:
    """Return what keeps a sound recipe from being run, None where it can be.

    Beside the phases of an issue stand only steps of @make, between its tasks and the review of the result.
    """
    if all(step.phase is None for step in recipe.steps):
        return None
    return next(_faults(recipe, _own(recipe)), None)


def _own(recipe: Recipe) -> dict[str, Step]:
    return {step.id: step for step in recipe.steps if step.phase is None}


def _faults(recipe: Recipe, own: dict[str, Step]) -> Iterator[str]:
    by_id = {step.id: step for step in recipe.steps}
    at = {step.phase: step.id for step in recipe.steps if step.phase is not None}
    of_review = _above(by_id, at["review"])
    work = at["build"] if "build" in at else at["tasks"]
    for id_, step in own.items():
        if step.kind is not Kind.AGENT or step.agent != "make":
            yield f"{id_!r} stands beside the phases of an issue, and is no step of `agent: make`"
        elif work not in _above(by_id, id_) or id_ not in of_review:
            yield f"{id_!r} has to stand between {work!r} and {at['review']!r}: write it with `insert_after`"
        elif keys := sorted(step.model_dump(exclude_defaults=True).keys() - _KEYS):
            yield f"{id_!r} has {', '.join(keys)}, which mean nothing between the phases of an issue"
        elif any(one.what == "payload" for one in references(step.prompt or "")[0]):
            yield f"{id_!r} names a payload, and no step before it has one"
    if len(own) > MOST_OWN:
        yield f"{len(own)} steps stand between the phases of an issue, {MOST_OWN} may"


def _above(by_id: dict[str, Step], id_: str) -> frozenset[str]:
    found: set[str] = set()
    open_ = [*by_id[id_].depends_on]
    while open_:
        one = open_.pop()
        if one not in found:
            found.add(one)
            open_ += by_id[one].depends_on
    return frozenset(found)
