"""What must be kept: the baseline, then what the accepted tasks made of it (matrix 5)."""

from __future__ import annotations

from evidence.observed import observed

from pipeline.judge.evidence.compare import expectations
from pipeline.judge.evidence.observation import Ended

A, B, C = "tests/test_a.py::test_x", "tests/test_b.py::test_x", "tests/test_c.py::test_x"


def outcomes(*runs: dict[str, Ended]) -> dict[str, Ended | None]:
    baseline, *accepted = (observed(run) for run in runs)
    return {entry: record.outcome for entry, record in expectations(baseline, accepted).items()}


def test_a_test_that_an_accepted_task_removed_is_not_kept_any_longer() -> None:
    passed = Ended.PASSED
    assert outcomes({A: passed, B: passed}, {A: passed, C: passed}) == {A: passed, C: passed}


def test_a_failure_that_was_forgiven_as_flaky_does_not_lower_what_is_expected() -> None:
    assert outcomes({A: Ended.PASSED}, {A: Ended.FAILED}) == {A: Ended.PASSED}


def test_a_test_that_failed_and_was_mended_is_kept_from_then_on() -> None:
    assert outcomes({A: Ended.FAILED}, {A: Ended.PASSED}) == {A: Ended.PASSED}
