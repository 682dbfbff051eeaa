"""Decides which steps of a recipe start, wait or are held, and how the run stands once none can start."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from pipeline.engine.machine import TRUNK
from pipeline.outcomes import Outcome, Reason
from pipeline.recipes.before import siblings_before
from pipeline.recipes.model import Kind
from pipeline.recipes.seams import broken_before
from pipeline.recipes.step_table import At, Checkpoint
from pipeline.recipes.steps_state import StepLane

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pipeline.recipes.machine import RecipeMachine
    from pipeline.recipes.model import Step
    from pipeline.recipes.steps_state import StepsState

_FIRST: Final[Mapping[Kind, At]] = {
    Kind.AGENT: At.ASK,
    Kind.APPLY_FROM: At.APPLY,
    Kind.RUN: At.RUN,
    Kind.TESTS: At.TESTS,
    Kind.GATE: At.HOLD,
    Kind.FILE_ISSUES: At.FILE,
    Kind.PUBLISH: At.PUBLISH,
}
"""Where a step of each kind begins."""


def started(machine: RecipeMachine, state: StepsState) -> tuple[StepsState, list[tuple[str, dict[str, str]]]]:
    """Return the state with every step at work that may be, and what is to be said of it.

    All steps are looked at after each event, of which there may be a thousand: what cannot begin costs next to nothing.
    """
    effects: list[tuple[str, dict[str, str]]] = []
    room = machine.recipe.max_concurrency - _at_work(state)
    for id_ in machine.order:  # in this order each step stands behind what it waits for
        step = machine.steps[id_]
        if step.for_each is None and (id_ in state.settled or id_ in state.lanes):
            continue
        waits = machine.waits[id_]
        if waits and not all(_is_over(machine, state, one) for one in waits):
            continue
        is_held = bool(step.depends_on or step.requires) and bool(held_by(machine, state, step))
        if not (is_held or room > 0 or step.gate is not None):
            continue
        for name in machine.names(state, id_):
            if name in state.settled or name in state.lanes:
                continue
            if is_held:
                state = replace(state, settled={**state.settled, name: Checkpoint.HELD})
                effects.append(("step_held", {"step": name}))
            elif any(one not in state.settled for one in siblings_before(machine, state, name)):
                continue
            elif step.gate is not None or room > 0:
                visits = state.visits + 1
                gate = None if step.gate == "note" else step.gate  # a note waits for nobody
                lane = StepLane(step=id_, at=_FIRST[step.kind], visit=visits, gate=gate)
                state = replace(state, lanes={**state.lanes, name: lane}, visits=visits)
                room -= gate is None
                effects.append(("step_started", {"step": name}))
    return state, effects


def ended(state: StepsState) -> StepsState:
    """Return the state with its outcome, where nothing is at work and nothing can start."""
    lanes = [lane for name, lane in state.lanes.items() if name != TRUNK]
    if any(lane.gate is None for lane in lanes):
        return state
    if lanes:
        return replace(state, outcome=Outcome.PARKED, reason=Reason.APPROVAL)
    if all(one is Checkpoint.READY for one in state.settled.values()):
        if state.blockers:
            return replace(state, outcome=Outcome.COMPLETED_WITH_BLOCKERS, reason=Reason.BLOCKERS)
        return replace(state, outcome=Outcome.COMPLETED, reason=Reason.DONE)
    return replace(state, outcome=Outcome.PARTIAL, reason=Reason.STEPS_OPEN)


def _is_over(machine: RecipeMachine, state: StepsState, id_: str) -> bool:
    if machine.steps[id_].for_each is None:
        return id_ in state.settled
    return all(name in state.settled for name in machine.names(state, id_))


def held_by(machine: RecipeMachine, state: StepsState, step: Step) -> tuple[str, ...]:
    """Return the steps because of which one cannot start, all that it waits for being over: none where it can."""
    names = [name for one in step.depends_on for name in machine.names(state, one)]
    if step.accepts == "ready":
        found = [name for name in names if state.settled[name] is not Checkpoint.READY]
    else:
        found = [] if any(state.settled[name].is_usable for name in names) else names
    if not found and step.for_each is not None and step.id not in state.counts:
        found = names  # the list is not there
    return tuple(dict.fromkeys((*found, *broken_before(machine, state, step))))


def _at_work(state: StepsState) -> int:
    return sum(lane.gate is None for name, lane in state.lanes.items() if name != TRUNK)
