"""Tells the lines of journals, of runs and of orders, as events: CloudEvents 1.0 as JSON, once or as they come.

An event has keys of its line and nothing else. What people do not wait for (a file was written) is none.

A run is also sent as a trace of OpenTelemetry, built from its journal afterwards: the same spans whenever it is done. A
span is the run, a phase of it in one lane, a dispatch, or a measurement. It is named after the line that begins or
decides it, so that its id never changes.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, Union, cast

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, create_model

from pipeline.agents.backends.extras import install_command
from pipeline.characters import visible
from pipeline.data_types import Frozen
from pipeline.errors import UserError
from pipeline.matrix.engine import journal_kinds as engine
from pipeline.matrix.engine.journal_kinds import DecisionMade, RunFinished, RunParked
from pipeline.outcomes import Reason
from pipeline.queue import order_lines as orders
from pipeline.queue.orders import OrderLog, log_of
from pipeline.run import journal_kinds as runs
from pipeline.run.folder import POLL_S, Tail, followed
from pipeline.run.journal_kinds import DispatchFinished, DispatchStarted, MeasuredTests
from pipeline.run.records import read_record
from pipeline.run.runs_of_repository import Roster, RunPlace
from pipeline.run.store import key_of_run, key_of_worktree, repository_name
from pipeline.vocabulary import Step

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from pipeline.matrix.engine.journal import Line
    from pipeline.queue.order_lines import OrderLine
    from pipeline.repo import Repository


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
        project: What the folder of the repository is called, in whichever worktree a run is.
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


_LOOK_S: Final = 1.0
"""Seconds between two looks for runs that were begun."""


@dataclass(frozen=True)
class Wanted:
    """Which events somebody wants.

    Args:
        types: Patterns of types such as `run.*`, whole or short; none: all.
        since: The id of an event: those behind it, of its run. None: all.
    """

    types: tuple[str, ...] = ()
    since: str | None = None

    def has(self, event: Event) -> bool:
        """Return whether an event is of a wanted type."""
        return not self.types or any(_fits(event.type, pattern) for pattern in self.types)


def wanted(types: Sequence[str], since: str | None) -> Wanted:
    """Return which events are wanted.

    Raises:
        UserError: a pattern fits no type that there is.
    """
    for pattern in types:
        if not any(_fits(full(name), pattern) for name in TYPES):
            raise UserError(
                f"No event is of a type like {pattern!r}. There are: {', '.join(TYPES)}.",
                Reason.USAGE,
                details={"accepted": list(TYPES)},
                actions=("redfirst schema event",),
            )
    return Wanted(tuple(types), since)


def events_of_run(repository: Repository, place: RunPlace, what: Wanted, *, follow: bool) -> Iterator[Event]:
    """Yield the events of a run in order; with *follow* also what comes, until no process drives it any more.

    Raises:
        UserError: the run's journal is damaged, or has no event of the id that they are wanted since.
    """
    origin = origin_of(repository, place)
    after = _seq_of(what.since, origin)
    lines = followed(place.folder) if follow else iter(Tail(place.folder).lines())
    for line in lines:
        yield from _behind(line, after, origin, what)


def events_of_orders(repository: Repository, what: Wanted, *, follow: bool) -> Iterator[Event]:
    """Yield the events of the orders of a repository; with *follow* also what comes, until it is stopped.

    Raises:
        UserError: the orders are damaged, or has no event of the id that they are wanted since.
    """
    log, origin = log_of(repository, os.environ), orders_origin(repository)
    after = _seq_of(what.since, origin)
    while True:
        for line in log.read_on():
            yield from _behind(line, after, origin, what)
        if not follow:
            return
        time.sleep(POLL_S)


class AllEvents:
    """The events of all runs and orders of a repository, as far as they were read.

    Args:
        repository: Seen from where somebody stands.
        what: Which events are wanted.
        say: Is told of what cannot be read, once; of orders that cannot be had for now, each time that begins.
    """

    def __init__(self, repository: Repository, what: Wanted, say: Callable[[str], None]) -> None:
        self._repository = repository
        self._what = what
        self._say = say
        self._orders: OrderLog | None = log_of(repository, os.environ)
        self._are_away = False
        self._of_orders = orders_origin(repository)
        self._tails: dict[tuple[str, str], tuple[Tail, Origin]] = {}
        self._refused: set[tuple[str, str]] = set()
        self._looked = 0.0

    def read_on(self) -> list[Event]:
        """Return the events that are there since the last time, by time."""
        if time.monotonic() - self._looked >= _LOOK_S or not self._looked:
            self._looked = time.monotonic()
            for place in Roster(self._repository).runs:
                name = (str(place.worktree.path), place.name)
                if name not in self._tails and name not in self._refused:
                    self._tails[name] = (Tail(place.folder), origin_of(self._repository, place))
        found: list[Event] = []
        for name, (tail, origin) in list(self._tails.items()):
            try:
                lines = tail.lines()
            except (UserError, OSError) as error:
                self._say(str(error))
                self._refused.add(name)
                del self._tails[name]
                continue
            found += [event for line in lines for event in _behind(line, 0, origin, self._what)]
        try:
            ordered = self._orders.read_on() if self._orders is not None else []
            found += [event for line in ordered for event in _behind(line, 0, self._of_orders, self._what)]
            self._are_away = False
        except UserError as error:
            if not self._are_away:
                self._say(str(error))
            self._are_away = isinstance(error, orders.NotNowError)
            self._orders = self._orders if self._are_away else None
        return by_time(found)


def by_time(found: Sequence[Event]) -> list[Event]:
    """Return events by time, and those of a journal as it has them: a clock may have gone back meanwhile."""
    latest: dict[str, str] = {}

    def moment(event: Event) -> str:
        journal = event.id.rpartition("/")[0]
        latest[journal] = max(latest.get(journal, ""), event.time)
        return latest[journal]

    return sorted(found, key=moment)


def events_of_all(repository: Repository, what: Wanted, say: Callable[[str], None], *, follow: bool) -> Iterator[Event]:
    """Yield the events of all runs and orders by time; with *follow* also what comes, until it is stopped.

    What cannot be read is told to *say*, once.
    """
    found = AllEvents(repository, what, say)
    while True:
        yield from found.read_on()
        if not follow:
            return
        time.sleep(POLL_S)


def is_of_orders(repository: Repository, since: str | None) -> bool:
    """Return whether an id is one of an event of orders."""
    return since is not None and since.rpartition("/")[0] == orders_origin(repository).id_of(0).rpartition("/")[0]


def place_of(roster: Roster, what: Wanted, name: str | None) -> RunPlace | None:
    """Return the run whose events are wanted, None for all runs.

    Raises:
        UserError: there is no such run, or the id that they are wanted since is of another one.
    """
    named = roster.find(name) if name is not None else None
    if what.since is None:
        return named
    key, _, run = what.since.rpartition("/")[0].rpartition("/")
    known = {(key_of_worktree(place.worktree.path), place.name): place for place in roster.runs}
    found = known.get((key, run))
    if found is None or (named is not None and named != found):
        other = f"of {named.name} " if named is not None else ""
        raise UserError(
            f"No event {other}has the id {what.since!r}. An id is printed with each event: WORKTREE/RUN/NUMBER.",
            Reason.USAGE,
            actions=("redfirst events",),
        )
    return found


def origin_of(repository: Repository, place: RunPlace) -> Origin:
    """Return what the events of a run say of where they come from."""
    try:
        said = json.loads(read_record(place.folder, "run.json"))
        workflow, version = str(said["workflow"]), str(said["workflow_version"])
    except (OSError, ValueError, LookupError, TypeError):
        workflow, version = "", ""
    key = key_of_worktree(place.worktree.path)
    return Origin(key, repository.main_checkout.name, place.name, workflow, version)


def orders_origin(repository: Repository) -> Origin:
    """Return what the events of orders say of where they come from."""
    return Origin(repository_name(repository), repository.main_checkout.name)


def told_event(repository: Repository, line: OrderLine) -> str:
    """Return the event of a line of orders as one line of JSON; empty where it is none."""
    event = event_of(line, orders_origin(repository))
    return "" if event is None else str(event)


def _behind(line: Line | OrderLine, after: int, origin: Origin, what: Wanted) -> Iterator[Event]:
    event = event_of(line, origin) if line.seq > after else None
    if event is not None and what.has(event):
        yield event


def _seq_of(since: str | None, origin: Origin) -> int:
    if since is None:
        return 0
    number = since.rpartition("/")[2]
    if not number.isdecimal() or since != origin.id_of(int(number)):
        raise UserError(
            f"{since!r} is no id of an event. An id is printed with each event, such as WORKTREE/RUN/NUMBER.",
            Reason.USAGE,
            actions=("redfirst events",),
        )
    return int(number)


def _fits(type_: str, pattern: str) -> bool:
    short = type_.removeprefix("redfirst.").removesuffix(".v1")
    return fnmatchcase(type_, pattern) or fnmatchcase(short, pattern)


_VARIABLES: Final = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
_PATH: Final = "/v1/traces"
_EPOCH: Final = datetime.fromisoformat("1970-01-01T00:00:00Z")


class TracesDocument(Frozen):
    """What `export-traces --json` prints."""

    schema_: Literal["redfirst.traces/1"] = Field(default="redfirst.traces/1", alias="schema")
    run_id: str
    trace: str
    spans: int


@dataclass
class Span:
    """A part of a run: `seq` is the line that it is named after, `inside` that of the part around it."""

    name: str
    seq: int
    begun: datetime
    ended: datetime
    inside: int | None
    facts: dict[str, Any] = field(default_factory=dict[str, Any])


def spans_of(lines: list[Line]) -> list[Span]:
    """Return the parts of a run, as its journal has them; the first one is the run."""
    begun = datetime.fromisoformat(lines[0].at)
    run = Span("run", lines[0].seq, begun, datetime.fromisoformat(lines[-1].at), None)
    spans, asked, phases = [run], dict[str, Span](), dict[str, Span]()
    open_parts: list[tuple[str | None, Span]] = []
    decided = begun
    for line in lines:
        now = datetime.fromisoformat(line.at)
        match line.data:
            case DispatchStarted() as one:
                facts = {"task": one.task, "backend": one.backend, "model": one.model, "attempt": one.attempt}
                asked[one.dispatch] = Span(f"{one.role} {one.kind}", line.seq, now, now, run.seq, facts)
                open_parts.append((one.lane, asked[one.dispatch]))
            case DispatchFinished() as one if one.dispatch in asked:
                asked[one.dispatch].ended = now
                asked[one.dispatch].facts |= {"signal": one.signal, **dict(one.usage)}
            case MeasuredTests() as one:
                since = now - timedelta(seconds=one.seconds or 0)
                facts = {"state": one.state, **one.outcomes}
                open_parts.append((None, Span(f"measure: {one.what}", line.seq, since, now, run.seq, facts)))
            case DecisionMade() as one:
                name, phase = _phase(one.step), phases.get(one.lane)
                if phase is None or phase.name != name:
                    since = phase.ended if phase is not None else decided
                    phase = phases[one.lane] = Span(name, line.seq, since, now, run.seq, {"lane": one.lane})
                    spans.append(phase)
                phase.ended = decided = now
                for _, part in (here := [each for each in open_parts if each[0] in {None, one.lane}]):
                    part.inside = phase.seq
                    spans.append(part)
                open_parts = [each for each in open_parts if each not in here]
            case RunFinished() | RunParked() as one:
                run.facts |= {"outcome": one.outcome, "reason": one.reason}
            case _:
                pass
    return [*spans, *(part for _, part in open_parts)]


def _phase(step: str) -> str:
    known = next((one.phase for one in Step if one == step), "-")
    return step if known == "-" else f"phase {known}"


def export(folder: Path, endpoint: str | None, environ: Mapping[str, str]) -> TracesDocument:
    """Send the trace of a run to a collector.

    Args:
        folder: The run's.
        endpoint: The collector's address; None: as the variables of OpenTelemetry say.
        environ: The user's environment.

    Raises:
        UserError: the run is damaged, the extra is missing, there is no address, or the collector does not take it.
    """
    if endpoint is None and not any(map(environ.get, _VARIABLES)):
        raise UserError(
            f"No collector is named. Set otel.endpoint, or the variable {_VARIABLES[0]}.",
            Reason.CONFIG,
            actions=("redfirst config set --user otel.endpoint http://127.0.0.1:4318",),
        )
    lines = Tail(folder).lines()
    if not lines:
        raise UserError(f"{folder.name} has not begun yet.", Reason.USAGE)
    trace = f"{key_of_run(folder)}@{lines[0].at}"
    spans = spans_of(lines)
    try:
        is_taken = _is_sent(trace, folder.name, spans, endpoint)
    except ImportError:
        needed = install_command("otel")
        raise UserError("Traces need the extra `otel`. Install it:", Reason.USAGE, actions=(needed,)) from None
    if not is_taken:
        raise UserError("The collector did not take the trace. The lines above say why.", Reason.ENVIRONMENT)
    return TracesDocument(run_id=folder.name, trace=f"{_id(trace, 16):032x}", spans=len(spans))


def _id(text: str, size: int) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:size])


def _is_sent(trace: str, run: str, spans: list[Span], endpoint: str | None) -> bool:
    # heavy, and an extra
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # noqa: PLC0415
    from opentelemetry.sdk.resources import Resource  # noqa: PLC0415
    from opentelemetry.sdk.trace import ReadableSpan  # noqa: PLC0415
    from opentelemetry.sdk.trace.export import SpanExportResult  # noqa: PLC0415
    from opentelemetry.sdk.util.instrumentation import InstrumentationScope  # noqa: PLC0415
    from opentelemetry.trace import SpanContext  # noqa: PLC0415

    def context(seq: int | None) -> SpanContext | None:
        return None if seq is None else SpanContext(_id(trace, 16), _id(f"{trace}/{seq}", 8), is_remote=False)

    def moment(at: datetime) -> int:
        return (at - _EPOCH) // timedelta(microseconds=1) * 1000

    resource, scope = Resource({"service.name": "redfirst"}), InstrumentationScope("redfirst")
    found = [
        ReadableSpan(
            one.name,
            context(one.seq),
            context(one.inside),
            resource,
            {"redfirst.run": run, **{f"redfirst.{key}": said for key, said in one.facts.items() if said is not None}},
            start_time=moment(one.begun),
            end_time=moment(one.ended),
            instrumentation_scope=scope,
        )
        for one in spans
    ]
    whole = endpoint if endpoint is None or endpoint.endswith(_PATH) else f"{endpoint.rstrip('/')}{_PATH}"
    return OTLPSpanExporter(whole).export(found) is SpanExportResult.SUCCESS
