"""A machine that knows no issue: a poem is written, counted, and read by a person. Two steps, one bound, one gate."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pipeline.matrix.engine.protocols import Decision, Effect, Event, Lane, LoopState
from pipeline.outcomes import Outcome, Reason

if TYPE_CHECKING:
    from collections.abc import Mapping

REWRITES = 1


@dataclass(frozen=True)
class Goto:
    to: str


@dataclass(frozen=True)
class Wait:
    gate: str


@dataclass(frozen=True)
class Stop:
    outcome: Outcome
    reason: Reason


ROWS: dict[tuple[str, str], Goto | Wait | Stop] = {
    ("write", "written"): Goto("count"),
    ("write", "no_paper"): Stop(Outcome.PARKED, Reason.ENVIRONMENT),
    ("count", "too_long"): Goto("write"),
    ("count", "fits"): Wait("poem"),
    ("count", "approved"): Stop(Outcome.COMPLETED, Reason.DONE),
}


class Haiku:
    """Writes again once; a second poem that is too long is the end."""

    def initial(self) -> LoopState:
        return LoopState(lanes={"trunk": Lane(step="write")})

    def read(self, event: Mapping[str, object]) -> Event:
        return Event.model_validate(event)

    def advance(self, state: LoopState, event: Event) -> tuple[LoopState, Decision]:
        at, action, counters = state.trunk, ROWS[state.trunk.step, event.signal], dict[str, int]()
        if event.signal == "too_long":
            counters = {"rewrites@run": state.counters.get("rewrites@run", 0) + 1}
            if counters["rewrites@run"] > state.limits.get("rewrites", REWRITES):
                action, counters = Stop(Outcome.FAILED, Reason.LOOPS_EXHAUSTED), {}
        effects: list[tuple[str, dict[str, str]]] = []
        match action:
            case Goto(to):
                after = state.on_trunk(step=to, visit=at.visit + 1)
            case Wait(gate):
                after = replace(state.on_trunk(gate=gate), outcome=Outcome.PARKED, reason=Reason.APPROVAL)
                effects = [("gate_opened", {"gate": gate}), ("run_parked", {"outcome": "parked", "reason": "approval"})]
            case Stop(outcome, reason):
                after = replace(state.on_trunk(gate=None), outcome=outcome, reason=reason)
                kind = "run_parked" if outcome is Outcome.PARKED else "run_finished"
                effects = [(kind, {"outcome": outcome.value, "reason": reason.value})]
        said = tuple(Effect(f"e{state.effects + n}", kind, data) for n, (kind, data) in enumerate(effects, 1))
        row = f"{at.step}/{event.signal}"
        decision = Decision(step=at.step, visit=at.visit, row=row, action=action, counters=counters, effects=said)
        paid = {**state.counters, **counters}
        return replace(after, counters=paid, effects=state.effects + len(said)), decision

    def resume(self, state: LoopState) -> LoopState:
        return state.resumed()
