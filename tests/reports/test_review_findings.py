from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.judge.reports.fields import Severity
from pipeline.judge.reports.findings import (
    ReviewOutcome,
    Stage,
    StageFindings,
    Status,
    apply_advice,
    apply_review,
    floor,
)
from pipeline.judge.reports.parse import parse_report
from pipeline.judge.reports.reviews import CheckReview, SimplifyReview
from pipeline.vocabulary import Role, Signal


def review(verdict: str, *findings: dict[str, Any], prior: dict[str, str] | None = None) -> CheckReview:
    answers = [{"id": id_, "status": status} for id_, status in (prior or {}).items()]
    raw = {"verdict": verdict, "findings": list(findings), "prior": answers}
    report = parse_report("review-plan", Role.CHECK, None, raw)
    assert isinstance(report, CheckReview), report
    return report


def finding(severity: str, title: str = "t", evidence: str = "seen", **more: Any) -> dict[str, Any]:
    return {"severity": severity, "title": title, "evidence": evidence, **more}


def first(*reports: CheckReview) -> tuple[StageFindings, ReviewOutcome]:
    ledger, outcome = StageFindings(stage=Stage.PLAN), ReviewOutcome(Signal.OK)
    for number, report in enumerate(reports, start=1):
        ledger, outcome = apply_review(ledger, number, report)
    return ledger, outcome


def test_ids_are_ours_stage_review_running_number() -> None:
    ledger, outcome = first(
        review("NEEDS WORK", finding("LOW", "a"), finding("HIGH", "b")), review("NEEDS WORK", finding("HIGH", "c"))
    )
    assert [item.id for item in ledger.findings] == ["plan-1-01", "plan-1-02", "plan-2-01"]
    assert outcome.new == ("plan-2-01",)
    assert [item.id for item in ledger.open] == ["plan-1-02", "plan-2-01", "plan-1-01"]


def test_ids_do_not_repeat_in_a_new_revision() -> None:
    ledger, _ = first(review("NEEDS WORK", finding("HIGH")))
    ledger, outcome = apply_review(ledger.renewed(), 1, review("NEEDS WORK", finding("LOW")))
    assert outcome.new == ("plan-2-01",)
    assert outcome.must_fix == ("plan-2-01",)
    assert len(ledger.findings) == 1


@pytest.mark.parametrize(
    ("claimed", "counted"), [("BLOCK", "MEDIUM"), ("HIGH", "MEDIUM"), ("MEDIUM", "MEDIUM"), ("LOW", "LOW")]
)
def test_without_evidence_a_finding_weighs_medium_at_most(claimed: str, counted: str) -> None:
    ledger, outcome = first(review("NEEDS WORK", finding(claimed, evidence=" ")))
    assert ledger.findings[0].severity == counted
    assert bool(outcome.notes) == (claimed != counted)


def test_block_needs_a_block_finding() -> None:
    assert first(review("BLOCK", finding("BLOCK")))[1].signal is Signal.BLOCK
    assert first(review("BLOCK", finding("HIGH")))[1].signal is Signal.NEEDS_WORK
    unproven = first(review("BLOCK", finding("BLOCK", evidence="")))[1]
    assert unproven.signal is Signal.NEEDS_WORK
    assert len(unproven.notes) == 2


@pytest.mark.parametrize(
    ("severity", "signal"),
    [("BLOCK", "NEEDS_WORK"), ("HIGH", "NEEDS_WORK"), ("MEDIUM", "ACCEPTABLE"), ("LOW", "ACCEPTABLE")],
)
def test_acceptable_with_an_open_block_or_high_is_needs_work(severity: str, signal: str) -> None:
    assert first(review("ACCEPTABLE", finding(severity)))[1].signal == signal


@pytest.mark.parametrize("verdict", ["NEEDS WORK", "BLOCK"])
def test_a_complaint_without_a_finding_is_acceptable_with_a_note(verdict: str) -> None:
    outcome = first(review(verdict))[1]
    assert outcome.signal is Signal.ACCEPTABLE
    assert "without an open finding" in outcome.notes[0]


@pytest.mark.parametrize(
    ("number", "severity", "signal"),
    [
        (1, "LOW", "NEEDS_WORK"),
        (2, "LOW", "ACCEPTABLE"),
        (2, "MEDIUM", "NEEDS_WORK"),
        (3, "MEDIUM", "ACCEPTABLE"),
        (3, "HIGH", "NEEDS_WORK"),
        (9, "MEDIUM", "ACCEPTABLE"),
    ],
)
def test_the_floor_rises_with_each_review(number: int, severity: str, signal: str) -> None:
    _, outcome = apply_review(StageFindings(stage=Stage.PLAN), number, review("NEEDS WORK", finding(severity)))
    assert outcome.signal == signal


def test_no_answer_about_an_open_finding_leaves_it_open() -> None:
    ledger, outcome = first(review("NEEDS WORK", finding("HIGH")), review("ACCEPTABLE"))
    assert [item.id for item in ledger.blockers] == ["plan-1-01"]
    assert outcome.signal is Signal.CONVERGED


def test_what_an_acceptable_review_leaves_open_must_not_be_fixed() -> None:
    ledger, outcome = first(review("NEEDS WORK", finding("MEDIUM")), review("ACCEPTABLE"))
    assert (outcome.signal, outcome.must_fix, len(ledger.open)) == (Signal.ACCEPTABLE, (), 1)


@pytest.mark.parametrize("status", ["resolved", "withdrawn"])
def test_an_answered_finding_is_closed_and_nothing_stands_in_the_way(status: str) -> None:
    ledger, outcome = first(review("BLOCK", finding("BLOCK")), review("ACCEPTABLE", prior={"plan-1-01": status}))
    assert outcome.signal is Signal.ACCEPTABLE
    assert ledger.findings[0].status == status
    assert not ledger.open


def test_two_answers_about_one_finding_mean_open() -> None:
    prior = [{"id": "plan-1-01", "status": status} for status in ("open", "resolved")]
    report = CheckReview.model_validate_json(json.dumps({"verdict": "ACCEPTABLE", "prior": prior}))
    assert first(review("NEEDS WORK", finding("HIGH")), report)[0].blockers


def test_an_answer_about_a_finding_that_nobody_raised_is_noted_and_ignored() -> None:
    ledger, outcome = first(review("ACCEPTABLE", prior={"plan-7-01": "open"}))
    assert not ledger.findings
    assert "plan-7-01" in outcome.notes[0]


def test_converged_when_nothing_new_must_be_fixed_and_nothing_moved() -> None:
    same = review("NEEDS WORK", finding("HIGH", "same"))
    assert first(same)[1].signal is Signal.NEEDS_WORK
    assert first(same, same)[1].signal is Signal.CONVERGED
    below_the_floor = review("NEEDS WORK", finding("LOW", "new but small"))
    assert first(same, below_the_floor)[1].signal is Signal.CONVERGED


def test_not_converged_when_something_new_must_be_fixed_or_a_status_changed() -> None:
    both = review("NEEDS WORK", finding("HIGH", "a"), finding("HIGH", "b"))
    assert first(both, review("NEEDS WORK", finding("HIGH", "c")))[1].signal is Signal.NEEDS_WORK
    assert first(both, review("NEEDS WORK", prior={"plan-1-01": "resolved"}))[1].signal is Signal.NEEDS_WORK


def test_a_finding_that_gets_heavier_is_a_change() -> None:
    outcome = first(
        review("NEEDS WORK", finding("HIGH", "a")), review("BLOCK", finding("BLOCK", "a", evidence="worse"))
    )[1]
    assert outcome.signal is Signal.BLOCK
    assert outcome.new == ()


def test_a_known_finding_raised_as_new_is_the_known_one() -> None:
    ledger, outcome = first(
        review("NEEDS WORK", finding("HIGH", "Race in close()", location="src/a.py:10", problem="It  may race.")),
        review("NEEDS WORK", finding("HIGH", "race in close", location="src/a.py:14-17", problem="it may race")),
    )
    assert len(ledger.findings) == 1
    assert outcome.signal is Signal.CONVERGED
    assert "it is plan-1-01" in outcome.notes[0]


def test_the_same_words_about_another_file_are_another_finding() -> None:
    ledger, _ = first(
        review("NEEDS WORK", finding("HIGH", location="a.py:1")),
        review("NEEDS WORK", finding("HIGH", location="b.py:1")),
    )
    assert len(ledger.findings) == 2


def test_a_finding_both_resolved_and_raised_again_is_open() -> None:
    ledger, _ = first(
        review("NEEDS WORK", finding("HIGH", "a")),
        review("NEEDS WORK", finding("HIGH", "a"), prior={"plan-1-01": "resolved"}),
    )
    assert ledger.findings[0].status is Status.OPEN


def test_a_resolved_finding_that_comes_back_is_a_change() -> None:
    outcome = first(
        review("NEEDS WORK", finding("HIGH", "a"), finding("HIGH", "b")),
        review("NEEDS WORK", prior={"plan-1-01": "resolved"}),
        review("NEEDS WORK", finding("HIGH", "a")),
    )[1]
    assert outcome.signal is Signal.NEEDS_WORK
    assert outcome.must_fix == ("plan-1-01", "plan-1-02")


def test_at_the_end_block_and_high_are_blockers_and_the_rest_is_advisory() -> None:
    ledger, _ = first(review("NEEDS WORK", *(finding(severity, severity) for severity in Severity)))
    assert [item.severity for item in ledger.blockers] == ["BLOCK", "HIGH"]
    assert ledger.advice(("plan-1-01", "plan-1-02")) == ("plan-1-03: MEDIUM", "plan-1-04: LOW")


def final(*reports: CheckReview) -> ReviewOutcome:
    ledger, outcome = StageFindings(stage=Stage.FINAL), ReviewOutcome(Signal.OK)
    for number, report in enumerate(reports, start=1):
        ledger, outcome = apply_review(ledger, number, report)
    return outcome


def test_what_the_last_word_of_the_final_review_leaves_open_is_on_record() -> None:
    asked = review("NEEDS WORK", finding("MEDIUM", "a"), finding("LOW", "b"))
    held = {"final-1-01": "open", "final-1-02": "resolved"}
    converged = final(asked, review("NEEDS WORK", prior={"final-1-01": "open"}))
    assert (converged.signal, converged.on_record) == (Signal.CONVERGED, ("final-1-01", "final-1-02"))
    # under the floor of the second review
    low = final(asked, review("NEEDS WORK", finding("LOW", "c"), prior={**held, "final-1-01": "resolved"}))
    assert (low.signal, low.on_record) == (Signal.ACCEPTABLE, ("final-2-01",))
    # what is held open beside an acceptance is no advice
    assert final(asked, review("ACCEPTABLE", prior=held)).on_record == ("final-1-01",)


def test_what_a_final_review_accepts_is_not_on_record() -> None:
    asked = review("NEEDS WORK", finding("MEDIUM", "a"))
    assert final(review("ACCEPTABLE", finding("MEDIUM", "a"))).on_record == ()
    for status in ("resolved", "withdrawn"):
        assert final(asked, review("ACCEPTABLE", prior={"final-1-01": status})).on_record == ()
    assert final(asked, review("ACCEPTABLE")).on_record == (), "not answered, and accepted"


def advice(**fields: Any) -> SimplifyReview:
    raw = {"verdict": "NEEDS SIMPLIFICATION", "findings": [{"title": "drop it", **fields}]}
    report = parse_report("review-plan", Role.SIMPLIFY, None, raw)
    assert isinstance(report, SimplifyReview), report
    return report


def test_advice_is_recorded_once_and_moves_nothing() -> None:
    ledger, _ = first(review("ACCEPTABLE"))
    once = apply_advice(ledger, advice())
    assert apply_advice(once, advice()) == once
    assert [item.id for item in once.advisories] == ["plan-1-s01"]
    assert once.findings == ledger.findings


@pytest.mark.parametrize(
    ("said", "conflicts"),
    [
        (True, True),
        ("removes the retry that @check wants", True),
        (False, False),
        ("", False),
        ("No", False),
        ("none.", False),
    ],
)
def test_a_conflict_with_check_is_recorded(said: bool | str, conflicts: bool) -> None:
    ledger = apply_advice(StageFindings(stage=Stage.FINAL), advice(check_conflict=said))
    assert bool(ledger.conflicts) is conflicts


_FINDINGS = st.fixed_dictionaries(
    {
        "severity": st.sampled_from([severity.value for severity in Severity]),
        "title": st.sampled_from(["a", "b", "c"]),
        "evidence": st.sampled_from(["", "seen"]),
    }
)
_IDS = st.sampled_from(["plan-1-01", "plan-1-02", "plan-2-01"])


@st.composite
def reviews(draw: st.DrawFn) -> CheckReview:
    verdict = draw(st.sampled_from(["ACCEPTABLE", "NEEDS WORK", "BLOCK"]))
    prior = draw(st.dictionaries(_IDS, st.sampled_from(["resolved", "open", "withdrawn"])))
    return review(verdict, *draw(st.lists(_FINDINGS, max_size=3)), prior=prior)


@given(st.lists(reviews(), min_size=1, max_size=5))
@pytest.mark.slow
def test_whatever_is_reviewed_verdict_and_findings_agree(reports: list[CheckReview]) -> None:
    ledger = StageFindings(stage=Stage.PLAN)
    for number, report in enumerate(reports, start=1):
        ledger, outcome = apply_review(ledger, number, report)
        open_ids = {item.id for item in ledger.open}
        assert set(outcome.must_fix) <= open_ids
        assert outcome.signal in {Signal.ACCEPTABLE, Signal.CONVERGED, Signal.NEEDS_WORK, Signal.BLOCK}
        if outcome.signal is Signal.ACCEPTABLE:
            assert not outcome.must_fix
            assert not any(item.severity.rank <= floor(number).rank and item.severity.rank < 2 for item in ledger.open)
        else:
            assert outcome.must_fix
        if outcome.signal is Signal.BLOCK:
            assert ledger.open[0].severity is Severity.BLOCK
        if number == 1:
            assert outcome.signal is not Signal.CONVERGED
        assert len({item.id for item in ledger.findings}) == len(ledger.findings)
        assert all(item.evidence.strip() or item.severity.rank >= 2 for item in ledger.findings)
        assert StageFindings.model_validate_json(ledger.model_dump_json()) == ledger
