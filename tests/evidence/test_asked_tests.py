"""How @test's notes on single tests are matched to the suite."""

from __future__ import annotations

from evidence.observed import observed

from pipeline.judge.evidence.observation import Ended
from pipeline.judge.reports.work_reports import NamedTest, ReadyTests
from pipeline.steps.asking.criteria import unknown_guards
from pipeline.testing.measure.red import spelled_out

SUITE = observed(
    {
        "tests/test_a.py::test_keeps[1]": Ended.PASSED,
        "tests/test_a.py::test_keeps[2]": Ended.PASSED,
        "tests/test_a.py::test_both": Ended.PASSED,
        "tests/test_b.py::test_both": Ended.PASSED,
    }
)


def report(*names: str) -> ReadyTests:
    return ReadyTests(verdict="TESTS_READY", tests=tuple(NamedTest(id=name, expected="GUARD") for name in names))


def test_a_last_name_is_a_test_where_only_one_function_has_it() -> None:
    names = ("test_keeps", "test_both", "tests/test_b.py::test_both", "test_none")
    found = [named.id for named in spelled_out(report(*names), SUITE).tests]
    assert found == ["tests/test_a.py::test_keeps", "test_both", "tests/test_b.py::test_both", "test_none"]


def test_a_guard_that_is_not_in_the_suite_is_named() -> None:
    found = unknown_guards(report("test_keeps", "tests/test_b.py::test_both", "test_none"), SUITE)
    assert found == ("`tests` marks test_none as GUARD, which is not in the suite",)
