"""What a change of tests loosens reaches @check: with the tests that it judges, and with the whole result."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from e2e.lanes import play
from kit import (
    AFTER_MAKE,
    MAKE,
    NEW_ID,
    TEST_GREET_NEW,
    TESTS,
    UNTIL_TESTS,
    judge,
    make_project,
)

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.slow, pytest.mark.broad]

LOOSER = TEST_GREET_NEW.replace('greet("Ada") == "Hello, Ada!"', 'greet("Ada")')
SAID = "tests/test_greet.py: test_greets_by_name: an assertion is loosened from == to truth (line 7)"


def test_a_loosened_assertion_is_told_to_who_judges_the_tests_and_the_result(tmp_path: Path) -> None:
    guard = {"id": "tests/test_greet.py::test_greets_by_name", "expected": "GUARD"}
    report = {"verdict": "TESTS_READY", "tests": [{"id": NEW_ID}, guard]}
    tests = {**TESTS, "files": {"tests/test_greet.py": LOOSER}, "report": report}
    entries = [*UNTIL_TESTS, tests, judge("tests", verdict="ACCEPTABLE"), MAKE, *AFTER_MAKE]
    played = play(make_project(tmp_path), entries)
    assert played.document["outcome"] == "completed", played.document["note"]
    assert "write-tests/CHANGED_OLD_TEST" in played.rows
    assert f"loosened: {SAID}" in played.asked("check-tests").text("test_output")
    assert SAID in played.asked("final-review", role="check").text("evidence")
    judged, reviewed = (
        played.asked(step, role="check").folder / "prompt.md" for step in ("check-tests", "final-review")
    )
    assert "A line that begins with `loosened:` says" in judged.read_text(encoding="utf-8")
    assert "A line that begins with `loosened:` says" in reviewed.read_text(encoding="utf-8")


@pytest.mark.broad
def test_tests_that_check_ordered_anew_are_not_accused_of_what_they_dropped(tmp_path: Path) -> None:
    tests = {**TESTS, "report": {**TESTS["report"], "escalate_to_check": True}}
    strict = 'with pytest.raises(ValueError, match="name"):'
    first = {
        **tests,
        "files": {"tests/test_greet.py": TEST_GREET_NEW.replace("with pytest.raises(ValueError):", strict)},
    }
    order = {
        "severity": "HIGH",
        "title": "the message is no criterion",
        "problem": "match is too much",
        "evidence": "the issue names the type only",
        "concern": "test",
    }
    no = judge("tests", verdict="NEEDS WORK", findings=[order])
    yes = judge("tests", verdict="ACCEPTABLE")
    played = play(make_project(tmp_path), [*UNTIL_TESTS, first, no, tests, yes, MAKE, *AFTER_MAKE])
    assert played.document["outcome"] == "completed", played.document["note"]
    told = played.asked("check-tests", 2).text("test_output")
    assert "loosened:" not in told
    assert "rewritten on order: tests/test_greet.py: test_an_empty_name_is_refused" in told
