"""`recipes save` and `recipes new`: what a run was asked is asked again about something else."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from kit import make_project
from workflows.test_runs_of_recipes import LOOSE, answer

from pipeline.matrix.recipes.check import checked
from pipeline.matrix.recipes.saving import recipe_text, with_inputs

if TYPE_CHECKING:
    from pathlib import Path

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
