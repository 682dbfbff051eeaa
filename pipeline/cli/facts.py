"""What `show` and `explain` both read of a run: its dispatches, findings, evidence, and the words for an action."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, assert_never

from pydantic import ValidationError

from pipeline.outcomes import Outcome
from pipeline.reports.findings import Stage
from pipeline.routing.actions import Again, Forward, Goto, LeaveOut, NextTask, Retry, Return, Stop
from pipeline.routing.vocabulary import Step
from pipeline.runs.records import read_record
from pipeline.service.reading import DispatchLine, EvidenceShown, FindingLine, GreenLine, RedLine
from pipeline.steps.evidence_files import TaskEvidence, name_of
from pipeline.steps.reviews import ReviewRecord
from pipeline.terminal import plain

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.evidence.ledger import RedEntry
    from pipeline.reports.findings import Finding
    from pipeline.routing.actions import Action
    from pipeline.routing.state import RunState
    from pipeline.runs.info import DispatchRecord
    from pipeline.runs.run import Run

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


def dispatch_text(line: DispatchLine) -> list[str]:
    """Return one dispatch as lines: what was asked, whether the answer counts, what the gate said and why."""
    question = f" ({line.question})" if line.question else ""
    task = f", task {line.task}" if line.task else ""
    asked = f"{line.dispatch}: @{line.role.value} {line.kind}{question}{task}, attempt {line.attempt}: "
    if line.state != "finished":
        return [asked + ("running" if line.state == "running" else "no result: its driver died; it is asked again")]
    ended = f"{line.signal.value}: {plain(line.complaint or '')}" if line.signal else "answered"
    lines = [asked + ended]
    if line.changed:
        lines.append(f"  {'admitted' if line.gate == 'admitted' else 'kept of it'}: {_listed(line.changed)}")
    lines += [f"  refused {plain(v.path)}, rule {plain(v.rule)}: {plain(v.why)}" for v in line.violations]
    if line.dropped:
        lines.append(f"  dropped as scratch: {_listed(line.dropped)}")
    lines += [f"  note: {plain(note)}" for note in line.notes]
    if line.quarantine:
        lines.append(f"  what was refused is kept in {plain(line.quarantine)}/")
    return lines


def _listed(paths: tuple[str, ...]) -> str:
    return ", ".join(map(plain, paths))


def read_review(folder: Path, stage: Stage, number: int) -> ReviewRecord | None:
    """Return the record of one review, or None where it is not on disk or not readable."""
    try:
        return ReviewRecord.model_validate_json(read_record(folder, f"reviews/{stage}-{number}.json"))
    except (OSError, ValidationError):
        return None


def finding_line(finding: Finding) -> FindingLine:
    """Return one finding."""
    return FindingLine(id=finding.id, severity=finding.severity, headline=finding.headline, location=finding.location)


def finding_text(line: FindingLine) -> str:
    """Return one finding as a line."""
    where = f" ({plain(line.location)})" if line.location else ""
    return f"{line.id} [{line.severity.value}] {plain(line.headline)}{where}"


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
        green=GreenLine(tree=green.tree, passed=green.passed, kept=green.kept, flaky=green.flaky) if green else None,
    )


def _red_line(id_: str, red: RedEntry) -> RedLine:
    facts = red.model_dump(mode="json", include={"legal", "message", "granularity"})
    return RedLine.model_validate({"id": id_, "class": red.cls.value, **facts})


def action_words(action: Action, origin: Step | None = None) -> str:
    """Return what the matrix says is to be done, in words.

    Args:
        action: The action, after bounds.
        origin: The step that a judgement was asked by, for `Return`.
    """
    match action:
        case Goto(to, ask):
            return to.value + (f" ({ask.value})" if ask else "")
        case Retry(to, loop, ask):
            return to.value + (f" ({ask.value})" if ask else "") + f", paid from {loop.value}"
        case Return(loop):
            return f"back to {origin.value if origin else 'the asker'}, paid from {loop.value}"
        case Again(loop):
            return f"ask the same agent again, paid from {loop.value}"
        case LeaveOut():
            return "go on without this agent"
        case NextTask():
            return "the next task"
        case Forward():
            return "on through the gate"
        case Stop(outcome, reason):
            return outcome.value + (f" ({reason.value})" if reason else "")
        case _:
            assert_never(action)


def then_words(action: Action, after: RunState) -> str:
    """Return what followed a decision: where the run went, and in which way when that is not plain."""
    where = standing_words(after)
    match action:
        case NextTask():
            return f"the next task: {where}" if after.current else f"no task is left: {where}"
        case Return():
            return f"back to who asked: {where}"
        case Again():
            return f"the same agent is asked again, told why: {where}"
        case LeaveOut():
            return f"on without this agent: {where}"
        case Forward():
            return f"on through the gate: {where}"
        case Goto() | Retry() | Stop():
            return where
        case _:
            assert_never(action)


def standing_words(state: RunState) -> str:
    """Return where a decision left the run: the outcome, the gate, or the step and task that came next."""
    if state.trunk.step is Step.GATE and state.trunk.gate:
        return f"waits at the gate {state.trunk.gate!r} for a person"
    if state.outcome is not None:
        reason = f" ({state.reason.value})" if state.reason else ""
        kept = f", at {state.trunk.step.value}" if state.outcome in {Outcome.PARKED, Outcome.CANCELLED} else ""
        return f"{state.outcome.value}{reason}{kept}"
    task = f", task {state.current}" if state.current else ""
    ask = f" ({state.trunk.ask.value})" if state.trunk.ask else ""
    return f"{state.trunk.step.value}{ask}{task}"
