"""A machine of several lanes: each voice sings and rests, and the piece ends when all of them rest."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pipeline.matrix.engine.protocols import TRUNK, Decision, Effect, Event, Lane, LoopState
from pipeline.outcomes import Outcome, Reason

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping


@dataclass(frozen=True)
class Sing:
    to: str


@dataclass(frozen=True)
class Stop:
    outcome: Outcome
    reason: Reason


@dataclass(frozen=True, kw_only=True)
class Piece(LoopState):
    def due(self, at_work: Collection[str]) -> tuple[str, ...]:
        voices = tuple(lane for lane in self.lanes if lane not in {TRUNK, *at_work})
        return voices if len(self.lanes) > 1 else (TRUNK,)


class Choir:
    """`sung` ends a lane; `hoarse` parks the run; `fire` ends it."""

    def __init__(self, *voices: str) -> None:
        self.voices = voices

    def initial(self) -> Piece:
        return Piece(lanes={TRUNK: Lane(step="stage")})

    def read(self, event: Mapping[str, object]) -> Event:
        return Event.model_validate(event)

    def advance(self, state: Piece, event: Event) -> tuple[Piece, Decision]:
        at = state.seen_from(event.lane).trunk
        effects: tuple[Effect, ...] = ()
        action: Sing | Stop = Sing("rest")
        match event.signal:
            case "entered":
                lanes = {voice: Lane(step="verse", visit=1 + number) for number, voice in enumerate(self.voices, 1)}
                after = replace(state, lanes={**state.lanes, **lanes}, visits=1 + len(lanes))
            case "sung":
                left = {name: lane for name, lane in state.lanes.items() if name != event.lane}
                after = replace(state, lanes=left)
            case _:
                end = (Outcome.COMPLETED, Reason.DONE) if event.signal == "bowed" else (Outcome.PARKED, Reason.BUDGET)
                end = (Outcome.FAILED, Reason.ESCAPE) if event.signal == "fire" else end
                action, after = Stop(*end), replace(state, outcome=end[0], reason=end[1])
                kind = "run_parked" if end[0] is Outcome.PARKED else "run_finished"
                effect = Effect(f"e{state.effects + 1}", kind, {"outcome": end[0].value, "reason": end[1].value})
                effects = (effect,)
        decision = Decision(
            step=at.step, visit=at.visit, row=f"{at.step}/{event.signal}", action=action, effects=effects
        )
        return replace(after, effects=state.effects + len(effects)), decision

    def resume(self, state: Piece) -> Piece:
        return state.resumed()
