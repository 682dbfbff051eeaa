"""The proofs hold for the matrix and fail for each mutant of it: a proof that cannot fail proves nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from routing.proofs import PROOFS, refuted, totality

from pipeline.matrix.routing.actions import Again, Goto, NextTask, Retry, Return
from pipeline.matrix.routing.matrix import BOUNDS, MATRIX
from pipeline.vocabulary import Loop, Signal, Step

if TYPE_CHECKING:
    from routing.proofs import Bounds, Matrix

    from pipeline.matrix.routing.actions import Action


def _with_action(index: int, action: Action) -> Matrix:
    return tuple(replace(row, action=action) if at == index else row for at, row in enumerate(MATRIX))


def _with_bound(loop: Loop, **changes: object) -> Bounds:
    return {**BOUNDS, loop: replace(BOUNDS[loop], **changes)}  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("name", PROOFS)
def test_the_matrix_is_proved(name: str) -> None:
    assert PROOFS[name](MATRIX, BOUNDS) == []


@pytest.mark.parametrize("index", range(len(MATRIX)), ids=[row.id for row in MATRIX])
def test_a_missing_row_is_noticed(index: int) -> None:
    assert totality(MATRIX[:index] + MATRIX[index + 1 :])


@pytest.mark.parametrize("index", range(len(MATRIX)), ids=[row.id for row in MATRIX])
def test_a_second_row_for_the_same_signal_is_noticed(index: int) -> None:
    assert totality((*MATRIX, MATRIX[index]))


ONCE = {"diagnose/SPEC[asked by BUILD]", "diagnose/SPLIT_NEEDED[asked by BUILD]"}
"""From one writer to a plan: no run comes back from there, so that paying only counts its plan revisions."""
PAID = [
    (index, row.id) for index, row in enumerate(MATRIX) if isinstance(row.action, Retry | Return) and row.id not in ONCE
]


@pytest.mark.parametrize("index", [index for index, _ in PAID], ids=[name for _, name in PAID])
def test_a_paid_edge_that_becomes_free_is_noticed(index: int) -> None:
    action = MATRIX[index].action
    free = Goto(action.to) if isinstance(action, Retry) else Goto(Step.IMPLEMENT)
    wrong = refuted(_with_action(index, free), BOUNDS)
    assert wrong.keys() & {"unpaid_cycle", "unpaid_refill"}


@pytest.mark.parametrize("loop", [loop for loop in Loop if loop is not Loop.HUMAN])
def test_a_bound_that_is_lifted_is_noticed(loop: Loop) -> None:
    wrong = refuted(MATRIX, _with_bound(loop, limit=None))
    assert "unbounded" in wrong
    if loop not in {Loop.DISPATCHES, Loop.UNUSABLE}:  # no row spends them, so that no edge of the graph becomes free
        assert wrong.keys() & {"unpaid_cycle", "unpaid_refill"}


@pytest.mark.parametrize(
    ("loop", "exhausted"),
    [
        (Loop.PLAN_REVIEW, Goto(Step.PLAN)),
        (Loop.SPLIT_REVIEW, Goto(Step.SPLIT)),
        (Loop.PLAN_REWORK, Goto(Step.PLAN)),
        (Loop.STUB_RETRY, Goto(Step.DIAGNOSE)),
        (Loop.TEST_REWRITE, Goto(Step.DIAGNOSE)),
        (Loop.TEST_DESIGN, Goto(Step.WRITE_TESTS)),
        (Loop.TEST_DESIGN, Retry(Step.IMPLEMENT, Loop.MAKE_RETRY)),
        (Loop.PLAN_REWORK, Retry(Step.SPLIT, Loop.SPLIT_REWORK)),
        (Loop.COSMETIC, Goto(Step.FINAL_REVIEW)),
        (Loop.OWN_STEPS, Goto(Step.FINAL_REVIEW)),
        (Loop.FINAL_REVIEW, Goto(Step.SPLIT)),
    ],
)
def test_an_reached_limit_that_leads_back_is_noticed(loop: Loop, exhausted: Action) -> None:
    wrong = refuted(MATRIX, _with_bound(loop, exhausted=exhausted))
    assert wrong.keys() & {"unpaid_cycle", "unpaid_refill"}


@pytest.mark.parametrize(
    ("loop", "scope"),
    [
        (Loop.PLAN_REWORK, "plan revision"),
        (Loop.SPLIT_REWORK, "split revision"),
        (Loop.FINAL_REVIEW, "split revision"),
        (Loop.FINAL_REVIEW, "task"),
        (Loop.TEST_DESIGN, "task and red tree"),
        (Loop.OWN_STEPS, "slot"),
        (Loop.STUB_RETRY, "slot"),
        (Loop.TEST_REWRITE, "slot"),
    ],
)
def test_a_limit_that_fills_itself_is_noticed(loop: Loop, scope: str) -> None:
    assert "limits" in refuted(MATRIX, _with_bound(loop, scope=scope))


def test_a_turn_without_a_person_may_not_be_free_of_bounds() -> None:
    index = next(at for at, row in enumerate(MATRIX) if row.id == "plan/HYGIENE")
    assert "unbounded" in refuted(_with_action(index, Retry(Step.PLAN, Loop.HUMAN)), BOUNDS)


def test_a_step_without_an_exit_is_noticed() -> None:
    mute = tuple(row for row in MATRIX if row.step is not Step.FAILURE)
    assert "dead_end" in refuted(mute, BOUNDS)
    circling = tuple(replace(row, action=Goto(Step.FAILURE)) if row.step is Step.FAILURE else row for row in MATRIX)
    assert "dead_end" in refuted(circling, BOUNDS)


def test_a_queue_that_is_filled_for_nothing_is_noticed() -> None:
    index = next(at for at, row in enumerate(MATRIX) if row.id == "final-review/FIX")
    assert "unpaid_refill" in refuted(_with_action(index, Goto(Step.SPLIT)), BOUNDS)


def test_asking_a_slot_again_is_never_free() -> None:
    reasks = [row for row in MATRIX if isinstance(row.action, Again)]
    assert {row.signal for row in reasks} == {Signal.MALFORMED, Signal.VIOLATION, Signal.TIMED_OUT}
    assert all(isinstance(row.action, Again) and row.action.loop is Loop.REASK for row in reasks)


def test_only_tasks_and_their_splits_take_the_next_task() -> None:
    rows = {row.id for row in MATRIX if isinstance(row.action, NextTask)}
    assert rows == {
        "split/DRAFTED[drafting fix tasks]",
        "split/ONE_TASK",
        "split/PROVED",
        "write-tests/PROOF_PASSES",
        "split/NOT_ASKED",
        "review-split/NOT_ASKED",
        "review-split/ACCEPTABLE",
        "review-split/CONVERGED",
        "issue/CLAIMED[one writer]",
        "build/GREEN",
        "build/GREEN_INCOMPLETE",
        "check-tests/ACCEPTABLE[asked by BUILD]",
        "implement/GREEN",
        "implement/GREEN_INCOMPLETE",
        "integrate/ACCEPTED",
        "diagnose/ALREADY_DONE",
    }
