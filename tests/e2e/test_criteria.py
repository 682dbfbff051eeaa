"""A task with two criteria: a half that nobody tests goes back, and the final review answers for both."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from e2e.lanes import play
from kit import GREET_DONE, MAKE, PLAN, RESULT_ACCEPTED, RESULT_SIMPLE, TASK, TESTS, UNTIL_TESTS, judge, make_project

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
def test_a_wrong_id_is_a_fault_of_the_report_and_is_asked_for_again_before_the_tests_are_judged(tmp_path: Path) -> None:
    nowhere = shown({"id": "C1", "tests": [OLD]}, {"id": "C2", "tests": ["test_of_nothing"]})
    again = shown({"id": "C1", "tests": ["test_greet.py::test_greets_by_name"]}, {"id": "C2", "tests": [OLD]})
    played = play(make_project(tmp_path), [*until_tests(), nowhere, again, MAKE, met("C1", "C2"), RESULT_SIMPLE])
    assert played.rows_of("1")[:2] == ["any/MALFORMED", "write-tests/RED"]
    told = played.asked("write-tests", 2).document["prompt"]
    assert "At /criteria/1/tests 'test_of_nothing': there is no such test" in told
    assert "ids of this suite: tests/test_greet.py::test_" in told
    assert not (played.folder / "evidence/red-006.md").exists(), "the tests of the first answer were not judged"
    lines = [line["data"] for line in played.project.journal() if line["kind"] == "tests_ran"]
    looks = [data["what"] for data in lines if data["what"].startswith("tests over the old code")]
    assert len(looks) == 1, "the tests are the same: what the check of the report has seen is not measured again"
    evidence = json.loads(played.artifact("evidence/task-1.json"))
    assert [one["tests"] for one in evidence["criteria"]] == [[OLD], [OLD]], "as the suite calls them"


def test_a_report_that_stays_wrong_is_diagnosed_and_the_tests_stay(tmp_path: Path) -> None:
    first, second = (shown({"id": "C1", "tests": [OLD]}, {"id": "C2", "tests": [f"test_{n}"]}) for n in (1, 2))
    right: Entry = {**shown({"id": "C1", "tests": [OLD]}, {"id": "C2", "tests": [OLD]}), "files": dict[str, str]()}
    diagnosed = judge("diagnose", diagnosis="wrong_report", notes="C2 is shown by the old test")
    script: list[Entry] = [*until_tests(), first, second, diagnosed, right, MAKE, met("C1", "C2"), RESULT_SIMPLE]
    played = play(make_project(tmp_path), script)
    assert played.rows_of("1")[:4] == ["any/MALFORMED", "any/MALFORMED", "diagnose/WRONG_REPORT", "write-tests/RED"]
    told = played.asked("write-tests", 3)
    assert told.result["base_tree"] == played.asked("write-tests", 2).result["tree"]
    assert (
        "Why you are asked now: diagnose/WRONG_REPORT: the tests are right, what @test reports of them is not"
        in told.document["prompt"]
    )
    assert "C2 is shown by the old test" in told.text("findings")
    assert "'test_2': there is no such test" in played.asked("diagnose").text("refusals")


def test_a_criterion_that_is_not_met_beside_a_finding_is_asked_again(tmp_path: Path) -> None:
    both = shown({"id": "C1", "tests": [OLD]}, {"id": "C2", "tests": [OLD]})
    vague = "The message is vague"
    found = {"severity": "MEDIUM", "title": vague, "problem": f"{vague}.", "concern": "production"}
    unmet = {"task": "1", "id": "C2", "met": False, "note": "None is greeted"}
    first = {"verdict": "NEEDS WORK", "findings": [found], "criteria": [{"task": "1", "id": "C1", "met": True}, unmet]}
    resolved = [{"id": "final-1-01", "status": "resolved"}]
    silent: Entry = {**RESULT_ACCEPTED, "report": {"verdict": "ACCEPTABLE", "prior": resolved}}
    told = {"verdict": "ACCEPTABLE", "prior": resolved, "criteria": [{**unmet, "met": True}]}
    held: Entry = {**RESULT_ACCEPTED, "report": told}
    drafted: Entry = {"when": {"kind": "split"}, "report": {"tasks": [{**TASK, "evidence": "regression"}]}}
    made: Entry = {
        "when": {"kind": "implement", "task": "fix-1"},
        "files": {"greet.py": GREET_DONE.replace("a name is needed", "say a name")},
        "report": {"result": "COMPLETE", "summary": "says what to do"},
    }
    script = [*until_tests(), both, MAKE, {**RESULT_ACCEPTED, "report": first}, RESULT_SIMPLE, drafted]
    script += [judge("not_testable", accepted=True), made]
    played = play(make_project(tmp_path), [*script, silent, RESULT_SIMPLE, held])
    assert [one["id"] for one in json.loads(played.artifact("reviews/final-1.json"))["unmet"]] == ["C2"]
    again = played.asked("final-review", 2, role="check")
    assert "* task 1, C2: greet(None) raises ValueError" in again.document["prompt"]
    assert "task 1, C1" not in again.document["prompt"], "what was met is not asked again"
    assert "No answer is given for task 1, C2" in played.asked("final-review", 3, role="check").document["prompt"]
    assert played.document["outcome"] == "completed", (played.document["note"], played.rows)
