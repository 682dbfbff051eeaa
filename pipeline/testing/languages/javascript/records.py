"""Makes one `Observation` from the records of a JavaScript test run's processes.

The records decide, and the exit status has to agree: a process that did not write its end has died, whatever number it
returned, and one that reported no failure and did not end well is not believed.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Final, Literal

from pydantic import Field, TypeAdapter

from pipeline.judge.evidence.observation import CollectionError, Ended, Layout, Observation, Reach, RunState, TestRecord
from pipeline.testing.languages.javascript import faults
from pipeline.testing.languages.javascript.project import PATTERNS, names_in, node_layout
from pipeline.testing.languages.javascript.syntax import EVERYTHING, resolved
from pipeline.testing.languages.runners import sessions
from pipeline.testing.languages.runners.exec_guard import REPLACED, how_ended
from pipeline.testing.languages.runners.sessions import TAIL, Line, ProcessLine, Session, badness

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pipeline.testing.languages.javascript.command import Invocation
    from pipeline.testing.languages.javascript.sources import Sources
    from pipeline.testing.languages.protocol import Measurement


class Site(sessions.Said):
    """A frame as a runner reports it, with its place mapped to the source."""

    file: str = ""
    line: int | None = None
    column: int | None = None
    method: str | None = ""


class Thrown(sessions.Said):
    """A thrown value; `compared` if it carries two values that were compared."""

    kind: str
    bases: tuple[str, ...] = ()
    message: str = ""
    stack: str = ""
    code: str = ""
    operator: str = ""
    compared: bool = False
    cause: Thrown | None = None
    frames: tuple[Site, ...] = ()


class PlaceOf(sessions.Said):
    """The place where a test is defined."""

    path: str
    line: int | None = None
    column: int | None = None


class Item(sessions.Said):
    """A record that a test exists. `at` is the stack of its definition, where the runner does not report the place."""

    kind: Literal["item"]
    id: str
    names: tuple[str, ...]
    state: Literal["run", "skip", "todo"]
    at: str = ""
    place: PlaceOf | None = None


class Start(sessions.Said):
    """A record that a test begins."""

    kind: Literal["start"]
    id: str


class End(sessions.Said):
    """A record that a test ended by itself. `inverted`: it is expected to fail."""

    kind: Literal["end"]
    id: str
    passed: bool
    skipped: str | None = None
    todo: str | None = None
    inverted: bool = False
    phase: Literal["setup", "call", "teardown"] = "call"
    timed_out: bool = False
    errors: tuple[Thrown, ...] = ()


class Cut(sessions.Said):
    """A record that a test ended its process, or was ended with it after its time limit."""

    kind: Literal["crashed", "limit"]
    id: str
    how: str = ""


class ReachLine(sessions.Said):
    """A record of a traced test's reach: functions by the engine's bare names, files, processes."""

    kind: Literal["reach"]
    id: str
    functions: tuple[str, ...] = ()
    doors: tuple[str, ...] = ()


class FileLine(sessions.Said):
    """A record that a test file was loaded."""

    kind: Literal["file"]
    path: str


class Uncollected(sessions.Said):
    """A record that a test file could not be loaded, or failed outside of tests; `how` is how its process ended."""

    kind: Literal["uncollected"]
    path: str
    errors: tuple[Thrown, ...] = ()
    how: str = ""


class LayoutLine(sessions.Said):
    """A record of the patterns by which the runner's configuration finds tests."""

    kind: Literal["layout"]
    patterns: tuple[str, ...] = ()


class Done(sessions.Said):
    """A record that the runner ended in order; `canaries` are results of its assertions on known values."""

    kind: Literal["done"]
    canaries: dict[str, bool]


class Tampered(sessions.Said):
    """A record that tested code got access to our own code."""

    kind: Literal["tampered", "too_long"]
    what: str = ""


Said = Annotated[
    Item | Start | End | Cut | ReachLine | FileLine | Uncollected | LayoutLine | Done | Tampered,
    Field(discriminator="kind"),
]


class SaidLine(Line):
    """A message of a process of the test run."""

    kind: Literal["said"]
    job: int
    said: Said


class EndedLine(ProcessLine):
    """A record that a process of the test run ended."""

    kind: Literal["ended"]
    job: int
    forged: str
    done: bool


class PrintedLine(ProcessLine):
    """A record of the output of a program that is no test."""

    kind: Literal["printed"]
    job: int


Record = SaidLine | EndedLine | PrintedLine | sessions.OutOfTime | sessions.End
ADAPTER: Final[TypeAdapter[Record]] = TypeAdapter(Annotated[Record, Field(discriminator="kind")])


_SHOWN: Final = 400
_CANARIES: Final = {"fail": True, "pass": True}


@dataclass(frozen=True)
class Run:
    """A measurement as read: the sources before it, the request, and the records."""

    sources: Sources
    session: Session
    invocation: Invocation
    asked: Measurement
    place: str
    _sites: dict[str, faults.Site] = field(default_factory=dict[str, faults.Site], compare=False, repr=False)

    @property
    def root(self) -> str:
        """The workspace as the tests saw it."""
        return str(self.asked.view.workspace)

    @cached_property
    def said(self) -> list[Said]:
        """The messages of the processes, in order."""
        return [line.said for line in self.session.of(SaidLine)]

    @cached_property
    def ended(self) -> list[EndedLine]:
        """The ends of the processes, in order."""
        return self.session.of(EndedLine)

    def observe(self, *, timed_out: bool, command: tuple[str, ...]) -> Observation:
        """Return the observation of the measurement."""
        state, detail = self._state(timed_out=timed_out)
        if state is RunState.UNUSABLE and (self.session.fault or any(one.forged for one in self.ended)):
            return Observation(state=state, detail=detail, command=command, tail=self._tail({}))
        records = self._records()
        if state is RunState.COMPLETE and (lost := self._lost(records)):
            state, detail = RunState.CRASHED, f"the test process died; {lost} did not come to an end"
        files = {entry.path for entry in self.said if isinstance(entry, FileLine | Uncollected)}
        files |= {record.path for record in records.values()}
        told = [pattern for one in self.said if isinstance(one, LayoutLine) for pattern in one.patterns]
        runner = self.invocation.runner
        layout = Layout(python_files=names_in(told) or PATTERNS[runner], collected=frozenset(files))
        if runner == "node":
            layout = node_layout(self.invocation, files)
        return Observation(
            state=state,
            detail=detail,
            records=records,
            collection_errors=self._errors(),
            files={path: self.sources.sha256(path) for path in sorted(files)},
            layout=layout,
            command=command,
            tail=self._tail(records),
        )

    def _state(self, *, timed_out: bool) -> tuple[RunState, str]:
        session = self.session
        forged = session.fault or next((one.forged for one in self.ended if one.forged), "")
        if forged:
            return RunState.UNUSABLE, forged
        tampered = next((one for one in self.said if isinstance(one, Tampered)), None)
        if tampered is not None or any(isinstance(one, Done) and one.canaries != _CANARIES for one in self.said):
            return RunState.UNUSABLE, "the test runner was tampered with: it would report a failing check as passed"
        if timed_out or session.is_late:
            return sessions.state_of(session, timed_out=True)
        last = {one.job: one for one in self.ended}
        known = any(isinstance(one, Item | FileLine | Uncollected) for one in self.said)
        if self.invocation.runner != "node" and not known and not any(one.done for one in last.values()):
            lines = [line.strip() for line in self._said().splitlines() if line.strip()]
            telling = [line for line in lines if "rror" in line] or lines or ["it printed nothing"]
            return RunState.UNUSABLE, f"{self.invocation.runner} did not start: {telling[0]}"[:_SHOWN]
        # a process of node's has one file: where that cannot be loaded there is no proper end
        said = session.of(SaidLine)
        bad = {one.job for one in said if self.invocation.runner == "node" and isinstance(one.said, Uncollected)}
        if not session.is_whole or any(not one.done for job, one in last.items() if job not in bad):
            return RunState.CRASHED, "a test ended the test process"
        return RunState.COMPLETE, ""

    def _lost(self, records: Mapping[str, TestRecord]) -> str | None:
        """Return a requested test that was to run and has no result, None if there is none."""
        states = {item.id: item.state for item in self._items()}
        for entry, record in records.items():
            if record.outcome is None and self.asked.selects(entry, record.path) and states.get(entry) == "run":
                return entry
        return None

    def _items(self) -> Iterator[Item]:
        return (one for one in self.said if isinstance(one, Item))

    def _records(self) -> dict[str, TestRecord]:
        records = {item.id: self._collected(item) for item in self._items()}
        begun = {one.id for one in self.said if isinstance(one, Start)}
        reached = {one.id: one for one in self.said if isinstance(one, ReachLine)}
        for one in self.said:
            if isinstance(one, End | Cut) and one.id in records:
                new = self._ended(records[one.id], one, begun=one.id in begun, reached=reached.get(one.id))
                was = records[one.id].outcome  # the first known end counts, unless a second one is worse
                if was is None or new.outcome is None or badness(was) >= badness(new.outcome):
                    records[one.id] = new
        for name, how in self._unbelieved(records):
            if records[name].outcome is Ended.PASSED:
                reason = f"its process reported no failure, and {how}"
                records[name] = records[name].model_copy(update={"outcome": Ended.CRASHED, "reason": reason})
        return records

    def _unbelieved(self, records: Mapping[str, TestRecord]) -> Iterator[tuple[str, str]]:
        """Yield the tests of processes whose exit contradicts their records, with how these ended.

        What fails without having been asked for is not reported, so that nothing follows where not all were asked for.
        """
        said: defaultdict[int, list[Said]] = defaultdict(list)
        for record in self.session.records:
            if isinstance(record, SaidLine):
                said[record.job].append(record.said)
            elif isinstance(record, EndedLine):
                own = said.pop(record.job, [])
                whole = all(self.asked.selects(one.id, records[one.id].path) for one in own if isinstance(one, Item))
                if record.done and record.code and not record.timed_out and whole and not any(map(_has_failed, own)):
                    ended = (one.id for one in own if isinstance(one, End))
                    yield from ((name, how_ended(record.code)) for name in ended if name in records)

    def _collected(self, item: Item) -> TestRecord:
        path = item.id.partition("::")[0]
        if item.place is not None and item.place.line is not None:
            site = faults.Site(item.place.path, "", item.place.line, item.place.column, "")
        else:  # of some the place is not known
            site = next((site for site in faults.sites_of(item.at, self.root) if site.path), None)
        region = self.sources.region_of(site.path, site.line, site.column) if site is not None else None
        if site is not None:
            self._sites[item.id] = site
        function = region.function if region is not None else f"{path}::{' > '.join(item.names)}"
        sha256 = region.sha256 if region is not None else self.sources.sha256(path)
        return TestRecord(id=item.id, function=function, path=path, region_sha256=sha256)

    def _ended(self, record: TestRecord, one: End | Cut, *, begun: bool, reached: ReachLine | None) -> TestRecord:
        if isinstance(one, Cut):
            outcome = Ended.CRASHED if one.kind == "crashed" else Ended.TIMED_OUT
            return record.model_copy(update={"outcome": outcome, "phase": "call", "reason": one.how, "fault": None})
        outcome = _outcome(one, begun=begun)
        fault = None
        if outcome is Ended.FAILED and one.errors:
            at = self._sites.get(record.id)
            fault = faults.of_thrown(one.errors[0], self.sources, self.root, test=record.path, at=at)
        reason = one.skipped if one.skipped is not None else one.todo or ("todo" if one.todo is not None else "")
        reach = self._reach(record, reached) if self.asked.trace and outcome is not Ended.SKIPPED else None
        return record.model_copy(
            update={"outcome": outcome, "phase": one.phase, "reason": reason, "fault": fault, "reach": reach}
        )

    def _reach(self, record: TestRecord, reached: ReachLine | None) -> Reach:
        functions: set[str] = set()
        for entry in reached.functions if reached is not None else ():
            path, _, name = entry.partition("::")
            functions |= {f"{path}::{whole}" for whole in self.sources.functions_named(path, name)}
        return Reach(
            functions=tuple(sorted(functions)),
            references=tuple(sorted(self._references(record))),
            doors=reached.doors if reached is not None else (),
        )

    def _references(self, record: TestRecord) -> Iterator[str]:
        """Yield the project's files that the test's own code mentions by imported names."""
        site = self._sites.get(record.id)
        if site is None:
            return
        known = self.sources.bindings(record.path)
        for name in self.sources.names_at(site.path, site.line, site.column) & known.keys():
            path = resolved(record.path, known[name].module, self.sources.files)
            if path is not None:
                inner = known[name].name
                yield f"{path}::{name if inner in {EVERYTHING, 'default'} else inner}"

    def _errors(self) -> tuple[CollectionError, ...]:
        found: dict[str, CollectionError] = {}
        for one in self.said:
            if isinstance(one, Uncollected) and one.path not in found:
                if one.errors:
                    fault = faults.of_thrown(one.errors[0], self.sources, self.root, test=one.path, loading=True)
                else:
                    fault = faults.of_exit(one.path, one.how)
                found[one.path] = CollectionError(path=one.path, fault=fault)
        return tuple(found[path] for path in sorted(found))

    def _said(self) -> str:
        told = sorted({REPLACED for one in self.ended if one.replaced}.union(self.session.unwatched))
        text = "\n".join((*(f"{one.stdout}{one.stderr}" for one in self.ended), *told))
        # jest writes paths of files that are not the project's from the workspace on
        ours = re.compile(rf"[\w./-]*{re.escape(self.place.rpartition('/')[2])}/")
        plain = ours.sub("<redfirst>/", faults.without_colours(text))
        return plain.replace(f"file://{self.root}/", "").replace(f"{self.root}/", "")

    def _tail(self, records: Mapping[str, TestRecord]) -> str:
        """Return the output for people, with the failures, since our reporters print nothing."""
        failed = [
            f"FAILED {entry}: {record.fault.raised.kind}: {record.fault.raised.message}"[:_SHOWN]
            for entry, record in records.items()
            if record.fault is not None
        ]
        return "\n".join((self._said()[-TAIL:].strip(), *failed)).strip()[-TAIL:]


def _has_failed(one: Said) -> bool:
    return isinstance(one, Cut | Uncollected) or (isinstance(one, End) and one.skipped is None and not one.passed)


def _outcome(one: End, *, begun: bool) -> Ended:
    if one.skipped is not None:
        return Ended.SKIPPED
    if one.todo is not None:
        return Ended.SKIPPED if not begun else Ended.XPASSED if one.passed else Ended.XFAILED
    if one.timed_out:
        return Ended.TIMED_OUT
    if one.inverted:
        return Ended.XFAILED if one.passed else Ended.STRICT_XPASS
    return Ended.PASSED if one.passed else Ended.FAILED
