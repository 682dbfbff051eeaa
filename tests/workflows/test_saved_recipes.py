"""`recipes save` and `recipes new`: what a run was asked, or planned, is done again about something else."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from e2e.lanes import finding, go_on, play
from kit import (
    ALL_WELL,
    ISSUE,
    PLAN_ACCEPTED,
    PLAN_SIMPLE,
    README,
    RESULT_ACCEPTED,
    RESULT_SIMPLE,
    SPLIT_ACCEPTED,
    make_project,
)
from workflows.test_quick import OLD, asked, planned, summed, sums, worked
from workflows.test_runs_of_recipes import LOOSE, answer
from workflows.test_several_files import BUILT_IN, wrong

from pipeline.matrix.recipes.check import checked
from pipeline.matrix.recipes.saving import recipe_text, with_inputs
from pipeline.yaml_text import read

if TYPE_CHECKING:
    from pathlib import Path

    from kit import Entry, Project

    from pipeline.matrix.recipes.model import Recipe

LOOK = """name: look
inputs: [{name: about, default: how names are checked}, {name: depth, default: "3"}]
steps:
  - {id: find, agent: explore, prompt: "Look at {{inputs.about}}, {{inputs.depth}} deep, {{{{not}} read.\\nnames.py"}
  - {id: tell, agent: explore, depends_on: [find], prompt: "On how names are checked: {{steps.find.output}}"}
output: "{{steps.tell.output}}"
"""


def sound(text: str) -> Recipe:
    recipe, problems = checked(text)
    assert recipe is not None, problems
    return recipe


def test_what_was_said_becomes_an_input_wherever_it_stood() -> None:
    recipe = sound(LOOK)
    values = {"about": "how names are checked", "depth": "3"}
    found, places, wrong = with_inputs(recipe, values, {"topic": "names", "how-deep": "3"})
    assert not wrong
    assert places == {"topic": ["step find", "step find", "step tell"], "how-deep": ["step find"]}
    assert [step.prompt for step in found.steps] == [
        "Look at how {{inputs.topic}} are checked, {{inputs.how-deep}} deep, {{{{not}} read.\n{{inputs.topic}}.py",
        "On how {{inputs.topic}} are checked: {{steps.find.output}}",
    ]
    assert [(one.name, one.required) for one in found.inputs] == [("topic", True), ("how-deep", True)]
    assert sound(recipe_text(found)) == found, "the text reads as the same recipe"


@pytest.mark.parametrize(
    ("wanted", "why"),
    [
        ({"topic": "gateways"}, "it is in no prompt and no input of the run"),
        ({"topic": "check"}, "a part of a longer word in step tell"),
        ({"topic": "names", "other": "how names"}, "in the value of 'other', too"),
        ({"topic": "names", "again": "names"}, "in the value of 'again', too"),
        ({"depth": "names"}, "the input 'depth' was '3' in that run"),
        ({"topic": " "}, "no value"),
        ({"To pic": "names"}, "no name of an input"),
    ],
)
def test_what_could_mean_two_things_is_refused(wanted: dict[str, str], why: str) -> None:
    values = {"about": "how names are checked", "depth": "3"}
    _, _, wrong = with_inputs(sound(LOOK), values, wanted)
    assert why in " ".join(map(str, wrong))


@pytest.mark.broad
@pytest.mark.slow
def test_check_31_a_saved_run_is_run_with_another_topic(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    project.write({"look.yaml": LOOK})
    project.commit()
    project.use_script([answer("find", "Found."), answer("tell", "Told.")], LOOSE)
    outside = tmp_path / "look.yaml"
    outside.write_text(LOOK, encoding="utf-8")
    assert project.redfirst("run", str(outside)).returncode == 0
    words = ("recipes", "save", "run-look", "--as", "audit", "--input", "topic=how names are checked")
    saved = project.document(*words)
    assert (saved["path"], saved["inputs"]) == ("~/config/redfirst/recipes/audit.yaml", ["depth", "topic"])
    assert saved["places"] == {"topic": ["step find", "step tell"]}
    again = project.document(*words)
    assert (again["_code"], "--force replaces it" in again["error"]["message"]) == (2, True)
    told = project.redfirst(*words, "--force").stdout
    assert told.startswith("~/config/redfirst/recipes/audit.yaml: the recipe audit\n  topic in step find, step tell\n")
    assert told.endswith("redfirst recipes show audit\n")
    assert project.redfirst("recipes", "show", "audit").returncode == 0
    lost = project.document("recipes", "save", "run-look", "--as", "lost", "--input", "topic=gateways")
    assert (lost["error"]["kind"], "in no prompt" in lost["error"]["message"]) == ("input_invalid", True)
    assert not (project.home / "config/redfirst/recipes/lost.yaml").exists()
    assert project.document("run", "audit")["error"]["kind"] == "input_invalid"
    done = project.document("run", "audit", "topic=where it logs")
    assert (done["outcome"], done["output"]) == ("completed", "Told.\n")
    request = (project.run_folder("run-audit") / "steps/tell/request.md").read_text()
    assert "On where it logs:" in request


@pytest.mark.slow
def test_a_skills_recipe_is_found_by_its_name_and_is_not_trusted(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    text = "name: {0}\nsteps: [{{id: find, agent: explore, prompt: p}}]\n"
    folder = ".claude/skills/audit/recipes"
    project.write({f"{folder}/audit.yaml": text.format("audit"), f"{folder}/quick.yaml": text.format("quick")})
    project.commit()
    project.use_script([answer("find", "Found.")], LOOSE)
    listed = {one["path"]: one["counts"] for one in project.document("recipes", "list")["recipes"]}
    assert listed[f"{folder}/audit.yaml"]
    assert (listed["builtin:quick"], listed[f"{folder}/quick.yaml"]) == (True, False)
    assert project.document("run", "audit")["error"]["kind"] == "untrusted"
    assert f"{folder}/audit.yaml" in project.redfirst("trust", "--yes").stdout
    assert project.document("run", "audit")["outcome"] == "completed"


SKILL = """---
name: Audit Names
description: Looks at names.
---
Look at $ARGUMENTS in {{the}} code.

1. Quote.
"""


@pytest.mark.broad
@pytest.mark.slow
def test_a_recipe_to_begin_with_is_sound_and_so_is_one_of_a_skill(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    made = project.document("recipes", "new", "mine")
    assert (made["path"], made["inputs"]) == ("~/config/redfirst/recipes/mine.yaml", ["topic"])
    assert project.redfirst("recipes", "lint", "mine").returncode == 0
    skill = project.home / "audit" / "SKILL.md"
    skill.parent.mkdir()
    skill.write_text(SKILL, encoding="utf-8")
    theirs = project.document("recipes", "new", "--from", str(skill), "--repository")
    assert theirs["path"] == ".redfirst/recipes/audit-names.yaml"
    text = (project.root / theirs["path"]).read_text()
    recipe = sound(text)
    assert recipe.description == "Looks at names."
    assert recipe.steps[0].prompt == "Look at {{inputs.arguments}} in {{{{the}} code.\n\n1. Quote."
    assert "prompt: |-\n" in text
    for words in (("new",), ("new", "../x"), ("new", "issue-7"), ("new", "--from", str(tmp_path))):
        assert project.redfirst("recipes", *words).returncode == 2, words
    assert {path.name for path in (project.home / "config/redfirst/recipes").iterdir()} == {"mine.yaml"}
    assert json.loads(project.redfirst("recipes", "list", "--json").stdout)["ok"]


# --- an issue's run becomes a recipe that brings its plan and tasks along ---------------------------------------------

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
