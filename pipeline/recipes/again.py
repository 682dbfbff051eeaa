"""Finds what is done again with a step: itself, and all behind it in the graph, since that saw what it did."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pipeline.recipes.before import before
from pipeline.recipes.step_table import Bound

if TYPE_CHECKING:
    from collections.abc import Collection

    from pipeline.recipes.machine import RecipeMachine
    from pipeline.recipes.steps_state import StepsState


def unsettled(machine: RecipeMachine, state: StepsState, *steps: str) -> tuple[StepsState, tuple[str, ...]]:
    """Return the state in which steps, by their names or ids, and all behind them have not begun; and their names.

    How often a person has sent one back stays counted.
    """
    gone = {each for one in steps for each in (one, *(machine.names(state, one) if one in machine.steps else ()))}
    for id_ in machine.order:
        gone |= {name for name in machine.names(state, id_) if not gone.isdisjoint(before(machine, state, name))}
    lists = {step for id_ in gone if id_ in machine.steps for step, _ in machine.lists_of(id_)}
    fresh = replace(
        state,
        lanes={name: lane for name, lane in state.lanes.items() if name not in gone},
        settled={name: how for name, how in state.settled.items() if name not in gone},
        trees={name: tree for name, tree in state.trees.items() if name not in gone},
        open_seams={name: seams for name, seams in state.open_seams.items() if name not in gone},
        blockers={name: left for name, left in state.blockers.items() if name not in gone},
        counts={step: count for step, count in state.counts.items() if step not in lists},
        areas={step: areas for step, areas in state.areas.items() if step not in lists},
        counters={key: paid for key, paid in state.counters.items() if _stays(key, gone)},
    )
    known = (*(name for id_ in machine.order for name in machine.names(state, id_)), *steps)
    return fresh, tuple(dict.fromkeys(one for one in known if one in gone & {*state.settled, *state.lanes}))


def _stays(key: str, gone: Collection[str]) -> bool:
    bound, _, name = key.partition("@")
    return bound == Bound.HUMAN or name not in gone
