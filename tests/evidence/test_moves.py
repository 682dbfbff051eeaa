"""Tests whose file got another name are known by what is left of their ids, however a language writes these."""

from __future__ import annotations

import pytest

from pipeline.judge.evidence.compare import kept_under_new_names
from pipeline.judge.evidence.observation import Ended, TestRecord
from pipeline.judge.evidence.renamed_tests import moved


def records(path: str, *entries: str, region: str = "a", outcome: Ended = Ended.PASSED) -> dict[str, TestRecord]:
    """Return tests of one file by id."""
    return {
        entry: TestRecord(id=entry, function=entry, path=path, region_sha256=region, outcome=outcome)
        for entry in entries
    }


@pytest.mark.parametrize(
    ("old", "new", "before", "after"),
    [
        (
            "tests/test_a.py",
            "tests/test_b.py",
            "tests/test_a.py::TestX::test_y[1]",
            "tests/test_b.py::TestX::test_y[1]",
        ),
        ("tests/slow.rs", "tests/late.rs", "greet::test/slow::inner::ends", "greet::test/late::inner::ends"),
        ("a_test.go", "b_test.go", "example.com/shop.TestA", "example.com/shop.TestA"),
        ("test/a.test.js", "spec/a.test.js", "test/a.test.js > sum > adds", "spec/a.test.js > sum > adds"),
    ],
)
def test_a_test_is_found_in_its_renamed_file(old: str, new: str, before: str, after: str) -> None:
    assert moved(records(old, before), records(new, after), {old: new}) == {before: after}


def test_what_is_elsewhere_or_still_there_has_not_moved() -> None:
    old, new = "tests/test_a.py", "tests/test_b.py"
    before = records(old, f"{old}::test_x")
    assert moved(before, records(new, f"{new}::test_x"), {}) == {}
    assert moved(before, records("tests/test_c.py", "tests/test_c.py::test_x"), {old: new}) == {}
    assert moved(before, {**before, **records(new, f"{new}::test_x")}, {old: new}) == {}


def test_only_the_same_test_that_holds_is_carried_on() -> None:
    old, new = "tests/test_a.py", "tests/test_b.py"
    before, entry = records(old, f"{old}::test_x"), f"{new}::test_x"
    renames = {old: new}
    assert kept_under_new_names(before, records(new, entry), renames) == {f"{old}::test_x"}
    assert kept_under_new_names(before, records(new, entry, outcome=Ended.SKIPPED), renames) == set()
    assert kept_under_new_names(before, records(new, entry, outcome=Ended.FAILED), renames, frozenset({entry})) == set()
    other = records(new, entry, region="b")
    assert kept_under_new_names(before, other, renames) == set()
    assert kept_under_new_names(before, other, renames, frozenset({entry})) == {f"{old}::test_x"}
