"""Limits: how often, in which scope, and what follows when they are reached (matrix 2)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from routing.walks import TO_SPLIT, at_first_task, begin, event, tasks, walk, walk_with_decisions

from pipeline.matrix.routing.actions import Goto, Stop
from pipeline.matrix.routing.advance import advance
from pipeline.matrix.routing.lookup import counter_key, limit_of
from pipeline.matrix.routing.state import Event, NewTask
from pipeline.outcomes import Outcome, Reason
from pipeline.vocabulary import Loop, Question, Role, Signal, Step

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pipeline.matrix.routing.state import RunState


TASK = f"{TO_SPLIT} DRAFTED:1 ACCEPTABLE"
BOTH = f"{TO_SPLIT} DRAFTED:1,2 ACCEPTABLE"
TWICE = "RED=r1 INCOMPLETE=c1 PRODUCTION_LOGIC NOT_GREEN=c2 PRODUCTION_LOGIC"
THRICE = "DRAFTED NEEDS_WORK " * 3
DIAGNOSED = Loop.TEST_DIAGNOSIS
LOST_SEAM = "MISSING_SEAM MALFORMED@make MALFORMED@make PRODUCTION_LOGIC"


def test_three_reviews_of_the_plan_are_two_retries() -> None:
    state = walk(begin(), "OK CLAIMED DRAFTED NEEDS_WORK DRAFTED BLOCK DRAFTED")
    assert state.trunk.step is Step.REVIEW_PLAN
    after, decision = advance(state, event("NEEDS_WORK!plan-3-01"))
    assert after.trunk.step is Step.SPLIT
    assert decision.exhausted == (Loop.PLAN_REVIEW,)
    assert after.open_blockers == ("plan-3-01",)


def test_two_reviews_of_the_split_are_one_retry() -> None:
    state = walk(begin(), TO_SPLIT, "DRAFTED:1 NEEDS_WORK DRAFTED:1")
    after, decision = advance(state, event("NEEDS_WORK!split-2-01"))
    assert (after.trunk.step, after.current) == (Step.WRITE_TESTS, "1")
    assert decision.exhausted == (Loop.SPLIT_REVIEW,)


def test_three_final_reviews_are_two_rounds_of_fix_tasks() -> None:
    state = walk(at_first_task(), "RED=r1 GREEN=c1 FIX DRAFTED:fix-1 RED=r2 GREEN=c2 FIX DRAFTED:fix-2 RED=r3 GREEN=c3")
    assert state.trunk.step is Step.FINAL_REVIEW
    after, decision = advance(state, event("FIX!result-3-01"))
    assert after.trunk.step is Step.PUBLISH
    assert decision.exhausted == (Loop.FINAL_REVIEW,)
    assert walk(after, "PUBLISHED").outcome is Outcome.COMPLETED_WITH_BLOCKERS


@pytest.mark.parametrize(("reviews", "retries"), [(0, 0), (1, 0), (2, 1), (5, 4)])
def test_configured_reviews_are_counted_as_reviews(reviews: int, retries: int) -> None:
    state = begin({Loop.PLAN_REVIEW: reviews, Loop.SEAM: reviews})
    assert limit_of(state, Loop.PLAN_REVIEW) == retries
    assert limit_of(state, Loop.SEAM) == reviews


def test_a_person_is_never_out_of_turns() -> None:
    assert limit_of(begin({Loop.HUMAN: 0}), Loop.HUMAN) is None


@pytest.mark.parametrize(
    ("limits", "words", "step", "via"),
    [
        # a draft may break hygiene twice, and a new draft has its own limit
        ({}, "OK CLAIMED HYGIENE HYGIENE", Step.PLAN, Loop.HYGIENE),
        ({}, f"{TO_SPLIT} HYGIENE HYGIENE", Step.SPLIT, Loop.HYGIENE),
        ({}, "OK CLAIMED HYGIENE HYGIENE DRAFTED NEEDS_WORK HYGIENE HYGIENE", Step.PLAN, Loop.HYGIENE),
        # a plan revision has its own reviews
        (
            {},
            f"OK CLAIMED {THRICE} DRAFTED:1 BLOCK DRAFTED NEEDS_WORK DRAFTED NEEDS_WORK DRAFTED",
            Step.REVIEW_PLAN,
            None,
        ),
        # a review loop that ran dry is no failure on record
        ({Loop.PLAN_REVIEW: 1}, "OK CLAIMED DRAFTED NEEDS_WORK", Step.SPLIT, None),
        # a judge who is never content ends in a diagnosis, too
        ({}, f"{TASK} DISPUTED=t1 NEEDS_WORK DISPUTED=t2 NEEDS_WORK DISPUTED=t3 NEEDS_WORK", Step.DIAGNOSE, DIAGNOSED),
        # make is retried once per red, and then the tests are redesigned
        ({}, f"{TASK} RED=r1 INCOMPLETE=c1 PRODUCTION_LOGIC", Step.IMPLEMENT, Loop.MAKE_RETRY),
        ({}, f"{TASK} {TWICE}", Step.WRITE_TESTS, Loop.TEST_DESIGN),
        ({}, f"{TASK} {TWICE} RED=r2 NOT_GREEN=c3 PRODUCTION_LOGIC", Step.IMPLEMENT, Loop.MAKE_RETRY),
        # one seam per task, and then the absence of tests is signed off; a diagnosed one is made again by its limit
        ({}, f"{TASK} MISSING_SEAM SEAM_DONE=s1", Step.WRITE_TESTS, None),
        ({}, f"{TASK} MISSING_SEAM SEAM_DONE=s1 MISSING_SEAM", Step.CHECK_TESTS, None),
        ({}, f"{TASK} {LOST_SEAM}", Step.CHECK_TESTS, None),
        ({Loop.SEAM: 2}, f"{TASK} {LOST_SEAM}", Step.SEAM, Loop.SEAM),
    ],
)
def test_where_a_limit_leads(limits: Mapping[Loop, int], words: str, step: Step, via: Loop | None) -> None:
    state = walk(begin(limits), words)
    assert (state.trunk.step, state.trunk.via, state.failure) == (step, via, None)
    if step is Step.CHECK_TESTS:
        assert state.trunk.ask is Question.NOT_TESTABLE
    if step is Step.DIAGNOSE:
        assert (state.trunk.ask, state.trunk.origin) == (Question.DIAGNOSE, Step.WRITE_TESTS)


@pytest.mark.parametrize("words", ["OK CLAIMED", TO_SPLIT])
def test_a_third_fault_of_hygiene_ends_the_run(words: str) -> None:
    assert walk(begin(), words, "HYGIENE HYGIENE HYGIENE HANDLED").reason is Reason.LOOPS_EXHAUSTED


def test_a_plan_is_reworked_twice_in_a_run_whatever_sends_it_back() -> None:
    again = "DRAFTED ACCEPTABLE DRAFTED:1 BLOCK"
    state = walk(begin(), "OK CLAIMED", again, again)
    assert (state.trunk.step, state.plan_revision) == (Step.PLAN, 3)
    ended = walk(state, again)
    assert (ended.trunk.step, ended.failure) == (Step.FAILURE, Reason.LOOPS_EXHAUSTED)
    assert walk(ended, "HANDLED").outcome is Outcome.FAILED


def test_tests_that_are_rewritten_twice_are_diagnosed_once() -> None:
    state = walk(at_first_task(), "ILLEGAL_RED=t1 STRUCTURAL_ONLY=t2")
    assert state.trunk.step is Step.WRITE_TESTS
    state, (decision,) = walk_with_decisions(state, "RED_UNSTABLE=t3")
    assert (state.trunk.step, state.trunk.ask, state.trunk.origin) == (
        Step.DIAGNOSE,
        Question.DIAGNOSE,
        Step.WRITE_TESTS,
    )
    assert decision.counters == {"test_diagnosis@task 1": 1}
    state, (decision,) = walk_with_decisions(state, "PRODUCTION_LOGIC")
    assert decision.exhausted == (Loop.TEST_REWRITE, Loop.TEST_DIAGNOSIS)
    assert (state.trunk.step, state.plan_revision) == (Step.PLAN, 2)


def at_stubs(limits: Mapping[Loop, int] | None = None) -> RunState:
    return walk(begin(limits), TO_SPLIT, event("DRAFTED", tasks=(NewTask(id="1", stub_first=True),)), "ACCEPTABLE")


def test_what_make_wastes_on_stubs_is_not_taken_from_the_tests() -> None:
    state = walk(at_stubs(), "STUB_DIRTY=x1 INCOMPLETE=x2 PRODUCTION_LOGIC")
    assert state.trunk.step is Step.STUB
    assert {key: count for key, count in state.counters.items() if "task 1" in key} == {"stub_retry@task 1": 2}
    state = walk(state, "STUBBED=s1 ILLEGAL_RED=t1 STRUCTURAL_ONLY=t2")
    assert (state.trunk.step, state.trunk.via) == (Step.WRITE_TESTS, Loop.TEST_REWRITE)


def test_stubs_that_are_made_again_twice_are_diagnosed_once() -> None:
    state, decisions = walk_with_decisions(at_stubs(), "STUB_DIRTY=x1 STUB_DIRTY=x2 STUB_DIRTY=x3")
    assert (state.trunk.step, state.trunk.ask, state.trunk.origin) == (Step.DIAGNOSE, Question.DIAGNOSE, Step.STUB)
    assert decisions[-1].exhausted == (Loop.STUB_RETRY,)
    assert decisions[-1].counters == {"test_diagnosis@task 1": 1}
    state, (decision,) = walk_with_decisions(state, "PRODUCTION_LOGIC")
    assert decision.exhausted == (Loop.STUB_RETRY, Loop.TEST_DIAGNOSIS)
    assert (state.trunk.step, state.plan_revision) == (Step.PLAN, 2)


def test_the_configuration_says_how_often_stubs_are_made_again() -> None:
    assert walk(at_stubs({Loop.STUB_RETRY: 0}), "STUB_DIRTY=x").trunk.step is Step.DIAGNOSE


def test_two_redesigns_of_the_tests_send_the_plan_back() -> None:
    state = walk(at_first_task(), *(f"RED=r{n} TEST_DESIGN=c{n} TEST_DESIGN" for n in (1, 2)), "RED=r3 TEST_DESIGN=c3")
    state, (decision,) = walk_with_decisions(state, "TEST_DESIGN")
    assert decision.exhausted == (Loop.TEST_DESIGN,)
    assert (state.trunk.step, state.trunk.via) == (Step.PLAN, Loop.PLAN_REWORK)


def test_the_whole_chain_of_reached_limits_ends_in_the_failure_handler() -> None:
    empty = {Loop.MAKE_RETRY: 0, Loop.TEST_DESIGN: 0, Loop.PLAN_REWORK: 0}
    state, decisions = walk_with_decisions(at_first_task(limits=empty), "RED=r1 NOT_GREEN=c1 PRODUCTION_LOGIC")
    assert decisions[-1].exhausted == (Loop.MAKE_RETRY, Loop.TEST_DESIGN, Loop.PLAN_REWORK)
    assert decisions[-1].action == Goto(Step.FAILURE)
    ended = walk(state, "HANDLED")
    assert (ended.outcome, ended.reason) == (Outcome.FAILED, Reason.EVIDENCE_NOT_REACHED)


def test_evidence_was_not_reached_only_when_a_task_sent_the_plan_back() -> None:
    limits = {Loop.PLAN_REWORK: 0}
    by_task = walk(at_first_task(limits=limits), "BLOCKED PLAN HANDLED")
    assert by_task.reason is Reason.EVIDENCE_NOT_REACHED
    by_review = walk(at_first_task(limits=limits), "RED=r GREEN=c PLAN HANDLED")
    assert by_review.reason is Reason.LOOPS_EXHAUSTED


def test_files_are_added_twice_and_then_the_task_is_split_again() -> None:
    state = walk(at_first_task(), "RED=r1 NEEDS_FILE=c1 AMENDED NEEDS_FILE=c2 AMENDED NEEDS_FILE=c3")
    state, (decision,) = walk_with_decisions(state, "AMENDED")
    assert decision.exhausted == (Loop.SCOPE_AMEND,)
    assert (state.trunk.step, state.trunk.via) == (Step.SPLIT, Loop.SPLIT_REWORK)


def test_two_splits_are_reworked_in_a_plan_revision_and_then_the_plan() -> None:
    state = at_first_task()
    for number in (2, 3):
        state = walk(state, f"BLOCKED SPEC DRAFTED:{number} ACCEPTABLE")
    state, decisions = walk_with_decisions(state, "BLOCKED SPLIT_NEEDED")
    assert decisions[-1].exhausted == (Loop.SPLIT_REWORK,)
    assert state.trunk.step is Step.PLAN
    state = walk(state, "DRAFTED ACCEPTABLE DRAFTED:4 ACCEPTABLE BLOCKED SPEC")
    assert (state.trunk.step, state.trunk.via) == (Step.SPLIT, Loop.SPLIT_REWORK)


def test_a_cosmetic_edit_is_made_once_in_a_run() -> None:
    state = walk(at_first_task(), "RED=r GREEN=c COSMETIC=e1")
    assert (state.trunk.step, state.head) == (Step.FINAL_REVIEW, "e1")
    state = walk(state, "COSMETIC=e2")
    assert (state.trunk.step, state.head) == (Step.PUBLISH, "e1")


# --- re-asks ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "role"),
    [
        ("MALFORMED", Role.ORCHESTRATOR),
        ("VIOLATION", Role.ORCHESTRATOR),
        ("TIMED_OUT", Role.ORCHESTRATOR),
        ("DRAFTED VIOLATION", Role.CHECK),
    ],
)
def test_a_slot_is_asked_once_more_and_told_why(words: str, role: Role) -> None:
    signal = words.rsplit(maxsplit=1)[-1]
    state = walk(begin(), "OK CLAIMED", f"{words}@{role.value}")
    assert (state.trunk.step in {Step.PLAN, Step.REVIEW_PLAN}, state.trunk.reasks) == (True, {role: Signal(signal)})
    ended = walk(state, f"{signal}@{role.value}")
    assert (ended.outcome, ended.reason) == (Outcome.PARKED, Reason.AGENT_UNUSABLE)


def test_the_slots_of_a_review_are_asked_again_each_on_its_own() -> None:
    state = walk(begin(), "OK CLAIMED DRAFTED MALFORMED@check MALFORMED@simplify")
    assert (state.trunk.step, set(state.trunk.reasks)) == (Step.REVIEW_PLAN, {Role.CHECK, Role.SIMPLIFY})


def test_simplify_is_left_out_and_the_review_goes_on() -> None:
    state = walk(begin(), "OK CLAIMED DRAFTED MALFORMED@simplify TIMED_OUT@simplify")
    assert (state.trunk.step, state.outcome, state.trunk.left_out) == (
        Step.REVIEW_PLAN,
        None,
        frozenset({Role.SIMPLIFY}),
    )
    assert walk(state, "ACCEPTABLE").trunk.left_out == frozenset()
    with pytest.raises(ValueError, match="still asked"):
        advance(state, event("MALFORMED@simplify"))


@pytest.mark.parametrize(
    ("words", "role", "origin"),
    [("", "test", Step.WRITE_TESTS), ("RED=r", "make", Step.IMPLEMENT), ("MISSING_SEAM", "make", Step.SEAM)],
)
def test_work_that_is_never_well_formed_is_diagnosed(words: str, role: str, origin: Step) -> None:
    state = walk(at_first_task(), words, f"MALFORMED@{role} MALFORMED@{role}")
    assert (state.trunk.step, state.trunk.ask, state.trunk.origin) == (Step.DIAGNOSE, Question.DIAGNOSE, origin)


def test_a_new_visit_is_a_new_slot() -> None:
    state = walk(begin(), "OK CLAIMED MALFORMED@orchestrator DRAFTED NEEDS_WORK")
    assert (state.trunk.step, state.trunk.reasks) == (Step.PLAN, {})
    state = walk(state, "MALFORMED@orchestrator")
    assert (state.trunk.step, state.outcome) == (Step.PLAN, None)


@pytest.mark.parametrize("words", ["MALFORMED", "MALFORMED@make"])
def test_a_failed_dispatch_names_a_slot_of_its_step(words: str) -> None:
    with pytest.raises(ValueError, match="must name a slot of plan"):
        advance(walk(begin(), "OK CLAIMED"), event(words))


# --- dispatches ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "limit"),
    [
        (TO_SPLIT, 30),
        (f"{TO_SPLIT} DRAFTED:1,2,3", 60),
        (f"{TO_SPLIT} DRAFTED:1,2,3 NEEDS_WORK DRAFTED:4,5", 50),
        # done tasks and fix tasks belong to the present split
        (f"{BOTH} RED=r1 GREEN=c1 BLOCKED SPEC DRAFTED:3,4,5", 30 + 10 * 4),
        (f"{BOTH} RED=r1 GREEN=c1 RED=r2 GREEN=c2 FIX DRAFTED:fix-1", 30 + 10 * 3),
        # a plan that is reworked keeps the old limit until there is a new split
        (f"{TO_SPLIT} DRAFTED:1,2,3 ACCEPTABLE BLOCKED PLAN", 60),
        (f"{TO_SPLIT} DRAFTED:1,2,3 ACCEPTABLE BLOCKED PLAN DRAFTED ACCEPTABLE DRAFTED:4", 40),
    ],
)
def test_the_dispatch_limit_grows_with_the_tasks_of_the_present_split(words: str, limit: int) -> None:
    assert limit_of(walk(begin(), words), Loop.DISPATCHES) == limit
    assert limit_of(walk(begin({Loop.DISPATCHES: 5}), words), Loop.DISPATCHES) == limit - 25


def test_a_used_up_budget_parks_the_run() -> None:
    _, (decision,) = walk_with_decisions(at_first_task(), "BUDGET")
    assert decision.action == Stop(Outcome.PARKED, Reason.BUDGET)


# --- scopes ----------------------------------------------------------------------------------------------------------


def test_a_limit_is_named_by_its_scope() -> None:
    state = walk(at_first_task(), "RED=0123456789abcdef")
    assert counter_key(state, Loop.PLAN_REVIEW, None) == "plan_review@plan 1"
    assert counter_key(state, Loop.SPLIT_REVIEW, None) == "split_review@split 1"
    assert counter_key(state, Loop.PLAN_REWORK, None) == "plan_rework@run"
    assert counter_key(state, Loop.SEAM, None) == "seam@task 1"
    assert counter_key(state, Loop.MAKE_RETRY, None) == "make_retry@task 1 0123456789ab"
    assert counter_key(state, Loop.REASK, Role.MAKE) == f"reask@visit {state.trunk.visit} make 0"


def test_each_task_has_its_own_limits() -> None:
    state = walk(at_first_task("1", "2"), "ILLEGAL_RED ILLEGAL_RED RED=r1 GREEN=c1 ILLEGAL_RED ILLEGAL_RED")
    assert (state.trunk.step, state.current) == (Step.WRITE_TESTS, "2")


def test_an_id_that_was_used_by_a_task_that_began_is_refused() -> None:
    state = walk(at_first_task("1"), "BLOCKED SPEC")
    with pytest.raises(ValueError, match="task ids are used again: 1"):
        advance(state, Event(signal=Signal.DRAFTED, tasks=tasks("1", "2")))
