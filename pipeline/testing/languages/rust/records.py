"""Makes one `Observation` from the records of a test run. The records decide, never an exit code alone."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from pipeline.judge.evidence.observation import Ended, Fault, Frame, Observation, Raised, Reach, RunState, TestRecord
from pipeline.testing.languages.runners.exec_guard import REPLACED, how_ended
from pipeline.testing.languages.runners.sessions import Session, Told, relative, state_of
from pipeline.testing.languages.rust import output
from pipeline.testing.languages.sources.syntax_trees import with_helpers

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pipeline.testing.languages.rust.project import Project, Test

_FAILED_CODE: Final = 101
_COUNTED: Final = re.compile(r"(?:^|\n)test result: FAILED\. ")
_DOCTEST_RESULT: Final = re.compile(r"^test (?P<name>.+?) \.\.\. (?P<said>ok|FAILED|ignored)", re.MULTILINE)
_OF_DOCTEST: Final = {"ok": Ended.PASSED, "FAILED": Ended.FAILED, "ignored": Ended.SKIPPED}
_STACK: Final = re.compile(r"^stack backtrace:\n(?: +.*\n)+(?:note: Some details.*\n)?", re.MULTILINE)
_REDACTED: Final = re.compile(r"(thread '.*') \(\d+\)( panicked at )(?:/.*/rustdoctest\w+/)?")
"""Text that differs from run to run: the thread's number, and the folder in which an example was compiled."""


def observe(
    project: Project,
    session: Session,
    asked: frozenset[str],
    told: Told,
    *,
    trace: bool,
    timed_out: bool,
) -> Observation:
    """Return the observation of a run of chosen tests.

    Args:
        project: What was compiled.
        session: The records of the run.
        asked: The ids to run; examples run by the package, asked or not.
        told: What people are told of it.
        trace: Say what the tests reach, as far as it is known.
        timed_out: The box ended the run.
    """
    there = [(test, test.function) for test in (*project.tests.values(), *project.hidden.values())]
    documented = [(test, test.id) for test in project.doctests.values()]
    records = {
        test.id: TestRecord(id=test.id, function=function, path=test.path, region_sha256=test.sha256)
        for test, function in (*there, *documented)
    }
    ignored = (test for test in project.tests.values() if test.is_ignored)
    for test in ignored:
        reason = (test.source and test.source.ignored) or "ignored"
        skipped = {"outcome": Ended.SKIPPED, "phase": "call", "reason": reason}
        records[test.id] = records[test.id].model_copy(update=skipped)
    said: list[str] = []
    for line in session.records:
        if isinstance(line, output.TestEnded) and line.id in asked:
            test = project.tests[line.id]
            records[line.id] = _ran(project, test, line, records[line.id], trace=trace)
            if records[line.id].outcome is not Ended.PASSED:
                said.append(f"---- {line.id} ----\n{line.stdout}{line.stderr}")
        elif isinstance(line, output.DoctestsRan):
            found = _doctests(project, line, records)
            records |= {entry: one for entry, one in found.items() if entry in asked and not records[entry].ran}
            said.append(line.stdout + line.stderr)
    records |= {entry: record for entry, record in _untold(project, session, records).items() if entry in asked}
    end = state_of(session, timed_out=timed_out)
    if not session.fault and (too_many := output.excess(session)):
        end = RunState.UNUSABLE, too_many
    return told.observation(project, session, records, end, said, _STACK)


def rendered(session: Session) -> str:
    """Return the compiler's errors as it prints them."""
    errors = (line.message.message for line in session.of(output.ErrorLine))
    built = (line.stderr for line in session.of(output.Built) if line.code)
    return "\n".join((*(error.rendered or error.message for error in errors), *built))


def _ran(project: Project, test: Test, line: output.TestEnded, record: TestRecord, *, trace: bool) -> TestRecord:
    outcome = _outcome(test, line)
    cwd = f"{project.workspace}/{test.unit.folder}".rstrip("/")
    printed = output.Printed(test.name, line.stdout, line.stderr, cwd)
    fault = _fault(project, test, line, printed) if outcome is Ended.FAILED else None
    # nothing is traced: of a test that passes it is not known what it reached, only what it mentions
    reach = _reach(project, test, fault, printed) if trace and fault is not None else None
    crashed = how_ended(line.code) if outcome is Ended.CRASHED else ""
    refused = REPLACED if line.replaced and outcome is not Ended.PASSED else ""
    reason = "; ".join(filter(None, (crashed, refused)))
    return record.model_copy(
        update={"outcome": outcome, "phase": "call", "fault": fault, "reach": reach, "reason": reason}
    )


def _outcome(test: Test, line: output.TestEnded) -> Ended:
    if line.timed_out:
        return Ended.TIMED_OUT
    if line.code < 0:
        return Ended.CRASHED
    if test.unit.own_harness:
        return Ended.FAILED if line.code else Ended.PASSED
    if line.code == 0:  # whoever exits early has not come to libtest's last word, which its first thread has
        return Ended.PASSED if _is_last_word(test, line.stdout) and not line.left_aside else Ended.CRASHED
    return Ended.FAILED if line.code == _FAILED_CODE and _COUNTED.search(line.stdout) else Ended.CRASHED


def _is_last_word(test: Test, stdout: str) -> bool:
    """Return whether the output ends as libtest's does when exactly this test passed; other code can only guess it."""
    others = len(test.unit.names or ()) - 1
    name = rf"test {re.escape(test.name)}(?: - should panic)? \.\.\. "
    result = rf"test result: ok\. 1 passed; 0 failed; 0 ignored; 0 measured; {others} filtered out; "
    return re.search(rf"{name}(?:.*\n)*?ok\n\n{result}finished in [\d.]+s\s*\Z", stdout) is not None


def _fault(project: Project, test: Test, line: output.TestEnded, printed: output.Printed) -> Fault:
    path, first = test.path, test.source.first if test.source is not None else 1
    region = f"{path}{output.REGION}" if path and project.is_region(path, first) else path
    at = Frame(path=region, line=first, function=test.name.replace("::", "."))
    if test.unit.own_harness:
        said = Raised(kind="exit", bases=("AssertionError",), message=f"exited with {line.code}")
        return Fault(chain=(said,), frames=(at,))
    return relative(output.of_panic(printed, project, at=at), project.workspace)


def _reach(project: Project, test: Test, fault: Fault, printed: output.Printed) -> Reach:
    """Return the known reach of a test: production frames of its panics, and names in its code."""
    own = [frame for frame in (*fault.frames, *printed.reached(project)) if frame.path]
    entered = [f"{frame.path}::{frame.function}" for frame in own if not project.layout.is_test_side(frame.path)]
    own_names = test.source.mentions if test.source is not None else ()
    mentioned = with_helpers(own_names, test.unit.crate.helpers)  # what a helper of the tests mentions counts as well
    known = _production(project)
    references = sorted(f"{known[name]}::{name}" for name in mentioned & set(known))
    doors = ("process",) if "Command" in mentioned else ()
    return Reach(functions=tuple(dict.fromkeys(entered)), references=tuple(references), doors=doors)


def _production(project: Project) -> Mapping[str, str]:
    """Return the names that production defines, library names included, with their files."""
    found: dict[str, str] = {}
    for unit in project.units:
        if not unit.target.is_test:
            found |= unit.crate.defined
            found[unit.target.name.replace("-", "_")] = unit.crate.root
    return found


def _doctests(project: Project, line: output.DoctestsRan, records: Mapping[str, TestRecord]) -> dict[str, TestRecord]:
    by_name = {test.name: test for test in project.doctests.values() if test.package == line.package}
    found: dict[str, TestRecord] = {}
    for result in _DOCTEST_RESULT.finditer(line.stdout):
        name, fault = result["name"], None
        if name not in by_name:
            continue
        test, outcome = by_name[name], _OF_DOCTEST[result["said"]]
        if outcome is Ended.FAILED:
            raised = Raised(kind="doctest", bases=("AssertionError",), message=_section(line.stdout, name))
            fault = Fault(chain=(raised,), frames=(Frame(path=test.path, line=test.line),))
        update = {"outcome": outcome, "phase": "call", "fault": fault}
        found[test.id] = records[test.id].model_copy(update=update)
    for test in (by_name[name] for name in line.hung if name in by_name):
        found[test.id] = records[test.id].model_copy(update={"outcome": Ended.TIMED_OUT, "phase": "call"})
    return found


def _untold(project: Project, session: Session, records: Mapping[str, TestRecord]) -> dict[str, TestRecord]:
    """Return records for the examples that rustdoc should have run but did not report, with the reason."""
    last = {line.package: line for line in session.of(output.DoctestsRan)}
    found: dict[str, TestRecord] = {}
    for test in project.doctests.values():
        if test.package in last and not records[test.id].ran:
            ended = last[test.package]
            how = "the examples were ended first" if ended.timed_out else f"rustdoc ended with {ended.code}"
            found[test.id] = records[test.id].model_copy(update={"reason": f"it did not come to an end: {how}"})
    return found


def _section(stdout: str, name: str) -> str:
    _, _, after = stdout.partition(f"---- {name} stdout ----\n")
    said = _STACK.sub("", after.partition("\n---- ")[0])
    return _REDACTED.sub(r"\1\2", said)[:2000].strip() or "failed"
