"""Advances the run of an issue: `advance(state, event) -> (state, decision)`, pure and total over the matrix.

A decision is made in three moves: `_resolve` finds the row and counts (or does what follows a reached limit),
`measured` takes the trees that the signal speaks of into the state (matrix 4), `arrive` enters the next step.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, assert_never

from pipeline.matrix.engine import protocols as engine
from pipeline.matrix.engine.protocols import TRUNK, Effect
from pipeline.matrix.routing.actions import Again, AskPerson, Forward, Goto, LeaveOut, NextTask, Retry, Return, Stop
from pipeline.matrix.routing.lookup import counter_key, find_row, in_a_row, limit_of, why_unusable
from pipeline.matrix.routing.matrix import BOUNDS
from pipeline.matrix.routing.state import PARALLEL, Event, RunState, Settings, TaskState, TaskStatus
from pipeline.matrix.routing.state_changes import (
    ENDS_TASK,
    PER_TASK_STEPS,
    arrive,
    begun,
    drafts_fixes,
    first_step,
    forked,
    measured,
    settled,
    taken_back,
    turned_back,
)
from pipeline.outcomes import Outcome, Reason
from pipeline.vocabulary import Loop, Role, Signal, Step

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pipeline.matrix.routing.actions import Action


@dataclass(frozen=True, kw_only=True)
class Decision(engine.Decision):
    """What the matrix decided, in its own words."""

    step: Step
    action: Action
    exhausted: tuple[Loop, ...] = ()


class MatrixMachine:
    """The routing matrix as a machine of the engine: for a run from the tree *start*, routed as *settings* say."""

    def __init__(self, start: str, settings: Settings) -> None:
        self._initial = RunState(
            start=start,
            head=start,
            limits={**settings.limits, PARALLEL: settings.parallel},
            gates=settings.gates,
            park_on_blockers=settings.park_on_blockers,
            points=settings.points,
            phases=settings.phases,
        )

    def initial(self) -> RunState:
        """Return the state before SANITY."""
        return self._initial

    def read(self, event: Mapping[str, object]) -> Event:
        """Return an event of the journal."""
        return Event.model_validate(event)

    def advance(self, state: RunState, event: Event) -> tuple[RunState, Decision]:
        """Return the state after *event* and what was decided (see the function)."""
        return advance(state, event)

    def resume(self, state: RunState) -> RunState:
        """Return the state that asks the same step again, with fresh re-asks (matrix 1, RESUMED)."""
        resumed = state.resumed()
        lanes = {name: replace(lane, reasks={}) for name, lane in resumed.lanes.items()}
        return state if resumed is state else replace(resumed, lanes=lanes)


def advance(state: RunState, event: Event) -> tuple[RunState, Decision]:
    """Return the state after *event* and what was decided.

    Raises:
        UnroutedSignalError: the matrix has no row for the signal in this step.
        ValueError: the run has ended or is parked, or the event misses or contradicts a fact (a lane, slot or task id).
    """
    here = state.seen_from(event.lane)
    at = here.trunk
    if state.outcome is not None and not (at.step is Step.GATE and state.outcome is Outcome.PARKED):
        raise ValueError(f"the run stands at {state.outcome}: no event can be taken")
    row = find_row(here, event.signal)
    if isinstance(row.action, Again | AskPerson):
        _slot(here, event)
    before = dict(state.counters)
    why = why_unusable(here, event.role, event.signal, event.refusal)
    counted = here if why is not None else in_a_row(here, event)
    paid, action, exhausted = _resolve(counted, row.action, event.role, unusable=why is not None)
    with_trees = measured(paid, event, exhausted)
    if event.lane == TRUNK:
        after, kinds = _enter(with_trees, action, event, exhausted)
    else:
        after, kinds = _enter_beside(state, with_trees, action, event, exhausted)
    effects = tuple(
        Effect(id=f"e{state.effects + number}", kind=kind, data=data) for number, (kind, data) in enumerate(kinds, 1)
    )
    decision = Decision(
        step=at.step,
        task=here.current if at.step in PER_TASK_STEPS else None,
        visit=at.visit,
        row=row.id,
        action=action,
        # what UNUSABLE counts follows from the events alone: no row pays it, and older journals do not have it
        counters={
            key: count
            for key, count in after.counters.items()
            if before.get(key) != count and not key.startswith(f"{Loop.UNUSABLE.value}@")
        },
        exhausted=exhausted,
        effects=effects,
    )
    return replace(after, effects=state.effects + len(effects)), decision


def _resolve(
    state: RunState, action: Action, role: Role | None, *, unusable: bool
) -> tuple[RunState, Action, tuple[Loop, ...]]:
    """Pay for *action*, or follow the exhausted bounds to the action that can be taken."""
    exhausted: list[Loop] = []
    if unusable:
        return state, _exhausted(Loop.UNUSABLE, role), (Loop.UNUSABLE,)
    while isinstance(action, Retry | Return | Again | AskPerson):
        loop = action.loop
        key = counter_key(state, loop, role)
        limit = limit_of(state, loop)
        spent = state.counters.get(key, 0)
        if limit is None or spent < limit:
            return replace(state, counters={**state.counters, key: spent + 1}), action, tuple(exhausted)
        exhausted.append(loop)
        action = _exhausted(loop, role)
    return state, action, tuple(exhausted)


def _exhausted(loop: Loop, role: Role | None) -> Action:
    bound = BOUNDS[loop]
    return bound.by_role.get(role, bound.exhausted) if role else bound.exhausted


EffectSpec = tuple[str, dict[str, str]]


def _enter(
    state: RunState, action: Action, event: Event, exhausted: tuple[Loop, ...], *, gated: bool = True
) -> tuple[RunState, list[EffectSpec]]:
    """Carry out *action* on the state; return it with the effects that the driver must journal."""
    edge = _edge(state, action) if gated else None
    if edge is not None and _is_shut(state, edge):
        gate = edge
        state = state.on_trunk(step=Step.GATE, gate=gate, pending=action)
        state = replace(state, outcome=Outcome.PARKED, reason=Reason.APPROVAL)
        return state, [("gate_opened", {"gate": gate}), _parked_for(Outcome.PARKED, Reason.APPROVAL)]
    after, effects = _carried_out(state, action, event, exhausted)
    passed = [("point_passed", {"point": edge})] if edge is not None and edge in state.points else []
    return after, [*passed, *effects]


def _carried_out(
    state: RunState, action: Action, event: Event, exhausted: tuple[Loop, ...]
) -> tuple[RunState, list[EffectSpec]]:
    """Carry out *action* where no gate stands in its way."""
    match action:
        case Goto(to, ask):
            failure = _failure(state, event, exhausted) if to is Step.FAILURE else state.failure
            return arrive(replace(state, failure=failure), to, None, ask, event.signal), []
        case Retry(to, loop, ask):
            fixing = to is not Step.BUILD and drafts_fixes(state, event, loop)
            return arrive(replace(state, fixing=fixing), to, loop, ask, event.signal), []
        case Return(loop):
            return arrive(state, state.trunk.origin or Step.IMPLEMENT, loop, None, event.signal), []
        case Again():
            return state.on_trunk(reasks={**state.trunk.reasks, _slot(state, event): event.signal}), []
        case AskPerson():
            return replace(state, outcome=Outcome.PARKED, reason=Reason.INPUT), _asked(event)
        case LeaveOut():
            return state.on_trunk(left_out=state.trunk.left_out | {_slot(state, event)}), []
        case NextTask():
            return _next_task(state, event)
        case Forward():
            if state.trunk.pending is None:
                raise ValueError("no gate is open")
            opened = replace(state.on_trunk(pending=None, gate=None), outcome=None, reason=None)
            return _enter(opened, state.trunk.pending, event, (), gated=False)
        case Stop(outcome, reason):
            why = reason or _reason(state, event)
            return replace(state, outcome=outcome, reason=why), [_parked_for(outcome, why)]
        case _:
            assert_never(action)


def _enter_beside(
    state: RunState, here: RunState, action: Action, event: Event, exhausted: tuple[Loop, ...]
) -> tuple[RunState, list[EffectSpec]]:
    """Carry out *action* for a task that is worked on beside others: *here* is the state as its lane sees it."""
    outer = taken_back(state, event.lane, here)
    match action:
        case NextTask() if here.trunk.step is Step.IMPLEMENT:
            waits = taken_back(outer, event.lane, arrive(here, Step.INTEGRATE, None, None, event.signal))
            return begun(waits, event.signal), []
        case NextTask():
            after, task = settled(outer, event.lane)
            after, effects = begun(after, event.signal), [_task_done(task)]
            if after.beside:
                return after, effects
            after, more = _enter(after, Goto(Step.FINAL_REVIEW), event, ())
            return after, effects + more
        case Stop(outcome, reason):
            why = reason or _reason(here, event)
            return replace(outer, outcome=outcome, reason=why), [_parked_for(outcome, why)]
        case AskPerson():
            return replace(outer, outcome=Outcome.PARKED, reason=Reason.INPUT), _asked(event)
        case Goto(to) | Retry(to) if to not in PER_TASK_STEPS:
            return _enter(turned_back(outer, event.lane), action, event, exhausted)
        case _:
            after, effects = _enter(here, action, event, exhausted)
            return taken_back(outer, event.lane, after), effects


def _task_done(task: TaskState) -> EffectSpec:
    return "task_done", {"task": task.id, "status": task.status.value}


def _slot(state: RunState, event: Event) -> Role:
    at = state.trunk
    slots = state.slots
    if event.role is None or event.role not in slots or event.role in at.left_out:
        asked = ", ".join(role for role in slots if role not in at.left_out)
        raise ValueError(f"{event.signal} must name a slot of {at.step.value} that is still asked: {asked}")
    return event.role


def _reason(state: RunState, event: Event) -> Reason:
    reason = event.reason or state.failure
    if reason is None:
        raise ValueError(f"{event.signal} in {state.trunk.step.value} must say its reason")
    return reason


def _parked_for(outcome: Outcome, reason: Reason) -> EffectSpec:
    kind = "run_parked" if outcome in {Outcome.PARKED, Outcome.CANCELLED} else "run_finished"
    return kind, {"outcome": outcome.value, "reason": reason.value}


def _asked(event: Event) -> list[EffectSpec]:
    question = {"question": event.evidence[0] if event.evidence else "", "note": event.note}
    return [("input_requested", question), _parked_for(Outcome.PARKED, Reason.INPUT)]


def _edge(state: RunState, action: Action) -> str | None:
    """Return the edge on which a gate may stand, or a point (matrix 1)."""
    match state.trunk.step, action:
        case Step.REVIEW_PLAN, Goto(Step.SPLIT):
            return "plan"
        case Step.REVIEW_SPLIT, NextTask():
            return "split"
        case _, Goto(Step.PUBLISH):
            return "commit"
        case _:
            return None


def _is_shut(state: RunState, edge: str) -> bool:
    """Return whether a gate stands there: one that was asked for, or the one before blockers are published."""
    return edge in state.gates or (edge == "commit" and state.park_on_blockers and bool(state.open_blockers))


def _failure(state: RunState, event: Event, exhausted: tuple[Loop, ...]) -> Reason:
    """Return why the run fails (matrix 2, PLAN_REWORK)."""
    if event.signal is Signal.ESCAPE:
        return Reason.ESCAPE
    if event.signal is Signal.BASELINE_IMPOSSIBLE:
        return Reason.BASELINE_IMPOSSIBLE
    if Loop.PLAN_REWORK in exhausted and state.trunk.step in PER_TASK_STEPS:
        return Reason.EVIDENCE_NOT_REACHED
    return Reason.LOOPS_EXHAUSTED


def _next_task(state: RunState, event: Event) -> tuple[RunState, list[EffectSpec]]:
    """Finish the current task, if any, and begin the next; after the last, the final review (matrix 1, NextTask)."""
    effects: list[EffectSpec] = []
    if state.current is not None:
        done = state.trunk.step in ENDS_TASK
        task = replace(state.task, status=TaskStatus.DONE if done else TaskStatus.ALREADY_DONE)
        head = state.head if done else task.start or state.head
        accepted = (*state.accepted, task.id) if done else state.accepted
        state = replace(state.with_task(task), current=None, head=head, accepted=accepted)
        effects.append(_task_done(task))
    if not state.queue:
        # also where every task was done already: that is the word of one judgement until somebody reviews it
        after, more = _enter(state, Goto(Step.FINAL_REVIEW), event, ())
        return after, effects + more
    first, *rest = state.queue
    if state.parallel > 1 and rest and all(state.tasks[id_].spec.after is not None for id_ in state.queue):
        return forked(state, event.signal), effects
    task = replace(state.tasks[first], status=TaskStatus.ACTIVE, start=state.head)
    state = replace(state.with_task(task), queue=tuple(rest), current=task.id)
    to, ask = (Step.BUILD, None) if state.one_writer else first_step(task)
    return arrive(state, to, None, ask, event.signal).on_trunk(origin=None, in_question=None), effects
