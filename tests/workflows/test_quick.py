"""The recipe `quick`: one draft for plan and tasks, everything measured, one review; what a run keeps of its recipe."""

from __future__ import annotations

import hashlib
import json
import re
from typing import TYPE_CHECKING, Any

import pytest
from e2e.lanes import finding, go_on, play
from e2e.shapes import TRACKER
from kit import ALL_WELL, PLAN, PLAN_ACCEPTED, RESULT_ACCEPTED, TASK, Entry, judge, make_project

if TYPE_CHECKING:
    from pathlib import Path

    from kit import Project

pytestmark = pytest.mark.slow

OLD = "nothing: greet 0 = 0\n"
FILES = {"greet.sum": "greet n = n\n", "more.sum": "more n = n\n", "greet.check": OLD, "sums.project": "", **TRACKER}
"""A project of `languages/sums`, whose tests take no process."""


def both(*tasks: dict[str, Any]) -> Entry:
    return {"when": {"kind": "plan-and-tasks"}, "report": {**PLAN["report"], "tasks": list(tasks or (TASK,))}}


def summed(name: str, **more: Any) -> dict[str, Any]:
    files = {"files": [{"path": f"{name}.sum", "action": "modify"}]}
    tests = {"test_files": [{"path": f"{name}.check", "action": "modify" if name == "greet" else "create"}]}
    return {"title": f"Double {name}", "acceptance_criteria": [f"{name} 2 is 4"], **files, **tests, **more}


def planned(*tasks: dict[str, Any]) -> Entry:
    files = [
        {"path": file["path"], "action": file["action"], "why": "it is there"}
        for task in tasks
        for file in task["files"]
    ]
    report = both(*tasks)["report"]
    return {"when": {"kind": "plan-and-tasks"}, "report": {**report, "files": files}}


def worked(name: str, task: str) -> list[Entry]:
    old = OLD if name == "greet" else ""
    return [
        {
            "when": {"kind": "write-tests", "task": task},
            "files": {f"{name}.check": f"{old}two: {name} 2 = 4\n"},
            "report": {"verdict": "TESTS_READY", "tests": [{"id": f"{name}.check::two"}]},
        },
        {
            "when": {"kind": "implement", "task": task},
            "files": {f"{name}.sum": f"{name} n = n * 2\n"},
            "report": {"result": "COMPLETE", "summary": "doubles"},
        },
    ]


def sums(tmp_path: Path) -> Project:
    project = make_project(tmp_path, FILES)
    project.env |= {"TESTS_LANGUAGE": "languages.sums", "REDFIRST_SANDBOX": "none"}
    return project


def asked(project: Project) -> list[str]:
    return [line["data"]["kind"] for line in project.journal() if line["kind"] == "dispatch_started"]


def test_quick_takes_an_issue_to_commits_that_are_verified_with_four_dispatches(tmp_path: Path) -> None:
    project = sums(tmp_path)
    played = play(project, [planned(summed("greet")), *worked("greet", "1"), RESULT_ACCEPTED], "--recipe", "quick")
    assert played.document["outcome"] == "completed", (played.document, played.rows)
    assert asked(project) == ["plan-and-tasks", "write-tests", "implement", "review-result"]
    assert played.rows == [
        "sanity/OK",
        "issue/CLAIMED",
        "plan/DRAFTED",
        "review-plan/NOT_ASKED",
        "split/NOT_ASKED",
        "write-tests/RED",
        "implement/GREEN",
        "final-review/ACCEPTABLE",
        "publish/PUBLISHED",
    ]
    assert played.assert_artifact_rule() > 3
    assert "run-GAL-1: GAL-1 on work by the recipe quick" in played.document["_stderr"]
    recipe, kept = played.document["recipe"], json.loads(played.artifact("recipe.json"))
    assert (recipe["name"], recipe["version"]) == ("quick", 1)
    text = json.dumps(kept["recipe"], sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert recipe["sha256"] == kept["sha256"] == hashlib.sha256(text.encode()).hexdigest()
    assert (kept["path"], kept["inputs"]) == ("builtin:quick", {"issue": "GAL-1"})
    verified = project.redfirst("verify", "run-GAL-1")
    assert verified.returncode == 0, verified.stdout
    assert "[4] review-plan: the recipe quick leaves this out -> split\n" in played.document["_stderr"]
    shown = project.redfirst("show", "run-GAL-1").stdout
    assert re.search(r"recipe +quick\n", shown), shown
    assert re.search(r"review +final 1: ACCEPTABLE\n", shown), shown
    assert "NOT_ASKED" not in shown + played.document["_stderr"]
    assert_the_simulation_decides_alike(project)


def assert_the_simulation_decides_alike(project: Project) -> None:
    """Check 33: the journal's events, walked without any agent, fire the same rows."""
    events = [line["data"]["event"] for line in project.journal() if line["kind"] == "decision"]
    keys = ("signal", "role", "tree", "tasks", "blockers", "reason", "note")
    said = [{key: event[key] for key in keys if key in event} for event in events]
    signals = project.home / "signals.json"
    signals.write_text(json.dumps(said), encoding="utf-8")
    walked = project.redfirst("simulate", "--recipe", "quick", "--signals", str(signals), "--json")
    assert walked.returncode == 0, walked.stderr
    document = json.loads(walked.stdout)
    assert [one["row"] for one in document["decisions"]] == project.rows()
    assert (document["outcome"], document["dispatches"]["at_most"]) == ("completed", 4)


@pytest.mark.broad
def test_quick_drafts_several_tasks_at_once_and_splits_what_it_is_told_to_mend(tmp_path: Path) -> None:
    tasks = (summed("greet"), summed("more", depends_on=[1]))
    empty: Entry = {"when": {"kind": "plan-and-tasks"}, "report": {**PLAN["report"], "tasks": []}}
    wrong = [finding("more is doubled once", concern="production")]
    fix: Entry = {"when": {"kind": "review-result"}, "report": {"verdict": "NEEDS WORK", "findings": wrong}}
    there = [{"path": "more.check", "action": "modify"}]
    split: Entry = {"when": {"kind": "split"}, "report": {"tasks": [summed("more", test_files=there)]}}
    mending = worked("more", "fix-1")
    mending[0]["files"] = {"more.check": "two: more 2 = 4\nthree: more 3 = 9\n"}
    mending[0]["report"] = {"verdict": "TESTS_READY", "tests": [{"id": "more.check::three"}]}
    mending[1]["files"] = {"more.sum": "more n = n * n\n"}
    prior = [{"id": "final-1-01", "status": "resolved"}]
    again: Entry = {"when": {"kind": "review-result"}, "report": {"verdict": "ACCEPTABLE", "prior": prior}}
    script = [empty, planned(*tasks), *worked("greet", "1"), *worked("more", "2"), fix, split, *mending, again]
    played = play(sums(tmp_path), script, "--recipe", "quick")
    assert played.document["outcome"] == "completed", (played.document["note"], played.rows)
    assert played.rows[2] == "any/MALFORMED", "a draft without tasks is no draft here"
    assert played.tasks() == {"1": "done", "2": "done", "fix-1": "done"}
    assert len(played.subjects()) == 4
    assert "Your tasks get the ids 1, 2, 3" in played.asked("plan").document["prompt"]
    assert "split/DRAFTED[drafting fix tasks]" in played.rows
    assert asked(played.project).count("review-split") == 0


@pytest.mark.broad
def test_nobody_has_accepted_yet_that_a_task_of_quick_needs_no_tests(tmp_path: Path) -> None:
    moved = {**worked("greet", "1")[1], "files": {"greet.sum": "greet n = n + 0\n"}}
    script = [
        planned(summed("greet", evidence="regression")),
        judge("not_testable", accepted=True),
        moved,
        RESULT_ACCEPTED,
    ]
    played = play(sums(tmp_path), script, "--recipe", "quick")
    assert played.document["outcome"] == "completed", (played.document["note"], played.rows)
    assert asked(played.project) == ["plan-and-tasks", "judge", "implement", "review-result"]


@pytest.mark.broad
def test_who_wants_to_see_the_plan_of_quick_gets_one_and_a_split(tmp_path: Path) -> None:
    split = {"when": {"kind": "split"}, "report": {"tasks": [summed("greet")]}}
    plan = {**PLAN, "report": {**PLAN["report"], "files": [{"path": "greet.sum", "action": "modify", "why": "x"}]}}
    played = play(
        sums(tmp_path), [plan, split, *worked("greet", "1"), RESULT_ACCEPTED], "--recipe", "quick", "--approve", "plan"
    )
    assert (played.document["reason"], played.rows[-1]) == ("approval", "review-plan/NOT_ASKED")
    done = go_on(played, "approve")
    assert done.document["outcome"] == "completed", (done.document["note"], done.rows)
    assert asked(done.project) == ["plan", "split", "write-tests", "implement", "review-result"]


TEAM = """name: {name}
extends: builtin:issue
edits:
  - {{change: plan, set: {{review: [check]}}}}
  - {{remove: split}}
  - {{change: final, set: {{review: [check]}}}}
"""


@pytest.mark.broad
def test_check_28_a_recipe_of_the_repository_is_trusted_as_it_is(tmp_path: Path) -> None:
    project = sums(tmp_path)
    place = ".redfirst/recipes/issue.yaml"
    project.write({place: TEAM.format(name="issue")})
    project.commit("our way")
    plan = {**PLAN_ACCEPTED, "report": {"verdict": "ACCEPTABLE", "answers": ALL_WELL}}
    project.use_script([planned(summed("greet")), plan, *worked("greet", "1"), RESULT_ACCEPTED])
    before = project.git("rev-parse", "HEAD")
    refused = project.run()
    assert (refused["_code"], refused["error"]["kind"]) == (2, "untrusted")
    assert place in refused["error"]["message"]
    assert project.untouched_since(before)
    assert place in project.redfirst("trust", "--yes").stdout
    project.write({place: "# our way\n" + TEAM.format(name="issue")})
    project.commit("a comment")
    done = project.run()
    assert (done["outcome"], done["recipe"]["name"]) == ("completed", "issue"), done
    assert project.rows()[3:5] == ["review-plan/ACCEPTABLE", "split/NOT_ASKED"]
    project.write({place: TEAM.format(name="issue") + "  - {change: tasks, set: {accepts: partial}}\n"})
    project.redfirst("issue", "status", "GAL-1", "todo")
    project.commit("another way")
    assert project.run()["error"]["kind"] == "untrusted", "one byte that matters more, and it is asked for again"


@pytest.mark.broad
def test_check_28_who_builds_on_a_recipe_of_the_repository_trusts_that_one(tmp_path: Path) -> None:
    project = sums(tmp_path)
    again = "name: again\nextends: ours\nedits: [{change: plan, set: {review: []}}]\n"
    project.write({".redfirst/recipes/ours.yaml": TEAM.format(name="ours"), "other.yaml": TEAM.format(name="other")})
    project.write({".redfirst/recipes/again.yaml": again})
    project.commit("our way")
    own = project.home / "config" / "redfirst" / "recipes" / "mine.yaml"
    own.parent.mkdir(parents=True)
    own.write_text("name: mine\nextends: ours\nedits: [{change: plan, set: {review: []}}]\n")
    script = [planned(summed("greet")), *worked("greet", "1"), RESULT_ACCEPTED]
    project.use_script(script)
    assert project.run("--recipe", "mine")["error"]["kind"] == "untrusted"
    lying = project.run("--recipe", "./other.yaml")["error"]
    assert (lying["kind"], "commit it as .redfirst/recipes/NAME.yaml" in lying["message"]) == ("untrusted", True)
    assert lying["safe_next_actions"] == ["redfirst recipes list"]
    assert "ours" in project.redfirst("recipes", "list").stdout
    elsewhere = project.home / "elsewhere.yaml"
    elsewhere.write_text(again.replace("again", "elsewhere"))
    assert "asks for more than it may take" in project.run("--recipe", str(elsewhere))["error"]["message"]
    assert project.redfirst("trust", "--yes").stdout.count(".redfirst/recipes/ours.yaml") == 1
    done = project.run("--recipe", "mine")
    assert (done["outcome"], done["recipe"]["name"]) == ("completed", "mine"), done


@pytest.mark.broad
def test_check_21_a_recipe_that_is_edited_while_its_run_is_parked_is_the_one_it_was(tmp_path: Path) -> None:
    project = sums(tmp_path)
    own = project.home / "config" / "redfirst" / "recipes" / "mine.yaml"
    own.parent.mkdir(parents=True)
    own.write_text(TEAM.format(name="mine").replace("plan, set: {review: [check]}", "plan, set: {review: []}"))
    script = [planned(summed("greet")), *worked("greet", "1"), RESULT_ACCEPTED]
    parked = play(project, script, "--recipe", "mine", "--approve", "commit")
    assert parked.document["reason"] == "approval", (parked.document["note"], parked.rows)
    own.write_text("name: mine\nsteps: []\n")
    done = go_on(parked, "approve")
    assert (done.document["outcome"], done.document["recipe"]) == ("completed", parked.document["recipe"])


def test_a_recipe_that_works_on_no_issue_says_so_before_anything_is_written(tmp_path: Path) -> None:
    project = sums(tmp_path)
    project.use_script([])
    before = project.git("rev-parse", "HEAD")
    done = project.redfirst("run", "GAL-1", "--recipe", "research")
    assert done.returncode == 2
    assert "The recipe research works on no issue, and is run without one" in done.stderr
    assert project.untouched_since(before)
    assert not (project.root / ".workflow").exists()
