"""Which failing tests a task or a report names, and which of several a name means."""

from __future__ import annotations

import pytest
from evidence.observed import NO_IMPORT, observed

from pipeline.judge.evidence.named_tests import asked_for, called, claimed_tests
from pipeline.judge.evidence.observation import CollectionError, Ended
from pipeline.judge.reports.work_reports import NamedTest, ReadyTests
from pipeline.steps.asking.criteria import unknown_guards
from pipeline.testing.measure.red import spelled_out

ID = "tests/test_a.py::test_empty_name"
CASE = "tests/test_a.py::test_cases[1]"
PLAIN = "tests/adds.test.js::adds"
PASSING = "tests/test_a.py::test_passes"
SEEN = observed(
    {ID: Ended.FAILED, CASE: Ended.FAILED, PLAIN: Ended.FAILED, PASSING: Ended.PASSED},
    errors=(CollectionError(path="tests/test_new.py", fault=NO_IMPORT),),
)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (f"{ID} passes", {ID}),
        (f"`{ID}` passes.", {ID}),
        ("make test_empty_name pass", {ID}),
        ("tests/test_a.py::test_cases passes", {CASE}),
        (f"{CASE} passes", {CASE}),
        ("it adds numbers", set[str]()),
        (f"{PLAIN} passes", {PLAIN}),
        (f"{PASSING} still passes", set[str]()),
        ("test_empty_names is another one, and so is my_test_empty_name", set[str]()),
        ("", set[str]()),
    ],
)
def test_what_a_text_names(text: str, found: set[str]) -> None:
    assert asked_for(["The title", text], [], SEEN) == found


def test_a_list_names_ids_and_functions_and_no_files() -> None:
    assert asked_for([], [ID, "tests/test_a.py::test_cases", "tests/adds.test.js"], SEEN) == {ID, CASE}


def test_what_a_report_names_is_taken() -> None:
    assert claimed_tests([ID, PASSING], ["tests/test_a.py"], ["tests/test_a.py"], SEEN) == {ID}
    assert claimed_tests(["tests/test_new.py"], [], [], SEEN) == {"tests/test_new.py"}
    assert claimed_tests(["tests/test_new.py::test_x"], [], ["tests/test_new.py"], SEEN) == {"tests/test_new.py"}


def test_where_nothing_is_named_and_nothing_changed_the_files_of_the_task_speak() -> None:
    assert claimed_tests([], [], ["tests/test_a.py", "tests/test_new.py"], SEEN) == {ID, CASE, "tests/test_new.py"}
    assert claimed_tests([], ["tests/test_b.py"], ["tests/test_a.py"], SEEN) == frozenset()


OTHER = "tests/test_b.py::TestAll::test_passes"
GO = "example.com/words/split::TestSplit"
TITLE = "tests/adds.test.js > sums > adds 1.5/2"
CALLED = observed(dict.fromkeys((ID, CASE, PASSING, OTHER, GO, TITLE), Ended.PASSED)).records


@pytest.mark.parametrize(
    ("name", "found"),
    [
        (ID, [ID]),
        (CASE, [CASE]),
        ("tests/test_a.py::test_cases", ["tests/test_a.py::test_cases"]),
        ("test_empty_name", [ID]),
        ("test_empty_name()", [ID]),
        ("tests/test_a.py::TestOther::test_empty_name", [ID]),
        ("test_a.py::test_empty_name", [ID]),
        ("tests/test_c.py::test_empty_name", []),
        ("tests/test_a.py::test_cases[9]", ["tests/test_a.py::test_cases"]),
        ("test_passes", [PASSING, OTHER]),
        ("test_b.py::test_passes", [OTHER]),
        ("TestAll.test_passes", [OTHER]),
        ("TestSplit", [GO]),
        ("split.TestSplit", [GO]),
        ("adds 1.5/2", [TITLE]),
        ("empty_name", []),
        ("test_nothing", []),
        ("", []),
    ],
)
def test_which_tests_a_name_stands_for(name: str, found: list[str]) -> None:
    assert list(called(name, CALLED)) == found


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
