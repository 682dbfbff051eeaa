"""Tells the lines of journals, of runs and of orders, as events: CloudEvents 1.0 as JSON.

An event has keys of its line and nothing else. What people do not wait for (a file was written) is none.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, Union, cast

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, create_model

from pipeline.characters import visible
from pipeline.data_types import Frozen
from pipeline.matrix.engine import journal_kinds as engine
from pipeline.queue import lines as orders
from pipeline.run import journal_kinds as runs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pipeline.matrix.engine.journal import Line
    from pipeline.queue.lines import OrderLine

_LONGEST: Final = 200
_SHORTENED: Final = frozenset({"note", "what", "actor", "why", "cause"})
"""What an agent, a step or a person said: an event repeats its beginning."""
_TEXTS: Final = tuple[str, ...]
_KINDS: Final[dict[str, Any]] = {
    **dict.fromkeys(("attempt", "depth", "epoch", "input_tokens", "output_tokens", "priority"), int),
    **dict.fromkeys(("cost_usd", "seconds"), float),
    **dict.fromkeys(("cause", "commits", "paths", "refused"), _TEXTS),
    "outcomes": dict[str, int],
}
"""The keys that are no text."""
_DECIDED: Final = "step task? lane signal row to? note"
_CHANGE: Final = "dispatch paths refused"
_ANSWERED: Final = "gate actor? via?"


@dataclass(frozen=True)
class EventType:
    """A type of event. A new key is no new version; a key that changes its meaning is one.

    Args:
        of: The kind of line that it tells.
        said: Its keys in `data`; of one with a question mark the value may be null.
        when: When it happens.
    """

    of: type[BaseModel]
    said: str
    when: str

    @property
    def keys(self) -> tuple[str, ...]:
        """Return the names of its keys."""
        return tuple(self.said.replace("?", "").split())


TYPES: Final[dict[str, EventType]] = {
    "run.started": EventType(engine.RunStarted, "issue? start_commit", "A process begins a run."),
    "run.resumed": EventType(
        engine.RunResumed,
        "step was? epoch",
        "Another process goes on with a run; `was` is how it stood, null where the process before it died.",
    ),
    "run.queued": EventType(
        engine.RunQueued, "step", "A run was answered and goes on at `step` once a process drives it."
    ),
    "run.parked": EventType(engine.RunParked, "outcome reason", "A run waits: for a person, a budget, an agent."),
    "run.finished": EventType(engine.RunFinished, "outcome reason", "A run is over."),
    "step.started": EventType(runs.StepStarted, "step", "A step of a recipe is at work."),
    "step.completed": EventType(
        engine.DecisionMade, _DECIDED, "A step reported, and the row of the matrix that fired says what follows."
    ),
    "step.failed": EventType(
        engine.DecisionMade, _DECIDED, "A step came to no answer of its own: a row for any step fired."
    ),
    "step.settled": EventType(runs.StepSettled, "step checkpoint", "A step of a recipe is over."),
    "step.held": EventType(runs.StepHeld, "step", "A step of a recipe cannot start."),
    "step.reopened": EventType(runs.StepUnsettled, "step", "A step of a recipe is done again."),
    "dispatch.started": EventType(
        runs.DispatchStarted, "dispatch role kind task? attempt backend model?", "An agent is asked."
    ),
    "dispatch.finished": EventType(
        runs.DispatchFinished,
        "dispatch signal? gate? cost_usd? input_tokens? output_tokens? note",
        "An agent is done; `signal` is null where its answer counts.",
    ),
    "dispatch.waits": EventType(
        runs.DispatchWaits,
        "dispatch not_before note",
        "A service limits the account; the agent is asked again when the limit ends.",
    ),
    "tests.measured": EventType(runs.MeasuredTests, "what state outcomes seconds?", "redfirst ran tests."),
    "change.admitted": EventType(runs.ChangeAdmitted, _CHANGE, "The permission gate took the changes of an agent."),
    "change.rejected": EventType(
        runs.ChangeRejected,
        _CHANGE,
        "The permission gate refused a change of an agent; `refused` has path and rule of each.",
    ),
    "task.done": EventType(runs.TaskDone, "task status", "A task is done, or given up."),
    "approval.requested": EventType(engine.GateOpened, "gate", "A run waits for a person at an approval point."),
    "approval.granted": EventType(engine.GateAnswered, _ANSWERED, "A person approved."),
    "approval.rejected": EventType(
        engine.GateAnswered,
        f"{_ANSWERED} to?",
        "A person or a time-out (`via`) sent the work back; `to` says where.",
    ),
    "approval.expired": EventType(
        engine.GateExpired,
        "gate then",
        "The time of an approval point is over; `then` says what follows: remind, reject, abandon.",
    ),
    "input.requested": EventType(
        engine.InputRequested, "question note", "An agent asks a person; `note` is the beginning of the question."
    ),
    "input.given": EventType(engine.InputGiven, "question actor via", "A person answered the question."),
    "point.passed": EventType(engine.PointPassed, "point", "A run passed one of `[gates] points`, and goes on."),
    "publication.done": EventType(runs.Published, "branch commits", "The branch holds the commits."),
    "landing.done": EventType(
        runs.Landed, "onto base commits", "The base holds the commits of a run; `base` is where it pointed before."
    ),
    "landing.refused": EventType(
        runs.LandingRefused,
        "onto base found then note",
        "The commits of a run do not go onto the base; `then` says what follows.",
    ),
    "order.placed": EventType(
        orders.OrderPlaced,
        "do issue? run? via cause depth priority",
        "An issue is to be run, or a run to be gone on with, by whichever worker there is.",
    ),
    "order.started": EventType(
        orders.OrderStarted, "log", "A worker has started a driver for an order; `log` is the file with what it says."
    ),
    "order.ended": EventType(
        orders.OrderEnded,
        "outcome reason run? note",
        "An order is over: its run has ended, waits for a person, or could not begin.",
    ),
    "order.dropped": EventType(orders.OrderDropped, "why", "An order is not to be done any more."),
}
"""Every type by its short name: `redfirst.NAME.v1` is the whole one."""
_OF_LINE: Final = {kind.of: name for name, kind in TYPES.items()}
"""The type of each kind of line; of two that tell one kind, the second."""


class Event(Frozen):
    """An event of any type."""

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


@dataclass(frozen=True)
class Origin:
    """What a journal is of: a run, or the orders of a repository, which no workflow drives.

    Args:
        key: Of the run's worktree, or the repository; unique on this machine.
        project: What its folder is called.
        name: Of the run, or `orders`.
        workflow: What run.json calls the workflow, with `version`.
    """

    key: str
    project: str
    name: str = "orders"
    workflow: str = ""
    version: str = ""

    def id_of(self, seq: int) -> str:
        """Return the id of the event of a line."""
        return f"{self.key}/{self.name}/{seq}"


def event_of(line: Line | OrderLine, origin: Origin) -> Event | None:
    """Return the event of a line, None where it is none."""
    name = _OF_LINE.get(type(line.data))
    if name is None:
        return None
    said = {"epoch": getattr(line, "epoch", 0), **dict(line.data)}
    match line.data:
        case engine.DecisionMade() as made:
            name = "step.failed" if made.row.startswith("any/") else "step.completed"
            said |= {"to": made.action.get("to") or None, "note": made.note}
        case engine.GateAnswered(answer=answer):
            word, _, to = answer.partition(" to ")
            name = "approval.granted" if word == "approved" else "approval.rejected"
            said["to"] = to or None
        case runs.DispatchFinished(usage=usage, complaint=complaint):
            said |= {**dict(usage), "note": complaint or ""}
        case runs.ChangeAdmitted() | runs.ChangeRejected() as change:
            said["refused"] = tuple(f"{one.path} ({one.rule})" for one in change.violations)
        case runs.DispatchWaits(why=why):
            said["note"] = why
        case runs.LandingRefused(why=why):
            said["note"] = "; ".join(why)
        case _:
            pass
    return Event(
        id=origin.id_of(line.seq),
        source=f"/redfirst/{origin.project}",
        type=full(name),
        time=line.at,
        subject=getattr(line.data, "order", None) or origin.name,
        workflow=origin.workflow,
        workflowversion=origin.version,
        data={key: _inert(said[key], shorten=key in _SHORTENED) for key in TYPES[name].keys},
    )


def _inert(value: Any, *, shorten: bool) -> Any:
    """Return a value with everything hidden in its texts made visible."""
    if isinstance(value, tuple):
        return [_inert(one, shorten=shorten) for one in cast("tuple[Any, ...]", value)]
    if not isinstance(value, str):
        return value
    shown = visible(value)
    return f"{shown[: _LONGEST - 4]} ..." if shorten and len(shown) > _LONGEST else shown


def full(name: str) -> str:
    """Return the whole type of a short name."""
    return f"redfirst.{name}.v1"


def checked() -> TypeAdapter[Any]:
    """Return what reads an event of any type, and has the schema of them all."""
    any_of_them = cast("Any", Union)[tuple(_models())]  # of a list that is not known beforehand
    return TypeAdapter(cast("Any", Annotated)[any_of_them, Field(discriminator="type")])


def _models() -> Iterator[type[Event]]:
    closed = ConfigDict(frozen=True, extra="forbid")
    for short, kind in TYPES.items():
        name = short.title().replace(".", "")
        fields: dict[str, Any] = {}
        for word in kind.said.split():
            value = _KINDS.get(key := word.removesuffix("?"), str)
            fields[key] = (value | None if word.endswith("?") else value, ...)
        data = create_model(name, __config__=closed, __doc__=kind.when, **fields)
        of_type = cast("Any", Literal[full(short)])
        yield create_model(f"{name}Event", __base__=Event, __doc__=kind.when, type=(of_type, ...), data=(data, ...))
