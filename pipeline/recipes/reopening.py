"""Steps that are over and are done again, with all that stands behind them; and a recipe that was changed. Pure."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pipeline.recipes.before import before
from pipeline.recipes.references import input_names
from pipeline.recipes.starting import ended, started

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from pipeline.recipes.machine import RecipeMachine
    from pipeline.recipes.model import Step
    from pipeline.recipes.steps_state import StepsState


def unsettled(machine: RecipeMachine, state: StepsState, names: Collection[str]) -> StepsState:
    """Return the state in which steps, by their names or ids, and all that saw them are still to be done."""
    gone = {each for name in names for each in (name, *(machine.names(state, name) if name in machine.steps else ()))}
    for id_ in machine.order:
        gone |= {name for name in machine.names(state, id_) if not gone.isdisjoint(before(machine, state, name))}
    lists = {step for id_ in machine.order if id_ in gone for step, _ in machine.lists_of(id_)}
    return replace(
        state,
        lanes={name: lane for name, lane in state.lanes.items() if name not in gone},
        settled={name: how for name, how in state.settled.items() if name not in gone},
        trees={name: tree for name, tree in state.trees.items() if name not in gone},
        open_seams={name: seams for name, seams in state.open_seams.items() if name not in gone},
        counts={id_: count for id_, count in state.counts.items() if id_ not in lists},
        areas={id_: areas for id_, areas in state.areas.items() if id_ not in lists},
        counters={key: paid for key, paid in state.counters.items() if key.partition("@")[2] not in gone},
    )


def reopened(machine: RecipeMachine, state: StepsState, steps: Collection[str], items: Mapping[str, int]) -> StepsState:
    """Return the state of a run that goes on with these steps and all behind them to be done, and nothing else.

    Args:
        machine: Of the recipe as it is from here on.
        state: How the run stands.
        steps: The names, or ids, of what is done again; of a changed recipe those that are new, too.
        items: How many steps each `for_each` becomes whose list is there already.
    """
    known = {*machine.steps, *(name for id_ in machine.order for name in machine.names(state, id_))}
    lost = [name for name in (*state.settled, *state.lanes) if name not in known and name != "trunk"]
    resumes = state.resumes + (state.outcome is not None)
    after = replace(state, outcome=None, reason=None, resumes=resumes)
    after = unsettled(machine, after, [*steps, *lost])
    after = replace(after, counts={**after.counts, **{id_: items[id_] for id_ in items if id_ not in after.counts}})
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
