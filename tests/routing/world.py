"""Everything that the steps could report next: what a search or a random walk may feed the machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeline.matrix.engine.protocols import TRUNK
from pipeline.matrix.routing.actions import Again, AskPerson
from pipeline.matrix.routing.advance import MatrixMachine
from pipeline.matrix.routing.lookup import find_row, limit_of, signals_of
from pipeline.matrix.routing.matrix import ASKS, MATRIX
from pipeline.matrix.routing.state import Event, NewTask, Settings, Trees
from pipeline.matrix.routing.state_changes import DRAFTS
from pipeline.outcomes import Reason
from pipeline.vocabulary import Loop, Role, Signal, Step

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pipeline.matrix.routing.actions import Row
    from pipeline.matrix.routing.state import RunState

MACHINE = MatrixMachine("start", Settings())
INTEGRATED = frozenset(row.signal for row in MATRIX if row.step is Step.INTEGRATE)
PERSON = frozenset({Signal.REJECTED_TO_PLAN, Signal.REJECTED_TO_SPLIT, Signal.REJECTED_TO_FIX})


def stands(state: RunState) -> bool:
    """Whether nothing can happen without a person's act other than an approval."""
    return state.outcome is not None and state.trunk.step is not Step.GATE


def events(
    state: RunState, splits: Sequence[tuple[NewTask, ...]], *, rejections: bool = False
) -> Iterator[tuple[Event, Row]]:
    """Every event that can come next, with the row that will fire; tree names are new at each visit."""
    if stands(state):
        return
    for lane in state.due(()):
        for event, row in _events_seen(state.seen_from(lane), splits, rejections=rejections):
            yield event if lane == TRUNK else event.model_copy(update={"lane": lane}), row


def _events_seen(
    state: RunState, splits: Sequence[tuple[NewTask, ...]], *, rejections: bool
) -> Iterator[tuple[Event, Row]]:
    for signal in sorted(signals_of(state)):
        if signal in PERSON and not rejections:
            continue
        row = find_row(state, signal)
        if isinstance(row.action, Again | AskPerson):
            yield from ((Event(signal=signal, role=role), row) for role in slots(state))
        elif signal in DRAFTS and state.trunk.step is Step.SPLIT:
            yield from ((Event(signal=signal, tasks=renamed(state, split)), row) for split in splits)
        elif signal is Signal.CLAIMED and state.one_writer:
            yield Event(signal=signal, tasks=(NewTask(id="1"),)), row
        elif state.trunk.step is Step.BUILD:
            name = f"t{state.trunk.visit}"
            red = None if signal in {Signal.NOT_TESTABLE, Signal.NO_CHANGE} else f"{name}-red"
            trees = Trees(start=state.head, tests=red, red=red, candidate=name)
            yield Event(signal=signal, tree=name, trees=trees), row
        elif state.trunk.step is Step.INTEGRATE:
            yield Event(signal=signal, trees=integrated(state, signal)), row
        else:
            reason = Reason.DIRTY_TREE if signal is Signal.PRECONDITION else None
            blockers = ("f",) if signal is Signal.CONVERGED else ()
            yield Event(signal=signal, tree=f"t{state.trunk.visit}", reason=reason, blockers=blockers), row


def integrated(state: RunState, signal: Signal) -> Trees | None:
    """The trees of a task over the head; none where the head is what it began with, or nothing was measured."""
    if state.task.start == state.head or signal not in INTEGRATED:
        return None
    name = f"t{state.trunk.visit}"
    red = None if signal is Signal.TEST_CONFLICT else f"{name}-red"
    return Trees(start=state.head, tests=f"{name}-tests", red=red, candidate=f"{name}-code")


def slots(state: RunState) -> tuple[Role, ...]:
    return tuple(role for role in state.slots if role not in state.trunk.left_out)


def renamed(state: RunState, split: tuple[NewTask, ...]) -> tuple[NewTask, ...]:
    """The split with ids that the run has not used."""
    new = {task.id: f"{len(state.tasks) + number}" for number, task in enumerate(split, 1)}

    def named(task: NewTask) -> dict[str, object]:
        depends_on, after = (tuple(new[other] for other in names) for names in (task.depends_on, task.after or ()))
        return {"id": new[task.id], "depends_on": depends_on, "after": after if state.parallel > 1 else None}

    return tuple(task.model_copy(update=named(task)) for task in split)


def budget_is_used_up(state: RunState) -> bool:
    """Whether the dispatches that are due now, which count already, are more than the limit (matrix 2, DISPATCHES)."""
    limit = limit_of(state, Loop.DISPATCHES)
    return bool(asking(state)) and limit is not None and state.dispatches > limit


def asking(state: RunState) -> list[str]:
    """The lanes that ask an agent next."""
    return [lane for lane in state.due(()) if state.lanes[lane].step in ASKS]


def out_of_budget(state: RunState) -> Event:
    """What the first of them reports when there is nothing left to ask with."""
    return Event(signal=Signal.BUDGET, lane=asking(state)[0])
