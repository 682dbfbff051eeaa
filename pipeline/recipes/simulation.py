"""Walks a recipe of own steps with signals from a file and no agent: what would start, be held, be asked again.

An entry is what one step reports, with the keys of that event (`StepEvent`); the machine is the one that drives runs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from pydantic import TypeAdapter, ValidationError

from pipeline.engine.machine import TRUNK, action_value
from pipeline.outcomes import exit_code
from pipeline.recipes.step_table import ANY, ROWS, StepEvent, StepSignal
from pipeline.routing.simulation import RESUMED, SignalsError
from pipeline.yaml_text import YamlError, read

if TYPE_CHECKING:
    from pipeline.engine.machine import Decision
    from pipeline.recipes.machine import RecipeMachine
    from pipeline.recipes.step_table import StepsState

SCHEMA: Final = "redfirst.recipe-simulation/1"
_EVENT: Final = TypeAdapter(StepEvent)


@dataclass(frozen=True)
class Taken:
    """One entry and what was decided on it; `decision` is None for RESUMED."""

    number: int
    event: StepEvent | None
    decision: Decision | None


@dataclass(frozen=True)
class Walk:
    """A whole walk: what was taken, and how the run stands then."""

    taken: tuple[Taken, ...]
    state: StepsState

    @property
    def waits_for(self) -> tuple[str, ...]:
        """Return the steps that can report something now, gates too."""
        return () if self.state.has_ended else _waiting(self.state)


def simulate(text: str, machine: RecipeMachine) -> Walk:
    """Return the walk that the entries of a YAML or JSON list lead to; the run itself begins without an entry.

    Raises:
        SignalsError: an entry cannot be taken where it stands; names it and what is accepted.
    """
    state, _ = machine.advance(machine.initial(), StepEvent(signal=StepSignal.OK))
    taken: list[Taken] = []
    for number, said in enumerate(_entries(text), 1):
        if said == RESUMED:
            state = machine.resume(state)
            taken.append(Taken(number, None, None))
            continue
        event = _event(state, number, said)
        try:
            state, decision = machine.advance(state, event)
        except (LookupError, ValueError) as error:
            at = state.lanes[event.lane].at
            accepted = tuple(one for one in StepSignal if (at, one) in ROWS or one in ANY)
            raise SignalsError(f"Entry {number}: {error}.", f"/{number - 1}/signal", accepted) from error
        taken.append(Taken(number, event, decision))
    return Walk(tuple(taken), state)


def _entries(text: str) -> list[Any]:
    try:
        found: Any = read(text, aliases=True).value
    except YamlError as error:
        raise SignalsError(f"This is neither YAML nor JSON: {error}") from error
    if not isinstance(found, list):
        raise SignalsError("Expected a list of signals, such as [ANSWERED, {step: look.2, signal: TIMED_OUT}].")
    return found  # pyright: ignore[reportUnknownVariableType]  YAML


def _event(state: StepsState, number: int, said: Any) -> StepEvent:
    """Return an entry as an event; a word alone is of the first step that can report something."""
    here = f"/{number - 1}"
    waiting = () if state.has_ended else _waiting(state)
    entry: dict[str, Any] = {"signal": said} if isinstance(said, str) else dict(said) if isinstance(said, dict) else {}  # pyright: ignore[reportUnknownArgumentType]  YAML
    lane = entry.pop("step", None) or next(iter(waiting), TRUNK)
    if lane not in waiting:
        only = f"only: {', '.join(waiting)}" if waiting else f"the run stands at {state.outcome} ({state.reason})"
        raise SignalsError(f"Entry {number}: {lane} reports nothing now; {only}.", f"{here}/step", waiting)
    try:
        return _EVENT.validate_python({**entry, "lane": lane})
    except ValidationError as error:
        fault = error.errors()[0]
        place = "".join(f"/{part}" for part in fault["loc"])
        raise SignalsError(
            f"Entry {number}: {place or 'it'}: {fault['msg']}.", f"{here}{place}", [*StepSignal]
        ) from error


def _waiting(state: StepsState) -> tuple[str, ...]:
    if state.outcome is not None and all(lane.gate is None for name, lane in state.lanes.items() if name != TRUNK):
        return ()
    at_work = state.due(()) if state.outcome is None else ()
    return (*at_work, *(name for name, lane in state.lanes.items() if lane.gate is not None))


def walk_text(walk: Walk) -> str:
    """Return a walk for people: each decision with what followed, then how the run stands."""
    lines: list[str] = []
    for taken in walk.taken:
        if taken.event is None or taken.decision is None:
            lines.append(f"{taken.number:>3}  {RESUMED}")
            continue
        words = ", ".join(str(value) for value in action_value(taken.decision.action).values() if value)
        lines.append(f"{taken.number:>3}  {taken.event.lane}  {taken.event.signal}: {words}")
        lines += [f"     {name} {paid}" for name, paid in taken.decision.counters.items()]
        lines += [f"     {effect.kind} {' '.join(effect.data.values())}" for effect in taken.decision.effects]
    state = walk.state
    if state.outcome is not None and state.reason is not None:
        lines += [f"Outcome: {state.outcome} ({state.reason}), exit {exit_code(state.outcome, state.reason)}."]
    if walk.waits_for:
        lines.append(f"The run waits for: {', '.join(walk.waits_for)}.")
    return "\n".join(lines)


def walk_value(walk: Walk) -> dict[str, Any]:
    """Return a walk as a document, for `--json`."""
    state = walk.state
    ended = state.outcome is not None and state.reason is not None
    return {
        "schema": SCHEMA,
        "ok": True,
        "decisions": [_taken_value(taken) for taken in walk.taken],
        "settled": {name: how.value for name, how in state.settled.items()},
        "outcome": state.outcome,
        "reason": state.reason,
        "exit_code": exit_code(state.outcome, state.reason) if ended and state.outcome and state.reason else None,
        "waits_for": list(walk.waits_for),
    }


def _taken_value(taken: Taken) -> dict[str, Any]:
    if taken.event is None or taken.decision is None:
        return {"number": taken.number, "signal": RESUMED}
    return {
        "number": taken.number,
        "step": taken.event.lane,
        "signal": taken.event.signal.value,
        "row": taken.decision.row,
        "action": action_value(taken.decision.action),
        "counters": dict(taken.decision.counters),
        "effects": [{"kind": effect.kind, **effect.data} for effect in taken.decision.effects],
    }
