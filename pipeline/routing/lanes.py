"""Works on tasks side by side: a lane for each, begun when what it waits for is settled, accepted in split order.

What a task is worked on over is the head as it was when the last of the tasks that it waits for was accepted. Tasks are
accepted in one order, so that this is the same tree whichever of them ends first. Nothing here performs I/O.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pipeline.engine.machine import TRUNK
from pipeline.routing.state import MatrixLane, RunState, TaskStatus
from pipeline.routing.state_changes import SETTLED, arrive, first_step
from pipeline.routing.vocabulary import Step

if TYPE_CHECKING:
    from pipeline.routing.state import TaskState
    from pipeline.routing.vocabulary import Signal


def forked(state: RunState, after: Signal) -> RunState:
    """Return the state in which the tasks of the queue are worked on side by side; the trunk waits for them."""
    state = arrive(state, Step.INTEGRATE, None, None, after)
    return begun(replace(state, forked=(state.head, len(state.accepted))), after)


def begun(state: RunState, after: Signal) -> RunState:
    """Return the state in which every task has begun that may, in the order of the split.

    Those that wait in INTEGRATE for their turn take no place.
    """
    for id_ in state.queue:
        if sum(lane.step is not Step.INTEGRATE for lane in state.beside.values()) >= state.parallel:
            break
        waits_for = [state.tasks[name] for name in _waits_for(state.tasks[id_])]
        if all(task.status in SETTLED for task in waits_for):
            state = _begun(state, id_, waits_for, after)
    return state


def _waits_for(task: TaskState) -> tuple[str, ...]:
    return (*task.spec.depends_on, *(task.spec.after or ()))


def _begun(state: RunState, id_: str, waits_for: list[TaskState], after: Signal) -> RunState:
    start, over = _base(state, waits_for)
    task = replace(state.tasks[id_], status=TaskStatus.ACTIVE, start=start, over=over)
    step, ask = first_step(task)
    visit = state.visits + 1
    lane = MatrixLane(step=step, visit=visit, ask=ask, after=after, task=id_)
    queue = tuple(other for other in state.queue if other != id_)
    lanes = {**state.lanes, f"task-{id_}": lane}
    return replace(state.with_task(task), lanes=lanes, queue=queue, visits=visit)


def _base(state: RunState, waits_for: list[TaskState]) -> tuple[str, tuple[str, ...]]:
    """Return the tree that a task begins with, and the accepted tasks that are in it."""
    head, count = state.forked
    for task in waits_for:
        done = task.status is TaskStatus.DONE
        count = max(count, state.accepted.index(task.id) + 1 if done else len(task.over or ()))
    over = state.accepted[:count]
    if count > state.forked[1]:
        last = state.tasks[over[-1]]
        head = last.candidate or last.red or head
    return head, over


def taken_back(state: RunState, lane: str, here: RunState) -> RunState:
    """Return the run's state with what a lane came to: its place, its task, what was counted."""
    return replace(
        state.with_task(here.task),
        lanes={**state.lanes, lane: here.trunk},
        counters=here.counters,
        refused=here.refused,
        visits=here.visits,
    )


def turned_back(state: RunState, lane: str) -> RunState:
    """Return the state in which this lane is the trunk, and there is no other: the whole run goes where it goes."""
    left = state.lanes[lane]
    return replace(state, lanes={TRUNK: replace(left, task=None)}, current=left.task)


def settled(state: RunState, lane: str) -> tuple[RunState, TaskState]:
    """Return the state in which the lane has ended, with its task, which is accepted or was done already."""
    left = state.lanes[lane]
    task = state.tasks[str(left.task)]
    done = left.step is Step.INTEGRATE
    task = replace(task, status=TaskStatus.DONE if done else TaskStatus.ALREADY_DONE)
    head = (task.candidate or task.red or state.head) if done else state.head
    accepted = (*state.accepted, task.id) if done else state.accepted
    lanes = {name: other for name, other in state.lanes.items() if name != lane}
    return replace(state.with_task(task), lanes=lanes, head=head, accepted=accepted), task
