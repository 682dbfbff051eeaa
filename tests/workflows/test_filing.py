"""What a recipe's run commits: issues from what was found, all of it or nothing, once."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from crashes import KILLED, die_at, problems
from kit import FILES, make_project
from workflows.test_runs_of_recipes import LOOSE, answer

if TYPE_CHECKING:
    from pathlib import Path

    from kit import Project

pytestmark = pytest.mark.slow

RECIPE = """name: look
steps:
  - {id: check, agent: check, prompt: Wrong?, payload: findings.v1}
  - {id: simplify, agent: simplify, prompt: Needless?, payload: findings.v1}
  - {id: ideas, agent: explore, prompt: Missing?, payload: issues.v1}
  - id: file
    file_issues: ["{{steps.check.payload}}", "{{steps.simplify.payload}}", "{{steps.ideas.payload}}"]
    depends_on: [check, simplify, ideas]
output: "{{steps.file.output}}"
"""
QUOTE = 'return f"Hello, {name}!"'
WRONG = {"claim": "greet greets nobody", "path": "greet.py", "quote": QUOTE, "severity": "HIGH"}
SAME = {"claim": "The format string is not needed", "path": "greet.py", "quote": QUOTE}
LIED = {"claim": "greet logs", "path": "greet.py", "quote": "logging.info"}
OPEN = {"title": "Reject  empty names!", "body": "Asked for already."}
NEW = {"title": "Say goodbye", "body": "## Why\nNobody does.", "labels": ["feature"]}
SCRIPT = [
    answer("check", "One.", payload={"findings": [WRONG, LIED]}),
    answer("simplify", "The same.", payload={"findings": [SAME]}),
    answer("ideas", "Two.", payload={"issues": [OPEN, NEW]}),
]
SUB_STEPS = (
    "after git commit-tree",
    "after git update-ref .* refs/redfirst/publish",
    "after journal publish_intended",
    "before git read-tree -m",
    "after git read-tree -m",
    "after git update-ref .* refs/heads/work",
    "after journal published",
    "after git update-ref .* -d refs/redfirst/publish",
)


def project_with(tmp_path: Path, script: list[Any] = SCRIPT) -> Project:
    project = make_project(tmp_path)
    own = project.home / "config/redfirst/recipes/look.yaml"
    own.parent.mkdir(parents=True)
    own.write_text(RECIPE, encoding="utf-8")
    project.use_script(script, LOOSE)
    return project


@pytest.mark.broad
def test_what_was_found_is_filed_once_whenever_the_driver_dies(tmp_path: Path) -> None:
    project = project_with(tmp_path)
    start = project.git("rev-parse", "work")
    assert die_at(project, SUB_STEPS[0], 1, "run", "look") == KILLED
    for instant in SUB_STEPS[1:]:
        assert die_at(project, instant, 1, "resume", "run-look") == KILLED, instant
        ahead = project.git("rev-parse", "work") != start
        assert (project.git("status", "--porcelain") == "") or not ahead, instant
    document = project.document("resume", "run-look")
    assert (document["outcome"], document["_code"], document["dispatches"]) == ("completed", 0, 3), document
    assert project.git("rev-list", "--count", "main..work") == "1"
    message = project.git("log", "-1", "--format=%B")
    assert message.splitlines()[0] == "chore(todo): file 3 issues"
    assert "\n- GAL-2: greet greets nobody\n- GAL-3: greet logs\n- GAL-4: Say goodbye\n" in message
    assert message.endswith("Run-Id: run-look\nAssisted-by: redfirst (scripted)")
    assert project.files_at("work") == sorted([*FILES, "TODO/GAL-2.md", "TODO/GAL-3.md", "TODO/GAL-4.md"])
    both = (project.root / "TODO/GAL-2.md").read_text()
    assert "labels: [followup, tech-debt]" in both, "two findings about the same words are one issue"
    assert "The format string is not needed" in both
    assert "Found by @check in run-look, step check." in both
    assert "Uncertain" in (project.root / "TODO/GAL-3.md").read_text()
    assert "- [ ] [GAL-4](GAL-4.md) Say goodbye" in (project.root / "TODO/README.md").read_text()
    assert "Open already, and not filed again\n\n- Reject  empty names!" in document["output"]
    assert project.redfirst("issue", "lint").returncode == 0
    assert problems(project) == []

    again = project.document("run", "look")
    assert "0 issues filed on work, 4 open already" in again["output"], "what is open is not filed again"
    assert project.git("rev-list", "--count", "main..work") == "1"


@pytest.mark.broad
def test_what_is_in_the_way_of_filing_is_told_at_the_start_or_parks(tmp_path: Path) -> None:
    project = project_with(tmp_path)
    project.write({"TODO/README.md": FILES["TODO/README.md"] + "\nMine.\n"})
    project.git("switch", "--quiet", "main")
    refused = project.redfirst("run", "look", "--json")
    error = json.loads(refused.stdout)["error"]
    assert (refused.returncode, error["kind"]) == (2, "branch_is_base"), "what is known is told before anybody is asked"
    assert "TODO/README.md is not committed" in refused.stdout
    project.git("switch", "--quiet", "work")
    project.git("checkout", "--quiet", "--", "TODO/README.md")

    assert die_at(project, "before journal publish_intended", 1, "run", "look") == KILLED
    project.write({"TODO/README.md": FILES["TODO/README.md"] + "\nMine.\n"})
    parked = project.document("resume", "run-look")
    assert (parked["_code"], parked["outcome"], parked["reason"]) == (4, "parked", "worktree_changed"), parked
    assert "README.md" in parked["note"]
    assert (project.root / "TODO/README.md").read_text().endswith("\nMine.\n")
    project.git("checkout", "--quiet", "--", "TODO/README.md")
    project.write({"TODO/GAL-2.md": FILES["TODO/GAL-1.md"].replace("GAL-1", "GAL-2").replace("Reject", "Accept")})
    project.commit("mine")
    done = project.document("resume", "run-look")
    assert (done["outcome"], done["dispatches"]) == ("completed", 3), done
    assert project.git("log", "-1", "--format=%s") == "chore(todo): file 3 issues"
    assert (project.root / "TODO/GAL-5.md").exists(), "the ids are allotted on what the user committed meanwhile"
    assert problems(project) == []


@pytest.mark.broad
def test_a_run_that_is_given_up_between_files_and_branch_takes_its_files_back(tmp_path: Path) -> None:
    project = project_with(tmp_path)
    start = project.git("rev-parse", "work")
    assert die_at(project, "after git read-tree -m", 1, "run", "look") == KILLED
    assert (project.root / "TODO/GAL-2.md").exists()
    assert project.redfirst("abandon", "run-look").returncode == 0
    assert project.untouched_since(start)
    assert problems(project) == []


@pytest.mark.broad
def test_a_branch_is_reviewed_with_its_diff_and_what_is_found_is_filed(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    project.git("switch", "--quiet", "--create", "feature", "main")
    project.write({"greet.py": 'def greet(name):\n    return "Hi, " + name\n'})
    project.commit("feat: be short")
    diff = project.home / "short.diff"
    diff.write_text(project.git("diff", "main", "feature") + "\n", encoding="utf-8")
    project.git("switch", "--quiet", "main")
    project.write({"notes.txt": "what main did meanwhile\n"})
    project.commit("docs: notes")
    project.git("switch", "--quiet", "work")
    seen = {"claim": "Names are not checked", "path": "greet.py", "quote": 'return "Hi, " + name'}
    found = [
        answer("check", "One.", payload={"findings": [seen]}),
        answer("simplify", "None.", payload={"findings": []}),
    ]
    project.use_script(found, LOOSE)

    document = project.document("run", "review", "of=feature")
    assert (document["outcome"], document["_code"]) == ("completed", 0), document
    folder = project.run_folder("run-review")
    handed = (folder / "steps/check/of.diff").read_text()
    assert '+    return "Hi, " + name' in handed
    assert "notes.txt" not in handed, "what the base branch did since is no part of it"
    assert "the file of.diff among the artifacts `inputs`" in (folder / "steps/check/request.md").read_text()
    payload = json.loads((folder / "steps/check/check.json").read_text())
    assert payload["findings"] == [seen], "the quote is looked up in the files with the change"
    assert project.git("log", "--format=%s", "main..work") == "chore(todo): file GAL-2"
    assert project.git("show", "work:greet.py") == FILES["greet.py"].strip(), "the change itself comes along nowhere"

    for of, outcome in ((str(diff), "completed"), ("main...feature", "completed"), ("HEAD~1", "completed")):
        again = project.document("run", "review", f"of={of}")
        assert again["outcome"] == outcome, again
    for of, why in (("featrue", "there is no such branch"), ("main", "it changes nothing"), ("greet.py", "no diff")):
        refused = project.redfirst("run", "review", f"of={of}")
        assert (refused.returncode, why in " ".join(refused.stderr.split())) == (2, True), refused.stderr


def test_triage_files_what_a_person_approves(tmp_path: Path) -> None:
    second = FILES["TODO/GAL-1.md"].replace("GAL-1", "GAL-2").replace("Reject empty names", "Greet twice")
    closed = second.replace("GAL-2", "GAL-3").replace("status: Todo", "status: Done")
    listed = FILES["TODO/README.md"] + "- [ ] [GAL-2](GAL-2.md) Greet twice\n- [x] [GAL-3](GAL-3.md) Greet twice\n"
    tracker = {"TODO/GAL-2.md": second, "TODO/GAL-3.md": closed, "TODO/README.md": listed}
    project = make_project(tmp_path, {**FILES, **tracker})
    parts = {"issues": [{"title": "Refuse an empty name", "labels": ["bug"]}, {"title": "Refuse a blank name"}]}
    wrong = {"when": {"step": "look.2"}, "report": {"result": "ANSWERED"}}
    project.use_script([answer("look.1", "GAL-1 is two issues.", payload=parts), wrong, wrong], LOOSE)
    assert project.redfirst("run", "triage", "issues=GAL-7").returncode == 2
    parked = project.document("run", "triage")
    assert (parked["_code"], parked["outcome"], parked["reason"]) == (4, "parked", "approval"), parked
    folder = project.run_folder("run-triage")
    assert json.loads((folder / "run.json").read_text())["inputs"] == {"issues": "GAL-1 GAL-2"}, (
        "what is Done is not open"
    )
    assert "Read the issue GAL-2 and" in (folder / "steps/look.2/request.md").read_text()
    assert project.git("rev-list", "--count", "main..work") == "0", "nothing is filed before a person says so"
    done = project.document("approve", "run-triage")
    assert (done["outcome"], done["failed"]) == ("partial", ["look.2"]), "one that failed holds up no other"
    assert project.git("log", "-1", "--format=%s") == "chore(todo): file 2 issues"
    assert "GAL-4: Refuse an empty name" in done["output"]
    assert "labels: [bug]" in (project.root / "TODO/GAL-4.md").read_text()
