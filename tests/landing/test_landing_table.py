"""What follows of what was found when a run was picked: each row, and what measuring again comes to."""

from __future__ import annotations

import pytest

from pipeline.app.land import LandDocument, LandLine
from pipeline.faces.cli.land import land_text
from pipeline.steps.landing import MOST_PICKS, TABLE, Found, Then, found_of, then
from pipeline.testing.verification.results import CommitCheck, Problem, Status, TestLine


@pytest.mark.parametrize("found", list(Found))
def test_each_finding_has_a_row(found: Found) -> None:
    assert found in TABLE


@pytest.mark.parametrize("found", [Found.CONFLICT, Found.REFUTED, Found.REGRESSION])
def test_what_does_not_fit_is_ordered_again_once_and_then_a_person_is_told(found: Found) -> None:
    assert then(found) is Then.ORDER_AGAIN
    assert then(found, ordered=True) is Then.TELL


def test_a_base_that_moves_is_followed_five_times() -> None:
    assert [then(Found.BASE_MOVED, picks=picks) for picks in range(1, MOST_PICKS + 1)] == [
        *[Then.PICK_AGAIN] * (MOST_PICKS - 1),
        Then.TELL,
    ]
    assert then(Found.BASE_MOVED, picks=1, ordered=True) is Then.PICK_AGAIN


def check(status: Status, *, before: bool = True, after: bool = True, tests: int = 1) -> CommitCheck:
    line = TestLine(id="a", granularity="id", recorded="X", measured="X", before_holds=before, after_holds=after)
    problems = (Problem(id="b", why="passed before and fails now"),) if status is Status.REFUTED else ()
    return CommitCheck(commit="1" * 40, subject="feat: a", status=status, tests=(line,) * tests, problems=problems)


@pytest.mark.parametrize(
    ("checks", "found"),
    [
        ([], Found.VERIFIED),
        ([check(Status.VERIFIED), check(Status.NOT_TESTABLE), check(Status.NOTHING_CLAIMED)], Found.VERIFIED),
        ([check(Status.VERIFIED), check(Status.UNCHECKED)], Found.UNCHECKED),
        ([check(Status.REFUTED)], Found.REGRESSION),
        ([check(Status.REFUTED, before=False)], Found.REFUTED),
        ([check(Status.REFUTED, after=False)], Found.REFUTED),
        ([check(Status.REFUTED, tests=0)], Found.REFUTED),
    ],
)
def test_measuring_again_comes_to_the_first_that_does_not_hold(checks: list[CommitCheck], found: Found) -> None:
    assert found_of(checks) is found


def test_a_run_whose_changes_the_base_had_is_not_said_to_be_checked_there() -> None:
    def said(*commits: str) -> str:
        line = LandLine(run="run-GAL-1", issue="GAL-1", branch="a", status="landed", commits=commits)
        facts = {"ok": True, "exit_code": 0, "onto": "main", "before": "a", "after": "b", "dry_run": False}
        return land_text(LandDocument.model_validate({**facts, "runs": (line,)})).splitlines()[0]

    assert said("1" * 40, "2" * 40) == "run-GAL-1: landed on main, checked there"
    assert said("1" * 40) == "run-GAL-1: landed on main, which had its code already"
