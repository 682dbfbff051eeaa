"""Reduces reports and measured facts to one signal; of several, the first in matrix 1's order counts.

A report is a claim. Each function takes what the harness measured as plain booleans beside it, and the measurement
decides wherever there is one: GREEN is GREEN whatever the agent says, and COMPLETE that is not GREEN is NOT_GREEN.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, assert_never

from pipeline.judge.reports.decode import Malformed
from pipeline.judge.reports.fields import Concern
from pipeline.judge.reports.findings import Stage, StageFindings, apply_advice, apply_review, rerouted
from pipeline.judge.reports.reviews import Acceptance, CheckReview, Diagnosis, SimplifyReview, SuiteJudgement
from pipeline.judge.reports.work_reports import (
    Blocked,
    CannotProceed,
    Complete,
    Incomplete,
    NotTestable,
    ReadyTests,
    Unbuilt,
)
from pipeline.vocabulary import Signal

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from pipeline.judge.reports.findings import Finding, ReviewOutcome
    from pipeline.judge.reports.proofs import Edit, MeasuredProof
    from pipeline.judge.reports.work_reports import BuildReport, MakeReport, WriteTestsReport


@dataclass(frozen=True)
class WriteTestsFacts:
    """The facts measured after @test's work.

    Args:
        env_broken: The tests cannot run for a reason outside the repository.
        any_change: Something was admitted.
        all_new_pass: There are new ids and every one passes.
        adds_tests: Tests that pass are what the task is for: it changes no code.
        unnoticed: None of them notices any of the faults that were put into the code.
        doubtful: One of them notices none, or none could be tried.
        structural_only: Tests never reach production code, or pass on stubs.
        illegal_red: A new test function has no legal RED.
        red_unstable: Two runs disagree.
        changed_old_test: A test was changed that existed before and that the task does not list.
        borrowed: A test that failed before, and that the task does not name, is taken as its own.
    """

    env_broken: bool = False
    any_change: bool = True
    all_new_pass: bool = False
    adds_tests: bool = False
    unnoticed: bool = False
    doubtful: bool = False
    structural_only: bool = False
    illegal_red: bool = False
    red_unstable: bool = False
    changed_old_test: bool = False
    borrowed: bool = False


@dataclass(frozen=True)
class ImplementFacts:
    """The facts measured after @make's work.

    Args:
        green: GREEN as matrix 5 defines it.
        stale_xfail: A strict xfail that passes now is all that is in the way of GREEN.
        regression: A test that passed fails now, 2 of 2.
        hidden: An old test passes as it is now, and fails as it was, 2 of 2.
        unstable: A test failed in some run of these bytes, and in none before the run; nothing else is in the way.
        changed: Something was admitted.
    """

    green: bool = False
    stale_xfail: bool = False
    regression: bool = False
    hidden: bool = False
    unstable: bool = False
    changed: bool = True


@dataclass(frozen=True)
class Reviewed:
    """A ledger after a review, with the review's outcome."""

    ledger: StageFindings
    outcome: ReviewOutcome

    @property
    def signal(self) -> Signal:
        """Return the signal of the review."""
        return self.outcome.signal


def review_draft(
    ledger: StageFindings, review_number: int, check: CheckReview, simplify: SimplifyReview | None = None
) -> Reviewed:
    """Return the ledger and outcome after a review of a plan or a split; `simplify` is None if it was not asked."""
    after, outcome = apply_review(ledger, review_number, check)
    return Reviewed(_advised(after, simplify), outcome)


def final_review(
    ledger: StageFindings,
    review_number: int,
    check: CheckReview,
    simplify: SimplifyReview | None,
    *,
    applies: Callable[[Edit], bool],
    is_task: Callable[[Finding], bool] = lambda _: False,
    again: Mapping[str, MeasuredProof] | None = None,
    needs_proof: bool = False,
) -> Reviewed:
    """Return the ledger and outcome after a final review (matrix 3).

    Of what must be fixed, a plan or split finding goes first (PLAN); production and test findings become fix tasks,
    which take every open cosmetic finding along (FIX), unless all of them are proved by a test, which is the fix task
    (PROVED); cosmetic findings alone are edits of our code (COSMETIC) when each has an exact edit, otherwise a fix
    task.

    Args:
        ledger: The stage's ledger before this review.
        review_number: Counts from 1 within the plan revision.
        check: The review that counts.
        simplify: Advice, if the role was asked.
        applies: Measured: the edit's old text is there once and the syntax tree stays the same.
        is_task: Whether the test that proves a finding can be a fix task as it is.
        again: What the proofs of open findings showed when they were run again, by id.
        needs_proof: Whether a production finding without a proof that holds is MEDIUM at most.
    """
    after, outcome = apply_review(ledger, review_number, check, again=again, needs_proof=needs_proof)
    after = _advised(after, simplify)
    if outcome.signal in {Signal.ACCEPTABLE, Signal.CONVERGED}:
        return Reviewed(after, outcome)
    must = [finding for finding in after.open if finding.id in outcome.must_fix]
    replan = [finding.id for finding in must if finding.concern in {Concern.PLAN, Concern.SPLIT}]
    if replan:
        return Reviewed(after, rerouted(outcome, Signal.PLAN, replan))
    if all(finding.concern is Concern.COSMETIC for finding in must):
        exact = all(finding.edit is not None and applies(finding.edit) for finding in must)
        return Reviewed(after, rerouted(outcome, Signal.COSMETIC if exact else Signal.FIX, outcome.must_fix))
    if all(is_task(finding) for finding in must):
        return Reviewed(after, rerouted(outcome, Signal.PROVED, outcome.must_fix))
    along = [f.id for f in after.open if f.concern is Concern.COSMETIC and f.id not in outcome.must_fix]
    return Reviewed(after, rerouted(outcome, Signal.FIX, (*outcome.must_fix, *along)))


def check_tests(report: SuiteJudgement | Acceptance) -> tuple[Signal, tuple[str, ...]]:
    """Return ACCEPTABLE or NEEDS_WORK for a judgement on tests, or on their absence (matrix 1), and why otherwise."""
    if isinstance(report, Acceptance):
        return (Signal.ACCEPTABLE if report.accepted else Signal.NEEDS_WORK), ()
    _, outcome = apply_review(StageFindings(stage=Stage.TESTS), 1, report)
    return (Signal.ACCEPTABLE if outcome.signal is Signal.ACCEPTABLE else Signal.NEEDS_WORK), outcome.notes


_DIAGNOSES: Final[dict[str, Signal]] = {
    "production_logic": Signal.PRODUCTION_LOGIC,
    "test_design": Signal.TEST_DESIGN,
    "wrong_report": Signal.WRONG_REPORT,
    "split_needed": Signal.SPLIT_NEEDED,
    "spec": Signal.SPEC,
    "plan": Signal.PLAN,
    "environment": Signal.ENVIRONMENT,
    "already_done": Signal.ALREADY_DONE,
}


def unfit_diagnoses(*, passed_already: bool, of_tests: bool) -> dict[str, str]:
    """Return the diagnoses that are refused here, with when they count; *passed_already* was measured of new tests."""
    found = {
        "already_done": "" if passed_already else "when the new tests passed at once, and they did not",
        "wrong_report": "" if of_tests else "of the work of @test, and it is not asked about",
    }
    return {word: why for word, why in found.items() if why}


def refusal_of_diagnosis(report: Diagnosis, unfit: Mapping[str, str]) -> Malformed | None:
    """Return that a diagnosis is one of the *unfit*, None where it is not."""
    if report.diagnosis not in unfit:
        return None
    accepted = ", ".join(word for word in _DIAGNOSES if word not in unfit)
    said = f"{report.diagnosis} is accepted only {unfit[report.diagnosis]}; accepted here are {accepted}."
    return Malformed(f"At /diagnosis: {said}", "/diagnosis")


def diagnosis(report: Diagnosis, *, notices: bool = False) -> Signal:
    """Return the signal of a diagnosis; of `already_done`, tests that were measured to notice faults are kept."""
    signal = _DIAGNOSES[report.diagnosis]
    return Signal.TESTS_KEPT if signal is Signal.ALREADY_DONE and notices else signal


def amend(report: Acceptance) -> Signal:
    """Return AMENDED if @check accepts the requested files for the task, else REFUSED."""
    return Signal.AMENDED if report.accepted else Signal.REFUSED


def write_tests(report: WriteTestsReport, facts: WriteTestsFacts, *, plan_files: Collection[str]) -> Signal:
    """Return the signal for @test's report and the measured facts.

    Args:
        report: The claim.
        facts: What was measured on the candidate.
        plan_files: The files of the plan; a seam may be added only there (matrix 6).
    """
    if facts.env_broken:
        return Signal.ENV_BROKEN
    match report:
        case Blocked():
            return Signal.BLOCKED
        case NotTestable():
            seam = report.reason == "missing-seam" and report.seam_files and set(report.seam_files) <= set(plan_files)
            return Signal.MISSING_SEAM if seam else Signal.NOT_TESTABLE
        case ReadyTests():
            return _red(report, facts)
        case _:
            assert_never(report)


def _red(report: ReadyTests, facts: WriteTestsFacts) -> Signal:
    passes = facts.all_new_pass and facts.any_change
    if passes and not facts.adds_tests:
        return Signal.PASSES_ALREADY
    if passes and facts.unnoticed:
        return Signal.UNNOTICED_FAULTS
    if facts.structural_only:
        return Signal.STRUCTURAL_ONLY
    if facts.illegal_red or not facts.any_change:
        return Signal.ILLEGAL_RED
    if facts.red_unstable:
        return Signal.RED_UNSTABLE
    if facts.changed_old_test:
        return Signal.CHANGED_OLD_TEST
    if report.escalate_to_check or facts.borrowed:
        return Signal.DISPUTED
    if passes:
        return Signal.TESTS_DOUBTFUL if facts.doubtful else Signal.TESTS_KEPT
    return Signal.RED


_ESCALATIONS: Final[dict[str, Signal]] = {
    "entry_validation": Signal.ENTRY_FLAG,
    "test_design": Signal.TEST_DESIGN,
    "split_needed": Signal.SPLIT_NEEDED,
}


def implement(report: MakeReport, facts: ImplementFacts, *, is_test: Callable[[str], bool]) -> Signal:
    """Return the signal for @make's report and the measured facts.

    Args:
        report: The claim.
        facts: What was measured on the candidate.
        is_test: Whether a path is a test's; asking for one is asking for another test design.
    """
    if facts.green:
        return Signal.GREEN if isinstance(report, Complete) else Signal.GREEN_INCOMPLETE
    if facts.stale_xfail:
        return Signal.STALE_XFAIL
    if not isinstance(report, Complete) and report.needs:
        return Signal.TEST_DESIGN if any(is_test(need.path) for need in report.needs) else Signal.NEEDS_FILE
    if isinstance(report, Incomplete) and report.escalate is not None:
        return _ESCALATIONS[report.escalate]
    if isinstance(report, CannotProceed):
        return Signal.CANNOT_PROCEED
    if facts.regression:
        return Signal.REGRESSION
    if facts.hidden:
        return Signal.HIDDEN_REGRESSION
    if facts.unstable:
        return Signal.GREEN_UNSTABLE
    if not facts.changed:
        return Signal.NO_CHANGE
    return Signal.NOT_GREEN if isinstance(report, Complete) else Signal.INCOMPLETE


_OF_TESTS: Final[dict[Signal, Signal | None]] = {
    Signal.RED: None,
    Signal.TESTS_KEPT: None,
    Signal.TESTS_DOUBTFUL: None,
    Signal.DISPUTED: None,
    Signal.CHANGED_OLD_TEST: None,  # they are measured as they were
    Signal.UNNOTICED_FAULTS: Signal.PASSES_ALREADY,
}
"""What of one writer's tests over the code before is no fault (None), or called otherwise there."""


def red_of_build(report: BuildReport, signal: Signal) -> Signal | None:
    """Return what is wrong with tests that came with their code, None where nothing is.

    Args:
        report: The claim: work that is not done yet needs no complete tests.
        signal: What they would come to as tests of @test.
    """
    found = _OF_TESTS.get(signal, signal)
    unfinished = isinstance(report, Unbuilt) and found not in {None, Signal.ENV_BROKEN}
    return Signal.INCOMPLETE if unfinished else found


def build(report: BuildReport, facts: ImplementFacts, *, shown: bool, structural: bool) -> Signal:
    """Return the signal for one writer's work whose tests count.

    Args:
        report: The claim.
        facts: What was measured on the whole.
        shown: A test was RED, or those that it adds notice faults in the code as it is; or nothing can show it.
        structural: Tests of a file that could not be imported before pass over stubs of the new code.
    """
    is_done = not isinstance(report, Unbuilt)
    if facts.green and shown:
        return Signal.GREEN if is_done else Signal.GREEN_INCOMPLETE
    if facts.green:
        return Signal.ILLEGAL_RED if is_done else Signal.INCOMPLETE
    if facts.regression:
        return Signal.REGRESSION
    if facts.hidden:
        return Signal.HIDDEN_REGRESSION
    if facts.unstable:
        return Signal.GREEN_UNSTABLE
    if structural:
        return Signal.STRUCTURAL_ONLY
    return Signal.NOT_GREEN if is_done else Signal.INCOMPLETE


def green_of_build(claimed: Signal, probed: Signal) -> Signal:
    """Return the signal of what is GREEN once its tests were tried: *claimed* where nothing is wrong with them."""
    return {Signal.GREEN: claimed, Signal.TEST_DESIGN: Signal.ILLEGAL_RED}.get(probed, probed)


def seam(report: MakeReport, *, changed: bool = True, regression: bool = False) -> Signal:
    """Return the signal for the seam pass.

    Args:
        report: The claim.
        changed: Measured: something was admitted.
        regression: Measured: an old test broke.
    """
    if not isinstance(report, Complete) and report.needs:
        return Signal.NEEDS_FILE
    if isinstance(report, CannotProceed):
        return Signal.CANNOT_PROCEED
    if regression:
        return Signal.REGRESSION
    if not changed:
        return Signal.NO_CHANGE
    return Signal.SEAM_DONE if isinstance(report, Complete) else Signal.INCOMPLETE


def stub(report: MakeReport, *, complete: bool, dirty: bool = False) -> Signal:
    """Return the signal for the stub pass; complete and clean stubs win over any claim, as GREEN does.

    Args:
        report: The claim.
        complete: Measured: every new symbol of the task is there and the type check passes.
        dirty: Measured: a body is more than the stub, or something else was changed.
    """
    if complete and not dirty:
        return Signal.STUBBED
    match report:
        case Complete():
            return Signal.STUB_DIRTY
        case Incomplete() | CannotProceed() if report.needs:
            return Signal.NEEDS_FILE
        case Incomplete():
            return Signal.INCOMPLETE
        case CannotProceed():
            return Signal.CANNOT_PROCEED
        case _:
            assert_never(report)


def _advised(ledger: StageFindings, simplify: SimplifyReview | None) -> StageFindings:
    return ledger if simplify is None else apply_advice(ledger, simplify)
