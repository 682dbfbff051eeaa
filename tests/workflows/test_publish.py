"""`publish` of a recipe: one commit of what the writers before it changed, measured as one, all of it or nothing."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from crashes import KILLED, die_at, problems
from kit import FILES, GREET_DONE, make_project
from workflows.test_filing import SUB_STEPS
from workflows.test_runs_of_recipes import LOOSE

if TYPE_CHECKING:
    from pathlib import Path

    from kit import Entry, Project

pytestmark = pytest.mark.slow

RECIPE = """name: tidy
inputs: [{name: what, required: true}]
steps:
  - {id: code, agent: make, write_set: [greet.py], review: [check], prompt: "{{inputs.what}}"}
  - {id: notes, agent: make, write_set: [notes.txt], accept: {regression: true}, prompt: Write it down.}
  - {id: own, agent: make, write_set: [own.txt], prompt: Nobody publishes this.}
  - {id: ship, publish: "fix: {{inputs.what}}", depends_on: [code, notes]}
output: "{{steps.ship.output}}"
"""


def change(step: str, path: str, content: str) -> Entry:
    return {"when": {"step": step}, "files": {path: content}, "report": {"result": "COMPLETE", "summary": "done"}}


FINE = {"when": {"step": "code", "kind": "review-step", "role": "check"}, "report": {"verdict": "ACCEPTABLE"}}
SCRIPT = [
    FINE,
    change("code", "greet.py", GREET_DONE),
    change("notes", "notes.txt", "Names are checked.\n"),
    change("own", "own.txt", "Mine.\n"),
]


def project_with(tmp_path: Path, script: list[Entry]) -> Project:
    project = make_project(tmp_path)
    own = project.home / "config/redfirst/recipes/tidy.yaml"
    own.parent.mkdir(parents=True)
    own.write_text(RECIPE, encoding="utf-8")
    project.use_script(script, LOOSE)
    return project


@pytest.mark.broad
def test_what_the_last_review_of_a_step_leaves_open_is_on_record(tmp_path: Path) -> None:
    def reviewed(**more: Any) -> Entry:
        return {**FINE, "report": {"verdict": "NEEDS WORK", **more}}

    def tried(content: str) -> Entry:
        return {**change("code", "greet.py", content), "when": {"step": "code", "kind": "change"}}

    finding = {"severity": "MEDIUM", "title": "Blanks are taken", "problem": "a name of blanks is none"}
    open_still = {"id": "step-1-01", "status": "open"}
    entries = [tried(GREET_DONE), reviewed(findings=[finding]), tried(f"{GREET_DONE}\n"), reviewed(prior=[open_still])]
    project = project_with(tmp_path, [*entries, *SCRIPT[2:]])
    document = project.document("run", "tidy", "what=Check names")
    assert "review/CONVERGED" in project.rows("run-tidy"), document["_stderr"]
    assert (document["outcome"], document["reason"]) == ("completed_with_blockers", "blockers")
    assert (document["ok"], document["_code"]) == (False, 3)
    (left,) = document["blockers"]
    assert (left["step"], left["id"], left["severity"]) == ("code", "step-1-01", "MEDIUM")
    shown = project.redfirst("show", "run-tidy").stdout
    assert "blocker on record: code: step-1-01 [MEDIUM] Blanks are taken" in shown
    assert "code: step-1-01 [MEDIUM] Blanks are taken" in project.git("log", "-1", "--format=%b", "work")


@pytest.mark.broad
def test_what_was_written_is_one_commit_whenever_the_driver_dies(tmp_path: Path) -> None:
    project = project_with(tmp_path, SCRIPT)
    start = project.git("rev-parse", "work")
    assert die_at(project, SUB_STEPS[0], 1, "run", "tidy", "what=Check\nnames") == KILLED
    for instant in SUB_STEPS[1:]:
        assert die_at(project, instant, 1, "resume", "run-tidy") == KILLED, instant
        ahead = project.git("rev-parse", "work") != start
        assert (project.git("status", "--porcelain") == "") or not ahead, instant
    document = project.document("resume", "run-tidy")
    assert (document["outcome"], document["_code"], document["dispatches"]) == ("completed", 0, 4), document
    assert project.git("rev-list", "--count", "main..work") == "1"
    assert project.git("log", "-1", "--format=%B").splitlines() == [
        "fix: Check names",
        "",
        "Step ship of the recipe tidy, run-tidy.",
        "",
        "Run-Id: run-tidy",
        "Assisted-by: redfirst (scripted)",
    ]
    assert project.files_at("work") == sorted([*FILES, "notes.txt"]), "what it does not depend on is not published"
    assert (project.root / "greet.py").read_text() == GREET_DONE
    assert (project.run_folder("run-tidy") / "steps/ship/suite.md").read_text().count("1 of the tests") == 1
    left = json.loads((project.run_folder("run-tidy") / "steps/ship/ship.json").read_text())
    assert left["files"] == ["greet.py", "notes.txt"]
    assert problems(project) == []
    checked = project.document("verify", "main..work")
    (commit,) = checked["commits"]
    assert (checked["_code"], checked["status"], checked["ok"]) == (8, "nothing_lost", False)
    assert "nothing that passed before is lost" in commit["notes"][-1], commit
    breaking = "def greet(name):\n    return None\n"
    project.write({"greet.py": breaking})
    project.git("commit", "--quiet", "--all", "--message", "fix: forged\n\nRun-Id: run-tidy")
    assert project.redfirst("verify", "HEAD").returncode == 7


@pytest.mark.broad
def test_what_the_user_committed_meanwhile_is_built_on_where_no_file_meets(tmp_path: Path) -> None:
    project = project_with(tmp_path, SCRIPT)
    assert die_at(project, "before journal publish_intended", 1, "run", "tidy", "what=Check names") == KILLED
    project.write({"notes.txt": "mine\n"})
    project.commit("docs: mine")
    mine = project.git("rev-parse", "work")
    parked = project.document("resume", "run-tidy")
    assert (parked["_code"], parked["outcome"], parked["reason"]) == (4, "parked", "branch_moved"), parked
    assert "notes.txt was changed by" in parked["note"]
    assert project.untouched_since(mine)
    project.git("rm", "--quiet", "notes.txt")
    project.write({"readme.txt": "mine\n", "greet.py": "# dirty\n"})
    project.git("add", "readme.txt")
    project.git("commit", "--quiet", "--message", "docs: elsewhere")
    parked = project.document("resume", "run-tidy")
    assert parked["reason"] == "worktree_changed", "a dirty file in the way is nobody's to overwrite"
    assert (project.root / "greet.py").read_text() == "# dirty\n"
    project.git("checkout", "--quiet", "--", "greet.py")
    done = project.document("resume", "run-tidy")
    assert (done["outcome"], done["dispatches"]) == ("completed", 4), done
    assert "and measured there" in done["output"]
    assert project.git("log", "--format=%s", "main..work").splitlines()[0] == "fix: Check names"
    assert "docs: elsewhere" in project.git("log", "--format=%s", "main..work")
    assert problems(project) == []


@pytest.mark.broad
def test_what_both_changed_is_merged_where_a_person_asks_for_it(tmp_path: Path) -> None:
    project = project_with(tmp_path, SCRIPT)
    assert die_at(project, "before journal publish_intended", 1, "run", "tidy", "what=Check names") == KILLED
    project.write({"greet.py": (project.root / "greet.py").read_text().replace("Greetings.", "Kind greetings.")})
    project.commit("docs: kind")
    parked = project.document("resume", "run-tidy")
    assert (parked["reason"], parked["safe_next_actions"][0]) == (
        "branch_moved",
        "redfirst resume run-tidy --onto work",
    )
    missing = project.document("resume", "run-tidy", "--onto", "nowhere")["error"]
    assert "There is no commit nowhere" in missing["message"]
    done = project.document("resume", "run-tidy", "--onto", "work")
    assert (done["outcome"], done["dispatches"]) == ("completed", 4), done
    assert (project.root / "greet.py").read_text() == GREET_DONE.replace("Greetings.", "Kind greetings.")
    assert project.git("log", "--format=%s", "main..work").splitlines() == ["fix: Check names", "docs: kind"]
    assert "has ended" in project.document("resume", "run-tidy", "--onto", "work")["error"]["message"]
    assert problems(project) == []


def test_what_breaks_a_test_is_not_published_and_refusals_come_before_anybody_is_asked(tmp_path: Path) -> None:
    project = project_with(
        tmp_path, [change("code", "greet.py", "def greet(name):\n    return name\n"), FINE, *SCRIPT[2:]]
    )
    project.write({"greet.py": "# dirty\n"})
    refused = project.redfirst("run", "tidy", "what=x", "--json")
    assert json.loads(refused.stdout)["error"]["kind"] == "dirty_tree"
    project.git("checkout", "--quiet", "--", "greet.py")
    start = project.git("rev-parse", "work")
    document = project.document("run", "tidy", "what=Break it")
    assert (document["outcome"], document["_code"], document["failed"]) == ("partial", 8, ["ship"]), document
    outcome = json.loads((project.run_folder("run-tidy") / "steps/ship/outcome.json").read_text())
    assert "test_greets_by_name passed and fails now" in outcome["error"]["message"]
    assert project.untouched_since(start)


@pytest.mark.broad
def test_a_run_publishes_several_times_each_on_what_it_published_before(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    text = """name: tidy
steps:
  - {id: seen, agent: check, payload: findings.v1, prompt: Wrong?}
  - {id: code, agent: make, write_set: [notes.txt], review: [check], prompt: Begin.}
  - {id: first, publish: "docs: begin", depends_on: [code]}
  - {id: file, file_issues: "{{steps.seen.payload}}", depends_on: [seen, first]}
  - {id: more, agent: make, write_set: [notes.txt], review: [check], depends_on: [file], prompt: Go on.}
  - {id: second, publish: "docs: go on", depends_on: [more]}
"""
    (project.home / "tidy.yaml").write_text(text, encoding="utf-8")
    found = {
        "when": {"step": "seen"},
        "report": {"result": "ANSWERED", "output": "One.", "payload": {"findings": [{"claim": "No notes"}]}},
    }
    more = {**FINE, "when": {**FINE["when"], "step": "more"}}
    script = [found, change("code", "notes.txt", "One.\n"), FINE, change("more", "notes.txt", "One.\nTwo.\n"), more]
    project.use_script(script, LOOSE)
    document = project.document("run", str(project.home / "tidy.yaml"))
    assert (document["outcome"], len(document["commits"])) == ("completed", 3), document
    assert project.git("log", "--reverse", "--format=%s", "main..work").splitlines() == [
        "docs: begin", "chore(todo): file GAL-2", "docs: go on",
    ]  # fmt: skip
    assert (project.root / "notes.txt").read_text() == "One.\nTwo.\n"
    assert problems(project) == []


@pytest.mark.broad
def test_what_a_dead_driver_left_half_published_goes_when_another_result_is_published(tmp_path: Path) -> None:
    better = change("code", "greet.py", GREET_DONE.replace("a name is needed", "who is it?"))
    project = project_with(tmp_path, [*SCRIPT, better, FINE])
    assert die_at(project, "after git read-tree -m", 1, "run", "tidy", "what=Check names") == KILLED
    assert (project.root / "greet.py").read_text() == GREET_DONE
    done = project.document("resume", "run-tidy", "--step", "code")
    assert done["outcome"] == "completed", done
    assert project.git("rev-list", "--count", "main..work") == "1"
    assert "who is it?" in project.git("show", "work:greet.py")
    assert project.git("status", "--porcelain") == ""
