"""Makes one `Observation` from the records of the plugin (`plugin`).

The records decide, never the exit code alone: a session that did not write its end has crashed, whatever number the
process returned (ADR-R95).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from pipeline.evidence.observation import (
    CollectionError,
    Ended,
    ForeignModule,
    Layout,
    Observation,
    RunState,
    TestRecord,
)
from pipeline.languages.python.messages import (
    CollectionErrorLine,
    FileLine,
    Finished,
    Item,
    LayoutLine,
    Limit,
    Modules,
    Phase,
    Record,
    Session,
    Start,
)
from pipeline.languages.python.packages import what_to_install

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

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
    tests = {record.path for record in everything if isinstance(record, Item) and not record.doctest}
    records = _tests(sessions, everything)
    layout = next((record for record in everything if isinstance(record, LayoutLine)), None)
    modules = [record for record in everything if isinstance(record, Modules)]
    foreign = {name: origin for record in modules for name, origin in record.foreign.items()}
    return Observation(
        state=state,
        detail=detail,
        records=records,
        collection_errors=_collection_errors(everything),
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
        return (
            RunState.UNUSABLE,
            "the test runner was tampered with: it reports a failing check as passed, or the reverse",
        )
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


def _collection_errors(everything: Iterable[Record]) -> tuple[CollectionError, ...]:
    found = {
        record.path: CollectionError(path=record.path, fault=record.fault)
        for record in everything
        if isinstance(record, CollectionErrorLine)
    }
    return tuple(found[path] for path in sorted(found))


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
            tests |= {
                entry: tests[entry].model_copy(update={"outcome": Ended.CRASHED, "reason": why, "reach": None})
                for entry in ran
            }
    for session in sessions:
        open_id = session.unfinished
        if open_id in tests:
            ended = Ended.TIMED_OUT if session.timed_out or open_id in limited else Ended.CRASHED
            tests[open_id] = tests[open_id].model_copy(update={"outcome": ended, "reach": None})
    return tests


_WORST_FIRST: Final = ("failed", "strict_xpass", "skipped", "xfailed", "xpassed", "passed")


def _ended(test: TestRecord, finished: Finished) -> TestRecord:
    """Return the record completed by its worst phase; of equal ones the first counts, and re-runs do not.

    A sub-test that was skipped says nothing of its test, which has a report of its own.
    """
    phases = [phase for phase in finished.phases if phase.outcome != "rerun" and not _is_left_out(phase)]
    worst = min(phases, key=lambda phase: _WORST_FIRST.index(phase.outcome), default=None)
    called = any(phase.when == "call" and not phase.sub for phase in phases)
    whole = worst is not None and (worst.outcome != "passed" or called)
    unlimited = Ended(worst.outcome) if worst is not None and whole else Ended.CRASHED
    outcome = Ended.TIMED_OUT if finished.timed_out else unlimited
    if worst is not None and test.outcome is not None and _worse(test.outcome, outcome):
        return test  # two items with the same id: the worse one speaks
    return test.model_copy(
        update={
            "outcome": outcome,
            "phase": worst.when if worst is not None else "",
            "reason": worst.reason if worst is not None else "",
            "fault": worst.fault if worst is not None else None,
            "reach": finished.reach,
        }
    )


def _is_left_out(phase: Phase) -> bool:
    return phase.sub and phase.outcome in {"skipped", "xfailed"}


def _worse(left: Ended, right: Ended) -> bool:
    order = ("crashed", "timed_out", *_WORST_FIRST)
    return order.index(left) < order.index(right)
