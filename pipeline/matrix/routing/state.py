"""Holds what a run of an issue knows between two decisions, beside what the loop knows of any run.

Frozen values; `machine.advance` is the only thing that makes new ones.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping  # noqa: TC003  (read by dataclasses and pydantic)
from dataclasses import dataclass, field, replace
from enum import StrEnum
from types import MappingProxyType
from typing import Final, Literal

from pipeline.data_types import BareName, Frozen, ObjectName
from pipeline.matrix.engine import protocols as engine
from pipeline.matrix.routing.actions import Action, Given
from pipeline.matrix.routing.matrix import ASKS
from pipeline.outcomes import Reason
from pipeline.vocabulary import Loop, Question, Role, Signal, Step


@dataclass(frozen=True)
class Phases:
    """The reviewers of each draft and of the result. What is empty is passed by the row NOT_ASKED.

    Args:
        plan: Who reviews the plan.
        split: Who reviews the split.
        result: Who reviews the result.
        own_split: Whether the split is a draft of its own; else the plan brings its tasks.
        given: Whether the recipe brings the first plan along, with its tasks, so that nobody is asked for them.
        one_writer: Whether tests and code of the issue come from one dispatch (BUILD), and nobody plans. What does not
            come about so is planned after all, by one draft for plan and tasks.
        own: The steps of the recipe's own between the tasks and the review of the result, by id, in order.
    """

    plan: tuple[Role, ...] = ASKS[Step.REVIEW_PLAN]
    split: tuple[Role, ...] = ASKS[Step.REVIEW_SPLIT]
    result: tuple[Role, ...] = ASKS[Step.FINAL_REVIEW]
    own_split: bool = True
    given: bool = False
    one_writer: bool = False
    own: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuse reviews that only advise, and a result that nobody reviews."""
        alone = [step.value for step, roles in self._reviewers.items() if roles and Role.CHECK not in roles]
        if alone or not self.result:
            raise ValueError(f"{', '.join(alone) or Step.FINAL_REVIEW.value} is reviewed without @check")

    def slots(self, step: Step) -> tuple[Role, ...]:
        """Return who is asked in a step."""
        return self._reviewers.get(step, ASKS.get(step, ()))

    def passes(self, step: Step) -> bool:
        """Return whether a review is passed, since nobody is asked."""
        return step in self._reviewers and not self._reviewers[step]

    def least(self, gates: Collection[str] = ()) -> int:
        """Return how many dispatches a run takes whose issue is one task where nothing goes wrong.

        A plan that is reviewed brings its one task along, which is reviewed with it. Where a person looks at the plan
        or the split, the split is asked for by itself (`RunState.plan_brings_tasks`).
        """
        if self.one_writer:
            return len((Step.BUILD, *self.own, *self.result))
        draft = 0 if self.given else 1
        apart = (self.own_split and not self.plan) or bool({"plan", "split"}.intersection(gates) and not self.given)
        split = draft + len(self.split) if apart else 0
        tasks = len((Step.WRITE_TESTS, Step.IMPLEMENT))
        return draft + len(self.plan) + split + tasks + len(self.own) + len(self.result)

    @property
    def _reviewers(self) -> Mapping[Step, tuple[Role, ...]]:
        return {Step.REVIEW_PLAN: self.plan, Step.REVIEW_SPLIT: self.split, Step.FINAL_REVIEW: self.result}


@dataclass(frozen=True)
class Written:
    """What a step of the recipe's own has left: the files, and how many tasks were accepted before it."""

    step: str
    tree: str
    accepted: int


EVERYBODY: Final = Phases()
"""As the built-in recipe `issue` has it."""


class TaskStatus(StrEnum):
    """Where a task stands."""

    WAITING = "waiting"
    ACTIVE = "active"
    DONE = "done"
    ALREADY_DONE = "already_done"
    DROPPED = "dropped"


class NewTask(Frozen):
    """What routing needs to know of a drafted task; `depends_on` names task ids."""

    id: BareName
    title: str = ""
    evidence: Literal["red", "regression"] = "red"
    stub_first: bool = False
    depends_on: tuple[BareName, ...] = ()
    after: tuple[BareName, ...] | None = None
    """Tasks before it that may change files of its own; None where nobody has looked, so that it has no lane."""
    red_base: Literal["start"] | None = None
    proof: BareName | None = None
    """The finding whose proof is the task's tests; None where @test writes them."""


class Trees(Frozen):
    """A task's trees as INTEGRATE put them over the head, `start`.

    `red` is None where its tests must be written anew.
    """

    start: ObjectName
    stubs: ObjectName | None = None
    tests: ObjectName | None = None
    red: ObjectName | None = None
    candidate: ObjectName | None = None


@dataclass(frozen=True)
class TaskState:
    """A task and its trees (matrix 4). Trees are git object names, None before they exist.

    `stubs` is `start` with the accepted stubs; `tests` is the last candidate of @test, accepted or not. `over` are the
    accepted tasks that are in `start`, if it is worked on beside others.
    """

    spec: NewTask
    fix: bool
    status: TaskStatus = TaskStatus.WAITING
    start: str | None = None
    stubs: str | None = None
    tests: str | None = None
    red: str | None = None
    candidate: str | None = None
    testable: bool = True
    over: tuple[str, ...] | None = None

    @property
    def id(self) -> str:
        """Return the task's id, never used again in a run once the task has begun."""
        return self.spec.id

    @property
    def drops_tests(self) -> bool:
        """Return whether tests were written for it that are in no commit, since its behaviour was there already."""
        written = self.tests not in {None, self.start, self.stubs}
        return self.status is TaskStatus.ALREADY_DONE and written

    def put_over(self, trees: Trees, accepted: tuple[str, ...]) -> TaskState:
        """Return the task as it stands over the head, which has what these tasks did."""
        return replace(self, over=accepted, **{name: getattr(trees, name) for name in type(trees).model_fields})


class Event(engine.Event, frozen=True):
    """What a step of the matrix reports beside its signal: the facts that the next state needs.

    `role` names the slot for the signals of "any dispatch". `tree` is the gate-clean candidate the signal speaks of.
    `blockers` are the ids of open BLOCK and HIGH findings of a review. `refusal` names what was refused of an answer,
    and why: two that have the same are the same bytes, refused the same way.
    """

    signal: Signal
    role: Role | None = None
    tree: ObjectName | None = None
    trees: Trees | None = None
    tasks: tuple[NewTask, ...] = ()
    blockers: tuple[str, ...] = ()
    reason: Reason | None = None
    refusal: str | None = None


PARALLEL: Final = "parallel"
"""The limit that says how many tasks may be worked on side by side; no loop has it."""


@dataclass(frozen=True)
class Settings:
    """What configuration and recipe change about routing; pinned with the run."""

    limits: Mapping[Loop, int] = field(default_factory=dict[Loop, int])
    gates: frozenset[str] = frozenset()
    points: frozenset[str] = frozenset()
    park_on_blockers: bool = False
    parallel: int = 1
    phases: Phases = EVERYBODY


@dataclass(frozen=True, kw_only=True)
class MatrixLane(engine.Lane):
    """Where a lane stands in the matrix, and how it came there.

    A *slot* is one role in one visit. `origin` is the step that a judgement (DIAGNOSE, CHECK_TESTS) was asked by,
    `in_question` the tree that it judges; None when the asker changed nothing. `reasks` are the slots of this visit
    that are asked again, and why. `pending` is what the gate stands in the way of.
    """

    step: Step = Step.SANITY
    ask: Question | None = None
    origin: Step | None = None
    in_question: str | None = None
    after: Signal | None = None
    via: Loop | None = None
    reasks: Mapping[Role, Signal] = field(default_factory=dict[Role, Signal])
    left_out: frozenset[Role] = frozenset()
    pending: Action | None = None
    task: str | None = None
    """The task that is worked on in it beside others; None of the trunk."""


@dataclass(frozen=True, kw_only=True)
class RunState(engine.LoopState[MatrixLane]):
    """The whole state of an issue's run: what the loop knows of it, and trees, tasks, revisions.

    `split_size` counts the tasks of the last split, done ones included. Up to `parallel` tasks are worked on side by
    side; `forked` is the head that their lanes began with, and how many tasks had been accepted then.
    """

    lanes: Mapping[str, MatrixLane] = field(default_factory=lambda: {engine.TRUNK: MatrixLane()})
    start: str
    gates: frozenset[str] = frozenset()
    points: frozenset[str] = frozenset()
    park_on_blockers: bool = False
    forked: tuple[str, int] = ("", 0)
    phases: Phases = EVERYBODY
    head: str = ""
    tasks: Mapping[str, TaskState] = field(default_factory=lambda: MappingProxyType({}))
    queue: tuple[str, ...] = ()
    current: str | None = None
    accepted: tuple[str, ...] = ()
    written: tuple[Written, ...] = ()
    fixing: bool = False
    split_size: int = 0
    plan_revision: int = 1
    split_revision: int = 0
    draft: int = 1
    blockers: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    previous_work: str | None = None
    failure: Reason | None = None
    refused: Mapping[str, frozenset[str]] = field(default_factory=dict[str, frozenset[str]])
    """What was refused since an answer last counted, by the counter of the row (matrix 2, UNUSABLE)."""

    @property
    def parallel(self) -> int:
        """Return how many tasks may be worked on side by side."""
        return self.limits.get(PARALLEL, 1)

    @property
    def task(self) -> TaskState:
        """Return the current task; a bug of ours (LookupError) when there is none."""
        if self.current is None:
            raise LookupError(f"step {self.trunk.step} has no current task")
        return self.tasks[self.current]

    @property
    def done_tasks(self) -> tuple[TaskState, ...]:
        """Return the tasks whose change is in `head`, in order of acceptance."""
        return tuple(self.tasks[task_id] for task_id in self.accepted)

    @property
    def own_step(self) -> str | None:
        """Return the step of the recipe's own that is done next: one not done since the last task was accepted."""
        if self.trunk.step is not Step.FINAL_REVIEW:
            return None
        done = {one.step for one in self.written if one.accepted == len(self.accepted)}
        return next((name for name in self.phases.own if name not in done), None)

    @property
    def slots(self) -> tuple[Role, ...]:
        """Return who is asked where the run stands."""
        return self.phases.slots(self.trunk.step) if self.own_step is None else (Role.MAKE,)

    @property
    def open_blockers(self) -> tuple[str, ...]:
        """Return the ids of the findings that are blockers on record."""
        return tuple(finding for ids in self.blockers.values() for finding in ids)

    @property
    def begins_with_a_proof(self) -> bool:
        """Return whether the task's tests are a finding's proof, and nobody has been asked to change them."""
        at = self.trunk
        return at.step is Step.WRITE_TESTS and at.via is None and self.task.spec.proof is not None

    @property
    def nothing_changed(self) -> bool:
        """Return whether the run has accepted no change at all."""
        return self.head in ("", self.start)

    @property
    def one_writer(self) -> bool:
        """Return whether one writer makes tests and code, since nothing has sent the issue to a plan."""
        return self.phases.one_writer and self.plan_revision == 1

    @property
    def may_take_the_plans_task(self) -> bool:
        """Return whether a task that came with the plan need not be cut: it was reviewed and accepted with it.

        Who wants to see the split (a gate) sees one.
        """
        at = self.trunk
        return at.after is Signal.ACCEPTABLE and at.via is None and "split" not in self.gates

    @property
    def plan_brings_tasks(self) -> bool:
        """Return whether plan and split are one draft; who wants to see one of them (a gate) gets two."""
        return not self.phases.own_split and not {"plan", "split"} & self.gates

    @property
    def passes_split(self) -> bool:
        """Return whether SPLIT takes the tasks that came with the plan; what goes back there is split anew."""
        return self.plan_brings_tasks and self.trunk.via is None

    def facts(self) -> frozenset[Given]:
        """Return the givens that hold now."""
        found: set[Given] = set()
        at = self.trunk
        if at.step is Step.DIAGNOSE:
            asked_by = {
                Step.STUB: Given.FROM_STUB,
                Step.WRITE_TESTS: Given.FROM_WRITE_TESTS,
                Step.SEAM: Given.FROM_SEAM,
                Step.BUILD: Given.FROM_BUILD,
            }
            found |= {given for step, given in asked_by.items() if step is at.origin}
        if at.step is Step.CHECK_TESTS and at.origin is Step.BUILD:
            found.add(Given.FROM_BUILD)
        if at.step in {Step.ISSUE, Step.FINAL_REVIEW, Step.GATE} and self.one_writer:
            found.add(Given.ONE_WRITER)
        if at.step is Step.SPLIT and self.fixing:
            found.add(Given.FIX_TASKS)
        if at.step is Step.PUBLISH:
            if self.open_blockers:
                found.add(Given.BLOCKERS)
            elif self.nothing_changed:
                found.add(Given.NOTHING_CHANGED)
        return frozenset(found)

    @property
    def beside(self) -> Mapping[str, MatrixLane]:
        """Return the lanes of the tasks that are worked on side by side."""
        return {name: lane for name, lane in self.lanes.items() if name != engine.TRUNK}

    def seen_from(self, lane: str) -> RunState:
        """Return the state as a step in this lane sees it: its task is the current one, and the head what it is over.

        Raises:
            ValueError: there is no such lane.
        """
        here = super().seen_from(lane)
        if lane == engine.TRUNK or here.trunk.task is None:
            return here
        task = self.tasks[here.trunk.task]
        if here.trunk.step is Step.INTEGRATE:
            return replace(here, current=task.id)
        return replace(here, current=task.id, head=task.red or task.start or self.head, accepted=task.over or ())

    def due(self, at_work: Collection[str]) -> tuple[str, ...]:
        """Return the lanes whose step may begin now, in the order of the split: no more at once than `parallel`."""
        if not self.beside:
            return super().due(at_work)
        order = list(self.tasks)
        open_ = [task.id for task in self.tasks.values() if task.status in {TaskStatus.WAITING, TaskStatus.ACTIVE}]
        ready = [
            (order.index(str(lane.task)), name)
            for name, lane in self.beside.items()
            if name not in at_work and (lane.step is not Step.INTEGRATE or open_[0] == lane.task)
        ]
        return tuple(name for _, name in sorted(ready)[: max(self.parallel - len(at_work), 0)])

    def with_task(self, task: TaskState) -> RunState:
        """Return the state with *task* in place of the one of the same id."""
        return replace(self, tasks=MappingProxyType({**self.tasks, task.id: task}))
