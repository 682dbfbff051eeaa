"""Going on with a recipe's run otherwise than it was left: with a step that is done again, or with a changed recipe."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from kit import make_project

from pipeline.matrix.engine.protocols import TRUNK
from pipeline.matrix.recipes.check import checked
from pipeline.matrix.recipes.next_steps import RecipeMachine, reopened
from pipeline.matrix.recipes.step_table import StepEvent, StepSignal
from pipeline.matrix.recipes.templates import areas_by_item

if TYPE_CHECKING:
    from pathlib import Path

    from kit import Entry, Project

pytestmark = pytest.mark.slow

RECIPE = """name: mine
inputs: [{name: tone, default: short}]
steps:
  - {id: look, agent: explore, prompt: "What greets?", payload: {type: array, items: {type: string}}}
  - {id: judge, agent: check, depends_on: [look], prompt: "Is it right?", attempts: 1}
  - {id: tell, agent: explore, depends_on: [judge], prompt: "Tell it, {{inputs.tone}}."}
output: "{{steps.tell.output}}"
"""
CHANGED = RECIPE.replace("Is it right?", "Is it polite?").replace(
    "output:", '  - {id: each, agent: explore, depends_on: [look], for_each: "{{steps.look.payload}}", '
    'prompt: "{{item}}"}\noutput:'
)  # fmt: skip
LOOSE = 'sandbox = "none"\n'


def answer(step: str, output: str, **more: Any) -> Entry:
    return {"when": {"step": step}, "report": {"result": "ANSWERED", "output": output, **more}}


LOOK, WRONG = answer("look", "greet.", payload=["greet"]), {"when": {"step": "judge"}, "report": {"result": "?"}}


def dispatches(project: Project) -> list[str]:
    names = [line["data"]["dispatch"] for line in project.journal("run-mine") if line["kind"] == "dispatch_started"]
    return [name.split("-")[1] for name in dict.fromkeys(names)]


@pytest.mark.broad
def test_checks_21_and_22_a_recipe_is_pinned_until_the_run_goes_on_with_another(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    mine = tmp_path / "mine.yaml"
    mine.write_text(RECIPE)
    script = [LOOK, WRONG, WRONG]
    project.use_script(script, LOOSE)
    assert project.redfirst("run", "../mine.yaml").returncode == 8
    mine.write_text(CHANGED)
    said = project.document("resume", "mine")
    assert (said["_code"], said["failed"], said["held"]) == (8, ["judge"], ["tell"])
    folder = project.run_folder("run-mine")
    assert "right" in (folder / "steps/judge/request.md").read_text(), "check 21: what was edited does not count"
    refused = project.redfirst("resume", "mine", "--step", "lok")
    assert (refused.returncode, 'Did you mean "look"?' in refused.stderr) == (2, True), refused.stderr
    mine.write_text(CHANGED.replace("id: tell", "id: look"))
    assert project.redfirst("resume", "mine", "--recipe", "../mine.yaml").returncode == 2, "it has to be sound"
    mine.write_text(CHANGED)
    script += [answer("judge", "It is."), answer("tell", "It greets."), answer("each.1", "One.")]
    project.use_script(script, LOOSE)
    said = project.document("resume", "mine", "--recipe", "../mine.yaml")
    assert (said["_code"], said["output"]) == (0, "It greets.\n"), said["_stderr"]
    assert sorted(dispatches(project)) == ["each.1", "judge", "judge", "judge", "look", "tell"], "check 22"
    assert "polite" in (folder / "steps/judge/request.md").read_text()
    kept = json.loads((folder / "recipe.json").read_text())
    assert kept["sha256"] != said["recipe"]["sha256"], "the first one stays on record"
    ended = project.redfirst("resume", "mine", "--step", "look")
    assert (ended.returncode, f"redfirst run {mine} tone=short" in ended.stderr) == (2, True), ended.stderr
    assert "completed (done)" in project.redfirst("show", "mine").stdout, "folding gives the same"
    assert "by another recipe; done again: judge, tell, each" in project.redfirst("show", "mine", "--log").stdout


def test_a_step_is_done_again_with_all_that_saw_it(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    mine = tmp_path / "mine.yaml"
    mine.write_text(RECIPE)
    script = [LOOK, answer("judge", "It is."), {"when": {"step": "tell"}, "report": {"result": "QUESTIONS"}}]
    script[2]["report"]["questions"] = "To whom?"
    project.use_script(script, LOOSE)
    said = project.document("run", "../mine.yaml")
    assert (said["_code"], said["needs_orchestrator"]) == (8, ["tell"])
    assert project.redfirst("resume", "mine", "--onto", "HEAD").returncode == 2
    project.use_script([*script, answer("judge", "It is not."), answer("tell", "It does not greet.")], LOOSE)
    said = project.document("resume", "--step", "judge")
    assert (said["_code"], said["output"]) == (0, "It does not greet.\n"), said["_stderr"]
    assert dispatches(project) == ["look", "judge", "tell", "judge", "tell"]


def test_steps_that_a_changed_recipe_makes_of_a_list_that_is_there_write_side_by_side(tmp_path: Path) -> None:
    """And so do those of a list that is given with the inputs; where two areas meet, one waits."""
    head = "name: mine\ninputs: [{name: some, type: issues, default: A-1 A-2}]\nsteps:\n"
    head += "  - {id: list, agent: explore, prompt: p, payload: {type: array, items: {type: string}}}\n"
    each = '  - {{id: {id}, agent: make, prompt: p, depends_on: [list], for_each: "{over}", write_set: ["{area}"]}}\n'
    of_list = each.format(id="w", over="{{steps.list.payload}}", area="{{item}}.md")
    recipe, problems = checked(head + of_list)
    assert recipe is not None, problems
    machine = RecipeMachine(recipe, {"some": "A-1 A-2"})
    before, _ = checked(head)
    assert before is not None
    first = RecipeMachine(before, {"some": "A-1 A-2"})
    state, _ = first.advance(first.initial(), StepEvent(signal=StepSignal.OK, lane=TRUNK))
    state, _ = first.advance(state, StepEvent(signal=StepSignal.ANSWERED, lane="list"))
    areas = areas_by_item(machine.steps["w"], machine.values, ["a", "b", "a"])
    after = reopened(machine, state, ["w"], {"w": 3}, {"w": areas})
    assert set(after.lanes) - {TRUNK} == {"w.1", "w.2"}
    of_input, problems = checked(head + each.format(id="w", over="{{inputs.some}}", area="docs/{{item}}.md"))
    assert of_input is not None, problems
    begun = RecipeMachine(of_input, {"some": "A-1 A-2"})
    state, _ = begun.advance(begun.initial(), StepEvent(signal=StepSignal.OK, lane=TRUNK))
    state, _ = begun.advance(state, StepEvent(signal=StepSignal.ANSWERED, lane="list"))
    assert set(state.lanes) - {TRUNK} == {"w.1", "w.2"}


@pytest.mark.broad
def test_an_item_that_makes_no_pattern_is_told_before_anything_goes_on(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    mine = tmp_path / "mine.yaml"
    mine.write_text(RECIPE)
    project.use_script([answer("look", "greet.", payload=["../x"]), WRONG], LOOSE)
    assert project.redfirst("run", "../mine.yaml").returncode == 8
    each = 'id: each, agent: make, depends_on: [look], for_each: "{{steps.look.payload}}", write_set: ["{{item}}"]'
    mine.write_text(RECIPE.replace("output:", f"  - {{{each}, prompt: x}}\noutput:"))
    before = project.journal("run-mine")
    refused = project.document("resume", "mine", "--recipe", "../mine.yaml")["error"]
    assert (refused["kind"], "'../x', which each may change" in refused["message"]) == ("input_invalid", True), refused
    assert project.journal("run-mine") == before
