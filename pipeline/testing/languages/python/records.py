"""Makes one `Observation` from the records of the plugin (`plugin`).

The records decide, never the exit code alone: a session that did not write its end has crashed, whatever number the
process returned (ADR-R95).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Final, Literal

from pydantic import ConfigDict, Field, TypeAdapter

from pipeline.judge.evidence.observation import (
    PASSING,
    Case,
    CollectionError,
    Ended,
    Fault,
    ForeignModule,
    Layout,
    Observation,
    Reach,
    RunState,
    TestRecord,
    Value,
)
from pipeline.testing.languages.runners.sessions import Line, badness, read_records

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipeline.process import Answer


class _Line(Line):
    model_config = ConfigDict(frozen=True, extra="forbid")


class SessionStart(_Line):
    """A record that the plugin is loaded, with the versions of Python and pytest."""

    kind: Literal["session_start"]
    python: str
    pytest: str


class LayoutLine(_Line):
    """A record of the project's configuration of test files."""

    kind: Literal["layout"]
    testpaths: tuple[str, ...]
    python_files: tuple[str, ...]


class FileLine(_Line):
    """A record that a test file was opened for collection."""

    kind: Literal["file"]
    path: str
    sha256: str


class CollectionErrorLine(_Line):
    """A record that a file could not be collected."""

    kind: Literal["collection_error"]
    path: str
    fault: Fault


class Item(_Line):
    """A record of a collected test id, whether selected or not."""

    kind: Literal["item"]
    id: str
    function: str
    path: str
    region_sha256: str
    case: Case | None
    own: bool  # not so what is read from production: doctests, and what a tool says of a source


class Start(_Line):
    """A record that a test begins; without a later `test` line the process died in it."""

    kind: Literal["start"]
    id: str


class Limit(_Line):
    """A record that a test reached its time limit."""

    kind: Literal["limit"]
    id: str


class Phase(Value):
    """A report of one phase of a test; sub-tests and re-runs give several. `sub`: it is of a sub-test."""

    when: Literal["setup", "call", "teardown"]
    outcome: Literal["passed", "failed", "skipped", "xfailed", "xpassed", "strict_xpass", "rerun"]
    reason: str
    fault: Fault | None
    sub: bool = False


class Finished(_Line):
    """A record that a test ended; `seconds` includes set-up and tear-down, and is no evidence."""

    kind: Literal["test"]
    id: str
    phases: tuple[Phase, ...]
    reach: Reach | None
    timed_out: bool
    seconds: float


class Modules(_Line):
    """A record of the project's modules that are loaded, and of their namesakes from elsewhere."""

    kind: Literal["modules"]
    own: dict[str, str]
    foreign: dict[str, str]


class SessionEnd(_Line):
    """A record that the session ended in order."""

    kind: Literal["session_end"]
    exitstatus: int
    canaries: dict[str, str]


Record = (
    SessionStart | LayoutLine | FileLine | CollectionErrorLine | Item | Start | Limit | Finished | Modules | SessionEnd
)
_ADAPTER: Final[TypeAdapter[Record]] = TypeAdapter(Annotated[Record, Field(discriminator="kind")])


@dataclass(frozen=True)
class Session:
    """The records of one process, and its exit."""

    records: tuple[Record, ...]
    exit_code: int | None
    timed_out: bool
    forged: str = ""

    @property
    def ended(self) -> SessionEnd | None:
        """Return the end record, which is the last one; None if it is missing."""
        last = self.records[-1] if self.records else None
        return last if isinstance(last, SessionEnd) else None

    @property
    def contradicted(self) -> str:
        """Return in words how the exit code contradicts the end record, empty if it does not."""
        end = self.ended
        if end is None or self.timed_out or end.exitstatus == self.exit_code:
            return ""
        how = "was ended by a signal" if self.exit_code is None else f"exited with {self.exit_code}"
        return f"the test process {how} after it had said that it would exit with {end.exitstatus}"

    @property
    def unfinished(self) -> str | None:
        """Return the id of the test that was running when the process died or stopped, None if none was."""
        open_id: str | None = None
        for record in self.records:
            if isinstance(record, Start):
                open_id = record.id
            elif isinstance(record, Finished) and record.id == open_id:
                open_id = None
        return open_id


def read_session(answer: Answer, nonce: str, *, exit_code: int | None, timed_out: bool) -> Session:
    """Return the session that a process recorded; a line that is not ours makes it unusable (`forged`)."""
    records, forged = read_records(answer.data, answer.fault, nonce, _ADAPTER, SessionEnd)
    for place, record in enumerate(records):
        if not forged and isinstance(record, SessionStart) != (place == 0):
            forged = f"line {place + 1} of the records was not written by the harness"
    return Session(records, exit_code, timed_out, forged)


_USAGE_ERROR: Final = 4
_INTERNAL_ERROR: Final = 3
_TELLING: Final = re.compile(r"rror|\w(?:Warning|Exception|Interrupt|Exit): ")
_CANARIES: Final = {"pass": "passed", "fail": "failed"}


def observe(sessions: Sequence[Session], *, command: tuple[str, ...], tail: str) -> Observation:
    """Return the observation of one run's sessions; a later session continues after a crash of an earlier one."""
    state, detail = _state(sessions, tail)
    everything = [record for session in sessions for record in session.records]
    if state is RunState.UNUSABLE and any(session.forged for session in sessions):
        return Observation(state=state, detail=detail, command=command, tail=tail)
    files = {record.path: record.sha256 for record in everything if isinstance(record, FileLine)}
    tests = {record.path for record in everything if isinstance(record, Item) and record.own}
    records = _tests(sessions, everything)
    errors = {
        record.path: CollectionError(path=record.path, fault=record.fault)
        for record in everything
        if isinstance(record, CollectionErrorLine)
    }
    layout = next((record for record in everything if isinstance(record, LayoutLine)), None)
    modules = [record for record in everything if isinstance(record, Modules)]
    foreign = {name: origin for record in modules for name, origin in record.foreign.items()}
    return Observation(
        state=state,
        detail=detail,
        records=records,
        collection_errors=tuple(errors[path] for path in sorted(errors)),
        files=files,
        layout=Layout(
            testpaths=layout.testpaths if layout else (),
            python_files=layout.python_files if layout else (),
            collected=frozenset(tests | set(files)),
        ),
        modules={name: path for record in modules for name, path in record.own.items()},
        foreign_modules=tuple(ForeignModule(name=name, origin=foreign[name]) for name in sorted(foreign)),
        command=command,
        tail=tail,
    )


def _state(sessions: Sequence[Session], tail: str) -> tuple[RunState, str]:
    for session in sessions:
        if session.forged:
            return RunState.UNUSABLE, session.forged
    last = sessions[-1]
    if last.timed_out:
        return RunState.TIMED_OUT, "the test run reached its time limit"
    end = last.ended
    started = any(isinstance(record, Start | Item) for record in last.records)
    if end is None or end.exitstatus in (_INTERNAL_ERROR, _USAGE_ERROR):
        usage = _USAGE_ERROR in (last.exit_code, end and end.exitstatus)
        if not last.records or (usage and not started):
            return RunState.UNUSABLE, f"the test runner did not start: {_reason(tail)}"
        why = f": {_reason(tail)}" if usage or not started else ""
        return RunState.CRASHED, f"the test session died (exit code {last.exit_code}){why}"
    if end.canaries != _CANARIES:
        why = "the test runner was tampered with: it reports a failing check as passed, or the reverse"
        return RunState.UNUSABLE, why
    if contradicted := last.contradicted:
        return RunState.CRASHED, contradicted
    if len(sessions) > 1 or last.unfinished is not None:
        return RunState.CRASHED, "a test ended the test session"
    return RunState.COMPLETE, ""


def _reason(tail: str) -> str:
    """Return the line of output that says why no test ran, with what to install where that would help."""
    lines = [line.strip() for line in tail.splitlines() if line.strip()]
    said = [line for line in lines if not line.startswith("=")] or lines  # not the bar with the count of errors
    telling = [line for line in said if _TELLING.search(line)] or said
    why = telling[-1] if telling else "it printed nothing"
    advice = what_to_install(why)
    return f"{why}. {advice}" if advice else why


def _tests(sessions: Sequence[Session], everything: Sequence[Record]) -> dict[str, TestRecord]:
    tests: dict[str, TestRecord] = {}
    for item in everything:
        if isinstance(item, Item):
            tests[item.id] = TestRecord(
                id=item.id, function=item.function, path=item.path, region_sha256=item.region_sha256, case=item.case
            )
    for finished in everything:
        if isinstance(finished, Finished) and finished.id in tests:
            tests[finished.id] = _ended(tests[finished.id], finished)
    limited = {record.id for record in everything if isinstance(record, Limit)}
    for session in sessions:
        if why := session.contradicted:  # no outcome of it can be believed
            ran = {record.id for record in session.records if isinstance(record, Finished)} & tests.keys()
            crashed = {"outcome": Ended.CRASHED, "reason": why, "reach": None}
            tests |= {entry: tests[entry].model_copy(update=crashed) for entry in ran}
    for session in sessions:
        open_id = session.unfinished
        if open_id in tests:
            ended = Ended.TIMED_OUT if session.timed_out or open_id in limited else Ended.CRASHED
            tests[open_id] = tests[open_id].model_copy(update={"outcome": ended, "reach": None})
    return tests


def _ended(test: TestRecord, finished: Finished) -> TestRecord:
    """Return the record completed by its worst phase; of equal ones the first counts, and re-runs do not.

    A test that passes when it is run again has the fault that it showed before. Its own task does not accept that.
    A sub-test that was skipped says nothing of its test, which has a report of its own.
    """
    left_out = [phase for phase in finished.phases if phase.sub and phase.outcome in {"skipped", "xfailed"}]
    phases = [phase for phase in finished.phases if phase.outcome != "rerun" and phase not in left_out]
    worst = min(phases, key=lambda phase: badness(Ended(phase.outcome)), default=None)
    called = any(phase.when == "call" and not phase.sub for phase in phases)
    whole = worst is not None and (worst.outcome != "passed" or called)
    unlimited = Ended(worst.outcome) if worst is not None and whole else Ended.CRASHED
    outcome = Ended.TIMED_OUT if finished.timed_out else unlimited
    rerun = [phase.fault for phase in finished.phases if phase.outcome == "rerun" and outcome in PASSING]
    if worst is not None and test.outcome is not None and badness(test.outcome) < badness(outcome):
        return test  # two items with the same id: the worse one speaks
    return test.model_copy(
        update={
            "outcome": outcome,
            "phase": worst.when if worst is not None else "",
            "reason": worst.reason if worst is not None else "",
            "fault": next(filter(None, (worst.fault if worst is not None else None, *rerun)), None),
            "reach": finished.reach,
        }
    )


_PACKAGES: Final = {
    "pytest-asyncio": ("--asyncio-", "asyncio_", "pytest_asyncio"),
    "pytest-benchmark": ("--benchmark-", "pytest_benchmark"),
    "pytest-cov": ("--cov", "--no-cov", "pytest_cov"),
    "pytest-django": (
        "--ds", "--dc", "--reuse-db", "--create-db", "--nomigrations", "--no-migrations", "DJANGO_", "django_",
        "pytest_django",
    ),
    "pytest-mock": ("mock_", "pytest_mock"),
    "pytest-random-order": ("--random-order", "random_order"),
    "pytest-randomly": ("--randomly-", "pytest_randomly", "randomly"),
    "pytest-rerunfailures": ("--reruns", "reruns", "pytest_rerunfailures"),
    "pytest-socket": ("--disable-socket", "--allow-hosts", "--allow-unix-socket", "pytest_socket"),
    "pytest-timeout": ("--timeout", "--session-timeout", "timeout", "pytest_timeout"),
    "pytest-xdist": ("-n", "--numprocesses", "--maxprocesses", "--dist", "xdist"),
}  # fmt: skip
"""Prefixes of the options, settings and modules of known packages."""
_UNKNOWN: Final = re.compile(
    r"unrecognized arguments: (?P<options>.+)"
    r"|Error importing plugin \"(?P<module>[^\"]+)\": No module named"
    r"|Unknown config option: (?P<setting>\S+)"
    r"|Missing required plugins: (?P<plugins>.+)"
)


def what_to_install(said: str) -> str:
    """Return a sentence on which packages to install, by a line of pytest's output; empty if none would help."""
    found = _UNKNOWN.search(said)
    if found is None:
        return ""
    if found["plugins"]:
        packages = [name.strip() for name in found["plugins"].split(",")]
    else:
        words = (found["options"] or found["module"] or found["setting"]).split()
        packages = [name for name, begins in _PACKAGES.items() if any(word.startswith(begins) for word in words)]
    if not packages:
        return "Install what brings it where the project's tests run, or take it out of pytest's settings"
    return f"Install {' and '.join(packages)} where the project's tests run"
