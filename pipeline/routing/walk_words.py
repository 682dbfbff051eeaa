"""Words a walk through the matrix: as lines for people, as a document. Nothing here performs I/O."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pipeline.engine.machine import action_value
from pipeline.outcomes import exit_code
from pipeline.routing.actions import Forward, NextTask, Return
from pipeline.routing.lookup import limit_of
from pipeline.routing.simulation import RESUMED, of_limit
from pipeline.routing.vocabulary import Loop
from pipeline.routing.words import action_words, step_words

if TYPE_CHECKING:
    from pipeline.routing.simulation import Taken, Walk

SCHEMA: Final = "redfirst.simulation/1"


def walk_text(walk: Walk) -> str:
    """Return a walk for people: each decision with what it paid, then how the run stands."""
    lines: list[str] = []
    for taken in walk.taken:
        lines += _taken_lines(taken)
    state = walk.state
    limit = limit_of(state, Loop.DISPATCHES)
    over = " A run that needs them all is parked before that." if limit is not None and state.dispatches > limit else ""
    used = f"Dispatches: at most {state.dispatches}{of_limit(limit)}.{over}"
    return "\n".join([*lines, *([""] if lines else []), *_standing(walk), used])


def _taken_lines(taken: Taken) -> list[str]:
    decision = taken.decision
    if decision is None:
        return [f"{taken.number:>3}  {step_words(taken.after.trunk.step)}  {RESUMED}"]
    task = f" task {decision.task}" if decision.task else ""
    words = action_words(decision.action, decision.step)
    after = taken.after
    if isinstance(decision.action, NextTask | Forward | Return) and after.outcome is None:
        lane = f"task-{decision.task}"
        after = after.seen_from(lane) if lane in after.lanes else after
        task_now = f" task {after.current}" if after.current else ""
        words = f"{words}: {step_words(after.trunk.step)}{task_now}"
        if after.beside:
            tasks = ", ".join(f"{lane.task} in {step_words(lane.step)}" for lane in after.beside.values())
            words = f"side by side: {tasks}"
    lines = [f"{taken.number:>3}  {step_words(decision.step)}{task}  {taken.entry.signal}: {words}"]
    lines.append(f"     row {decision.row}" + "".join(f"; {counter}" for counter in taken.counters))
    effects = (
        (effect.kind, " ".join(f"{key}={value}" for key, value in effect.data.items())) for effect in decision.effects
    )
    return [*lines, *(f"     {kind} {facts}" for kind, facts in effects)]


def _standing(walk: Walk) -> list[str]:
    state = walk.state
    beside = walk.side_by_side
    at = state.seen_from(state.due(())[0]) if beside and state.outcome is None else state
    of = f" of task {beside[0]}" if beside and state.outcome is None else ""
    waits = f"The run waits in {step_words(at.trunk.step)}{of} for one of: {', '.join(walk.waits_for)}."
    if len(beside) > 1 and state.outcome is None:
        waits += f" Side by side: {', '.join(beside)}; an entry's task says which."
    if state.outcome is None or state.reason is None:
        return [waits]
    ended = f"Outcome: {state.outcome} ({state.reason}), exit {exit_code(state.outcome, state.reason)}."
    return [ended, waits] if walk.waits_for else [ended]


def walk_value(walk: Walk) -> dict[str, Any]:
    """Return a walk as a document, for `--json`."""
    state = walk.state
    ended = state.outcome is not None and state.reason is not None
    return {
        "schema": SCHEMA,
        "ok": True,
        "decisions": [_taken_value(taken) for taken in walk.taken],
        "step": state.trunk.step.value,
        "phase": state.trunk.step.phase,
        "task": state.current,
        "side_by_side": list(walk.side_by_side),
        "gate": state.trunk.gate,
        "outcome": state.outcome,
        "reason": state.reason,
        "exit_code": exit_code(state.outcome, state.reason) if ended and state.outcome and state.reason else None,
        "waits_for": list(walk.waits_for),
        "dispatches": {"at_most": state.dispatches, "limit": limit_of(state, Loop.DISPATCHES)},
        "blockers": list(state.open_blockers),
    }


def _taken_value(taken: Taken) -> dict[str, Any]:
    decision = taken.decision
    value: dict[str, Any] = {"number": taken.number, "signal": taken.entry.signal}
    if decision is None:
        return {**value, "step": taken.after.trunk.step.value, "phase": taken.after.trunk.step.phase}
    return {
        **value,
        "step": decision.step.value,
        "phase": decision.step.phase,
        "task": decision.task,
        "row": decision.row,
        "action": action_value(decision.action),
        "words": action_words(decision.action, decision.step),
        "counters": decision.counters,
        "exhausted": [loop.value for loop in decision.exhausted],
        "effects": [{"kind": effect.kind, **effect.data} for effect in decision.effects],
    }
