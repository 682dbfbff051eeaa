"""A task with two criteria: a half that nobody tests goes back, and the final review answers for both."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from e2e.lanes import play
from kit import MAKE, PLAN, RESULT_ACCEPTED, RESULT_SIMPLE, TASK, TESTS, UNTIL_TESTS, make_project

if TYPE_CHECKING:
    from pathlib import Path

    from kit import Entry

pytestmark = [pytest.mark.slow, pytest.mark.broad]

TWO = {**TASK, "acceptance_criteria": ['greet("") raises ValueError', "greet(None) raises ValueError"]}
OLD = "tests/test_greet.py::test_greets_by_name"


def shown(*criteria: dict[str, Any]) -> Entry:
    return {**TESTS, "report": {"verdict": "TESTS_READY", "criteria": list(criteria)}}


def met(*ids: str, unmet: str = "") -> Entry:
    answers = [{"task": "1", "id": one, "met": one != unmet} for one in ids]
    return {**RESULT_ACCEPTED, "report": {"verdict": "ACCEPTABLE", "criteria": answers}}


def until_tests() -> list[Entry]:
    return [
        {**entry, "report": {"tasks": [TWO]}} if entry["when"].get("kind") == "split" else entry
        for entry in UNTIL_TESTS
    ]


def test_a_half_that_nobody_tests_goes_back_and_each_is_answered_for(tmp_path: Path) -> None:
    first, second = {"id": "C1", "tests": [OLD]}, {"id": "C2", "reason": "the same line refuses both"}
    script = [*until_tests(), shown(first), shown(first, second), MAKE, met("C1"), met("C1", "C2"), RESULT_SIMPLE]
    assert PLAN in script
    played = play(make_project(tmp_path), script)
    assert played.document["outcome"] == "completed", (played.document["note"], played.rows)
    assert [row for row in played.rows if row.startswith("any/")] == ["any/MALFORMED", "any/MALFORMED"]
    evidence = json.loads(played.artifact("evidence/task-1.json"))
    assert [one["id"] for one in evidence["criteria"]] == ["C1", "C2"]


@pytest.mark.broad
def test_a_criterion_that_names_a_test_that_is_not_there_goes_back(tmp_path: Path) -> None:
    nowhere = shown({"id": "C1", "tests": [OLD]}, {"id": "C2", "tests": ["test_of_nothing"]})
    again = shown({"id": "C1", "tests": [OLD]}, {"id": "C2", "tests": [OLD]})
    played = play(make_project(tmp_path), [*until_tests(), nowhere, again, MAKE, met("C1", "C2"), RESULT_SIMPLE])
    assert played.rows_of("1")[:2] == ["write-tests/ILLEGAL_RED", "write-tests/RED"]
    said = min((played.project.run_folder() / "evidence").glob("red-*.md")).read_text()
    assert "C2 names the test test_of_nothing, which is not in the suite" in said
