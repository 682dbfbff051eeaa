"""What is done again when a step is: itself, and all that stands behind it in the graph, since that saw what it did."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pipeline.recipes.step_table import Bound

if TYPE_CHECKING:
    from pipeline.recipes.machine import RecipeMachine
    from pipeline.recipes.steps_state import StepsState


def behind(machine: RecipeMachine, id_: str) -> tuple[str, ...]:
    """Return the steps of the file that stand behind one in the graph, in order."""
    bit = 1 << machine.order.index(id_)
    return tuple(one for one in machine.order if machine.plan.above[one] & bit)


def unsettled(machine: RecipeMachine, state: StepsState, id_: str) -> tuple[StepsState, tuple[str, ...]]:
    """Return the state in which a step and all behind it have not begun, and what these were called.

    How often a person has sent it back stays counted.
    """
    ids = (id_, *behind(machine, id_))
    gone = dict.fromkeys(name for one in ids for name in machine.names(state, one))
    lists = {step for one in ids for step, _ in machine.lists_of(one)}
    fresh = replace(
        state,
        lanes={name: lane for name, lane in state.lanes.items() if name not in gone},
        settled={name: how for name, how in state.settled.items() if name not in gone},
        trees={name: tree for name, tree in state.trees.items() if name not in gone},
        counts={step: count for step, count in state.counts.items() if step not in lists},
        areas={step: areas for step, areas in state.areas.items() if step not in lists},
        counters={key: paid for key, paid in state.counters.items() if _stays(key, gone)},
    )
    return fresh, tuple(name for name in gone if name in state.settled or name in state.lanes)


def _stays(key: str, gone: dict[str, None]) -> bool:
    bound, _, name = key.partition("@")
    return bound == Bound.HUMAN or name not in gone
