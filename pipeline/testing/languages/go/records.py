"""Makes one `Observation` from the records of a test run. The exit code decides; output may only contradict it.

A pass is exit code 0 with `testing`'s own last words: a process that leaves early has not come to them. Subtests share
their test's process, so their results are read from its output, and believed as far as the exit code bears them out.

Subtests are made while a test runs: of a test that is not chosen, or that fails before it comes to them, nothing says
which it has. So the names that a run showed are kept beside the compiled code, by the test's own bytes: they are ids,
and none of them is believed to have run. The file is written by the harness, outside the box.
"""

from __future__ import annotations

import posixpath
import re
import tempfile
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pydantic import TypeAdapter, ValidationError

from pipeline.judge.evidence.observation import Ended, Fault, Observation, Reach, TestRecord
from pipeline.testing.languages.go import output as go_output
from pipeline.testing.languages.go.project import Linked, Modules, Packages, Project, Test, TestEnded
from pipeline.testing.languages.go.sources import Defined, defined_by
from pipeline.testing.languages.go.toolchain import is_test_side
from pipeline.testing.languages.projects.merging import unrun
from pipeline.testing.languages.runners.exec_guard import REPLACED, how_ended
from pipeline.testing.languages.runners.sessions import Session, Told, relative, state_of
from pipeline.testing.languages.sources.syntax_trees import with_helpers

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from pipeline.testing.languages.go.output import Output
    from pipeline.testing.languages.protocol import Cache


_FILE: Final = "subtests.json"
_TESTS: Final = 20_000
_NAMES: Final = TypeAdapter(dict[str, tuple[str, ...]])


class Memory:
    """The known subtests of each test, by its id and the digest of its bytes."""

    def __init__(self, cache: Cache | None) -> None:
        self._place = cache.folder / _FILE if cache is not None else None
        self._known: dict[str, tuple[str, ...]] = {}
        if self._place is not None:
            try:
                self._known = _NAMES.validate_json(self._place.read_bytes())
            except (OSError, ValidationError):  # a broken file is forgotten: a full run fills it again
                self._known = {}

    def of(self, test: str, digest: str) -> tuple[str, ...]:
        """Return the ids of a test's known subtests."""
        return self._known.get(f"{test} {digest}", ())

    def keep(self, shown: Mapping[tuple[str, str], Iterable[str]]) -> None:
        """Store the subtests that a run showed, by id and digest of each test."""
        if self._place is None or not shown:
            return
        fresh = {f"{test} {digest}": tuple(sorted(names)) for (test, digest), names in shown.items()}
        everything = {**self._known, **fresh}
        if everything == self._known:
            return
        self._known = dict(list(everything.items())[-_TESTS:])
        with tempfile.NamedTemporaryFile(dir=self._place.parent, delete=False) as file:
            file.write(_NAMES.dump_json(self._known))
        Path(file.name).replace(self._place)


_BLOCK: Final = re.compile(r"(?P<file>.+\.go):(?P<line>\d+)\.\d+,\d+\.\d+")
_STARTS: Final = frozenset({"Command", "CommandContext", "StartProcess"})


class Map:
    """The names and functions of production code; each file is read once."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._items: dict[str, tuple[Defined, ...]] = {}

    def reach(self, test: Test, ended: TestEnded, idle: Mapping[str, int], fault: Fault | None) -> Reach:
        """Return the reach of a test.

        Args:
            test: The test.
            ended: Its record, with the blocks that it entered if it wrote them down.
            idle: How often each block is entered when no test runs: by initialisation, and by `TestMain`.
            fault: Why it failed; production on the way there was reached too.
        """
        blocks = [block for block, count in ended.blocks or () if count > idle.get(block, 0)]
        entered = [name for block in blocks if (name := self._function(block))]
        frames = [frame for frame in (fault.frames if fault is not None else ()) if frame.path]
        entered += [f"{frame.path}::{frame.function}" for frame in frames if not is_test_side(frame.path)]
        mentioned = with_helpers(test.source.mentions, test.unit.sources.helpers)
        defined = self._names
        references = sorted(f"{defined[name]}::{name}" for name in mentioned & set(defined))
        doors = [*self._opened(test, ended.doors), *(("process",) if mentioned & _STARTS else ())]
        return Reach(functions=tuple(dict.fromkeys(entered)), references=tuple(references), doors=tuple(doors))

    def _function(self, block: str) -> str:
        found = _BLOCK.match(block)
        folder = self._project.names.folder_of(posixpath.dirname(found["file"])) if found is not None else None
        if found is None or folder is None:
            return ""
        path = posixpath.normpath(posixpath.join(folder, posixpath.basename(found["file"])))
        line = int(found["line"])
        around = (one.name for one in self._of(path) if one.is_function and one.first <= line <= one.last)
        name = next(around, "")
        return f"{path}::{name}" if name else ""

    @cached_property
    def _names(self) -> Mapping[str, str]:
        """Return the names that production defines, a method by its own, with their files."""
        found: dict[str, str] = {}
        for path in self._project.production():
            for one in self._of(path):
                found.setdefault(one.name.rpartition(".")[2], path)
        return {name: path for name, path in found.items() if name not in {"_", "init"}}

    def _of(self, path: str) -> tuple[Defined, ...]:
        if path not in self._items:
            self._items[path] = defined_by(self._project.measured, path)
        return self._items[path]

    def _opened(self, test: Test, log: Iterable[str]) -> list[str]:
        """Return the workspace's files that were opened; relative names are resolved by the folder at that time."""
        folder = posixpath.join(self._project.workspace, test.unit.folder)
        found: dict[str, None] = {}
        for line in log:
            word, _, name = line.partition(" ")
            place = posixpath.normpath(posixpath.join(folder, name))
            if word == "chdir":
                folder = place
            elif (path := self._project.below(place)) not in {"", "."}:
                found[path] = None
        return list(found)


IDLE: Final = "idle "
"""The prefix to the id of an executable's run without tests: what it reaches is no test's doing."""

_PANICKED: Final = 2
_STACK: Final = re.compile(r"^goroutine \d+[^\n]*:\n(?:.+\n)+", re.MULTILINE)
_DEADLOCK: Final = "all goroutines are asleep"
_OF_SUBTEST: Final = {"PASS": Ended.PASSED, "FAIL": Ended.FAILED, "SKIP": Ended.SKIPPED}


@dataclass(frozen=True)
class _Run:
    """The parsed records of one test process."""

    test: Test
    line: TestEnded
    output: Output
    panic: go_output.Panic | None

    @property
    def result(self) -> str:
        """Return the result that the test printed, empty if it printed none."""
        return self.output.results.get(self.test.source.name, "")


def observe(
    project: Project,
    session: Session,
    asked: frozenset[str],
    memory: Memory,
    told: Told,
    *,
    trace: bool,
    timed_out: bool,
) -> Observation:
    """Return the observation of a run of chosen tests.

    Args:
        project: What was compiled.
        session: The records of the run.
        asked: The ids to report as run, subtests included; what runs beside them is only listed.
        memory: Which subtests each test has; what this run shows is kept.
        told: What people are told of it.
        trace: Say what the tests reach, as far as it is known.
        timed_out: The box ended the run.
    """
    records = {test.id: _collected(test, test.id) for test in project.tests.values()}
    lines = session.of(TestEnded)
    idle = {line.id: dict(line.blocks or ()) for line in lines if line.id.startswith(IDLE)}
    reached = Map(project)
    said: list[str] = []
    shown: dict[tuple[str, str], list[str]] = {}
    ran: set[str] = set()
    for line in lines:
        test = project.tests.get(line.id)
        if test is None:
            continue
        panic = go_output.read_panic(line.stderr) if line.code == _PANICKED else None
        run = _Run(test, line, go_output.read_output(line.stdout, test.source.name), panic)
        found = dict(_records(project, run))
        ran.add(test.id)
        if run.result in {"PASS", "SKIP"} and line.code == 0:  # it ended in order: all of its subtests are known
            shown[test.id, test.source.sha256] = [entry for entry in found if entry != test.id]
        if trace:
            blocks = idle.get(f"{IDLE}{test.unit.folder}", {})
            found = {
                entry: record.model_copy(update={"reach": reached.reach(test, line, blocks, record.fault)})
                for entry, record in found.items()
            }
        if found[test.id].outcome is not Ended.PASSED:
            said.append(f"---- {line.id} ----\n{line.stdout}\n{line.stderr}")
        records |= found
    records |= _known_subtests(project, memory, records, ran)
    memory.keep(shown)
    records = {entry: record if _is_asked(record, asked) else unrun(record) for entry, record in records.items()}
    records |= {
        test.id: records[test.id].model_copy(update={"reason": project.hidden_by(test)})
        for test in project.tests.values()
        if test.id not in ran and _is_asked(records[test.id], asked)
    }
    return told.observation(project, session, records, state_of(session, timed_out=timed_out), said, _STACK)


def rendered(session: Session) -> str:
    """Return go's messages about compile errors, as it prints them."""
    said: list[str] = []
    for line in session.records:
        if isinstance(line, Packages):
            said += [f"{error.pos}: {error.said}".removeprefix(": ") for error in line.errors]
        if isinstance(line, Modules | Packages | Linked) and line.code:
            said.append(line.stderr)
    return "\n".join(dict.fromkeys(part.strip() for part in said if part.strip()))


def _is_asked(record: TestRecord, asked: frozenset[str]) -> bool:
    return record.id in asked or record.function in asked


def _collected(test: Test, entry: str) -> TestRecord:
    return TestRecord(id=entry, function=test.id, path=test.source.path, region_sha256=test.source.sha256)


def _known_subtests(
    project: Project, memory: Memory, records: Mapping[str, TestRecord], ran: set[str]
) -> dict[str, TestRecord]:
    """Return the known subtests that this run did not show: of tests that did not run, or not to their end."""
    found: dict[str, TestRecord] = {}
    for test in project.tests.values():
        whole = test.id in ran and records[test.id].outcome in {Ended.PASSED, Ended.SKIPPED}
        names = () if whole else memory.of(test.id, test.source.sha256)
        found |= {entry: _collected(test, entry) for entry in names if entry not in records}
    return found


def _records(project: Project, run: _Run) -> Iterator[tuple[str, TestRecord]]:
    """Yield the records of a test and of the subtests that began."""
    whole = _ended(run)
    names = [run.test.source.name, *(name for name in run.output.begun if name != run.test.source.name)]
    for name in dict.fromkeys(names):
        entry = run.test.unit.id_of(name)
        outcome = whole if name == run.test.source.name else _of_subtest(run, name, whole)
        fault = _fault(project, run, name) if outcome is Ended.FAILED else None
        reason = _reason(run, name, outcome)
        update = {"outcome": outcome, "phase": "call" if outcome is not None else "", "fault": fault, "reason": reason}
        yield entry, _collected(run.test, entry).model_copy(update=update)


def _ended(run: _Run) -> Ended:
    """Return how a top-level test ended: the exit code, unless its output says something worse."""
    if run.line.timed_out or (run.panic is not None and run.panic.fatal and _DEADLOCK in run.panic.said):
        return Ended.TIMED_OUT
    if run.line.code == 0:
        return _without_an_error(run)
    if run.line.code == _PANICKED and run.panic is not None and not run.panic.fatal:
        return Ended.FAILED
    said_so = run.line.code > 0 and run.result == "FAIL" and run.output.last_word == "FAIL"
    return Ended.FAILED if said_so else Ended.CRASHED


def _without_an_error(run: _Run) -> Ended:
    if "FAIL" in run.output.results.values():  # a TestMain that leaves with 0 whatever happens
        return Ended.FAILED
    # before its tests begin `testing` lets a process leave with 0, and its log is not there yet
    if run.result and run.output.last_word == "PASS" and run.line.logged:
        return Ended.PASSED if run.result == "PASS" else Ended.SKIPPED
    nothing_ran = not run.output.begun and "no tests to run" in run.line.stderr
    return Ended.SKIPPED if nothing_ran else Ended.CRASHED


def _of_subtest(run: _Run, name: str, whole: Ended) -> Ended | None:
    """Return how a subtest ended, None if it is unknown: results are printed when the outer test ends."""
    said = _OF_SUBTEST.get(run.output.results.get(name, ""))
    if said is not None or whole in {Ended.PASSED, Ended.SKIPPED}:
        return said
    return whole if _is_busy(run, name) else None


def _is_busy(run: _Run, name: str) -> bool:
    """Return whether a test was running when the process ended, itself or in a subtest."""
    return f"{run.output.busy}/".startswith(f"{name}/")


def _fault(project: Project, run: _Run, name: str) -> Fault:
    source = run.test.source
    if run.panic is not None and _is_busy(run, name):
        return relative(go_output.of_panic(run.panic, source, project), project.workspace)
    fault = go_output.of_failure(name, run.output, source, project)
    race = go_output.read_race(run.line.stderr) if fault.raised.kind == go_output.SILENT else None
    fault = go_output.of_panic(race, source, project) if race is not None else fault
    return relative(fault, project.workspace)


def _reason(run: _Run, name: str, outcome: Ended | None) -> str:
    refused = REPLACED if run.line.replaced and outcome not in {None, Ended.PASSED, Ended.SKIPPED} else ""
    return "; ".join(filter(None, (_how(run, name, outcome), refused)))


def _how(run: _Run, name: str, outcome: Ended | None) -> str:
    if outcome is Ended.SKIPPED:
        logs = run.output.logs.get(name, ())
        return logs[-1].said if logs else "skipped"
    if outcome is Ended.TIMED_OUT and not run.line.timed_out:
        return run.panic.said if run.panic is not None else ""
    if outcome is not Ended.CRASHED:
        return ""
    if run.panic is not None:
        return f"fatal error: {run.panic.said}"
    return how_ended(run.line.code)
