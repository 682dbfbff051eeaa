"""Holds acceptance criteria against what shows them: @test names tests or reasons, the final review answers for each.

A task with one criterion needs no list: all of its tests show it, and the verdict answers for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pipeline.judge.evidence.written_ids import forms, meant, wrong
from pipeline.judge.reports.decode import Malformed
from pipeline.judge.reports.fields import Concern, Report, Severity, Verdict
from pipeline.judge.reports.findings import MeasuredFinding
from pipeline.judge.reports.reviews import FAULTS, CheckReview, ResultReview, ToAnswer, WorkFinding
from pipeline.judge.reports.work_reports import ReadyTests

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pipeline.judge.evidence.observation import Observation
    from pipeline.judge.reports.tasks import Task

_FORMS: Final = 8
_TOLD: Final = 5


def unshown(task: Task, report: Report) -> Malformed | None:
    """Return what is wrong with a TESTS_READY that leaves a criterion without a test and without a reason."""
    if not isinstance(report, ReadyTests) or len(task.criteria) <= 1:
        return None
    said = {shown.id for shown in report.criteria if shown.tests or shown.reason.strip()}
    known = {criterion.id for criterion in task.criteria}
    strange = next((shown.id for shown in report.criteria if shown.id not in known), None)
    if strange is not None:
        accepted = f"{', '.join(sorted(known))}, the ids of the list of acceptance criteria in the task's file"
        return Malformed(f"{strange!r} is no criterion; accepted: {accepted}.", "/criteria")
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
        if not meant(name, after.records)
    )


def unknown_guards(report: ReadyTests, after: Observation) -> tuple[str, ...]:
    """Return one sentence for each test that @test marks as GUARD and that the suite does not have."""
    return tuple(
        f"`tests` marks {named.id} as GUARD, which is not in the suite"
        for named in report.tests
        if named.expected == "GUARD" and not meant(named.id, after.records)
    )


def named_ids(report: ReadyTests, *, is_changed: bool) -> list[tuple[str, str]]:
    """Return each id in a report that decides something, with its place.

    Args:
        report: Of @test.
        is_changed: Whether it changed a file. Then RED is found without being named, and a note on it decides nothing.
    """
    return [
        *(
            (f"/tests/{n}/id", one.id)
            for n, one in enumerate(report.tests)
            if one.origin != "removed" and (one.expected == "GUARD" or not is_changed)
        ),
        *((f"/criteria/{n}/tests", name) for n, one in enumerate(report.criteria) for name in one.tests),
    ]


def wrong_ids(report: Report, after: Observation, *, is_changed: bool) -> Malformed | None:
    """Return what is wrong with the ids in a report on tests: one that the suite lacks, or that several tests end in.

    Args:
        report: Of @test.
        after: The suite with its tests; where a file of it cannot be loaded yet, its ids are not known.
        is_changed: Whether it changed a file. Then RED is found without being named, and a note on it decides nothing.
    """
    if not isinstance(report, ReadyTests) or after.collection_errors or not after.records:
        return None
    named = named_ids(report, is_changed=is_changed)
    doubts = {name: wrong(name, after.records) for _, name in named}
    told = dict.fromkeys(f"At {place} {name!r}: {doubts[name]}" for place, name in named if doubts[name])
    if not told:
        return None
    looks = ", ".join(forms(after.records)[:_FORMS])
    return Malformed(
        f"The tests were not judged: the report names ids wrongly. {'; '.join(list(told)[:_TOLD])}. Any end of an id "
        f"that only one test has is enough; ids of this suite: {looks}. Nothing but the report has to change.",
        next(place for place, name in named if doubts[name]),
    )


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
            "`met`, and a `note` where it is not met. For `faults` always say in `note` why no test has "
            "to notice them.",
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


def with_unmet(report: CheckReview, wanted: Sequence[ToAnswer]) -> tuple[CheckReview, tuple[ToAnswer, ...]]:
    """Return a final review in which a criterion that is not met is a finding, where no other finding stands.

    A finding that its proof refutes does not stand: what it was about would be accepted with it. Where one stands, the
    criteria of *wanted* that are not met are returned beside the review: the next one answers for them, since mending
    the finding need not meet them.
    """
    if not isinstance(report, ResultReview):
        return report, ()
    stands = any(not (isinstance(one, MeasuredFinding) and one.is_refuted) for one in report.findings)
    stands = stands or any(answer.status == "open" for answer in report.prior)
    unmet = {(one.task, one.id): one for one in report.criteria if not one.met and one.id != FAULTS}
    if stands:
        return report, tuple(one for one in wanted if (one.task, one.id) in unmet)
    raised = tuple(
        WorkFinding(
            severity=Severity.HIGH,
            title=f"Criterion {one.id} of task {one.task} is not met",
            problem=one.note.strip() or "The review says that it is not met, and gives no reason.",
            evidence=f"the review's own answer for {one.id}",
            concern=Concern.PRODUCTION,
        )
        for one in unmet.values()
    )
    return report.model_copy(update={"findings": (*report.findings, *raised)}) if raised else report, ()
