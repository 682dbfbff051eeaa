"""Every cell of the matrix, written down a second time by hand (matrix 1)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, assert_never

import pytest

from pipeline.matrix.routing.actions import Again, AskPerson, Forward, Goto, LeaveOut, NextTask, Retry, Return, Stop
from pipeline.matrix.routing.matrix import (
    ASKS,
    BOUNDS,
    DISPATCHES_PER_TASK,
    GATES,
    MATRIX,
    MAX_FIX_TASKS,
    MAX_TASKS,
    MEASURING,
)
from pipeline.matrix.routing.matrix import steps_of as steps_of_row
from pipeline.vocabulary import Loop, Role, Signal, Step

if TYPE_CHECKING:
    from pipeline.matrix.routing.actions import Action

CELLS = """
SANITY OK -> ISSUE
SANITY PRECONDITION -> rejected
SANITY BASELINE_IMPOSSIBLE -> rejected baseline_impossible
ISSUE CLAIMED -> PLAN
ISSUE CLAIMED, if one writer -> next task
ISSUE NOT_FOUND -> rejected issue_not_found
ISSUE NOT_TODO -> rejected issue_not_todo
ISSUE DEPENDENCY_UNMET -> rejected dependency_unmet
ISSUE DEPENDENCY_MISSING -> rejected dependency_missing
ISSUE CLAIMED_ELSEWHERE -> rejected claimed_elsewhere
PLAN DRAFTED -> REVIEW_PLAN
PLAN HYGIENE -> PLAN by HYGIENE
PLAN BASELINE_IMPOSSIBLE -> FAILURE
PLAN QUESTION -> a person by QUESTIONS
REVIEW_PLAN ACCEPTABLE, CONVERGED -> SPLIT
REVIEW_PLAN NOT_ASKED -> SPLIT
REVIEW_SPLIT NOT_ASKED -> next task
SPLIT NOT_ASKED -> next task
REVIEW_PLAN NEEDS_WORK, BLOCK -> PLAN by PLAN_REVIEW
SPLIT DRAFTED -> REVIEW_SPLIT
SPLIT DRAFTED, if drafting fix tasks -> next task
SPLIT ONE_TASK -> next task
SPLIT PROVED -> next task
SPLIT HYGIENE -> SPLIT by HYGIENE
SPLIT BASELINE_IMPOSSIBLE -> FAILURE
SPLIT QUESTION -> a person by QUESTIONS
REVIEW_SPLIT ACCEPTABLE, CONVERGED -> next task
REVIEW_SPLIT NEEDS_WORK -> SPLIT by SPLIT_REVIEW
REVIEW_SPLIT BLOCK -> PLAN by PLAN_REWORK
STUB STUBBED -> WRITE_TESTS
STUB STUB_DIRTY -> STUB by STUB_RETRY
STUB NEEDS_FILE -> DIAGNOSE (amend)
STUB INCOMPLETE, CANNOT_PROCEED -> DIAGNOSE (diagnose)
WRITE_TESTS RED -> IMPLEMENT
WRITE_TESTS TESTS_KEPT -> IMPLEMENT
WRITE_TESTS DISPUTED, CHANGED_OLD_TEST, TESTS_DOUBTFUL -> CHECK_TESTS (tests)
WRITE_TESTS UNNOTICED_FAULTS -> WRITE_TESTS by TEST_REWRITE
WRITE_TESTS NOT_TESTABLE -> CHECK_TESTS (not_testable)
WRITE_TESTS MISSING_SEAM -> SEAM by SEAM
WRITE_TESTS ILLEGAL_RED, STRUCTURAL_ONLY, RED_UNSTABLE -> WRITE_TESTS by TEST_REWRITE
WRITE_TESTS PASSES_ALREADY, BLOCKED -> DIAGNOSE (diagnose)
WRITE_TESTS PROOF_PASSES -> next task
WRITE_TESTS NEEDS_FILE -> DIAGNOSE (amend)
CHECK_TESTS ACCEPTABLE -> IMPLEMENT
CHECK_TESTS NEEDS_WORK -> WRITE_TESTS by TEST_REWRITE
CHECK_TESTS ACCEPTABLE, if asked by BUILD -> next task
CHECK_TESTS NEEDS_WORK, if asked by BUILD -> BUILD by BUILD
SEAM SEAM_DONE -> WRITE_TESTS
SEAM REGRESSION, NO_CHANGE, INCOMPLETE, CANNOT_PROCEED -> CHECK_TESTS (not_testable)
SEAM NEEDS_FILE -> DIAGNOSE (amend)
IMPLEMENT GREEN, GREEN_INCOMPLETE -> next task
IMPLEMENT NEEDS_FILE -> DIAGNOSE (amend)
IMPLEMENT ENTRY_FLAG, TEST_DESIGN, SPLIT_NEEDED, REGRESSION, NO_CHANGE -> DIAGNOSE (diagnose)
IMPLEMENT HIDDEN_REGRESSION -> DIAGNOSE (diagnose)
IMPLEMENT NOT_GREEN, INCOMPLETE, CANNOT_PROCEED -> DIAGNOSE (diagnose)
IMPLEMENT STALE_XFAIL -> WRITE_TESTS by TEST_REWRITE
IMPLEMENT GREEN_UNSTABLE -> DIAGNOSE (diagnose)
IMPLEMENT UNNOTICED_FAULTS -> WRITE_TESTS by UNNOTICED_FAULTS
BUILD GREEN, GREEN_INCOMPLETE -> next task
BUILD ILLEGAL_RED, PASSES_ALREADY, STRUCTURAL_ONLY, RED_UNSTABLE, HIDDEN_REGRESSION -> BUILD by BUILD
BUILD NOT_GREEN, REGRESSION, GREEN_UNSTABLE, NO_CHANGE, INCOMPLETE -> BUILD by BUILD
BUILD UNNOTICED_FAULTS -> BUILD by UNNOTICED_FAULTS
BUILD NOT_TESTABLE -> CHECK_TESTS (not_testable)
DIAGNOSE PRODUCTION_LOGIC -> IMPLEMENT by MAKE_RETRY
DIAGNOSE PRODUCTION_LOGIC, if asked by WRITE_TESTS -> WRITE_TESTS by TEST_REWRITE
DIAGNOSE PRODUCTION_LOGIC, if asked by STUB -> STUB by STUB_RETRY
DIAGNOSE PRODUCTION_LOGIC, if asked by SEAM -> SEAM by SEAM
DIAGNOSE PRODUCTION_LOGIC, if asked by BUILD -> BUILD by TEST_DESIGN
DIAGNOSE TEST_DESIGN, if asked by BUILD -> BUILD by TEST_DESIGN
DIAGNOSE SPEC, if asked by BUILD -> PLAN by PLAN_REWORK
DIAGNOSE SPLIT_NEEDED, if asked by BUILD -> PLAN by PLAN_REWORK
DIAGNOSE TEST_DESIGN, WRONG_REPORT -> WRITE_TESTS by TEST_DESIGN
DIAGNOSE AMENDED -> the asker by SCOPE_AMEND
DIAGNOSE REFUSED -> the asker by MAKE_RETRY
DIAGNOSE SPEC, SPLIT_NEEDED -> SPLIT by SPLIT_REWORK
DIAGNOSE PLAN -> PLAN by PLAN_REWORK
DIAGNOSE TESTS_KEPT -> IMPLEMENT
DIAGNOSE ALREADY_DONE -> next task
DIAGNOSE ENVIRONMENT -> parked environment
DIAGNOSE QUESTION -> a person by QUESTIONS
INTEGRATE ACCEPTED -> next task
INTEGRATE CONFLICT, NOT_GREEN, REGRESSION -> IMPLEMENT by TASK_REDO
INTEGRATE TEST_CONFLICT -> WRITE_TESTS by TASK_REDO
INTEGRATE HIDDEN_REGRESSION, RED_GONE -> DIAGNOSE (diagnose)
FINAL_REVIEW ACCEPTABLE, CONVERGED -> PUBLISH
FINAL_REVIEW FIX, PROVED -> SPLIT by FINAL_REVIEW
FINAL_REVIEW FIX, PROVED, if one writer -> BUILD by FINAL_REVIEW
FINAL_REVIEW COSMETIC -> FINAL_REVIEW by COSMETIC
FINAL_REVIEW PLAN -> PLAN by PLAN_REWORK
FINAL_REVIEW WRITTEN -> FINAL_REVIEW by OWN_STEPS
FINAL_REVIEW NOT_WRITTEN -> parked agent_unusable
PUBLISH PUBLISHED -> completed done
PUBLISH PUBLISHED, if blockers on record -> completed_with_blockers blockers
PUBLISH PUBLISHED, if every task was done already -> completed nothing_to_do
PUBLISH REGRESSION -> parked regression
PUBLISH BRANCH_MOVED -> parked branch_moved
PUBLISH TIP_MOVED -> PUBLISH by TIP_MOVED
PUBLISH WORKTREE_CHANGED -> parked worktree_changed
PUBLISH SIGNING_FAILED -> parked signing
FAILURE HANDLED -> failed
FAILURE HANDLER_FAILED -> failed cleanup_needed
GATE APPROVED -> forward
GATE REJECTED_TO_PLAN -> PLAN by HUMAN
GATE REJECTED_TO_SPLIT, REJECTED_TO_FIX -> SPLIT by HUMAN
GATE REJECTED_TO_FIX, if one writer -> BUILD by HUMAN
any MALFORMED, VIOLATION, TIMED_OUT -> the same slot by REASK
any UNAVAILABLE -> parked agent_unavailable
any BUDGET -> parked budget
any ESCAPE -> FAILURE
any CANCELLED -> cancelled interrupted
any ENV_BROKEN -> parked environment
"""


def expected_cells() -> dict[str, str]:
    cells: dict[str, str] = {}
    for line in CELLS.strip().splitlines():
        where, action = line.split(" -> ")
        where, _, given = where.partition(", if ")
        step, signals = where.split(" ", 1)
        cells |= {f"{step} {signal}" + (f" if {given}" if given else ""): action for signal in signals.split(", ")}
    return cells


def said(action: Action) -> str:
    match action:
        case Goto(to, ask):
            return to.name + (f" ({ask})" if ask else "")
        case Retry(to, loop, ask):
            return f"{to.name}{f' ({ask})' if ask else ''} by {loop.name}"
        case Return(loop):
            return f"the asker by {loop.name}"
        case Again(loop):
            return f"the same slot by {loop.name}"
        case AskPerson(loop):
            return f"a person by {loop.name}"
        case LeaveOut():
            return "left out"
        case NextTask():
            return "next task"
        case Forward():
            return "forward"
        case Stop(outcome, reason):
            return f"{outcome} {reason}" if reason else outcome.value
        case _:
            assert_never(action)


def test_every_cell_is_the_one_that_was_designed() -> None:
    built = {
        f"{row.step.name if row.step else 'any'} {row.signal}" + (f" if {row.given}" if row.given else ""): said(
            row.action
        )
        for row in MATRIX
    }
    assert built == expected_cells()


def test_the_rows_of_any_dispatch_hold_where_agents_have_slots() -> None:
    asked = (
        "PLAN REVIEW_PLAN SPLIT REVIEW_SPLIT STUB WRITE_TESTS CHECK_TESTS SEAM IMPLEMENT BUILD DIAGNOSE FINAL_REVIEW"
    )
    agents = {Step[name] for name in asked.split()}
    assert set(ASKS) == agents
    for row in MATRIX:
        if row.step is None and row.signal not in {Signal.ENV_BROKEN, Signal.CANCELLED, Signal.ESCAPE}:
            assert steps_of_row(row) == agents


def test_tests_and_an_agent_behind_pm_can_escape_though_they_have_no_slot() -> None:
    (row,) = [row for row in MATRIX if row.signal is Signal.ESCAPE]
    assert steps_of_row(row) == {*ASKS, Step.SANITY, Step.INTEGRATE, Step.PUBLISH}


def test_each_step_asks_whom_the_design_names() -> None:
    reviewers = (Role.CHECK, Role.SIMPLIFY)
    assert ASKS[Step.REVIEW_PLAN] == ASKS[Step.FINAL_REVIEW] == reviewers
    assert {step for step, roles in ASKS.items() if roles == (Role.CHECK,)} == {
        Step.REVIEW_SPLIT,
        Step.CHECK_TESTS,
        Step.DIAGNOSE,
    }
    assert {step for step, roles in ASKS.items() if roles == (Role.MAKE,)} == {
        Step.STUB,
        Step.SEAM,
        Step.IMPLEMENT,
        Step.BUILD,
    }
    assert ASKS[Step.PLAN] == ASKS[Step.SPLIT] == (Role.ORCHESTRATOR,)
    assert ASKS[Step.WRITE_TESTS] == (Role.TEST,)


def test_the_environment_can_break_where_something_is_run() -> None:
    names = "SANITY STUB WRITE_TESTS SEAM IMPLEMENT BUILD INTEGRATE FINAL_REVIEW PUBLISH"
    assert {Step[name] for name in names.split()} == MEASURING


def test_a_gate_sends_back_only_to_where_the_run_has_been() -> None:
    assert GATES == {
        "plan": (Signal.APPROVED, Signal.REJECTED_TO_PLAN),
        "split": (Signal.APPROVED, Signal.REJECTED_TO_PLAN, Signal.REJECTED_TO_SPLIT),
        "commit": (Signal.APPROVED, Signal.REJECTED_TO_PLAN, Signal.REJECTED_TO_SPLIT, Signal.REJECTED_TO_FIX),
    }


@pytest.mark.parametrize(
    ("loop", "limit", "reviews", "scope", "exhausted"),
    [
        (Loop.PLAN_REVIEW, 3, True, "plan revision", "SPLIT"),
        (Loop.SPLIT_REVIEW, 2, True, "split revision", "next task"),
        (Loop.FINAL_REVIEW, 3, True, "plan revision", "PUBLISH"),
        (Loop.HYGIENE, 2, False, "draft", "FAILURE"),
        (Loop.PLAN_REWORK, 2, False, "run", "FAILURE"),
        (Loop.SPLIT_REWORK, 2, False, "plan revision", "PLAN by PLAN_REWORK"),
        (Loop.STUB_RETRY, 2, False, "task", "DIAGNOSE (diagnose) by TEST_DIAGNOSIS"),
        (Loop.TEST_REWRITE, 2, False, "task", "DIAGNOSE (diagnose) by TEST_DIAGNOSIS"),
        (Loop.TEST_DIAGNOSIS, 1, False, "task", "PLAN by PLAN_REWORK"),
        (Loop.TEST_DESIGN, 2, False, "task", "PLAN by PLAN_REWORK"),
        (Loop.MAKE_RETRY, 1, False, "task and red tree", "WRITE_TESTS by TEST_DESIGN"),
        (Loop.SCOPE_AMEND, 2, False, "task", "SPLIT by SPLIT_REWORK"),
        (Loop.SEAM, 1, False, "task", "CHECK_TESTS (not_testable)"),
        (Loop.UNNOTICED_FAULTS, 1, False, "task", "next task"),
        (Loop.BUILD, 2, False, "task", "DIAGNOSE (diagnose) by TEST_DIAGNOSIS"),
        (Loop.COSMETIC, 1, False, "run", "PUBLISH"),
        (Loop.OWN_STEPS, 10, False, "split revision", "parked agent_unusable"),
        (Loop.TIP_MOVED, 5, False, "run", "parked branch_moved"),
        (Loop.REASK, 1, False, "slot", "parked agent_unusable"),
        (Loop.UNUSABLE, 3, False, "row of a role", "parked agent_unusable"),
        (Loop.DISPATCHES, 30, False, "run", "parked budget"),
        (Loop.HUMAN, None, False, "-", "forward"),
    ],
)
def test_every_bound_is_the_one_that_was_designed(
    loop: Loop, limit: int | None, reviews: bool, scope: str, exhausted: str
) -> None:
    bound = BOUNDS[loop]
    assert (bound.limit, bound.reviews, bound.scope, said(bound.exhausted)) == (limit, reviews, scope, exhausted)


def test_only_what_a_role_hands_in_ends_by_role() -> None:
    assert {loop for loop, bound in BOUNDS.items() if bound.by_role} == {Loop.REASK, Loop.UNUSABLE}
    assert {role: said(action) for role, action in BOUNDS[Loop.UNUSABLE].by_role.items()} == {Role.SIMPLIFY: "left out"}
    assert {role: said(action) for role, action in BOUNDS[Loop.REASK].by_role.items()} == {
        Role.MAKE: "DIAGNOSE (diagnose)",
        Role.TEST: "DIAGNOSE (diagnose)",
        Role.SIMPLIFY: "left out",
    }


def test_the_numbers_beside_the_bounds() -> None:
    assert (DISPATCHES_PER_TASK, MAX_TASKS, MAX_FIX_TASKS) == (10, 12, 4)


def test_a_row_is_told_as_a_reason_and_orders_nobody() -> None:
    orders = {"claim", "draft", "go", "review", "revise", "set", "stop"}
    told = {row.id: re.split(r"[,:;] ", row.says) for row in MATRIX}
    assert {id_: parts for id_, parts in told.items() if any(part.split()[0] in orders for part in parts)} == {}
