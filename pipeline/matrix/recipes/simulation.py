"""Walks a recipe of own steps with signals from a file and no agent: what would start, be held, be asked again.

An entry is what one step reports, with the keys of that event (`StepEvent`); the machine is the one that drives runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pydantic import TypeAdapter

from pipeline.matrix.engine.protocols import TRUNK, Decision, action_value
from pipeline.matrix.recipes.step_table import ANY, ROWS, StepEvent, StepSignal, StepsState
from pipeline.matrix.routing.simulation import RESUMED, SignalsError, Taken, Walk, checked, decision_value, entries_of

if TYPE_CHECKING:
    from pipeline.matrix.recipes.next_steps import RecipeMachine

SCHEMA: Final = "redfirst.recipe-simulation/1"
_EVENT: Final = TypeAdapter(StepEvent)


def simulate(text: str, machine: RecipeMachine) -> Walk:
    """Return the walk that the entries of a YAML or JSON list lead to; the run itself begins without an entry.

    Raises:
        SignalsError: an entry cannot be taken where it stands; names it and what is accepted.
    """
    state, _ = machine.advance(machine.initial(), StepEvent(signal=StepSignal.OK))
    taken: list[Taken] = []
    for number, said in enumerate(entries_of(text), 1):
        if said == {"signal": RESUMED}:
            state = machine.resume(state)
            taken.append(Taken((f"{number:>3}  {RESUMED}",), {"number": number, "signal": RESUMED}))
            continue
        event = _event(state, number, said)
        try:
            state, decision = machine.advance(state, event)
        except (LookupError, ValueError) as error:
            at = state.lanes[event.lane].at
            accepted = tuple(one for one in StepSignal if (at, one) in ROWS or one in ANY)
            raise SignalsError(f"Entry {number}: {error}.", f"/{number - 1}/signal", accepted) from error
        taken.append(_taken(number, event, decision))
    waiting = _waiting(state)
    settled = {name: how.value for name, how in state.settled.items()}
    notes = (f"The run waits for: {', '.join(waiting)}.",) if waiting else ()
    return Walk(tuple(taken), state, waiting, {"settled": settled}, notes, SCHEMA)


def _event(state: StepsState, number: int, said: Any) -> StepEvent:
    """Return an entry as an event; without a step it is of the first one that can report something."""
    waiting = _waiting(state)
    entry: dict[str, Any] = dict(said) if isinstance(said, dict) else {}  # pyright: ignore[reportUnknownArgumentType]  YAML
    lane = entry.pop("step", None) or next(iter(waiting), TRUNK)
    if lane not in waiting:
        only = f"only: {', '.join(waiting)}" if waiting else f"the run stands at {state.outcome} ({state.reason})"
        raise SignalsError(f"Entry {number}: {lane} reports nothing now; {only}.", f"/{number - 1}/step", waiting)
    return checked(_EVENT, number, {**entry, "lane": lane})


def _waiting(state: StepsState) -> tuple[str, ...]:
    """Return the steps that can report something now, gates too."""
    if state.has_ended:
        return ()
    if state.outcome is not None and all(lane.gate is None for name, lane in state.lanes.items() if name != TRUNK):
        return ()
    at_work = state.due(()) if state.outcome is None else ()
    return (*at_work, *(name for name, lane in state.lanes.items() if lane.gate is not None))


def _taken(number: int, event: StepEvent, decision: Decision) -> Taken:
    words = ", ".join(str(value) for value in action_value(decision.action).values() if value)
    lines = (
        f"{number:>3}  {event.lane}  {event.signal}: {words}",
        *(f"     {name} {paid}" for name, paid in decision.counters.items()),
        *(f"     {effect.kind} {' '.join(effect.data.values())}" for effect in decision.effects),
    )
    value = {"number": number, "step": event.lane, "signal": event.signal.value, **decision_value(decision)}
    return Taken(lines, value)
