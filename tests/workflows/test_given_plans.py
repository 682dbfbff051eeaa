"""An issue's run becomes a recipe that brings its plan and tasks along: nobody is asked for them again."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from e2e.lanes import finding, go_on, play
from kit import ALL_WELL, ISSUE, PLAN_ACCEPTED, PLAN_SIMPLE, README, RESULT_ACCEPTED, RESULT_SIMPLE, SPLIT_ACCEPTED
from workflows.test_quick import OLD, asked, planned, summed, sums, worked
from workflows.test_several_files import BUILT_IN, wrong

from pipeline.yaml_text import read

if TYPE_CHECKING:
    from pathlib import Path

    from kit import Entry, Project

GIVEN = "name: mine\nextends: builtin:issue\nedits:\n  - change: {step}\n    set: {{given: {given}}}\n"
TASK: dict[str, object] = {"title": "t", "acceptance_criteria": [], "files": [], "test_files": []}
PLAN: dict[str, object] = {"problem": "p", "files": [], "tasks": [TASK]}
REVIEWED: Entry = {**PLAN_ACCEPTED, "report": {"verdict": "ACCEPTABLE", "answers": ALL_WELL}}


@pytest.mark.parametrize(
    ("step", "change", "told"),
    [
        ("split", {}, "'given' is what the phase 'plan' would draft [unknown_key]"),
        ("plan", {"probem": "p"}, "5:133: unknown key, accepted keys are"),
        ("plan", {"problem": "{{inputs.topic}}"}, "there is no input 'topic'"),
        ("plan", {"problem": "{{steps.tasks.output}}"}, "there is no step 'tasks'"),
        ("plan", {"tasks": [{**TASK, "depends_on": [1]}]}, "[wrong_type]"),
    ],
)
def test_what_is_wrong_with_a_given_plan_is_told(step: str, change: dict[str, object], told: str) -> None:
    text = GIVEN.format(step=step, given=json.dumps({**PLAN, **change}))
    assert told in " ".join(wrong(text, **{f"builtin:{name}": text for name, text in BUILT_IN.items()}))


@pytest.mark.slow
@pytest.mark.broad
def test_check_31_an_issues_run_is_run_again_with_another_name(tmp_path: Path) -> None:
    project = sums(tmp_path)
    readme = README + "- [ ] [GAL-2](GAL-2.md) Reject empty names\n"
    project.write({"TODO/GAL-2.md": ISSUE.replace("GAL-1", "GAL-2"), "TODO/README.md": readme})
    project.write({"more.sum": "more n = n\n", "more.check": OLD.replace("greet", "more")})
    project.commit()
    first = [planned(summed("greet")), *worked("greet", "1"), RESULT_ACCEPTED]
    assert play(project, first, "--recipe", "quick").document["outcome"] == "completed"
    saved = project.document("recipes", "save", "GAL-1", "--as", "double", "--input", "name=greet")
    assert (saved["inputs"], saved["places"]["name"][:1]) == (["issue", "name"], ["plan/problem"])
    again = worked("more", "1")
    again[0]["files"] = {"more.check": "nothing: more 0 = 0\ntwo: more 2 = 4\n"}
    project.use_script([*again, RESULT_ACCEPTED])
    told = project.redfirst("run", "GAL-2", "name=more", "--recipe", "double", "--dry-run").stdout
    assert "plan: the plan and its tasks are given" in told
    assert "3 dispatches where the issue is one task" in told
    done = project.run("name=more", "--recipe", "double", issue="GAL-2")
    assert done["outcome"] == "completed", (done, project.rows("run-GAL-2"))
    kinds = [line["data"]["kind"] for line in project.journal("run-GAL-2") if line["kind"] == "dispatch_started"]
    assert kinds == ["write-tests", "implement", "review-result"]
    assert "more 2 is 4" in (project.run_folder("run-GAL-2") / "task-1.md").read_text()
    assert project.redfirst("verify", "run-GAL-2").returncode == 0


def mine(project: Project) -> str:
    """Write a recipe that brings a plan of two tasks along; return its path."""
    given = planned(summed("greet"), summed("more", depends_on=[1]))["report"]
    place = project.home / "mine.yaml"
    place.write_text(GIVEN.format(step="plan", given=json.dumps(given)), encoding="utf-8")
    return str(place)


@pytest.mark.slow
def test_a_given_plan_is_reviewed_with_its_tasks(tmp_path: Path) -> None:
    project = sums(tmp_path)
    script = [REVIEWED, PLAN_SIMPLE, *worked("greet", "1"), *worked("more", "2"), RESULT_ACCEPTED, RESULT_SIMPLE]
    played = play(project, script, "--recipe", mine(project))
    assert played.document["outcome"] == "completed", (played.document["note"], played.rows)
    assert asked(project)[:3] == ["review-plan", "review-plan", "write-tests"]
    assert played.tasks() == {"1": "done", "2": "done"}


@pytest.mark.broad
@pytest.mark.slow
def test_a_given_plan_that_comes_back_is_drafted_anew(tmp_path: Path) -> None:
    project = sums(tmp_path)
    found = [finding("too large", concern="plan")]
    refused: Entry = {**REVIEWED, "report": {"verdict": "NEEDS WORK", "findings": found, "answers": ALL_WELL}}
    project.use_script([refused, PLAN_SIMPLE])
    assert "dispatch 003-plan-orchestrator" in project.run("--recipe", mine(project))["error"]["message"]
    assert asked(project) == ["review-plan", "review-plan", "plan"]


@pytest.mark.slow
@pytest.mark.broad
def test_what_a_person_edited_at_the_gates_is_kept_in_the_recipe_that_is_saved(tmp_path: Path) -> None:
    project = sums(tmp_path)
    plan = planned(summed("greet"))["report"]
    drafted = {key: value for key, value in plan.items() if key != "tasks"}
    split = {"when": {"kind": "split"}, "report": {"tasks": plan["tasks"]}}
    script = [{"when": {"kind": "plan"}, "report": drafted}, split, *worked("greet", "1"), RESULT_ACCEPTED]
    parked = play(project, script, "--recipe", "quick", "--approve", "plan,split")
    assert parked.document["reason"] == "approval"
    mine = parked.folder / "plan.md"
    text = mine.read_text().replace(drafted["problem"], "It is my problem.")
    mine.write_text(text.replace("## Files", "## Risks\n\n- It may\n  overflow\n\n## Files"))
    parked = go_on(parked, "approve")
    assert parked.document["reason"] == "approval", parked.document
    task = parked.folder / "task-1.md"
    task.write_text(task.read_text().replace("C1: greet 2 is 4", "C1: greet 2 is 4, and 0 is 0"))
    done = go_on(parked, "approve")
    assert done.document["outcome"] == "completed", (done.document["note"], done.rows)
    assert project.redfirst("recipes", "save", "GAL-1", "--as", "double").returncode == 0
    found: Any = read((project.home / "config/redfirst/recipes/double.yaml").read_text()).value
    given = found["edits"][0]["set"]["given"]
    assert (given["problem"], given["risks"], given["approach"]) == (
        "It is my problem.",
        ["It may overflow"],
        drafted["approach"],
    )
    assert given["tasks"][0]["acceptance_criteria"] == ["greet 2 is 4, and 0 is 0"]


@pytest.mark.slow
@pytest.mark.broad
@pytest.mark.parametrize("gate", ["plan", "split"])
def test_a_given_plan_waits_at_the_gates_and_counts_as_a_person_edited_it(gate: str, tmp_path: Path) -> None:
    project = sums(tmp_path)
    script = [REVIEWED, PLAN_SIMPLE, SPLIT_ACCEPTED, *worked("greet", "1"), *worked("more", "2")]
    script += [RESULT_ACCEPTED, RESULT_SIMPLE]
    parked = play(project, script, "--recipe", mine(project), "--approve", gate)
    assert (parked.document["reason"], parked.document["gate"]) == ("approval", gate), parked.document
    name = "plan.md" if gate == "plan" else "task-1.md"
    place = parked.folder / name
    place.write_text(
        place.read_text() + ("\n## Risks\n\n- Mine.\n" if gate == "plan" else "\n## Constraints\n\n- Mine.\n")
    )
    done = go_on(parked, "approve")
    assert done.document["outcome"] == "completed", (done.document["note"], done.rows)
    assert {"plan", "split"}.isdisjoint(asked(project)), "nobody is asked for what is given"
    assert "- Mine." in done.asked("write-tests", task="1").text("plan" if gate == "plan" else "task")
