"""Gates, parking, resuming, failing, and what the machine refuses to hear (matrix 1)."""

from __future__ import annotations

from dataclasses import replace

import pytest
from routing.walks import TO_SPLIT, at_first_task, begin, event, walk, walk_with_decisions

from pipeline.matrix.routing.actions import Goto, NextTask
from pipeline.matrix.routing.advance import MatrixMachine, advance
from pipeline.matrix.routing.lookup import UnroutedSignalError, limit_of, signals_of
from pipeline.matrix.routing.state import Event, NewTask, RunState, Settings
from pipeline.outcomes import Outcome, Reason
from pipeline.vocabulary import Loop, Question, Role, Signal, Step

MACHINE = MatrixMachine("start", Settings())
TO_REVIEW_SPLIT = f"{TO_SPLIT} DRAFTED:1"
TO_FINAL = f"{TO_REVIEW_SPLIT} ACCEPTABLE RED=r GREEN=c"
ALL_DONE = f"{TO_REVIEW_SPLIT} ACCEPTABLE PASSES_ALREADY=t ALREADY_DONE ACCEPTABLE"
ALL = ("plan", "split", "commit")


@pytest.mark.parametrize(
    ("gate", "words", "limits", "behind"),
    [
        ("plan", "OK CLAIMED DRAFTED ACCEPTABLE", {}, Step.SPLIT),
        ("plan", "OK CLAIMED DRAFTED CONVERGED", {}, Step.SPLIT),
        ("plan", "OK CLAIMED DRAFTED NEEDS_WORK", {Loop.PLAN_REVIEW: 1}, Step.SPLIT),
        ("split", f"{TO_REVIEW_SPLIT} ACCEPTABLE", {}, Step.WRITE_TESTS),
        ("split", f"{TO_REVIEW_SPLIT} CONVERGED", {}, Step.WRITE_TESTS),
        ("split", f"{TO_REVIEW_SPLIT} NEEDS_WORK", {Loop.SPLIT_REVIEW: 1}, Step.WRITE_TESTS),
        ("commit", f"{TO_FINAL} ACCEPTABLE", {}, Step.PUBLISH),
        ("commit", f"{TO_FINAL} CONVERGED", {}, Step.PUBLISH),
        ("commit", f"{TO_FINAL} FIX", {Loop.FINAL_REVIEW: 1}, Step.PUBLISH),
        ("commit", f"{TO_FINAL} COSMETIC", {Loop.COSMETIC: 0}, Step.PUBLISH),
        ("commit", ALL_DONE, {}, Step.PUBLISH),
    ],
)
def test_a_gate_stands_on_every_edge_of_its_kind(gate: str, words: str, limits: dict[Loop, int], behind: Step) -> None:
    state, decisions = walk_with_decisions(begin(limits, [gate]), words)
    assert (state.trunk.step, state.trunk.gate, state.outcome, state.reason) == (
        Step.GATE,
        gate,
        Outcome.PARKED,
        Reason.APPROVAL,
    )
    assert [effect.kind for effect in decisions[-1].effects][-2:] == ["gate_opened", "run_parked"]
    assert state.trunk.pending == (NextTask() if gate == "split" else Goto(behind))
    answers = ["APPROVED", "REJECTED_TO_PLAN", "REJECTED_TO_SPLIT", "REJECTED_TO_FIX"][: 2 + ALL.index(gate)]
    assert signals_of(state) == set(map(Signal, answers)), "only answers that lead somewhere"
    with pytest.raises(UnroutedSignalError, match="gate cannot report RED now"):
        advance(state, event("RED"))
    state = walk(state, "APPROVED")
    assert (state.trunk.step, state.trunk.gate, state.trunk.pending, state.outcome) == (behind, None, None, None)
    assert walk(begin(limits), words).trunk.step is behind


def test_all_gates_of_a_run_open_one_after_the_other() -> None:
    state = walk(begin(gates=ALL), "OK CLAIMED DRAFTED ACCEPTABLE")
    seen = [state.trunk.gate]
    for words in ("APPROVED DRAFTED:1 ACCEPTABLE", "APPROVED RED=r GREEN=c ACCEPTABLE"):
        state = walk(state, words)
        seen.append(state.trunk.gate)
    assert seen == ["plan", "split", "commit"]
    assert walk(state, "APPROVED PUBLISHED").outcome is Outcome.COMPLETED


def test_tasks_that_a_person_edited_at_the_split_gate_count() -> None:
    state = walk(begin(gates=["split"]), f"{TO_SPLIT} DRAFTED:1,2 ACCEPTABLE")
    edited = (NewTask(id="1", depends_on=("2",)), NewTask(id="2", evidence="regression"))
    state = walk(state, Event(signal=Signal.APPROVED, tasks=edited))
    assert (state.trunk.step, state.current, state.queue) == (Step.CHECK_TESTS, "2", ("1",))
    assert state.tasks["1"].spec == edited[0]


@pytest.mark.parametrize(
    ("gate", "words", "step"),
    [
        ("plan", "OK CLAIMED DRAFTED ACCEPTABLE APPROVED DRAFTED:1 BLOCK DRAFTED ACCEPTABLE", Step.GATE),
        ("split", f"{TO_REVIEW_SPLIT} ACCEPTABLE APPROVED RED=r GREEN=c FIX DRAFTED:fix-1", Step.WRITE_TESTS),
    ],
)
def test_a_gate_stands_there_again_after_a_rework_and_not_before_fix_tasks(gate: str, words: str, step: Step) -> None:
    assert walk(begin(gates=[gate]), words).trunk.step is step


def test_blockers_park_before_publication_if_the_configuration_says_so() -> None:
    words = f"{TO_FINAL} CONVERGED!final-1-01"
    state = walk(begin(park=True), words)
    assert (state.trunk.step, state.trunk.gate, state.outcome) == (Step.GATE, "commit", Outcome.PARKED)
    assert walk(state, "APPROVED PUBLISHED").outcome is Outcome.COMPLETED_WITH_BLOCKERS
    assert walk(begin(park=True), f"{TO_FINAL} ACCEPTABLE").trunk.step is Step.PUBLISH


def test_a_rejected_plan_is_drafted_again_in_a_new_revision() -> None:
    state = walk(begin(gates=["plan"]), "OK CLAIMED DRAFTED ACCEPTABLE REJECTED_TO_PLAN")
    assert (state.trunk.step, state.trunk.via, state.plan_revision, state.outcome) == (Step.PLAN, Loop.HUMAN, 2, None)
    assert walk(state, "DRAFTED NEEDS_WORK DRAFTED NEEDS_WORK DRAFTED").trunk.step is Step.REVIEW_PLAN


def test_a_plan_may_be_rejected_more_often_than_any_loop_allows() -> None:
    state = walk(begin(gates=["plan"]), "OK CLAIMED", *(["DRAFTED ACCEPTABLE REJECTED_TO_PLAN"] * 9))
    assert (state.trunk.step, state.outcome) == (Step.PLAN, None)


def test_a_rejected_result_can_become_a_plan_a_split_or_fix_tasks() -> None:
    state = walk(begin(gates=["commit"]), f"{TO_FINAL} ACCEPTABLE")
    plan = walk(state, "REJECTED_TO_PLAN")
    assert (plan.trunk.step, plan.head, plan.previous_work) == (Step.PLAN, "start", "c")
    split = walk(state, "REJECTED_TO_SPLIT")
    assert (split.trunk.step, split.head, split.fixing) == (Step.SPLIT, "c", False)
    assert walk(split, "DRAFTED:2").trunk.step is Step.REVIEW_SPLIT
    fix = walk(state, "REJECTED_TO_FIX")
    assert (fix.trunk.step, fix.head, fix.fixing) == (Step.SPLIT, "c", True)
    assert walk(fix, "DRAFTED:fix-1").trunk.step is Step.WRITE_TESTS


# --- resuming --------------------------------------------------------------------------------------------------------


def parked(words: str) -> RunState:
    return walk(at_first_task(), words)


def test_a_parked_run_asks_the_same_step_again_with_fresh_re_asks() -> None:
    state = walk(begin(), "OK CLAIMED MALFORMED@orchestrator TIMED_OUT@orchestrator")
    assert state.outcome is Outcome.PARKED
    again = MACHINE.resume(state)
    assert (again.trunk.step, again.trunk.visit, again.outcome, again.reason, again.trunk.reasks) == (
        Step.PLAN,
        state.trunk.visit,
        None,
        None,
        {},
    )
    again = walk(again, "MALFORMED@orchestrator")
    assert (again.outcome, again.trunk.reasks) == (None, {Role.ORCHESTRATOR: Signal.MALFORMED})
    assert walk(again, "MALFORMED@orchestrator").outcome is Outcome.PARKED


@pytest.mark.parametrize("words", ["ENV_BROKEN", "UNAVAILABLE@test", "BUDGET", "CANCELLED"])
def test_parked_and_cancelled_runs_go_on_where_they_were(words: str) -> None:
    again = MACHINE.resume(parked(words))
    assert (again.trunk.step, again.current, again.outcome) == (Step.WRITE_TESTS, "1", None)
    assert walk(again, "RED=r GREEN=c").trunk.step is Step.FINAL_REVIEW


def test_an_environment_that_was_diagnosed_is_judged_again() -> None:
    again = MACHINE.resume(parked("RED=r NOT_GREEN=c ENVIRONMENT"))
    assert (again.trunk.step, again.trunk.ask, again.trunk.origin) == (Step.DIAGNOSE, Question.DIAGNOSE, Step.IMPLEMENT)


@pytest.mark.parametrize(
    "state",
    [
        walk(begin(gates=["plan"]), "OK CLAIMED DRAFTED ACCEPTABLE"),
        parked("RED=r GREEN=c ACCEPTABLE PUBLISHED"),
        parked("ESCAPE HANDLED"),
        replace(parked("CANCELLED"), reason=Reason.ABANDONED),
        parked("RED=r"),
    ],
    ids=["at a gate", "completed", "failed", "abandoned", "only interrupted"],
)
def test_what_is_not_resumed(state: RunState) -> None:
    assert MACHINE.resume(state) == state


@pytest.mark.parametrize("word", ["REGRESSION", "BRANCH_MOVED", "WORKTREE_CHANGED", "SIGNING_FAILED"])
def test_a_publication_that_was_parked_is_tried_again(word: str) -> None:
    again = MACHINE.resume(parked(f"RED=r GREEN=c ACCEPTABLE {word}"))
    assert walk(again, "PUBLISHED").outcome is Outcome.COMPLETED


def test_a_higher_limit_lets_a_parked_run_go_on() -> None:
    state = parked("BUDGET")
    assert limit_of(replace(MACHINE.resume(state), limits={Loop.DISPATCHES: 50}), Loop.DISPATCHES) == 60


# --- ends, and what is not heard -------------------------------------------------------------------------------------


def test_a_precondition_says_which() -> None:
    ended = walk(begin(), Event(signal=Signal.PRECONDITION, reason=Reason.DETACHED_HEAD))
    assert (ended.outcome, ended.reason) == (Outcome.REJECTED, Reason.DETACHED_HEAD)
    with pytest.raises(ValueError, match="must say its reason"):
        advance(begin(), Event(signal=Signal.PRECONDITION))


def test_an_escape_ends_the_run_in_the_failure_handler() -> None:
    state = walk(begin(), "OK CLAIMED ESCAPE@orchestrator")
    assert (state.trunk.step, state.failure) == (Step.FAILURE, Reason.ESCAPE)
    assert walk(state, "HANDLED").reason is Reason.ESCAPE
    assert walk(state, "HANDLER_FAILED").reason is Reason.CLEANUP_NEEDED


def test_a_run_that_stands_hears_nothing() -> None:
    ended = walk(begin(), "OK NOT_FOUND")
    with pytest.raises(ValueError, match="the run stands at rejected"):
        advance(ended, event("CLAIMED"))


def test_an_unrouted_signal_names_the_step_and_what_it_may_report() -> None:
    with pytest.raises(
        UnroutedSignalError,
        match=r"step issue cannot report RED now, only: CANCELLED, CLAIMED, CLAIMED_ELSEWHERE, DEPEND",
    ):
        advance(walk(begin(), "OK"), event("RED"))


def test_a_judgement_answers_its_question() -> None:
    amend = set(signals_of(parked("RED=r NEEDS_FILE=c")))
    diagnose = set(signals_of(parked("RED=r NOT_GREEN=c")))
    assert {Signal.AMENDED, Signal.REFUSED} <= amend
    assert not amend & {Signal.PRODUCTION_LOGIC, Signal.PLAN, Signal.ALREADY_DONE}
    assert not diagnose & {Signal.AMENDED, Signal.REFUSED, Signal.ALREADY_DONE}
    assert Signal.ALREADY_DONE in signals_of(parked("PASSES_ALREADY=t"))


@pytest.mark.parametrize(
    ("asker", "words"),
    [(Step.WRITE_TESTS, "NEEDS_FILE"), (Step.SEAM, "MISSING_SEAM NEEDS_FILE"), (Step.IMPLEMENT, "RED=r NEEDS_FILE=c")],
)
def test_the_asker_goes_on_after_an_amendment_or_a_refusal(asker: Step, words: str) -> None:
    state = parked(words)
    assert (state.trunk.step, state.trunk.ask, state.trunk.origin) == (Step.DIAGNOSE, Question.AMEND, asker)
    amended, refused = walk(state, "AMENDED"), walk(state, "REFUSED")
    assert (amended.trunk.step, amended.trunk.via) == (asker, Loop.SCOPE_AMEND)
    assert (refused.trunk.step, refused.trunk.via) == (asker, Loop.MAKE_RETRY)


@pytest.mark.parametrize("words", ["MISSING_SEAM REGRESSION NEEDS_WORK", "NOT_TESTABLE NEEDS_WORK"])
def test_what_a_judge_of_tests_sends_on_comes_from_the_tests(words: str) -> None:
    state = walk(at_first_task(limits={Loop.TEST_REWRITE: 0}), words)
    assert (state.trunk.step, state.trunk.origin) == (Step.DIAGNOSE, Step.WRITE_TESTS)
    assert walk(at_first_task(limits={Loop.TEST_REWRITE: 0, Loop.PLAN_REWORK: 0}), words, "PRODUCTION_LOGIC").failure


def test_the_state_before_a_decision_is_untouched() -> None:
    state = walk(begin(), TO_SPLIT)
    before = repr(state)
    advance(state, event("DRAFTED:1"))
    assert repr(state) == before
