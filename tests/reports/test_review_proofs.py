"""What a proof makes of a finding: its weight, whether reviews may end over it, and that answers do not change it."""

from __future__ import annotations

from typing import Any

import pytest

from pipeline.judge.reports.artifacts import finding_md
from pipeline.judge.reports.fields import Concern, Severity, Verdict
from pipeline.judge.reports.findings import Finding, MeasuredFinding, Stage, StageFindings, Status, apply_review
from pipeline.judge.reports.parse import parse_report
from pipeline.judge.reports.proofs import Edit, MeasuredProof, Proof, ProvingTest
from pipeline.judge.reports.reviews import CheckReview, PriorAnswer, ReviewFinding
from pipeline.vocabulary import Role, Signal

TEST = Proof(test=ProvingTest(path="tests/test_x.py", content="x"))
EDIT = Proof(edit=Edit(path="x.py", old="a", new="b"))


def measured(found: str) -> MeasuredProof:
    return MeasuredProof.model_validate({"found": found, "why": "it was run"})


def raised(found: str, title: str = "t", proof: Proof = TEST, **more: Any) -> MeasuredFinding:
    return MeasuredFinding(title=title, proof=proof, measured=measured(found), **more)


def review(verdict: Verdict, *findings: MeasuredFinding, **prior: str) -> CheckReview:
    answers = tuple(PriorAnswer.model_validate({"id": id_, "status": status}) for id_, status in prior.items())
    return CheckReview(verdict=verdict, findings=findings, prior=answers)


def once(*findings: MeasuredFinding, **more: Any) -> StageFindings:
    return apply_review(StageFindings(stage=Stage.FINAL), 1, review(Verdict.NEEDS_WORK, *findings), **more)[0]


@pytest.mark.parametrize(
    ("said", "found", "counts"),
    [
        (Severity.LOW, "proved", Severity.HIGH),
        (Severity.BLOCK, "proved", Severity.BLOCK),
        (Severity.LOW, "unproved", Severity.LOW),
        (Severity.BLOCK, "unproved", Severity.MEDIUM),
    ],
)
def test_what_is_proved_weighs_high_at_least(said: Severity, found: str, counts: Severity) -> None:
    (finding,) = once(raised(found, severity=said)).findings
    assert finding.severity is counts


def test_where_proofs_are_required_words_are_no_evidence_of_a_finding_on_code() -> None:
    told: dict[str, Any] = {"severity": Severity.HIGH, "evidence": "x.py:3"}
    code, tests = raised("unproved", "a", **told), raised("unproved", "b", concern=Concern.TEST, **told)
    assert [one.severity for one in once(code, tests).findings] == [Severity.HIGH, Severity.HIGH]
    assert [one.severity for one in once(code, tests, needs_proof=True).findings] == [Severity.MEDIUM, Severity.HIGH]
    assert once(raised("proved"), needs_proof=True).findings[0].severity is Severity.HIGH
    ours = ReviewFinding(title="check fails: lint", concern=Concern.PRODUCTION, **told)
    report = CheckReview(verdict=Verdict.NEEDS_WORK, findings=(ours,))
    ledger, _ = apply_review(StageFindings(stage=Stage.FINAL), 1, report, needs_proof=True)
    assert ledger.findings[0].severity is Severity.HIGH, "what the harness has measured is proved enough"


@pytest.mark.parametrize(
    ("said", "proof", "counts"),
    [
        (None, TEST, Concern.PRODUCTION),
        (Concern.TEST, TEST, Concern.PRODUCTION),
        (Concern.COSMETIC, TEST, Concern.PRODUCTION),
        (Concern.PLAN, TEST, Concern.PLAN),
        (Concern.PRODUCTION, EDIT, Concern.TEST),
    ],
)
def test_a_test_that_fails_is_about_code_and_an_edit_about_tests(
    said: Concern | None, proof: Proof, counts: Concern
) -> None:
    assert once(raised("proved", proof=proof, concern=said)).findings[0].concern is counts


def test_what_is_refuted_holds_nothing_up_and_only_a_proof_brings_it_back() -> None:
    ledger, outcome = apply_review(
        StageFindings(stage=Stage.FINAL), 1, review(Verdict.BLOCK, raised("refuted", severity=Severity.BLOCK))
    )
    assert (outcome.signal, outcome.on_record, ledger.open) == (Signal.ACCEPTABLE, (), ())
    assert [one.status for one in ledger.refuted] == [Status.REFUTED]
    argued, outcome = apply_review(
        ledger, 2, review(Verdict.NEEDS_WORK, raised("unproved", evidence="x.py:3"), **{"final-1-01": "open"})
    )
    assert (outcome.signal, argued.open) == (Signal.ACCEPTABLE, ())
    proved, outcome = apply_review(argued, 3, review(Verdict.ACCEPTABLE, raised("proved")))
    assert [(one.id, one.severity) for one in proved.open] == [("final-1-01", Severity.HIGH)]
    assert outcome.signal is Signal.NEEDS_WORK, "ACCEPTABLE beside it does not count"


def test_reviews_do_not_converge_over_what_is_proved() -> None:
    ledger = once(raised("proved"), raised("unproved", "u", severity=Severity.HIGH, evidence="seen"))
    again = {"final-1-01": measured("proved")}
    held, outcome = apply_review(ledger, 2, review(Verdict.NEEDS_WORK), again=again)
    assert outcome.signal is Signal.NEEDS_WORK
    assert "proved: run again, " in finding_md(held.findings[0])
    settled, outcome = apply_review(ledger, 2, review(Verdict.NEEDS_WORK), again={"final-1-01": measured("refuted")})
    assert [one.status for one in settled.findings] == [Status.RESOLVED, Status.OPEN]
    assert outcome.signal is Signal.NEEDS_WORK, "one was settled, so that the reviews still move"


def test_an_answer_does_not_resolve_what_still_fails_and_may_withdraw_it() -> None:
    ledger, again = once(raised("proved")), {"final-1-01": measured("proved")}
    for answer, status in (("resolved", Status.OPEN), ("withdrawn", Status.WITHDRAWN)):
        after, _ = apply_review(ledger, 2, review(Verdict.ACCEPTABLE, **{"final-1-01": answer}), again=again)
        assert after.findings[0].status is status


def test_a_ledger_with_proofs_survives_as_json() -> None:
    ledger = once(raised("proved"), raised("refuted", "u", EDIT))
    assert StageFindings.model_validate_json(ledger.model_dump_json()) == ledger
    assert isinstance(ledger.findings[0], Finding)


@pytest.mark.parametrize(
    "proof", [{}, {"test": {"path": "t.py", "content": "x"}, "edit": {"path": "x", "old": "a", "new": ""}}]
)
def test_a_proof_is_a_test_or_an_edit(proof: dict[str, Any]) -> None:
    raw = {"verdict": "NEEDS WORK", "findings": [{"title": "t", "proof": proof}]}
    refused = parse_report("review-result", Role.CHECK, None, raw)
    assert 'a proof has either "test" {path, content} or "edit" {path, old, new}' in str(refused)


def test_a_plan_cannot_be_proved() -> None:
    raw = {"verdict": "NEEDS WORK", "findings": [{"title": "t", "proof": {"test": {"path": "t.py", "content": "x"}}}]}
    assert not isinstance(parse_report("review-plan", Role.CHECK, None, raw), CheckReview)
