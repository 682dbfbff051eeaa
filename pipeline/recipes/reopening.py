"""Reopens steps that are over with all behind them, and takes a recipe that was changed. Pure."""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003  (of a constant)
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from pipeline.engine.machine import TRUNK
from pipeline.recipes.again import unsettled
from pipeline.recipes.references import input_names
from pipeline.recipes.starting import ended, started

if TYPE_CHECKING:
    from collections.abc import Collection

    from pipeline.recipes.machine import RecipeMachine
    from pipeline.recipes.model import Step
    from pipeline.recipes.steps_state import StepsState


_NONE: Final[Mapping[str, tuple[tuple[str, ...], ...]]] = MappingProxyType({})


def reopened(
    machine: RecipeMachine,
    state: StepsState,
    steps: Collection[str],
    items: Mapping[str, int],
    areas: Mapping[str, tuple[tuple[str, ...], ...]] = _NONE,
) -> StepsState:
    """Return the state of a run that goes on with these steps and all behind them to be done, and nothing else.

    Args:
        machine: Of the recipe as it is from here on.
        state: How the run stands.
        steps: The names, or ids, of what is done again; of a changed recipe those that are new, too.
        items: How many steps each `for_each` becomes whose list is there already.
        areas: What each of these may change, nothing where that does not depend on its item.
    """
    known = {*machine.steps, *(name for id_ in machine.order for name in machine.names(state, id_))}
    lost = [name for name in (*state.settled, *state.lanes) if name not in known and name != TRUNK]
    resumes = state.resumes + (state.outcome is not None)
    after = replace(state, outcome=None, reason=None, resumes=resumes)
    after, _ = unsettled(machine, after, *steps, *lost)
    counts = {**after.counts, **{id_: items[id_] for id_ in items if id_ not in after.counts}}
    after = replace(after, counts=counts, areas={**after.areas, **areas})
    return ended(started(machine, after)[0])


def differing(old: RecipeMachine, new: RecipeMachine) -> tuple[str, ...]:
    """Return the ids of the steps that a changed recipe says anew, or that see something else now, in order."""
    found: set[str] = set()
    for id_ in new.order:
        above = {*new.plan.before(id_)}
        is_same = id_ in old.steps and _said(old, old.steps[id_]) == _said(new, new.steps[id_])
        if not is_same or above != {*old.plan.before(id_)} or not found.isdisjoint(above):
            found.add(id_)
    return tuple(id_ for id_ in new.order if id_ in found)


def _said(machine: RecipeMachine, step: Step) -> tuple[Step, tuple[tuple[str, str], ...]]:
    """Return a step with the values of the inputs that it names."""
    return step, tuple((name, machine.values[name]) for name in input_names(step) if name in machine.values)
