from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.judge.reports import signal_of_report
from pipeline.judge.reports.decode import Malformed
from pipeline.judge.reports.findings import Stage, StageFindings
from pipeline.judge.reports.parse import parse_report
from pipeline.judge.reports.reviews import Acceptance, CheckReview, Diagnosis, SuiteJudgement
from pipeline.judge.reports.signal_of_report import ImplementFacts, WriteTestsFacts
from pipeline.judge.reports.work_reports import (
    Blocked,
    CannotProceed,
    Complete,
    Incomplete,
    MakeReport,
    NotTestable,
    ReadyTests,
    WriteTestsReport,
)
from pipeline.matrix.routing.matrix import EMITS
from pipeline.vocabulary import Question, Role, Signal, Step

if TYPE_CHECKING:
    from pipeline.judge.reports.signal_of_report import Reviewed


def parsed(kind: str, role: Role, raw: dict[str, Any], question: Question | None = None) -> Any:
    report = parse_report(kind, role, question, raw)
    assert not isinstance(report, Malformed), report
    return report


def make(raw: dict[str, Any]) -> MakeReport:
    report = parsed("implement", Role.MAKE, raw)
    assert isinstance(report, Complete | Incomplete | CannotProceed)
    return report


def answered(raw: dict[str, Any]) -> WriteTestsReport:
    report = parsed("write-tests", Role.TEST, raw)
    assert isinstance(report, ReadyTests | NotTestable | Blocked)
    return report


COMPLETE = make({"result": "COMPLETE"})
INCOMPLETE = make({"result": "INCOMPLETE", "blocking_issue": "b"})
CANNOT = make({"result": "CANNOT_PROCEED", "missing": "m"})
NEEDS_CODE = make(
    {"result": "INCOMPLETE", "blocking_issue": "b", "escalate": "test_design", "needs": [{"path": "a.py"}]}
)
NEEDS_TEST = make(
    {"result": "CANNOT_PROCEED", "missing": "m", "needs": [{"path": "a.py"}, {"path": "tests/test_a.py"}]}
)
READY = answered({"verdict": "TESTS_READY"})
DISPUTED = answered({"verdict": "TESTS_READY", "escalate_to_check": True})
BLOCKED = answered({"verdict": "BLOCKED", "problem": "p", "needs": [{"path": "a.py"}]})


def is_test(path: str) -> bool:
    return path.startswith("tests/")


def implement(report: MakeReport, **facts: bool) -> Signal:
    return signal_of_report.implement(report, ImplementFacts(**facts), is_test=is_test)


def write_tests(report: WriteTestsReport, *plan_files: str, **facts: bool) -> Signal:
    return signal_of_report.write_tests(report, WriteTestsFacts(**facts), plan_files=plan_files)


@pytest.mark.parametrize("report", [COMPLETE, INCOMPLETE, CANNOT, NEEDS_CODE, NEEDS_TEST])
def test_green_as_measured_wins_over_every_claim_and_a_doubt_is_not_lost(report: MakeReport) -> None:
    expected = Signal.GREEN if report is COMPLETE else Signal.GREEN_INCOMPLETE
    assert implement(report, green=True, regression=True, changed=False) is expected


@pytest.mark.parametrize(
    ("report", "facts", "signal"),
    [
        (NEEDS_CODE, {"regression": True}, Signal.NEEDS_FILE),
        (NEEDS_TEST, {}, Signal.TEST_DESIGN),
        (CANNOT, {"changed": False}, Signal.CANNOT_PROCEED),
        (COMPLETE, {"regression": True, "changed": False}, Signal.REGRESSION),
        (INCOMPLETE, {"regression": True}, Signal.REGRESSION),
        (COMPLETE, {"changed": False}, Signal.NO_CHANGE),
        (INCOMPLETE, {"changed": False}, Signal.NO_CHANGE),
        (COMPLETE, {}, Signal.NOT_GREEN),
        (INCOMPLETE, {}, Signal.INCOMPLETE),
        (COMPLETE, {"stale_xfail": True}, Signal.STALE_XFAIL),
    ],
)
def test_implement_takes_the_first_signal_that_holds(
    report: MakeReport, facts: dict[str, bool], signal: Signal
) -> None:
    assert implement(report, **facts) is signal


@pytest.mark.parametrize(
    ("escalate", "signal"),
    [("entry_validation", "ENTRY_FLAG"), ("test_design", "TEST_DESIGN"), ("split_needed", "SPLIT_NEEDED")],
)
def test_an_escalation_comes_before_what_the_attempt_broke(escalate: str, signal: str) -> None:
    report = make({"result": "INCOMPLETE", "blocking_issue": "b", "escalate": escalate})
    assert implement(report, regression=True, changed=False) == signal


@pytest.mark.parametrize(
    ("report", "facts", "signal"),
    [
        (READY, {}, Signal.RED),
        (DISPUTED, {}, Signal.DISPUTED),
        (DISPUTED, {"changed_old_test": True}, Signal.CHANGED_OLD_TEST),
        (READY, {"changed_old_test": True, "red_unstable": True}, Signal.RED_UNSTABLE),
        (READY, {"red_unstable": True, "illegal_red": True}, Signal.ILLEGAL_RED),
        (READY, {"any_change": False}, Signal.ILLEGAL_RED),
        (READY, {"any_change": False, "all_new_pass": True}, Signal.ILLEGAL_RED),
        (READY, {"illegal_red": True, "structural_only": True}, Signal.STRUCTURAL_ONLY),
        (READY, {"structural_only": True, "all_new_pass": True}, Signal.PASSES_ALREADY),
        (READY, {"adds_tests": True, "all_new_pass": True}, Signal.TESTS_KEPT),
        (READY, {"adds_tests": True, "all_new_pass": True, "doubtful": True}, Signal.TESTS_DOUBTFUL),
        (READY, {"adds_tests": True, "all_new_pass": True, "unnoticed": True}, Signal.UNNOTICED_FAULTS),
        (READY, {"adds_tests": True, "all_new_pass": True, "illegal_red": True}, Signal.ILLEGAL_RED),
        (READY, {"adds_tests": True, "all_new_pass": True, "changed_old_test": True}, Signal.CHANGED_OLD_TEST),
        (DISPUTED, {"adds_tests": True, "all_new_pass": True}, Signal.DISPUTED),
        (READY, {"env_broken": True, "all_new_pass": True}, Signal.ENV_BROKEN),
        (BLOCKED, {"any_change": False}, Signal.BLOCKED),
        (BLOCKED, {"env_broken": True}, Signal.ENV_BROKEN),
    ],
)
def test_write_tests_takes_the_first_signal_that_holds(
    report: WriteTestsReport, facts: dict[str, bool], signal: Signal
) -> None:
    assert write_tests(report, **facts) is signal


@pytest.mark.parametrize(
    ("reason", "seam_files", "signal"),
    [
        ("missing-seam", ["a.py"], "MISSING_SEAM"),
        ("missing-seam", ["a.py", "b.py"], "NOT_TESTABLE"),
        ("missing-seam", [], "NOT_TESTABLE"),
        ("config-only", ["a.py"], "NOT_TESTABLE"),
    ],
)
def test_a_seam_is_added_only_in_files_of_the_plan(reason: str, seam_files: list[str], signal: str) -> None:
    report = answered({"verdict": "NOT_TESTABLE", "reason": reason, "seam_files": seam_files})
    assert write_tests(report, "a.py", "c.py", any_change=False) == signal


@pytest.mark.parametrize(
    ("report", "facts", "signal"),
    [
        (COMPLETE, {}, Signal.SEAM_DONE),
        (COMPLETE, {"regression": True, "changed": False}, Signal.REGRESSION),
        (COMPLETE, {"changed": False}, Signal.NO_CHANGE),
        (INCOMPLETE, {}, Signal.INCOMPLETE),
        (CANNOT, {"changed": False}, Signal.CANNOT_PROCEED),
        (NEEDS_TEST, {"regression": True}, Signal.NEEDS_FILE),
    ],
)
def test_a_seam_counts_only_when_nothing_else_broke(report: MakeReport, facts: dict[str, bool], signal: Signal) -> None:
    assert signal_of_report.seam(report, **facts) is signal


@pytest.mark.parametrize(
    ("report", "facts", "signal"),
    [
        (INCOMPLETE, {"complete": True}, Signal.STUBBED),
        (COMPLETE, {"complete": True, "dirty": True}, Signal.STUB_DIRTY),
        (COMPLETE, {"complete": False}, Signal.STUB_DIRTY),
        (INCOMPLETE, {"complete": False, "dirty": True}, Signal.INCOMPLETE),
        (CANNOT, {"complete": False}, Signal.CANNOT_PROCEED),
        (NEEDS_CODE, {"complete": False}, Signal.NEEDS_FILE),
    ],
)
def test_stubs_are_what_was_measured(report: MakeReport, facts: dict[str, bool], signal: Signal) -> None:
    assert signal_of_report.stub(report, **facts) is signal


def test_already_done_needs_tests_that_passed_at_once() -> None:
    report = Diagnosis(diagnosis="already_done")
    passed = signal_of_report.unfit_diagnoses(passed_already=True, of_tests=False)
    assert signal_of_report.refusal_of_diagnosis(report, passed) is None
    assert signal_of_report.diagnosis(report) is Signal.ALREADY_DONE
    wrong = Diagnosis(diagnosis="wrong_report")
    of_tests = signal_of_report.unfit_diagnoses(passed_already=False, of_tests=True)
    assert signal_of_report.refusal_of_diagnosis(wrong, of_tests) is None
    assert signal_of_report.diagnosis(wrong) is Signal.WRONG_REPORT
    refused = signal_of_report.refusal_of_diagnosis(wrong, passed)
    assert isinstance(refused, Malformed)
    assert "wrong_report is accepted only of the work of @test" in refused.sentence
    found = signal_of_report.refusal_of_diagnosis(report, of_tests)
    assert isinstance(found, Malformed)
    assert found.pointer == "/diagnosis"
    assert "production_logic" in found.sentence


def judged(verdict: str, *severities: str) -> SuiteJudgement:
    findings = [{"severity": severity, "title": severity, "evidence": "e"} for severity in severities]
    report = parsed("judge", Role.CHECK, {"verdict": verdict, "findings": findings}, Question.TESTS)
    assert isinstance(report, SuiteJudgement)
    return report


@pytest.mark.parametrize(
    ("report", "signal"),
    [
        (judged("ACCEPTABLE"), "ACCEPTABLE"),
        (judged("ACCEPTABLE", "LOW"), "ACCEPTABLE"),
        (judged("ACCEPTABLE", "HIGH"), "NEEDS_WORK"),
        (judged("NEEDS WORK", "LOW"), "NEEDS_WORK"),
        (judged("BLOCK", "BLOCK"), "NEEDS_WORK"),
        (judged("BLOCK"), "ACCEPTABLE"),
        (Acceptance(accepted=True), "ACCEPTABLE"),
        (Acceptance(accepted=False), "NEEDS_WORK"),
    ],
)
def test_a_judgement_on_tests_needs_findings_like_a_review(report: SuiteJudgement | Acceptance, signal: str) -> None:
    assert signal_of_report.check_tests(report)[0] == signal


def final(verdict: str, *concerns: str, severity: str = "MEDIUM", number: int = 1, applies: bool = True) -> Reviewed:
    edit = {"path": "a.py", "old": "teh", "new": "the"}
    findings = [
        {
            "severity": severity,
            "title": f"{place} {concern}",
            "evidence": "e",
            "concern": concern.removesuffix("!"),
            **({"edit": edit} if concern == "cosmetic" else {}),
        }
        for place, concern in enumerate(concerns)
    ]
    check = parsed("review-result", Role.CHECK, {"verdict": verdict, "findings": findings})
    assert isinstance(check, CheckReview)
    return signal_of_report.final_review(
        StageFindings(stage=Stage.FINAL), number, check, None, applies=lambda _: applies
    )


@pytest.mark.parametrize(
    ("concerns", "signal"),
    [
        (("production", "plan"), "PLAN"),
        (("test", "split", "cosmetic"), "PLAN"),
        (("production",), "FIX"),
        (("test", "cosmetic"), "FIX"),
        (("cosmetic", "cosmetic"), "COSMETIC"),
        (("cosmetic", "cosmetic!"), "FIX"),  # ! = without an edit
    ],
)
def test_the_final_review_goes_by_the_gravest_concern(concerns: tuple[str, ...], signal: str) -> None:
    assert final("NEEDS WORK", *concerns).signal == signal


def test_an_edit_that_would_change_the_syntax_tree_is_a_fix_task() -> None:
    assert final("NEEDS WORK", "cosmetic", applies=False).signal is Signal.FIX


def test_fix_tasks_take_cosmetic_findings_below_the_floor_along() -> None:
    check = parsed(
        "review-result",
        Role.CHECK,
        {
            "verdict": "NEEDS WORK",
            "findings": [
                {"severity": "HIGH", "title": "real", "evidence": "e", "concern": "production"},
                {"severity": "LOW", "title": "typo", "concern": "cosmetic"},
                {"severity": "LOW", "title": "plan nit", "concern": "plan"},
            ],
        },
    )
    reviewed = signal_of_report.final_review(StageFindings(stage=Stage.FINAL), 3, check, None, applies=lambda _: True)
    assert reviewed.signal is Signal.FIX
    assert reviewed.outcome.must_fix == ("final-1-01", "final-1-02")


def test_simplify_never_changes_the_signal_of_a_review() -> None:
    check = parsed("review-plan", Role.CHECK, {"verdict": "ACCEPTABLE"})
    finding = {"title": "drop it", "check_conflict": True}
    simplify = parsed("review-plan", Role.SIMPLIFY, {"verdict": "NEEDS SIMPLIFICATION", "findings": [finding]})
    reviewed = signal_of_report.review_draft(StageFindings(stage=Stage.PLAN), 1, check, simplify)
    assert reviewed.signal is Signal.ACCEPTABLE
    assert len(reviewed.ledger.conflicts) == 1


def test_a_split_review_can_block() -> None:
    finding = {"severity": "BLOCK", "title": "t", "evidence": "e"}
    check = parsed("review-split", Role.CHECK, {"verdict": "BLOCK", "findings": [finding]})
    reviewed = signal_of_report.review_draft(StageFindings(stage=Stage.SPLIT), 1, check)
    assert reviewed.signal is Signal.BLOCK
    assert reviewed.outcome.must_fix == ("split-1-01",)


_MAKE = st.sampled_from([COMPLETE, INCOMPLETE, CANNOT, NEEDS_CODE, NEEDS_TEST])


@given(_MAKE, st.builds(ImplementFacts, *[st.booleans()] * 4), st.booleans(), st.booleans())
def test_what_make_does_reduces_to_signals_of_the_matrix(
    report: MakeReport, facts: ImplementFacts, changed: bool, regression: bool
) -> None:
    assert signal_of_report.implement(report, facts, is_test=is_test) in EMITS[Step.IMPLEMENT]
    assert signal_of_report.seam(report, changed=changed, regression=regression) in EMITS[Step.SEAM]
    assert signal_of_report.stub(report, complete=facts.green, dirty=facts.changed) in EMITS[Step.STUB]


@given(
    st.sampled_from([READY, DISPUTED, BLOCKED, answered({"verdict": "NOT_TESTABLE", "reason": "missing-seam"})]),
    st.builds(WriteTestsFacts, *[st.booleans()] * 7),
)
def test_what_test_does_reduces_to_signals_of_the_matrix(report: WriteTestsReport, facts: WriteTestsFacts) -> None:
    assert signal_of_report.write_tests(report, facts, plan_files=()) in EMITS[Step.WRITE_TESTS]


@given(
    st.sampled_from(["ACCEPTABLE", "NEEDS WORK", "BLOCK"]),
    st.lists(st.sampled_from(["production", "test", "plan", "split", "cosmetic", "cosmetic!"]), max_size=4),
    st.sampled_from(["BLOCK", "HIGH", "MEDIUM", "LOW"]),
    st.integers(1, 4),
    st.booleans(),
)
def test_what_check_says_reduces_to_signals_of_the_matrix(
    verdict: str, concerns: list[str], severity: str, number: int, applies: bool
) -> None:
    reviewed = final(verdict, *concerns, severity=severity, number=number, applies=applies)
    assert reviewed.signal in EMITS[Step.FINAL_REVIEW]
    assert signal_of_report.check_tests(judged(verdict, *[severity] * len(concerns)))[0] in EMITS[Step.CHECK_TESTS]


def test_every_diagnosis_has_its_signal_in_the_matrix() -> None:
    words = ["production_logic", "test_design", "wrong_report", "split_needed", "spec", "plan", "environment"]
    words.append("already_done")
    reports = [parsed("judge", Role.CHECK, {"diagnosis": word}, Question.DIAGNOSE) for word in words]
    signals = [signal_of_report.diagnosis(report) for report in reports]
    assert [str(signal) for signal in signals] == [word.upper() for word in words]
    assert {Signal(str(signal)) for signal in signals} <= EMITS[Step.DIAGNOSE]
