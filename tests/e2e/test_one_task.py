"""A small issue: the plan comes with its one task, both are reviewed together, and nobody splits anything."""

from __future__ import annotations

import json
import re
import shutil
from typing import TYPE_CHECKING, Any

import pytest
from e2e.lanes import finding, play
from kit import (
    AFTER_MAKE,
    ALL_WELL,
    GREET_DONE,
    MAKE,
    PLAN,
    PLAN_ACCEPTED,
    PLAN_SIMPLE,
    SPLIT,
    SPLIT_ACCEPTED,
    TASK,
    TESTS,
    Entry,
    make_project,
)

from pipeline.steps.plan import TASK_TOO

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow


def plan(**task: Any) -> Entry:
    return {**PLAN, "report": {**PLAN["report"], "task": {**TASK, **task}}}


def reviewed(verdict: str = "ACCEPTABLE", *findings: dict[str, Any], **more: Any) -> Entry:
    report = {"verdict": verdict, "answers": ALL_WELL, "findings": list(findings), **more}
    return {"when": {"kind": "review-plan", "role": "check"}, "report": report}


WORK = [TESTS, MAKE, *AFTER_MAKE]


@pytest.mark.broad
def test_a_small_issue_takes_seven_dispatches(tmp_path: Path) -> None:
    played = play(make_project(tmp_path), [plan(), reviewed(), PLAN_SIMPLE, *WORK])
    assert played.document["outcome"] == "completed", (played.document["note"], played.rows)
    asked = [line["data"]["kind"] for line in played.project.journal() if line["kind"] == "dispatch_started"]
    assert asked == [
        "plan",
        "review-plan",
        "review-plan",
        "write-tests",
        "implement",
        "review-result",
        "review-result",
    ]
    assert played.rows[2:5] == ["plan/DRAFTED", "review-plan/ACCEPTABLE", "split/ONE_TASK"]
    assert "greet must refuse an empty name." in played.asked("review-plan", role="check").text("tasks")
    assert "tasks" not in played.asked("review-plan", role="simplify").artifacts
    assert played.assert_artifact_rule() > 3
    asked = played.asked("plan").document
    assert "task" in asked["report_schema"]["properties"]
    assert TASK_TOO.strip() in asked["prompt"]
    assert "dispatches, no model asked\n- @orchestrator: 1 dispatch, no model asked\n" in played.artifact("summary.md")
    told = [line.strip() for line in played.document["_stderr"].splitlines() if line.startswith("    ")]
    said = [re.sub(r" \(\d+\.\d s\)$", "", line) for line in told]
    assert said == [
        "the whole suite before any change, to compare with ...",
        "the whole suite before any change, to compare with: 1 passed",
        "tests over the old code, new ones must fail ...",
        "tests over the old code, new ones must fail: 1 failed, 1 passed",
        "new tests over the old code again, traced, must fail ...",
        "new tests over the old code again, traced, must fail: 1 failed",
        "the whole suite over the new code, must pass ...",
        "the whole suite over the new code, must pass: 2 passed",
        "the old tests as they were over the new code, must pass ...",
        "the old tests as they were over the new code, must pass: 1 passed",
    ], "what is measured is said before it is"


@pytest.mark.broad
def test_what_is_null_is_left_out_wherever_it_is_read_again(tmp_path: Path) -> None:
    """Services that force every key to be present write null for what was left out."""
    seen = {"title": "Old names are kept", "description": None}
    script = [plan(symbols=None), reviewed(), PLAN_SIMPLE, *WORK]
    nulls = [{**entry, "report": {"out_of_scope": None, **entry["report"]}} for entry in script]
    nulls[0]["report"] |= {"risks": None}
    nulls[3]["report"] |= {"out_of_scope": [seen], "notes": None}
    played = play(make_project(tmp_path), nulls)
    assert played.document.get("outcome") == "completed", (played.document, played.rows)
    assert len(played.document["follow_ups"]) == 1


@pytest.mark.broad
def test_a_task_that_the_review_turns_down_comes_back_with_the_plan(tmp_path: Path) -> None:
    unanswered = {**reviewed(), "report": {"verdict": "ACCEPTABLE"}}
    first = reviewed("NEEDS WORK", finding("The test file is missing"))
    again = reviewed(prior=[{"id": "plan-1-01", "status": "resolved"}])
    script = [plan(description="Refuse."), unanswered, first, plan(), again, PLAN_SIMPLE, PLAN_SIMPLE, *WORK]
    played = play(make_project(tmp_path), script)
    assert played.document["outcome"] == "completed", (played.document["note"], played.rows)
    expected = ["plan/DRAFTED", "any/MALFORMED", "review-plan/NEEDS_WORK", "plan/DRAFTED", "review-plan/ACCEPTABLE"]
    assert played.rows[2:8] == [*expected, "split/ONE_TASK"]
    assert "+greet must refuse an empty name." in played.asked("review-plan", 3, role="check").text("changes")


@pytest.mark.broad
def test_who_wants_to_see_plan_or_split_gets_a_split(tmp_path: Path) -> None:
    script = [plan(), PLAN_ACCEPTED, PLAN_SIMPLE, SPLIT, SPLIT_ACCEPTED]
    project = make_project(tmp_path)
    project.use_script(script)
    parked = project.run("--approve", "split")
    prompts = [
        path.read_text() for path in sorted(project.run_folder().glob("dispatches/*-plan-orchestrator*/prompt.md"))
    ]
    assert ["`task`" in prompt or '"task"' in prompt for prompt in prompts] == [False], "who wants none asks for none"
    assert (parked.get("reason"), project.rows()[-2:]) == ("approval", ["split/DRAFTED", "review-split/ACCEPTABLE"])


@pytest.mark.broad
def test_a_task_whose_plan_was_not_accepted_is_cut_again(tmp_path: Path) -> None:
    first = reviewed("NEEDS WORK", finding("The reason is missing"))
    same = reviewed("NEEDS WORK", prior=[{"id": "plan-1-01", "status": "open"}])
    script = [plan(), first, plan(), same, PLAN_SIMPLE, PLAN_SIMPLE, SPLIT, SPLIT_ACCEPTED, *WORK]
    played = play(make_project(tmp_path), script)
    assert "review-plan/CONVERGED" in played.rows
    assert "split/DRAFTED" in played.rows
    assert "split/ONE_TASK" not in played.rows


@pytest.mark.broad
def test_an_old_test_is_known_by_its_name_and_what_is_none_is_told(tmp_path: Path) -> None:
    unknown = plan(tests_to_change=[{"id": "tests/test_greet.py::test_greets_all", "reason": "it pins the text"}])
    short = plan(tests_to_change=[{"id": "test_greets_by_name()", "reason": "it pins the text"}])
    played = play(make_project(tmp_path), [unknown, short, reviewed(), PLAN_SIMPLE, *WORK])
    assert played.rows[2:5] == ["plan/HYGIENE", "plan/DRAFTED", "review-plan/ACCEPTABLE"], played.document
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


def test_the_smallest_run_starts_fewer_than_ninety_processes_of_git(tmp_path: Path) -> None:
    """The rest were questions that had been answered."""
    project = make_project(tmp_path)
    asked, counting = tmp_path / "asked", tmp_path / "bin"
    counting.mkdir()
    real = shutil.which("git", path=project.environment()["PATH"])
    script = counting / "git"
    script.write_text(f'#!/bin/sh\necho "$*" >> {asked}\nexec {real} "$@"\n')
    script.chmod(0o755)
    project.env["PATH"] = f"{counting}:{project.environment()['PATH']}"
    played = play(project, [plan(), reviewed(), PLAN_SIMPLE, *WORK])
    assert played.document["outcome"] == "completed", played.document["note"]
    questions = asked.read_text().splitlines()
    assert 40 < len(questions) < 90, "\n".join(questions)
