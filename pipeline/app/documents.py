"""Defines and reads the lines that documents share: tasks, evidence, findings, reviews, dispatches, checks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, Literal

from pydantic import Field, ValidationError

from pipeline.characters import visible
from pipeline.data_types import Frozen
from pipeline.judge.reports.fields import Severity
from pipeline.judge.reports.findings import Finding, Stage
from pipeline.matrix.routing.state import TaskStatus
from pipeline.outcomes import status_word
from pipeline.run.info import DispatchRecord, DispatchResult, Usage, ViolationRecord
from pipeline.run.records import MIB, read_record
from pipeline.run.store import issue_of
from pipeline.steps.asking.review_record import ReviewRecord
from pipeline.testing.measure.task_evidence import TaskEvidence, name_of
from pipeline.vocabulary import Role, Signal, Step
from todo import MappingSource, Tracker, TrackerError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pipeline.errors import UserError
    from pipeline.run.run import Decided, Run
    from pipeline.run.spending import AnyRun


TO_FIX: Final = frozenset({Signal.NEEDS_WORK, Signal.BLOCK, Signal.FIX, Signal.PROVED, Signal.COSMETIC, Signal.PLAN})
"""What a review may come down to that sends its findings to be fixed."""
STAGES: Final = {Step.REVIEW_PLAN: Stage.PLAN, Step.REVIEW_SPLIT: Stage.SPLIT, Step.FINAL_REVIEW: Stage.FINAL}


class RedLine(Frozen):
    """One RED id: its class, and why that is (or is not) a legal reason (matrix 5)."""

    id: str
    red_class: str = Field(validation_alias="class", serialization_alias="class")
    legal: bool
    message: str
    granularity: Literal["id", "file"]


class GreenLine(Frozen):
    """What was measured GREEN: the ids of the task, and how many other tests were kept."""

    tree: str
    passed: tuple[str, ...]
    kept: int
    flaky: tuple[str, ...]


class EvidenceShown(Frozen):
    """A task's evidence as it is on disk."""

    path: str
    red: tuple[RedLine, ...]
    guards: tuple[str, ...]
    not_testable: Mapping[str, Any] | None
    judged_by: str | None
    proved_by: str | None = None
    """The finding whose proof the tests are."""
    green: GreenLine | None


class TaskShown(Frozen):
    """One task with its evidence."""

    id: str
    title: str
    state: TaskStatus
    testable: bool
    evidence: EvidenceShown | None


class FindingLine(Frozen):
    """One finding of a review."""

    id: str
    severity: Severity
    headline: str
    location: str
    proof: Literal["proved", "refuted", "unproved"] | None = None
    """What came of its proof; null where it has none."""


class ReviewShown(Frozen):
    """One review: what the reviewers said, what the harness made of it, what must be fixed and what is open."""

    path: str
    stage: str
    number: int
    verdict: str | None
    advice: str | None
    signal: Signal
    must_fix: tuple[str, ...]
    open: tuple[FindingLine, ...]
    refuted: tuple[FindingLine, ...] = ()


class DispatchLine(Frozen):
    """One dispatch: who was asked what, whether the answer counts, what the gate said of the changes."""

    dispatch: str
    role: Role
    kind: str
    question: str | None
    task: str | None
    attempt: int
    reask: str | None
    backend: str
    state: Literal["finished", "running", "lost"]
    signal: Signal | None
    complaint: str | None
    gate: Literal["admitted", "rejected"] | None
    changed: tuple[str, ...]
    violations: tuple[ViolationRecord, ...]
    dropped: tuple[str, ...]
    notes: tuple[str, ...]
    quarantine: str | None
    usage: Usage | None


class DiffFile(Frozen):
    """One path that differs; the counts of lines are null for a binary file."""

    path: str
    added: int | None
    deleted: int | None


def standing_of(run: AnyRun, driven: str = "running") -> str:
    """Return how a run stands, in a word; *driven* is the one where it has no outcome and was not answered."""
    outcome = run.state.outcome
    return "queued" if run.queued else driven if outcome is None else status_word(outcome, run.state.reason)


def title_of(folder: Path) -> str:
    """Return the title of a run's issue; nothing where there is no copy of it, or none that can be read."""
    issue = issue_of(folder.name) or ""
    try:
        content = read_record(folder, "issue.md", MIB)
        return Tracker(MappingSource({f"{issue}.md": content})).read(issue).title
    except (OSError, TrackerError):
        return ""


def tasks_shown(run: Run) -> tuple[TaskShown, ...]:
    """Return the tasks with their evidence."""
    return tuple(
        TaskShown(
            id=task.id,
            title=task.spec.title,
            state=task.status,
            testable=task.testable,
            evidence=read_evidence(run.folder, task.id),
        )
        for task in run.state.tasks.values()
    )


def read_evidence(folder: Path, task: str) -> EvidenceShown | None:
    """Return the evidence of a task, or None where there is none that can be read."""
    name = name_of(task)
    try:
        found = TaskEvidence.model_validate_json(read_record(folder, name))
    except (OSError, ValidationError):
        return None
    red = sorted(found.ledger.red.items()) if found.ledger else ()
    return EvidenceShown.from_fields(
        found,
        path=name,
        red=tuple(RedLine.from_fields(one, id=id_, red_class=one.cls.value) for id_, one in red),
        guards=tuple(sorted(found.ledger.guards)) if found.ledger else (),
        green=GreenLine.from_fields(found.green) if found.green else None,
    )


def reviews_shown(run: Run) -> Iterator[ReviewShown]:
    """Yield the reviews, oldest first."""
    counts = dict.fromkeys(STAGES, 0)
    for decided in run.history:
        step = decided.decision.step
        if step not in STAGES or decided.decision.row.startswith("any/"):
            continue
        if decided.event.signal == Signal.NOT_ASKED:  # a recipe left it out: there is no such review
            continue
        counts[step] += 1
        record = read_review(run.folder, STAGES[step], counts[step])
        yield ReviewShown(
            path=f"reviews/{STAGES[step]}-{counts[step]}.md",
            stage=STAGES[step],
            number=counts[step],
            verdict=_verdict(run, decided, Role.CHECK),
            advice=_verdict(run, decided, Role.SIMPLIFY),
            signal=Signal(decided.event.signal),
            must_fix=record.must_fix if record else (),
            open=tuple(map(finding_line, record.ledger.open)) if record else (),
            refuted=tuple(map(finding_line, record.ledger.refuted)) if record else (),
        )


def _verdict(run: Run, decided: Decided, role: Role) -> str | None:
    """Return what the role answered in the visit of a decision, in its own word."""
    for record in run.records.values():
        result = run.results.get(record.dispatch)
        if record.visit == decided.decision.visit and record.role is role and result and result.signal is None:
            verdict = (result.report or {}).get("verdict")
            return verdict if isinstance(verdict, str) else None
    return None


def read_review(folder: Path, stage: Stage, number: int) -> ReviewRecord | None:
    """Return the record of one review, or None where it is not on disk or not readable."""
    try:
        return ReviewRecord.model_validate_json(read_record(folder, f"reviews/{stage}-{number}.json"))
    except (OSError, ValidationError):
        return None


def finding_line(finding: Finding) -> FindingLine:
    """Return one finding."""
    return FindingLine.from_fields(finding, proof=finding.measured.found if finding.measured is not None else None)


def finding_text(line: FindingLine) -> str:
    """Return one finding as a line."""
    where = f" ({visible(line.location)})" if line.location else ""
    proof = f", {line.proof}" if line.proof is not None else ""
    return f"{line.id} [{line.severity.value}{proof}] {visible(line.headline)}{where}"


def dispatch_line(run: Run, record: DispatchRecord, *, live: bool) -> DispatchLine:
    """Return one dispatch with its result, if it has one."""
    result = run.results.get(record.dispatch)
    answered = result or DispatchResult(dispatch=record.dispatch, base_tree=record.base_tree)
    quarantine = f"quarantine/{record.dispatch}"
    return DispatchLine.from_fields(
        answered,
        record,
        state="finished" if result else "running" if live else "lost",
        changed=tuple(change.path for change in answered.changes),
        quarantine=quarantine if (run.folder / quarantine).is_dir() else None,
        usage=result.usage if result else None,
    )


class LoginLine(Frozen):
    """A login file that is there; it was not read."""

    path: str
    private: bool


class AgentLine(Frozen):
    """An agent, a model server or the model API, as it is found here.

    Args:
        name: What `redfirst init --agent` calls it.
        tested: The version that the backend was tested with; None where there is none.
        variables: The names of its credential variables that are set.
        box: Whether it starts in the box, in words; null where that was not tried.
        config: The lines of `[agents]` that it takes, and what stands beside them.
    """

    name: str
    title: str
    path: str | None = None
    version: str | None = None
    tested: str | None = None
    logins: tuple[LoginLine, ...] = ()
    variables: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    box: str | None = None
    config: tuple[str, ...]


class Check(Frozen):
    """One question of the self-check. `same_as` is the check that tells its cause, where another one does."""

    id: str
    status: Literal["ok", "warn", "fail"]
    message: str
    advice: str = ""
    same_as: str | None = None

    @classmethod
    def ok(cls, id_: str, message: str) -> Check:
        """Return a check that finds nothing wrong."""
        return cls(id=id_, status="ok", message=message)

    @classmethod
    def warn(cls, id_: str, message: str, advice: str = "") -> Check:
        """Return a check that finds what a person should look at."""
        return cls(id=id_, status="warn", message=message, advice=advice)

    @classmethod
    def fail(cls, id_: str, message: str, advice: str = "") -> Check:
        """Return a check that finds what keeps a run from beginning."""
        return cls(id=id_, status="fail", message=message, advice=advice)

    @classmethod
    def failed(cls, id_: str, error: UserError) -> Check:
        """Return what an error says, as a check."""
        return cls.fail(id_, error.message, "; ".join(error.actions))


class DoctorDocument(Frozen):
    """What `doctor --json` prints. `judge`: a run can be started, but look at the warnings first."""

    schema_: Literal["redfirst.doctor/1"] = Field(default="redfirst.doctor/1", alias="schema")
    ok: bool
    proceed: Literal["true", "judge", "block"]
    checks: tuple[Check, ...]
    version: str
    agents: tuple[AgentLine, ...] = ()
