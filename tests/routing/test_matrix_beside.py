"""What stands beside the cells and bounds of the matrix, which DESIGN.md shows and test_render.py compares."""

from __future__ import annotations

import re

from pipeline.matrix.routing.matrix import (
    ASKS,
    DISPATCHES_PER_TASK,
    GATES,
    MATRIX,
    MAX_FIX_TASKS,
    MAX_TASKS,
    MEASURING,
)
from pipeline.matrix.routing.matrix import steps_of as steps_of_row
from pipeline.vocabulary import Role, Signal, Step


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


def test_the_numbers_beside_the_bounds() -> None:
    assert (DISPATCHES_PER_TASK, MAX_TASKS, MAX_FIX_TASKS) == (10, 12, 4)


def test_a_row_is_told_as_a_reason_and_orders_nobody() -> None:
    orders = {"claim", "draft", "go", "review", "revise", "set", "stop"}
    told = {row.id: re.split(r"[,:;] ", row.says) for row in MATRIX}
    assert {id_: parts for id_, parts in told.items() if any(part.split()[0] in orders for part in parts)} == {}
