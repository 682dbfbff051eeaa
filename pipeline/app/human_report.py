"""Checks a person's report before it is handed in: what it answers for, what ACCEPTABLE says, whether it counts."""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from pipeline.config.user_folders import short
from pipeline.errors import UserError
from pipeline.judge.reports.decode import Malformed
from pipeline.judge.reports.drafts import PlanAndTasks, PlanReport, SplitReport
from pipeline.judge.reports.fields import Report, Verdict
from pipeline.judge.reports.findings import capped, headline
from pipeline.judge.reports.parse import parse_report, report_faults
from pipeline.judge.reports.reviews import FAULTS, CheckReview, SplitAnswers, SuiteJudgement, WorkFinding
from pipeline.judge.reports.schema_errors import Fault
from pipeline.judge.reports.taskfile import parse_task_md
from pipeline.judge.reports.tasks import Task
from pipeline.judge.reports.work_reports import Built, ReadyTests
from pipeline.outcomes import Reason
from pipeline.steps.asking import criteria
from pipeline.steps.asking.reviews import open_questions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from pipeline.agents.backends.desk import Asked, Desk
    from pipeline.agents.backends.layout import Difference
    from pipeline.judge.reports.proofs import Edit

_BLOCKING: Final = ("BLOCK", "HIGH")
SHOWS_CRITERIA: Final = ("write-tests", "build")
"""The kinds whose report says which tests show which criterion."""
_WORK: Final = ("implement", "stub", "seam")
_EARLIER: Final = ("diagnosis", "measured", "candidate_patch")
"""The artifacts of who is asked again: work can lie at the desk."""
_ANSWERED: Final = ("review-plan", "review-split")
"""The kinds that answer the questions of a split, where there are tasks."""


def tasks_of(asked: Asked) -> list[Task]:
    """Return the tasks that are asked about."""
    files = [*asked.artifact("tasks"), *asked.artifact("task")]
    found = [parse_task_md(file.read_text(encoding="utf-8")) for file in files]
    return [task for task in found if isinstance(task, Task)]


def accepted(asked: Asked, content: Mapping[str, Any], *, prior: bool) -> dict[str, Any]:
    """Return a review with all that ACCEPTABLE says where nothing else is said: each question, each criterion.

    Args:
        asked: What is asked.
        content: The report.
        prior: Whether it also says that every open finding is resolved.
    """
    found = dict(content)
    if found.get("verdict") != Verdict.ACCEPTABLE.value:
        return found
    if asked.kind in _ANSWERED and "answers" not in asked.without:
        found["answers"] = {**dict.fromkeys(SplitAnswers.model_fields, True), **found.get("answers", {})}
    if asked.to_answer:
        said = list(found.get("criteria", ()))
        known = {(one.get("task"), one.get("id")) for one in said}
        left = (one for one in asked.to_answer if one.id != FAULTS and (one.task, one.id) not in known)
        found["criteria"] = [*said, *({"task": one.task, "id": one.id, "met": True} for one in left)]
    if prior and (open_ones := asked.open_findings()):
        found["prior"] = [{"id": one.id, "status": "resolved"} for one in open_ones]
    return found


def check(desk: Desk, asked: Asked, content: dict[str, Any]) -> None:
    """Return when the report can count.

    Raises:
        UserError: it cannot; `pointer` says where.
    """
    found = parse_report(asked.kind, asked.role, asked.question, content)
    faults = (
        [Fault(found.pointer, found.sentence)] if isinstance(found, Malformed) else _untrue(desk, asked, content, found)
    )
    if faults:
        how = f"Give a filled-in copy of {short(desk.template, os.environ)} with --report FILE."
        raise _refusal(asked, faults[0], how)


def check_work(asked: Asked, content: Mapping[str, Any], difference: Difference) -> None:
    """Return when the report fits what was changed at the desk.

    Raises:
        UserError: it says that all is done, and nothing was.
    """
    if (fault := unchanged(asked, content, difference)) is not None:
        raise _refusal(asked, fault)


def _refusal(asked: Asked, fault: Fault, how: str = "") -> UserError:
    said = f"Nothing was handed in. {fault.text.rstrip('.')}. {how}".rstrip()
    return UserError(said, Reason.USAGE, pointer=fault.pointer, details={"dispatch": asked.dispatch})


def unchanged(asked: Asked, content: Mapping[str, Any], difference: Difference) -> Fault | None:
    """Return what is wrong with COMPLETE where nothing was done: it would cost a try.

    What was asked before may have left work at the desk that is enough.
    """
    if content.get("result") != "COMPLETE" or asked.kind not in _WORK or not asked.write:
        return None
    if asked.reask or any(map(asked.artifact, _EARLIER)) or difference.changed or difference.removed:
        return None
    return Fault(
        "/result",
        "COMPLETE, and nothing is changed at the desk: that is no work, and would cost a try. Change what you may "
        "change there, or say INCOMPLETE with `blocking_issue`, or CANNOT_PROCEED with `missing` (--give-up REASON).",
    )


def remarks(asked: Asked, content: Mapping[str, Any]) -> list[str]:
    """Return how a report that counts is taken otherwise than it says: a finding weighs what its evidence bears."""
    report = parse_report(asked.kind, asked.role, asked.question, content)
    found = report.findings if isinstance(report, CheckReview | SuiteJudgement) else ()
    return [
        f"{headline(one)!r} ({one.severity}) counts as {capped(one)}: it has no evidence"
        + (", unless its proof holds" if isinstance(one, WorkFinding) and one.proof is not None else "")
        for one in found
        if capped(one) is not one.severity
    ]


def faults_of(desk: Desk, asked: Asked, content: dict[str, Any]) -> list[Fault]:
    """Return everything that keeps a report from counting, each with its place."""
    found = parse_report(asked.kind, asked.role, asked.question, content)
    if isinstance(found, Malformed):
        return report_faults(asked.kind, asked.role, asked.question, content)
    return _untrue(desk, asked, content, found)


def _untrue(desk: Desk, asked: Asked, content: Mapping[str, Any], report: Report) -> list[Fault]:
    """Return what is wrong with a well-formed report: the run would ask again, or go on as if nothing were said."""
    found = [_without_a_finding(content), _unanswered(asked, content)]
    for refuse in _refusals(asked):
        malformed = refuse(report)
        found += [Fault(malformed.pointer, malformed.sentence)] if malformed is not None else []
    if isinstance(report, CheckReview | SuiteJudgement):
        found += proof_faults(desk, report)
    if isinstance(report, PlanReport | PlanAndTasks | SplitReport):
        from pipeline.app.report_faults import draft_faults  # noqa: PLC0415  (it loads all that drives a run)

        found += draft_faults(asked, content, report)
    if isinstance(report, ReadyTests | Built):
        from pipeline.app.report_faults import id_faults  # noqa: PLC0415  (it reads what was measured, and files)

        found += id_faults(desk, asked, report.on_tests if isinstance(report, Built) else report)
    return [fault for fault in found if fault is not None]


def _refusals(asked: Asked) -> list[Callable[[Report], Malformed | None]]:
    """Return what the run itself asks of such a report, as far as it can be known here."""
    tasks = tasks_of(asked)
    match asked.kind:
        case "write-tests" if tasks:
            return [partial(criteria.unshown, tasks[0])]
        case "build" if tasks:
            return [lambda report: criteria.unshown(tasks[0], report.on_tests) if isinstance(report, Built) else None]
        case "review-result":
            return [partial(criteria.unanswered, asked.to_answer)]
        case "review-plan" | "review-split" if "answers" not in asked.without and not asked.reask:
            return [open_questions]
        case _:
            return []


def _without_a_finding(content: Mapping[str, Any]) -> Fault | None:
    """Return what is wrong with a verdict that holds nothing up: without a finding it counts as ACCEPTABLE."""
    prior: list[dict[str, Any]] = content.get("prior") or []
    stands = any(entry.get("status") == "open" for entry in prior)
    if content.get("verdict") not in {"NEEDS WORK", "BLOCK"} or content.get("findings") or stands:
        return None
    return Fault(
        "/findings",
        f"{content['verdict']} needs a finding, else it would count as ACCEPTABLE. Give a report "
        'with a finding: "findings": [{"severity": "HIGH", "title": "...", "problem": "...", "suggestion": "...", '
        '"evidence": "..."}]',
    )


def _unanswered(asked: Asked, content: Mapping[str, Any]) -> Fault | None:
    """Return what is wrong with accepting what has open blockers that nobody answers: the run would ask again."""
    answered = {entry.get("id") for entry in content.get("prior") or ()}
    left = [one.id for one in asked.open_findings() if one.severity in _BLOCKING and one.id not in answered]
    if content.get("verdict") != Verdict.ACCEPTABLE.value or not left:
        return None
    return Fault(
        "/prior",
        f"The verdict is ACCEPTABLE, and {', '.join(left)} has no answer in `prior`. Answer each open finding, as "
        f'resolved, open or withdrawn: "prior": [{{"id": "{left[0]}", "status": "resolved", "note": "..."}}]',
    )


def proof_faults(desk: Desk, report: CheckReview | SuiteJudgement) -> list[Fault]:
    """Return what keeps proofs from being run, as far as it can be seen at the desk."""
    found: list[Fault] = []
    for number, finding in enumerate(report.findings):
        proof, at = getattr(finding, "proof", None), f"/findings/{number}/proof"
        if proof is None:
            continue
        if proof.test is not None and (desk.files / proof.test.path).exists():
            said = f"{proof.test.path} is there already: a proof is a new file. Remove what you tried at your desk."
            found.append(Fault(f"{at}/test/path", said))
        if proof.edit is not None:
            found += [Fault(f"{at}/edit/{key}", said) for key, said in _of_edit(desk.files, proof.edit)]
    return found


def _of_edit(files: Path, edit: Edit) -> Iterator[tuple[str, str]]:
    try:
        content = (files / edit.path).read_bytes()
    except OSError:
        yield "path", f"{edit.path} is no file of the work."
        return
    if (times := content.count(edit.old.encode())) != 1:
        yield "old", f"It is {times} times in {edit.path}: give so much of the text that it is there once."
