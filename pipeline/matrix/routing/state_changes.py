"""Changes trees, tasks and revisions on entering a step and on hearing a measurement (matrix 2 and 4). Pure."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from pipeline.matrix.engine.protocols import TRUNK
from pipeline.matrix.routing.state import Event, MatrixLane, RunState, TaskState, TaskStatus, Written
from pipeline.vocabulary import MEASURED_GREEN, Loop, Question, Signal, Step

if TYPE_CHECKING:
    from collections.abc import Mapping


ASKERS: Final = frozenset({Step.STUB, Step.WRITE_TESTS, Step.SEAM, Step.IMPLEMENT, Step.BUILD})
_GREEN: Final = frozenset({Step.IMPLEMENT, Step.BUILD})
ENDS_TASK: Final = _GREEN | {Step.CHECK_TESTS}
"""Where the next task follows, the work of this one is accepted in these steps; elsewhere it was done already."""
PER_TASK_STEPS: Final = ASKERS | {Step.CHECK_TESTS, Step.DIAGNOSE, Step.INTEGRATE}
REVIEWS: Final[Mapping[Step, str]] = {
    Step.REVIEW_PLAN: "plan",
    Step.REVIEW_SPLIT: "split",
    Step.FINAL_REVIEW: "result",
}
_VERDICTS: Final = frozenset(
    {Signal.ACCEPTABLE, Signal.CONVERGED, Signal.NEEDS_WORK, Signal.BLOCK, Signal.FIX, Signal.COSMETIC, Signal.PLAN}
) | {Signal.PROVED}
DRAFTS: Final = frozenset({Signal.DRAFTED, Signal.ONE_TASK, Signal.NOT_ASKED, Signal.PROVED})
"""What SPLIT reports with the tasks that it found or drafted."""
SETTLED: Final = frozenset({TaskStatus.DONE, TaskStatus.ALREADY_DONE})
_TESTS_ACCEPTED: Final[Mapping[Step, frozenset[Signal]]] = {
    Step.WRITE_TESTS: frozenset({Signal.RED, Signal.TESTS_KEPT}),
    Step.CHECK_TESTS: frozenset({Signal.ACCEPTABLE}),
    Step.DIAGNOSE: frozenset({Signal.TESTS_KEPT}),
}
"""What makes the tests of a task, or that it has none, what its work goes on from."""
_OPEN: Final = frozenset({TaskStatus.WAITING, TaskStatus.ACTIVE, TaskStatus.DROPPED})


def measured(state: RunState, event: Event, exhausted: tuple[Loop, ...]) -> RunState:
    """Take the trees, tasks and blockers that *event* speaks of into the state (matrix 4)."""
    edited = event.signal is Signal.APPROVED and bool(event.tasks)  # a person changed the task files (contract 5)
    taken = event.signal is Signal.CLAIMED and state.one_writer
    if edited or taken or (event.signal in DRAFTS and state.trunk.step is Step.SPLIT):
        return _drafted(state, event)
    if state.trunk.step in REVIEWS and event.signal in _VERDICTS:
        state = replace(state, blockers={**state.blockers, REVIEWS[state.trunk.step]: event.blockers})
    if event.signal is Signal.COSMETIC and event.tree and not exhausted:
        state = replace(state, head=event.tree)
    if event.signal is Signal.WRITTEN and event.tree and state.own_step and not exhausted:
        written = Written(state.own_step, event.tree, len(state.accepted))
        state = replace(state, head=event.tree, written=(*state.written, written))
    if state.trunk.step not in PER_TASK_STEPS or state.current is None:
        return state
    state = state.with_task(_with_trees(state, event))
    if state.trunk.step in ASKERS:
        state = state.on_trunk(in_question=event.tree)
    if state.trunk.step is Step.INTEGRATE:
        gone = event.signal is Signal.RED_GONE
        return state.on_trunk(in_question=state.task.tests if gone else state.task.candidate)
    # what is GREEN but for faults that no test notices is accepted once @test was asked as often as it may be
    settled = event.signal is Signal.UNNOTICED_FAULTS and bool(exhausted)
    if state.trunk.step in _GREEN and (event.signal in MEASURED_GREEN or settled):
        return replace(state, head=state.task.candidate or state.head)
    if state.trunk.step is Step.CHECK_TESTS and state.trunk.origin is Step.BUILD and event.signal is Signal.ACCEPTABLE:
        return replace(state, head=state.task.candidate or state.head)
    if event.signal in _TESTS_ACCEPTED.get(state.trunk.step, ()):
        return replace(state, head=state.task.red or state.head)
    return state


def _with_trees(state: RunState, event: Event) -> TaskState:
    task = state.task
    match state.trunk.step, event.signal:
        case (Step.STUB, Signal.STUBBED) if event.tree:
            return replace(task, stubs=event.tree)
        case (Step.SEAM, Signal.SEAM_DONE) if event.tree:
            # Made over the stubs, if there are any: what tests are written over then is the seam with them.
            return replace(task, start=event.tree, stubs=event.tree if task.stubs is not None else None)
        case (Step.WRITE_TESTS, Signal.RED | Signal.TESTS_KEPT) if event.tree:
            return replace(task, tests=event.tree, red=event.tree, testable=True)
        case (Step.WRITE_TESTS, _) if event.tree:
            return replace(task, tests=event.tree)
        case (Step.DIAGNOSE, Signal.TESTS_KEPT):  # nothing else is to be done: what an earlier @make left goes
            return replace(task, red=task.tests, candidate=task.tests, testable=True)
        case (Step.CHECK_TESTS, Signal.ACCEPTABLE):
            judged = state.trunk.ask is Question.TESTS
            return replace(task, red=task.tests if judged else task.start, testable=judged)
        case (Step.IMPLEMENT, _) if event.tree:
            return replace(task, candidate=event.tree)
        case (Step.BUILD, _) if event.tree:
            red, stubs = (event.trees.red, event.trees.stubs) if event.trees is not None else (None, None)
            return replace(task, stubs=stubs, tests=red, red=red, candidate=event.tree, testable=red is not None)
        case (Step.INTEGRATE, _):
            return _put_over_the_head(state, event)
        case _:
            return task


def _put_over_the_head(state: RunState, event: Event) -> TaskState:
    """Return the task with the trees that INTEGRATE made over the head.

    Raises:
        ValueError: they are over something else, or what is accepted is not what was measured over the head.
    """
    task, trees = state.task, event.trees
    if (task.start if trees is None else trees.start) != state.head:
        if trees is None and event.signal is not Signal.ACCEPTED:
            return task
        raise ValueError(f"{event.signal} of task {task.id} is not of what stands over the head {state.head}")
    if trees is None:
        return task
    return task.put_over(trees, state.accepted)


def _drafted(state: RunState, event: Event) -> RunState:
    """Put the drafted tasks in the queue, in the order of their dependencies; undone ones of an older draft go.

    Raises:
        ValueError: tasks wait for each other or for one that is neither new nor done, or an id was given before to a
            task that has begun, whose limits are reached (matrix 2).
    """
    kept = {task.id: task if task.status in SETTLED else _dropped(task) for task in state.tasks.values()}
    done = {task.id for task in kept.values() if task.status in SETTLED}
    reused = [spec.id for spec in event.tasks if spec.id in kept and kept[spec.id].start is not None]
    if reused:
        raise ValueError(f"task ids are used again: {', '.join(reused)}")
    new: dict[str, TaskState] = {}
    waiting = list(event.tasks)
    while waiting:
        ready = next((spec for spec in waiting if {*new, *done}.issuperset(spec.depends_on)), None)
        if ready is None:
            stuck = ", ".join(spec.id for spec in waiting)
            raise ValueError(f"tasks wait for each other, or for what is neither drafted nor done: {stuck}")
        new[ready.id] = TaskState(spec=ready, fix=state.fixing)
        waiting.remove(ready)
    older = {id_: task for id_, task in kept.items() if id_ not in new}
    tasks = MappingProxyType({**older, **new})
    return replace(state, tasks=tasks, queue=tuple(new), current=None, split_size=len(done) + len(new))


def _dropped(task: TaskState) -> TaskState:
    return replace(task, status=TaskStatus.DROPPED)


def arrive(state: RunState, to: Step, loop: Loop | None, ask: Question | None, after: Signal) -> RunState:
    """Enter *to*: a new visit, with the revision and draft numbers and trees that belong to it (matrix 2 and 4)."""
    left = state.trunk
    origin = left.origin
    if to in {Step.DIAGNOSE, Step.CHECK_TESTS, Step.SEAM}:
        origin = left.step if left.step in ASKERS else origin
        if left.step is Step.CHECK_TESTS and origin is not Step.BUILD:
            origin = Step.WRITE_TESTS
        elif left.step is Step.INTEGRATE:
            origin = Step.WRITE_TESTS if after is Signal.RED_GONE else Step.IMPLEMENT
    if to in {Step.PLAN, Step.SPLIT} and loop is not Loop.HYGIENE:
        state = replace(state, draft=state.draft + 1)
    if to is Step.PLAN and loop in {Loop.PLAN_REWORK, Loop.HUMAN}:
        state = _back_to_start(state)
    if to is Step.SPLIT and loop not in {Loop.SPLIT_REVIEW, Loop.HYGIENE}:
        state = _new_split(state, loop)
    if to is Step.BUILD and state.current is None:
        state = _reopened(state)
    visit = state.visits + 1
    entered = MatrixLane(
        step=to,
        visit=visit,
        ask=ask,
        origin=origin,
        in_question=left.in_question,
        after=after,
        via=loop,
        task=left.task,
    )
    return replace(state, lanes={**state.lanes, TRUNK: entered}, visits=visit, outcome=None, reason=None)


def first_step(task: TaskState) -> tuple[Step, Question | None]:
    """Return where a task begins, and what is asked there."""
    if task.spec.stub_first:
        return Step.STUB, None
    if task.spec.evidence == "regression":
        return Step.CHECK_TESTS, Question.NOT_TESTABLE
    return Step.WRITE_TESTS, None


def _back_to_start(state: RunState) -> RunState:
    """Return the state of a plan revision: head = start; earlier work is only offered as a patch (matrix 4)."""
    tried = state.tasks[state.current].candidate if state.current else None
    work = tried or state.head
    return replace(
        state,
        plan_revision=state.plan_revision + 1,
        previous_work=work if work != state.start else state.previous_work,
        head=state.start,
        tasks=MappingProxyType({task.id: _dropped(task) for task in state.tasks.values()}),
        queue=(),
        current=None,
        accepted=(),
        written=(),
        fixing=False,
        blockers={},
    )


def _reopened(state: RunState) -> RunState:
    """Return the state in which the issue's one task is worked on again, from what the run came to: one commit."""
    *_, task = state.tasks.values()
    candidate = state.head if task.status is TaskStatus.DONE else task.candidate
    task = replace(task, status=TaskStatus.ACTIVE, candidate=candidate)
    return replace(state.with_task(task), current=task.id, head=task.start or state.start, accepted=(), written=())


def _new_split(state: RunState, loop: Loop | None) -> RunState:
    """Return the state of a split revision: done tasks stay; the failing one gives its start back (matrix 4)."""
    head = state.head
    if loop is Loop.SPLIT_REWORK and state.current is not None and state.task.over is None:
        head = state.task.start or head
    fixing = state.fixing and loop is not None
    tasks = {t.id: _dropped(t) if t.status in _OPEN else t for t in state.tasks.values()}
    return replace(
        state,
        split_revision=state.split_revision + 1,
        head=head,
        tasks=MappingProxyType(tasks),
        queue=(),
        current=None,
        fixing=fixing,
        # Fix tasks get no review of their own, so that what the split's review left open stays on record.
        blockers={stage: ids for stage, ids in state.blockers.items() if fixing or stage == "plan"},
    )


def drafts_fixes(state: RunState, event: Event, loop: Loop) -> bool:
    """Return whether the split that comes next drafts fix tasks (matrix 1, SPLIT_REWORK of a fix task)."""
    match loop:
        case Loop.FINAL_REVIEW:
            return True
        case Loop.HUMAN:
            return event.signal is Signal.REJECTED_TO_FIX
        case Loop.SPLIT_REWORK:
            return state.current is not None and state.task.fix
        case _:
            return state.fixing


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
