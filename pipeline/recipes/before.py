"""Finds what stands before a step in the graph, which is what it sees; of a `for_each`, which steps wait for which."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from pipeline.scheduling.patterns import parsed

if TYPE_CHECKING:
    from pipeline.recipes.machine import RecipeMachine
    from pipeline.recipes.steps_state import StepsState

_Area = tuple[str, ...]


def before(machine: RecipeMachine, state: StepsState, name: str) -> tuple[str, ...]:
    """Return all steps before one in the graph, by their names, in order."""
    above = machine.plan.before(machine.step_of(name).id)
    return (*(each for one in above for each in machine.names(state, one)), *siblings_before(machine, state, name))


def behind(machine: RecipeMachine, id_: str) -> tuple[str, ...]:
    """Return the steps of the file that stand behind one in the graph, in order."""
    bit = 1 << machine.order.index(id_)
    return tuple(one for one in machine.order if machine.plan.above[one] & bit)


def siblings_before(machine: RecipeMachine, state: StepsState, name: str) -> tuple[str, ...]:
    """Return the steps of the same `for_each` that a writer waits for: their areas meet, in a row at least."""
    step = machine.step_of(name)
    if name == step.id or not machine.writes(step.id):
        return ()
    names = machine.names(state, step.id)
    known = state.areas.get(step.id, ())
    areas = known if len(known) == len(names) else ((),) * len(names)
    return tuple(names[at] for at in sorted(_above(areas)[names.index(name)]))


@lru_cache(maxsize=64)
def _above(areas: tuple[_Area, ...]) -> tuple[frozenset[int], ...]:
    """Return of each area those before it that it meets, and those before these; an empty one is everything."""
    found: list[frozenset[int]] = []
    for at, area in enumerate(areas):
        above: set[int] = set()
        for other in range(at - 1, -1, -1):  # the latest first: what stands before it need not be compared
            if other not in above and _meet(area, areas[other]):
                above |= {other, *found[other]}
        found.append(frozenset(above))
    return tuple(found)


def _meet(one: _Area, other: _Area) -> bool:
    if not one or not other:
        return True
    return any(parsed(left).meets(parsed(right)) for left in one for right in other)
