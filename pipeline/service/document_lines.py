"""Defines the lines that the documents of `show` and `explain` share: dispatches, findings, evidence."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pydantic import ValidationError

from pipeline.measure.task_evidence import TaskEvidence, name_of
from pipeline.policy.characters import visible
from pipeline.reports.findings import Stage
from pipeline.routing.vocabulary import Signal, Step
from pipeline.runs.records import read_record
from pipeline.service.documents import DispatchLine, EvidenceShown, FindingLine, GreenLine, RedLine
from pipeline.steps.asking.review_record import ReviewRecord

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.evidence.red_tests import RedEntry
    from pipeline.reports.findings import Finding
    from pipeline.runs.info import DispatchRecord
    from pipeline.runs.run import Run

TO_FIX: Final = frozenset({Signal.NEEDS_WORK, Signal.BLOCK, Signal.FIX, Signal.PROVED, Signal.COSMETIC, Signal.PLAN})
"""What a review may come down to that sends its findings to be fixed."""
STAGES: Final = {Step.REVIEW_PLAN: Stage.PLAN, Step.REVIEW_SPLIT: Stage.SPLIT, Step.FINAL_REVIEW: Stage.FINAL}


def dispatch_line(run: Run, record: DispatchRecord, *, live: bool) -> DispatchLine:
    """Return one dispatch with its result, if it has one."""
    result = run.results.get(record.dispatch)
    quarantine = f"quarantine/{record.dispatch}"
    unfinished = "running" if live else "lost"
    return DispatchLine(
        dispatch=record.dispatch,
        role=record.role,
        kind=record.kind,
        question=record.question,
        task=record.task,
        attempt=record.attempt,
        reask=record.reask,
        backend=record.backend,
        state="finished" if result else unfinished,
        signal=result.signal if result else None,
        complaint=result.complaint if result else None,
        gate=result.gate if result else None,
        changed=tuple(change.path for change in result.changes) if result else (),
        violations=result.violations if result else (),
        dropped=result.dropped if result else (),
        notes=result.notes if result else (),
        quarantine=quarantine if (run.folder / quarantine).is_dir() else None,
        usage=result.usage if result else None,
    )


def read_review(folder: Path, stage: Stage, number: int) -> ReviewRecord | None:
    """Return the record of one review, or None where it is not on disk or not readable."""
    try:
        return ReviewRecord.model_validate_json(read_record(folder, f"reviews/{stage}-{number}.json"))
    except (OSError, ValidationError):
        return None


def finding_line(finding: Finding) -> FindingLine:
    """Return one finding."""
    return FindingLine(
        id=finding.id,
        severity=finding.severity,
        headline=finding.headline,
        location=finding.location,
        proof=finding.measured.found if finding.measured is not None else None,
    )


def finding_text(line: FindingLine) -> str:
    """Return one finding as a line."""
    where = f" ({visible(line.location)})" if line.location else ""
    proof = f", {line.proof}" if line.proof is not None else ""
    return f"{line.id} [{line.severity.value}{proof}] {visible(line.headline)}{where}"


def read_evidence(folder: Path, task: str) -> EvidenceShown | None:
    """Return the evidence of a task, or None where there is none that can be read."""
    name = name_of(task)
    try:
        found = TaskEvidence.model_validate_json(read_record(folder, name))
    except (OSError, ValidationError):
        return None
    ledger, green = found.ledger, found.green
    not_testable: dict[str, Any] | None = dict(found.not_testable) if found.not_testable is not None else None
    return EvidenceShown(
        path=name,
        red=tuple(_red_line(id_, red) for id_, red in sorted(ledger.red.items())) if ledger else (),
        guards=tuple(sorted(ledger.guards)) if ledger else (),
        not_testable=not_testable,
        judged_by=found.judged_by,
        proved_by=found.proved_by,
        green=GreenLine(tree=green.tree, passed=green.passed, kept=green.kept, flaky=green.flaky) if green else None,
    )


def _red_line(id_: str, red: RedEntry) -> RedLine:
    facts = red.model_dump(mode="json", include={"legal", "message", "granularity"})
    return RedLine.model_validate({"id": id_, "class": red.cls.value, **facts})
