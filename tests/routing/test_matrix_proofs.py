"""The proofs hold for the matrix, and each fails for a mutant of it: a proof that cannot fail proves nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from routing.proofs import PROOFS

from pipeline.matrix.routing.actions import Goto
from pipeline.matrix.routing.matrix import BOUNDS, MATRIX
from pipeline.vocabulary import Loop, Step

if TYPE_CHECKING:
    from routing.proofs import Bounds, Matrix

    from pipeline.matrix.routing.actions import Action


def _with_action(row_id: str, action: Action) -> Matrix:
    return tuple(replace(row, action=action) if row.id == row_id else row for row in MATRIX)


def _with_bound(loop: Loop, **changes: object) -> Bounds:
    return {**BOUNDS, loop: replace(BOUNDS[loop], **changes)}  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("name", PROOFS)
def test_the_matrix_is_proved(name: str) -> None:
    assert PROOFS[name](MATRIX, BOUNDS) == []


@pytest.mark.parametrize(
    ("name", "matrix", "bounds"),
    [
        pytest.param("totality", MATRIX[1:], BOUNDS, id="a row is missing"),
        pytest.param("totality", (*MATRIX, MATRIX[0]), BOUNDS, id="a row stands twice"),
        pytest.param("unpaid_cycle", _with_action("plan/HYGIENE", Goto(Step.PLAN)), BOUNDS, id="a paid edge is free"),
        pytest.param(
            "unpaid_cycle", MATRIX, _with_bound(Loop.PLAN_REVIEW, exhausted=Goto(Step.PLAN)), id="a limit leads back"
        ),
        pytest.param(
            "unpaid_refill", _with_action("final-review/FIX", Goto(Step.SPLIT)), BOUNDS, id="a queue is filled for free"
        ),
        pytest.param(
            "dead_end", tuple(row for row in MATRIX if row.step is not Step.FAILURE), BOUNDS, id="a step has no exit"
        ),
        pytest.param("unbounded", MATRIX, _with_bound(Loop.PLAN_REVIEW, limit=None), id="a bound is lifted"),
        pytest.param("limits", MATRIX, _with_bound(Loop.PLAN_REWORK, scope="plan revision"), id="a limit fills itself"),
    ],
)
def test_each_proof_notices_what_it_is_for(name: str, matrix: Matrix, bounds: Bounds) -> None:
    assert PROOFS[name](matrix, bounds)
