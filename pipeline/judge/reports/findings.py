"""The findings of a stage over its reviews: ids, severities, what must still be fixed, and when reviews end.

Theory of operation (matrix 3). A stage's review loop carries one `Ledger`. `apply_review` folds one more review into
it: answers to the open findings first, then what is new, then the signal. A verdict never routes by itself, it has to
agree with findings; and a finding never gets heavier than its evidence. Everything is a value and survives as JSON.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from pipeline.judge.reports.fields import Concern, Severity, StrictModel, Verdict
from pipeline.judge.reports.proofs import MeasuredProof  # noqa: TC001  (pydantic reads it)
from pipeline.judge.reports.reviews import (
    CheckReview,
    ReviewFinding,
    SimplifyFinding,
    SimplifyReview,
    SuiteJudgement,
    WorkFinding,
)
from pipeline.judge.reports.untrusted_text import one_line
from pipeline.vocabulary import Signal

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from pipeline.judge.reports.reviews import PriorAnswer


class Stage(StrEnum):
    """The subject of reviews; the first part of a finding's id."""

    PLAN = "plan"
    SPLIT = "split"
    TESTS = "tests"
    FINAL = "final"
    STEP = "step"


class Status(StrEnum):
    """The status of a finding."""

    OPEN = "open"
    RESOLVED = "resolved"
    WITHDRAWN = "withdrawn"
    REFUTED = "refuted"


_CONCERN: Final[dict[Stage, Concern]] = {
    Stage.PLAN: Concern.PLAN,
    Stage.SPLIT: Concern.SPLIT,
    Stage.TESTS: Concern.TEST,
    Stage.FINAL: Concern.PRODUCTION,
    Stage.STEP: Concern.PRODUCTION,
}
_BLOCKING: Final = (Severity.BLOCK, Severity.HIGH)
_SHORT: Final = 60
"""Characters of a headline in a note."""
_NO_CONFLICT: Final = frozenset({"", "no", "none", "false", "n/a", "-"})


class MeasuredFinding(WorkFinding):
    """A finding with what came of its proof, None where it has none."""

    measured: MeasuredProof | None = None

    @property
    def is_proved(self) -> bool:
        """Return whether its proof shows it."""
        return self.measured is not None and self.measured.found == "proved"

    @property
    def is_refuted(self) -> bool:
        """Return whether its proof shows that it is not so."""
        return self.measured is not None and self.measured.found == "refuted"


class Finding(MeasuredFinding):
    """A recorded finding. `id` is ours (`plan-1-03`: stage, review, running number), `severity` is after the cap."""

    id: str
    status: Status = Status.OPEN
    note: str = ""


class Advisory(SimplifyFinding):
    """A recorded advice of @simplify (`plan-1-s01`)."""

    id: str

    @property
    def conflicts(self) -> bool:
        """Return whether @simplify itself says that its advice contradicts @check."""
        said = self.check_conflict
        return said if isinstance(said, bool) else said.strip().rstrip(".").casefold() not in _NO_CONFLICT


class StageFindings(StrictModel):
    """The ledger of one stage: findings and advice of all its reviews.

    Args:
        stage: What is reviewed.
        reviews: How many reviews were folded in; numbers the ids, so they never repeat within a run.
        findings: In the order they were raised.
        advisories: What @simplify said.
    """

    stage: Stage
    reviews: int = 0
    findings: tuple[Finding, ...] = ()
    advisories: tuple[Advisory, ...] = ()

    @property
    def open(self) -> tuple[Finding, ...]:
        """Return the findings that a re-review has to answer, worst first."""
        still = (finding for finding in self.findings if finding.status is Status.OPEN)
        return tuple(sorted(still, key=lambda finding: finding.severity.rank))

    @property
    def last_advice(self) -> tuple[Advisory, ...]:
        """Return what @simplify said in the last review."""
        return tuple(one for one in self.advisories if one.id.startswith(f"{self.stage}-{self.reviews}-s"))

    @property
    def refuted(self) -> tuple[Finding, ...]:
        """Return the findings that a measurement showed not to be so."""
        return tuple(finding for finding in self.findings if finding.status is Status.REFUTED)

    @property
    def blockers(self) -> tuple[Finding, ...]:
        """Return the open findings that keep a result from being acceptable (matrix 3)."""
        return tuple(finding for finding in self.open if finding.severity in _BLOCKING)

    def advice(self, on_record: Collection[str]) -> tuple[str, ...]:
        """Return the open findings that are not *on_record* as blockers, and the advice; one line each."""
        said = [f"{finding.id}: {finding.headline}" for finding in self.open if finding.id not in on_record]
        for advisory in self.advisories:
            against = " (against @check, who wins)" if advisory.conflicts else ""
            said.append(f"{advisory.id}: {one_line(advisory.title or advisory.simpler)}{against}")
        return tuple(said)

    @property
    def conflicts(self) -> tuple[Advisory, ...]:
        """Return the advice that contradicts @check; @check wins, the conflict is recorded."""
        return tuple(advisory for advisory in self.advisories if advisory.conflicts)

    def renewed(self) -> StageFindings:
        """Return an empty ledger for a new revision of the reviewed draft; its ids go on counting."""
        return StageFindings(stage=self.stage, reviews=self.reviews)


@dataclass(frozen=True)
class ReviewOutcome:
    """The outcome of one review: the signal, and the findings that must be fixed.

    Args:
        signal: For the matrix.
        must_fix: Ids of the open findings at or above the floor; none where the review is ACCEPTABLE.
        new: Ids raised by this review.
        notes: Where the reviewer was overruled, and why; for the journal and the rendered review.
        on_record: Ids of the findings that are blockers if the loop ends with this review (matrix 3).
    """

    signal: Signal
    must_fix: tuple[str, ...] = ()
    new: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    on_record: tuple[str, ...] = ()


def floor(review_number: int) -> Severity:
    """Return the least severity that must still be fixed; it rises with each review (matrix 3)."""
    return {1: Severity.LOW, 2: Severity.MEDIUM}.get(review_number, Severity.HIGH)


def capped(finding: ReviewFinding, *, needs_proof: bool = False) -> Severity:
    """Return the severity that the finding's evidence supports: without any, MEDIUM at most (matrix 3).

    A proof that holds makes it HIGH at least. Where a finding *needs_proof*, nothing else is evidence.
    """
    if isinstance(finding, MeasuredFinding) and finding.is_proved:
        return min(finding.severity, Severity.HIGH, key=lambda one: one.rank)
    has_evidence = bool(finding.evidence.strip()) and not needs_proof
    return finding.severity if has_evidence or not _outranks(finding.severity) else Severity.MEDIUM


def apply_review(
    ledger: StageFindings,
    review_number: int,
    report: CheckReview | SuiteJudgement,
    *,
    again: Mapping[str, MeasuredProof] | None = None,
    needs_proof: bool = False,
) -> tuple[StageFindings, ReviewOutcome]:
    """Return the ledger with one more review of @check added, and the outcome of that review.

    Args:
        ledger: The stage's ledger before this review.
        review_number: Counts from 1 within the revision of what is reviewed; sets the floor.
        report: What @check answered; of a finding with a proof, what came of it (`MeasuredFinding`).
        again: What the proofs of open findings showed when they were run again, by id.
        needs_proof: Whether a production finding without a proof that holds is MEDIUM at most.
    """
    notes: list[str] = []
    before = {finding.id: finding for finding in ledger.findings}
    findings = _answered(before, report.prior if isinstance(report, CheckReview) else (), again or {}, notes)
    for raised in report.findings:
        _record(findings, raised, ledger, notes, needs_proof=needs_proof)
    after = ledger.model_copy(update={"reviews": ledger.reviews + 1, "findings": tuple(findings.values())})

    least = floor(review_number)
    must_fix = tuple(finding for finding in after.open if finding.severity.rank <= least.rank)
    new = tuple(id_ for id_ in findings if id_ not in before)
    signal = _signal(report.verdict, after, must_fix, least, notes)
    moved = any((was.status, was.severity) != (findings[i].status, findings[i].severity) for i, was in before.items())
    raised_bar = any(finding.id in new for finding in must_fix)
    settled = not moved and not raised_bar and not any(finding.is_proved for finding in must_fix)
    if signal is not Signal.ACCEPTABLE and review_number > 1 and settled:
        notes.append("nothing new must be fixed and no finding changed its status: converged")
        signal = Signal.CONVERGED
    ids = () if signal is Signal.ACCEPTABLE else tuple(finding.id for finding in must_fix)
    return after, ReviewOutcome(signal, ids, new, tuple(notes), _on_record(report, after, signal))


def apply_advice(ledger: StageFindings, report: SimplifyReview) -> StageFindings:
    """Return the ledger with @simplify's advice added, which influences no signal (matrix 3)."""
    known = {_key(advisory.location, advisory.title, advisory.simpler) for advisory in ledger.advisories}
    review = max(ledger.reviews, 1)
    number = sum(advisory.id.startswith(f"{ledger.stage}-{review}-s") for advisory in ledger.advisories)
    added: list[Advisory] = []
    for advice in report.findings:
        key = _key(advice.location, advice.title, advice.simpler)
        if key not in known:
            known.add(key)
            id_ = f"{ledger.stage}-{review}-s{number + len(added) + 1:02}"
            added.append(Advisory(id=id_, **{name: getattr(advice, name) for name in SimplifyFinding.model_fields}))
    return ledger.model_copy(update={"advisories": (*ledger.advisories, *added)})


def rerouted(outcome: ReviewOutcome, signal: Signal, must_fix: Iterable[str]) -> ReviewOutcome:
    """Return the outcome with another signal, and the findings that this signal is about."""
    return replace(outcome, signal=signal, must_fix=tuple(must_fix))


def _answered(
    before: dict[str, Finding], prior: Iterable[PriorAnswer], again: Mapping[str, MeasuredProof], notes: list[str]
) -> dict[str, Finding]:
    """Return the findings updated by the reviewer's answers; no answer, or two that differ, leave one open.

    What a proof shows is no matter of answers: one that passes now is resolved, one that still fails is not.
    """
    findings = dict(before)
    for answer in sorted(prior, key=lambda answer: answer.status == Status.OPEN):
        known = findings.get(answer.id)
        if known is None:
            notes.append(f"an answer names {answer.id!r}, which is no finding of this stage: ignored")
            continue
        if known.status is Status.REFUTED:
            notes.append(f"{answer.id} was refuted by measuring its proof: an answer changes nothing")
            continue
        measured = again.get(answer.id)
        if answer.status == Status.RESOLVED and measured is not None and measured.found == "proved":
            notes.append(f"{answer.id} is called resolved, and its proof still holds: it stays open")
            continue
        findings[answer.id] = known.model_copy(update={"status": Status(answer.status), "note": answer.note})
    for id_, measured in again.items():
        if findings[id_].status is Status.OPEN:
            status = Status.RESOLVED if measured.found == "refuted" else Status.OPEN
            update: dict[str, object] = {"status": status, "note": f"its proof, run again: {measured.why}"}
            if measured.found == "proved":
                update = {"measured": measured.model_copy(update={"why": f"run again, {measured.why}"})}
            findings[id_] = findings[id_].model_copy(update=update)
    return findings


def _record(
    findings: dict[str, Finding], raised: ReviewFinding, ledger: StageFindings, notes: list[str], *, needs_proof: bool
) -> None:
    concern = _concern(raised, ledger.stage)
    # what we have measured ourselves is no WorkFinding, and needs no proof
    severity = capped(
        raised, needs_proof=needs_proof and concern is Concern.PRODUCTION and isinstance(raised, WorkFinding)
    )
    if severity is not raised.severity:
        without = "a proof that holds" if needs_proof and raised.evidence.strip() else "evidence"
        why = ", and is proved" if _outranks(severity) else f" without {without}"
        notes.append(f"{raised.headline[:_SHORT]!r} was {raised.severity}{why}: counted as {severity}")
    fields = {name: getattr(raised, name) for name in type(raised).model_fields}
    fields |= {"severity": severity, "concern": concern}
    is_refuted = isinstance(raised, MeasuredFinding) and raised.is_refuted
    if isinstance(raised, MeasuredFinding) and raised.measured is not None:
        notes.append(f"{raised.headline[:_SHORT]!r} is {raised.measured.found}: {raised.measured.why}")
    key = _key(raised.location, raised.title, raised.problem)
    same = next((f for f in findings.values() if _key(f.location, f.title, f.problem) == key), None)
    if same is None:
        review = ledger.reviews + 1
        number = 1 + sum(id_.startswith(f"{ledger.stage}-{review}-") for id_ in findings)
        id_ = f"{ledger.stage}-{review}-{number:02}"
        findings[id_] = Finding(id=id_, status=Status.REFUTED if is_refuted else Status.OPEN, **fields)
        return
    notes.append(f"{raised.headline[:_SHORT]!r} was raised again: it is {same.id}")
    is_proved = isinstance(raised, MeasuredFinding) and raised.is_proved
    if is_refuted and not same.is_proved:
        findings[same.id] = same.model_copy(update={"status": Status.REFUTED, **_proof_of(fields)})
        return
    if same.status is Status.REFUTED and not is_proved:
        return  # what was measured is not talked away
    update: dict[str, object] = {"status": Status.OPEN}
    if is_proved:
        update |= {"concern": concern, **_proof_of(fields)}
    if severity.rank < same.severity.rank:
        update |= {"severity": severity, "evidence": raised.evidence}
    findings[same.id] = same.model_copy(update=update)


def _proof_of(fields: Mapping[str, object]) -> dict[str, object]:
    return {name: fields[name] for name in ("proof", "measured") if name in fields}


def _concern(raised: ReviewFinding, stage: Stage) -> Concern:
    """Return what a finding is about: a test that fails over the work is about its code, an edit about its tests."""
    said = raised.concern or _CONCERN[stage]
    if not isinstance(raised, MeasuredFinding) or not raised.is_proved or raised.proof is None:
        return said
    if raised.proof.edit is not None:
        return Concern.TEST
    return Concern.PRODUCTION if said in {Concern.TEST, Concern.COSMETIC} and stage is not Stage.TESTS else said


def _signal(
    verdict: Verdict, ledger: StageFindings, must_fix: tuple[Finding, ...], least: Severity, notes: list[str]
) -> Signal:
    """Return the signal that verdict and findings together support (matrix 3)."""
    if verdict is Verdict.ACCEPTABLE:
        if not ledger.blockers:
            return Signal.ACCEPTABLE
        notes.append(f"ACCEPTABLE while {ledger.blockers[0].id} is open: counted as NEEDS WORK")
        return Signal.NEEDS_WORK
    if not must_fix:
        notes.append(f"{verdict} without an open finding of {least} or worse: counted as ACCEPTABLE")
        return Signal.ACCEPTABLE
    if verdict is Verdict.BLOCK and must_fix[0].severity is not Severity.BLOCK:
        notes.append("BLOCK without an open BLOCK finding: counted as NEEDS WORK")
        return Signal.NEEDS_WORK
    return Signal.BLOCK if verdict is Verdict.BLOCK else Signal.NEEDS_WORK


def _on_record(report: CheckReview | SuiteJudgement, ledger: StageFindings, signal: Signal) -> tuple[str, ...]:
    """Return what the reviewer's last word leaves open (matrix 3).

    Whoever comes after a plan or a split reads what its reviews left open, and only what is BLOCK or HIGH is a blocker.
    Nobody comes after the final review, or that of a recipe's step: all that it holds open is one.
    """
    if ledger.stage not in {Stage.FINAL, Stage.STEP}:
        return () if signal is Signal.ACCEPTABLE else tuple(finding.id for finding in ledger.blockers)
    if report.verdict is not Verdict.ACCEPTABLE:
        return tuple(finding.id for finding in ledger.open)
    prior = report.prior if isinstance(report, CheckReview) else ()
    held = {answer.id for answer in prior if answer.status == Status.OPEN} | {one.id for one in ledger.blockers}
    return tuple(finding.id for finding in ledger.open if finding.id in held)


def _outranks(severity: Severity) -> bool:
    return severity.rank < Severity.MEDIUM.rank


def _key(location: str, *texts: str) -> tuple[str, ...]:
    # Line numbers move when a plan is edited between two reviews; the finding stays the same.
    place = re.sub(r"[:#]L?\d+([-:]L?\d+)*", "", location)
    return tuple(" ".join(re.findall(r"\w+", text.casefold())) for text in (place, *texts))
