"""Defines the form of an event, CloudEvents 1.0 as JSON, and what the events of runs and orders say in `data`."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Final, Literal, Union, cast

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, create_model

TYPES: Final[dict[str, type[Data]]] = {}
"""What is in `data` by the short name of the type: `redfirst.NAME.v1` is the whole one."""


class Data(BaseModel):
    """What an event says. A new key is no new version; a key that changes its meaning is one."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    NAME: ClassVar[str] = ""
    """The short name of the type; empty of what several have in common."""

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        """Register the type under its name."""
        super().__pydantic_init_subclass__(**kwargs)
        if cls.NAME:
            TYPES[cls.NAME] = cls


class RunBegan(Data):
    """A process begins a run."""

    NAME = "run.started"

    issue: str | None
    start_commit: str


class RunWentOn(Data):
    """Another process goes on with a run; `was` is how it stood, null where the process before it died."""

    NAME = "run.resumed"

    step: str
    was: str | None
    epoch: int


class Stopped(Data):
    """How something stands that no process drives any more."""

    outcome: str
    reason: str


class RunQueued(Data):
    """A run was answered and goes on at `step` once a process drives it."""

    NAME = "run.queued"

    step: str


class RunParked(Stopped):
    """A run waits: for a person, a budget, an agent."""

    NAME = "run.parked"


class RunFinished(Stopped):
    """A run is over."""

    NAME = "run.finished"


class StepStarted(Data):
    """A step of a recipe is at work."""

    NAME = "step.started"

    step: str


class _Decided(Data):
    step: str
    task: str | None
    lane: str
    signal: str
    row: str
    to: str | None
    note: str


class StepCompleted(_Decided):
    """A step reported, and the row of the matrix that fired says what follows."""

    NAME = "step.completed"


class StepFailed(_Decided):
    """A step came to no answer of its own: a row for any step fired."""

    NAME = "step.failed"


class StepSettled(Data):
    """A step of a recipe is over."""

    NAME = "step.settled"

    step: str
    checkpoint: str


class StepHeld(Data):
    """A step of a recipe cannot start."""

    NAME = "step.held"

    step: str


class StepReopened(Data):
    """A step of a recipe is done again."""

    NAME = "step.reopened"

    step: str


class DispatchStarted(Data):
    """An agent is asked."""

    NAME = "dispatch.started"

    dispatch: str
    role: str
    kind: str
    task: str | None
    attempt: int
    backend: str
    model: str | None


class DispatchFinished(Data):
    """An agent is done; `signal` is null where its answer counts."""

    NAME = "dispatch.finished"

    dispatch: str
    signal: str | None
    gate: str | None
    cost_usd: float | None
    input_tokens: int | None
    output_tokens: int | None
    note: str


class DispatchWaits(Data):
    """A service limits the account; the agent is asked again when the limit ends."""

    NAME = "dispatch.waits"

    dispatch: str
    not_before: str
    note: str


class TestsMeasured(Data):
    """redfirst ran tests."""

    NAME = "tests.measured"

    what: str
    state: str
    outcomes: dict[str, int]
    seconds: float | None


class _Change(Data):
    dispatch: str
    paths: tuple[str, ...]
    refused: tuple[str, ...]


class ChangeAdmitted(_Change):
    """The permission gate took the changes of an agent."""

    NAME = "change.admitted"


class ChangeRejected(_Change):
    """The permission gate refused a change of an agent; `refused` has path and rule of each."""

    NAME = "change.rejected"


class TaskDone(Data):
    """A task is done, or given up."""

    NAME = "task.done"

    task: str
    status: str


class _Gate(Data):
    gate: str


class ApprovalRequested(_Gate):
    """A run waits for a person at an approval point."""

    NAME = "approval.requested"


class _Answered(_Gate):
    actor: str | None
    via: str | None


class ApprovalGranted(_Answered):
    """A person approved."""

    NAME = "approval.granted"


class ApprovalRejected(_Answered):
    """A person or a time-out (`via`) sent the work back; `to` says where."""

    NAME = "approval.rejected"

    to: str | None


class ApprovalExpired(_Gate):
    """The time of an approval point is over; `then` says what follows: remind, reject, abandon."""

    NAME = "approval.expired"

    then: str


class InputRequested(Data):
    """An agent asks a person; `note` is the beginning of the question."""

    NAME = "input.requested"

    question: str
    note: str


class InputGiven(Data):
    """A person answered the question."""

    NAME = "input.given"

    question: str
    actor: str
    via: str


class PointPassed(Data):
    """A run passed one of `[gates] points`, and goes on."""

    NAME = "point.passed"

    point: str


class PublicationDone(Data):
    """The branch holds the commits."""

    NAME = "publication.done"

    branch: str
    commits: tuple[str, ...]


class LandingDone(Data):
    """The base holds the commits of a run; `base` is where it pointed before."""

    NAME = "landing.done"

    onto: str
    base: str
    commits: tuple[str, ...]


class LandingRefused(Data):
    """The commits of a run do not go onto the base; `then` says what follows."""

    NAME = "landing.refused"

    onto: str
    base: str
    found: str
    then: str
    note: str


# --- orders -----------------------------------------------------------------------------------------------------------


class OrderPlaced(Data):
    """An issue is to be run, or a run to be gone on with, by whichever worker there is."""

    NAME = "order.placed"

    do: str
    issue: str | None
    run: str | None
    via: str
    cause: tuple[str, ...]
    depth: int
    priority: int


class OrderStarted(Data):
    """A worker has started a driver for an order; `log` is the file with what it says."""

    NAME = "order.started"

    log: str


class OrderEnded(Stopped):
    """An order is over: its run has ended, waits for a person, or could not begin."""

    NAME = "order.ended"

    run: str | None
    note: str


class OrderDropped(Data):
    """An order is not to be done any more."""

    NAME = "order.dropped"

    why: str


# --- the form ---------------------------------------------------------------------------------------------------------


class Event(BaseModel):
    """An event of any type."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    specversion: Literal["1.0"] = "1.0"
    id: str
    source: str
    type: str
    time: str
    subject: str
    workflow: str
    workflowversion: str
    data: Any

    def __str__(self) -> str:
        """Return it as one line of JSON: the same bytes whenever it is read."""
        return self.model_dump_json(ensure_ascii=True)


def full(name: str) -> str:
    """Return the whole type of a short name."""
    return f"redfirst.{name}.v1"


def checked() -> TypeAdapter[Any]:
    """Return what reads an event of any type, and has the schema of them all."""
    models = [
        create_model(f"{data.__name__}Event", __base__=Event, __doc__=data.__doc__, type=(kind, ...), data=(data, ...))
        for data, kind in ((data, cast("Any", Literal[full(name)])) for name, data in TYPES.items())
    ]
    any_of_them = cast("Any", Union)[tuple(models)]  # of a list that is not known beforehand
    return TypeAdapter(cast("Any", Annotated)[any_of_them, Field(discriminator="type")])
