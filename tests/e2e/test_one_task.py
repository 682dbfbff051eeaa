"""A small issue: the plan comes with its one task, both are reviewed together, and nobody splits anything.

What the review of a split answers, and what @test and the final review answer for each criterion, stands here, too.
"""

from __future__ import annotations

import copy
import json
import shutil
from typing import TYPE_CHECKING, Any

import pytest
from e2e.lanes import Played, finding, play, resolved, review
from e2e.shapes import FAST, SUMS, SUMS_HONEST, evidence, sums_project
from kit import (
    AFTER_MAKE,
    ALL_WELL,
    GREET_DONE,
    MAKE,
    PLAN,
    PLAN_SIMPLE,
    TASK,
    TESTS,
    Entry,
    judge,
    make_project,
)

from pipeline.steps.plan import TASK_TOO

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow


def plan(**task: Any) -> Entry:
    return {**PLAN, "report": {**PLAN["report"], "task": {**TASK, **task}}}


def reviewed(verdict: str = "ACCEPTABLE", *findings: dict[str, Any], **more: Any) -> Entry:
    return review("review-plan", verdict, *findings, answers=ALL_WELL, **more)


WORK = [TESTS, MAKE, *AFTER_MAKE]


def test_a_small_issue_takes_seven_dispatches_and_fewer_than_ninety_processes_of_git(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    asked, counting = tmp_path / "asked", tmp_path / "bin"
    counting.mkdir()
    real = shutil.which("git", path=project.environment()["PATH"])
    script = counting / "git"
    script.write_text(f'#!/bin/sh\necho "$*" >> {asked}\nexec {real} "$@"\n')
    script.chmod(0o755)
    project.env["PATH"] = f"{counting}:{project.environment()['PATH']}"
    played = play(project, [plan(), reviewed(), PLAN_SIMPLE, *WORK])
    assert played.document["outcome"] == "completed", (played.document["note"], played.rows)
    questions = asked.read_text().splitlines()
    assert 40 < len(questions) < 90, "\n".join(questions)
    kinds = [line["data"]["kind"] for line in project.journal() if line["kind"] == "dispatch_started"]
    reviews = ["review-plan", "review-plan"], ["review-result", "review-result"]
    assert kinds == ["plan", *reviews[0], "write-tests", "implement", *reviews[1]]
    assert played.rows[2:5] == ["plan/DRAFTED", "review-plan/ACCEPTABLE", "split/ONE_TASK"]
    assert "greet must refuse an empty name." in played.asked("review-plan", role="check").text("tasks")
    assert "tasks" not in played.asked("review-plan", role="simplify").artifacts
    assert played.assert_artifact_rule() > 3
    first = played.asked("plan").document
    assert "task" in first["report_schema"]["properties"]
    assert TASK_TOO.strip() in first["prompt"]
    assert "dispatches, no model asked\n- @orchestrator: 1 dispatch, no model asked\n" in played.artifact("summary.md")


@pytest.mark.broad
def test_a_task_comes_back_with_its_plan_and_what_is_null_is_left_out_wherever_it_is_read_again(tmp_path: Path) -> None:
    """Services that force every key to be present write null for what was left out."""
    unknown = plan(tests_to_change=[{"id": "tests/test_greet.py::test_greets_all", "reason": "it pins the text"}])
    short = [{"id": "test_greets_by_name()", "reason": "it pins the text"}]
    unanswered = {**reviewed(), "report": {"verdict": "ACCEPTABLE"}}
    script = [
        unknown,
        plan(tests_to_change=short, symbols=None, description="Refuse."),
        unanswered,
        reviewed("NEEDS WORK", finding("The test file is missing")),
        plan(tests_to_change=short),
        reviewed(prior=resolved("plan-1-01")),
        PLAN_SIMPLE,
        PLAN_SIMPLE,
        {
            **TESTS,
            "report": {**TESTS["report"], "out_of_scope": [{"title": "Old", "description": None}], "notes": None},
        },
        MAKE,
        *AFTER_MAKE,
    ]
    nulls = [{**entry, "report": {"out_of_scope": None, **entry["report"]}} for entry in script]
    nulls[1]["report"] |= {"risks": None}
    played = play(make_project(tmp_path), nulls, extra='sandbox = "none"\n')
    assert played.document["outcome"] == "completed", (played.document["note"], played.rows)
    assert len(played.document["follow_ups"]) == 1
    expected = ["plan/DRAFTED", "any/MALFORMED", "review-plan/NEEDS_WORK", "plan/DRAFTED", "review-plan/ACCEPTABLE"]
    assert played.rows[2:9] == ["plan/HYGIENE", *expected, "split/ONE_TASK"]
    assert "+greet must refuse an empty name." in played.asked("review-plan", 3, role="check").text("changes")
    told = played.asked("plan", 2).text("findings")
    assert "H019" in told
    assert "nearest are tests/test_greet.py::test_greets_by_name" in told
    assert "`tests/test_greet.py::test_greets_by_name`" in played.asked("plan").text("baseline")
    assert "`tests/test_greet.py::test_greets_by_name`: it pins the text" in played.artifact("task-1.md")


@pytest.mark.broad
def test_the_owner_reads_what_the_final_review_was_told_and_what_no_test_noticed(tmp_path: Path) -> None:
    wanted = plan(acceptance_criteria=['`greet("Grace")` returns "Hello, Grace!"'])
    project = make_project(tmp_path)
    project.probed = True
    loose = {**MAKE, "files": {"greet.py": GREET_DONE.replace("if not name:", "if len(name) < 1:")}}
    played = play(project, [wanted, reviewed(), PLAN_SIMPLE, TESTS, loose, *AFTER_MAKE])
    told = 'task 1 C1 names "Grace", which no test of this run has'
    assert told in played.asked("final-review", role="check").text("suspicions")
    summary = played.artifact("summary.md")
    assert f"- {told}" in summary
    probes = json.loads(played.artifact("evidence/task-1.json"))["probes"]["mutation"]["survivors"]
    assert probes, "a fault is left for the owner to read"
    assert all(f"- at that time no test noticed: greet.py:{one['line']}: {one['what']}" in summary for one in probes)


# --- where somebody splits: in sums -----------------------------------------------------------------------------------

SUM_PLAN, SUM_ACCEPTED, _, SUM_SPLIT, SPLIT_ACCEPTED, SUM_TESTS, SUM_MAKE, RESULT_ACCEPTED, _ = SUMS_HONEST
SUM_TASK: dict[str, Any] = SUM_SPLIT["report"]["tasks"][0]
SMALL: Entry = {**SUM_PLAN, "report": {**SUM_PLAN["report"], "task": SUM_TASK}}


def summed(tmp_path: Path, *script: Entry, approve: bool = False, more: dict[str, str] | None = None) -> Played:
    """Return a run in sums; it may wait at the split."""
    project = sums_project(tmp_path, files={**SUMS, **(more or {})})
    return play(project, list(script), *(("--approve", "split") if approve else ()), extra=FAST)


@pytest.mark.broad
def test_who_wants_to_see_plan_or_split_gets_a_split(tmp_path: Path) -> None:
    played = summed(tmp_path, SMALL, SUM_ACCEPTED, SUM_SPLIT, SPLIT_ACCEPTED, approve=True)
    (asked,) = played.dispatches("plan")
    assert "`task`" not in asked.document["prompt"], "who wants none asks for none"
    assert '"task"' not in asked.document["prompt"]
    assert played.document["reason"] == "approval", played.document
    assert played.rows[-2:] == ["split/DRAFTED", "review-split/ACCEPTABLE"]


@pytest.mark.broad
def test_a_task_whose_plan_was_not_accepted_is_cut_again(tmp_path: Path) -> None:
    first = reviewed("NEEDS WORK", finding("The reason is missing"))
    same = reviewed("NEEDS WORK", prior=[{"id": "plan-1-01", "status": "open"}])
    work = [SUM_TESTS, SUM_MAKE, RESULT_ACCEPTED]
    played = summed(tmp_path, SMALL, first, SMALL, same, SUM_SPLIT, SPLIT_ACCEPTED, *work)
    assert "review-plan/CONVERGED" in played.rows
    assert "split/DRAFTED" in played.rows
    assert "split/ONE_TASK" not in played.rows


def answering(*findings: dict[str, Any], **answers: Any) -> Entry:
    return review("review-split", "ACCEPTABLE", *findings, answers=answers)


@pytest.mark.parametrize(
    ("first", "said"),
    [
        (answering(), "there is no answer to coverage, overlap, single_purpose"),
        (answering(**{**ALL_WELL, "contracts": False}), "contracts is not answered with `true`, and no finding"),
        (
            answering(**{**ALL_WELL, "testable": "two criteria are vague"}),
            "testable is not answered with `true`",
        ),
    ],
    ids=["none", "no", "a sentence"],
)
@pytest.mark.broad
def test_an_open_question_about_a_split_is_asked_again_once(tmp_path: Path, first: Entry, said: str) -> None:
    played = summed(tmp_path, SUM_PLAN, SUM_ACCEPTED, SUM_SPLIT, first, first, approve=True)
    assert played.document["reason"] == "approval", (played.document["note"], played.rows)
    assert [row for row in played.rows if row.startswith("any/")] == ["any/MALFORMED"]
    assert said in (played.asked("review-split", 2).folder / "prompt.md").read_text(encoding="utf-8")


@pytest.mark.broad
def test_what_a_finding_says_needs_no_second_question_and_files_that_only_plan_or_tasks_name_are_shown(
    tmp_path: Path,
) -> None:
    named = ("greet.sum", "greet.check", "more.sum")
    files = [{"path": path, "action": "modify", "why": "it is said"} for path in named]
    wider = {**SUM_PLAN, "report": {**SUM_PLAN["report"], "files": files}}
    split = copy.deepcopy(SUM_SPLIT)
    split["report"]["tasks"][0]["files"].append({"path": "aside.sum", "action": "modify"})
    split["report"]["tasks"][0]["test_files"].append({"path": "extra.check", "action": "create"})
    accepted = answering(finding("More stays", "LOW"), **{**ALL_WELL, "coverage": "more.sum is in no task"})
    aside = {"more.sum": "more n = n\n", "aside.sum": "aside n = n\n"}
    played = summed(tmp_path, wider, SUM_ACCEPTED, split, accepted, approve=True, more=aside)
    assert played.document["reason"] == "approval", played.document
    assert "any/MALFORMED" not in played.rows
    assert "1 task; not in the plan: aside.sum, extra.check" in played.document["_stderr"]
    shown = played.asked("review-split")
    assert sorted(shown.text("differences").splitlines()) == [
        "- no task changes `more.sum`, which the plan names",
        "- task 1 changes `aside.sum`, which the plan does not name",
        "- task 1 changes `extra.check`, which the plan does not name",
    ]
    shown.assert_artifact_rule()


# --- a task with two criteria -----------------------------------------------------------------------------------------

OLD = "greet.check::nothing"
TWO: Entry = {
    **SUM_SPLIT,
    "report": {"tasks": [{**SUM_TASK, "acceptance_criteria": ["greet 2 is 4", "greet 0 stays 0"]}]},
}
UNTIL_TESTS = [SUM_PLAN, SUM_ACCEPTED, TWO, SPLIT_ACCEPTED]


def shown(*criteria: dict[str, Any]) -> Entry:
    return {**SUM_TESTS, "report": {"verdict": "TESTS_READY", "criteria": list(criteria)}}


def met(*ids: str) -> Entry:
    return review("review-result", "ACCEPTABLE", criteria=[{"task": "1", "id": one, "met": True} for one in ids])


@pytest.mark.broad
def test_a_criterion_without_a_test_and_a_wrong_id_go_back_and_are_diagnosed_and_the_tests_stay(tmp_path: Path) -> None:
    first = {"id": "C1", "tests": [OLD]}
    nowhere, half = shown(first, {"id": "C2", "tests": ["test_of_nothing"]}), shown(first)
    diagnosed = judge("diagnose", diagnosis="wrong_report", notes="C2 is shown by the old test")
    right: Entry = {**shown({"id": "C1", "tests": ["nothing"]}, {"id": "C2", "reason": "the same line"}), "files": {}}
    answered = met("C1"), met("C1", "C2")
    played = summed(tmp_path, *UNTIL_TESTS, nowhere, half, diagnosed, right, SUM_MAKE, *answered)
    assert played.document["outcome"] == "completed", (played.document["note"], played.rows)
    assert played.rows_of("1")[:4] == ["any/MALFORMED", "any/MALFORMED", "diagnose/WRONG_REPORT", "write-tests/RED"]
    assert played.rows.count("any/MALFORMED") == 3, "the final review has to answer for both, too"
    told = played.asked("write-tests", 2).document["prompt"]
    assert "At /criteria/1/tests 'test_of_nothing': there is no such test" in told
    assert "ids of this suite: greet.check::" in told
    assert "C2" in played.asked("diagnose").text("refusals")
    assert not list(played.folder.glob("evidence/red-006.md")), "the tests of the first answer were not judged"
    lines = [line["data"] for line in played.project.journal() if line["kind"] == "tests_ran"]
    looks = [data["what"] for data in lines if data["what"].startswith("tests over the old code")]
    assert len(looks) == 1, "the tests are the same: what the check of the report has seen is not measured again"
    again = played.asked("write-tests", 3)
    assert again.result["base_tree"] == played.asked("write-tests", 2).result["tree"]
    why = "diagnose/WRONG_REPORT: the tests are right, what @test reports of them is not"
    assert f"Why you are asked now: {why}" in again.document["prompt"]
    assert "C2 is shown by the old test" in again.text("findings")
    criteria = evidence(played.project, "task-1.json")["criteria"]
    assert [(one["id"], one["tests"]) for one in criteria] == [("C1", [OLD]), ("C2", [])], "as the suite calls them"


@pytest.mark.broad
def test_a_criterion_that_is_not_met_beside_a_finding_is_asked_again(tmp_path: Path) -> None:
    both = shown({"id": "C1", "tests": [OLD]}, {"id": "C2", "tests": [OLD]})
    vague = finding("The sum is vague", "MEDIUM", concern="production")
    unmet = {"task": "1", "id": "C2", "met": False, "note": "None is greeted"}
    first = review("review-result", "NEEDS WORK", vague, criteria=[{"task": "1", "id": "C1", "met": True}, unmet])
    silent = review("review-result", "ACCEPTABLE", prior=resolved("final-1-01"))
    held = review("review-result", "ACCEPTABLE", prior=resolved("final-1-01"), criteria=[{**unmet, "met": True}])
    drafted = {**SUM_SPLIT, "report": {"tasks": [{**SUM_TASK, "evidence": "regression"}]}}
    made = {**SUM_MAKE, "when": {"kind": "implement", "task": "fix-1"}, "files": {"greet.sum": "greet n = 2 * n\n"}}
    signed = judge("not_testable", accepted=True)
    played = summed(tmp_path, *UNTIL_TESTS, both, SUM_MAKE, first, drafted, signed, made, silent, held)
    assert [one["id"] for one in json.loads(played.artifact("reviews/final-1.json"))["unmet"]] == ["C2"]
    again = played.asked("final-review", 2, role="check")
    assert "* task 1, C2: greet 0 stays 0" in again.document["prompt"]
    assert "task 1, C1" not in again.document["prompt"], "what was met is not asked again"
    assert "No answer is given for task 1, C2" in played.asked("final-review", 3, role="check").document["prompt"]
    assert played.document["outcome"] == "completed", (played.document["note"], played.rows)
