"""Holds acceptance criteria against what shows them: @test names tests or reasons, the final review answers for each.

A task with one criterion needs no list: all of its tests show it, and the verdict answers for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pipeline.evidence.red import may_change
from pipeline.reports.decode import Malformed
from pipeline.reports.fields import Verdict
from pipeline.reports.reviews import ResultReview, ToAnswer
from pipeline.reports.work import ReadyTests

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pipeline.evidence.observation import Observation, TestRecord
    from pipeline.reports.fields import Report
    from pipeline.reports.tasks import Task

FAULTS: Final = "faults"
"""The id under which the final review answers for functions of which no test notices anything."""


def unshown(task: Task, report: Report) -> Malformed | None:
    """Return what is wrong with a TESTS_READY that leaves a criterion without a test and without a reason."""
    if not isinstance(report, ReadyTests) or len(task.criteria) <= 1:
        return None
    said = {shown.id for shown in report.criteria if shown.tests or shown.reason.strip()}
    unknown = _unknown((shown.id for shown in report.criteria), {criterion.id for criterion in task.criteria})
    if unknown is not None:
        return unknown
    left = [criterion for criterion in task.criteria if criterion.id not in said]
    if not left:
        return None
    words = "; ".join(f"{criterion.id} ({criterion.text})" for criterion in left)
    return Malformed(
        f"No test and no reason is given for {words}. `criteria` takes one entry for each criterion of the task: its "
        "`id`, and the `tests` that show it or the `reason` why none does.",
        "/criteria",
    )


def missing_tests(report: ReadyTests, after: Observation) -> tuple[str, ...]:
    """Return one sentence for each test that a criterion names and that the suite does not have.

    Args:
        report: Of @test.
        after: The suite with its tests; what is in a file that cannot be loaded yet is not known.
    """
    if after.collection_errors:
        return ()
    return tuple(
        f"{shown.id} names the test {name}, which is not in the suite"
        for shown in report.criteria
        for name in shown.tests
        if not any(_is_called(record, name) for record in after.records.values())
    )


def unknown_guards(report: ReadyTests, after: Observation) -> tuple[str, ...]:
    """Return one sentence for each test that @test marks as GUARD and that the suite does not have."""
    return tuple(
        f"`tests` marks {named.id} as GUARD, which is not in the suite"
        for named in report.tests
        if named.expected == "GUARD" and not any(_is_called(record, named.id) for record in after.records.values())
    )


def _is_called(record: TestRecord, name: str) -> bool:
    return may_change(record, frozenset({name})) or record.last_name == name


def to_answer(tasks: Sequence[Task], unnoticed: Mapping[str, Sequence[str]]) -> tuple[ToAnswer, ...]:
    """Return what the first final review answers: the criteria of tasks with several, and functions without a test.

    Args:
        tasks: What was done.
        unnoticed: By task, the changed functions of which no test notices anything: for these a reason is wanted.
    """
    several = [task for task in tasks if len(task.criteria) > 1]  # for one the verdict answers
    wanted = [ToAnswer(task=task.id, id=one.id, text=one.text) for task in several for one in task.criteria]
    for task, functions in unnoticed.items():
        text = f"no test notices a fault in {', '.join(functions)}; a `note` in any case"
        wanted.append(ToAnswer(task=task, id=FAULTS, text=text))
    return tuple(wanted)


def unanswered(wanted: Sequence[ToAnswer], report: Report) -> Malformed | None:
    """Return what is wrong with a final review that leaves out one of *wanted*."""
    if not isinstance(report, ResultReview):
        return None
    answered = {(each.task, each.id) for each in report.criteria if each.id != FAULTS or each.note.strip()}
    left = "; ".join(f"task {one.task}, {one.id} ({one.text})" for one in wanted if (one.task, one.id) not in answered)
    if left:
        return Malformed(
            f"No answer is given for {left}. `criteria` takes one entry for each criterion of each task: `task`, `id`, "
            "`met`, and a `note` where it is not met; for `faults` always a `note`: why no test has to notice them.",
            "/criteria",
        )
    unmet = [answer for answer in report.criteria if not answer.met]
    if unmet and report.verdict is Verdict.ACCEPTABLE:
        first = unmet[0]
        return Malformed(
            f"Criterion {first.id} of task {first.task} is not met, and the verdict is ACCEPTABLE. Say what is "
            "missing in a finding, with the concern that sends it where it can be mended; the verdict follows from it.",
            "/verdict",
        )
    return None


def _unknown(named: Iterable[str], known: set[str]) -> Malformed | None:
    strange = next((name for name in named if name not in known), None)
    accepted = ", ".join(sorted(known))
    whence = "the ids of the list of acceptance criteria in the task's file"
    told = f"{strange!r} is no criterion; accepted: {accepted}, {whence}."
    return None if strange is None else Malformed(told, "/criteria")
