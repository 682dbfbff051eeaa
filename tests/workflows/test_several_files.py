"""Recipes that are made of others: what is put in, what is extended, and what is wrong between files."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pytest

from pipeline.dispatch.roles import data_folder
from pipeline.recipes.check import checked
from pipeline.recipes.lookup import Source
from pipeline.recipes.plan import Preview, preview
from pipeline.recipes.rules import not_for_agents

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pipeline.recipes.model import Recipe

BUILT_IN: Final = {
    entry.name.removesuffix(".yaml"): entry.read_text(encoding="utf-8")
    for entry in data_folder("commands").iterdir()
    if entry.name.endswith(".yaml")
}


@dataclass(frozen=True)
class Texts:
    """Recipes by name, as files would have them."""

    texts: Mapping[str, str]

    def find(self, name: str) -> Source | None:
        text = self.texts.get(name)
        return None if text is None else Source(name.removeprefix("builtin:"), f"{name}.yaml", text)

    def names(self) -> tuple[str, ...]:
        return tuple(self.texts)


def sound(text: str, **others: str) -> Recipe:
    recipe, problems = checked(text, Texts(others), path="top.yaml")
    assert recipe is not None, [str(problem) for problem in problems]
    return recipe


def wrong(text: str, **others: str) -> list[str]:
    recipe, problems = checked(text, Texts(others), path="top.yaml")
    assert recipe is None
    return [str(problem) for problem in problems]


def test_check_03_what_comes_with_the_program_is_sound() -> None:
    assert set(BUILT_IN) == {"issue", "quick", "solo", "review", "research", "fix-failing-tests", "triage"}
    for name, text in BUILT_IN.items():
        assert sound(text, **BUILT_IN).name == name
        assert sound(text).description


LOOK: Final = """name: look
inputs: [{name: topic, required: true}, {name: how, default: "{{kindly}}"}]
steps:
  - {id: a, agent: explore, prompt: "{{inputs.topic}} {{inputs.how}}", payload: findings.v1}
  - {id: b, agent: check, depends_on: [a], prompt: "{{steps.a.output}}"}
  - {id: c, agent: check, depends_on: [a], prompt: p}
output: "{{steps.a.output}}"
"""
TWICE: Final = """name: twice
inputs: [{name: what, default: x}]
steps:
  - {id: first, recipe: look, with: {topic: "{{inputs.what}}"}}
  - {id: again, recipe: look, with: {topic: "{{steps.first.output}}"}, depends_on: [first]}
  - {id: end, agent: explore, depends_on: [again], prompt: "{{steps.again.payload.findings}}"}
output: "{{steps.again.output}} {{steps.end.output}}"
"""


def test_the_steps_of_another_recipe_stand_in_the_place_of_the_one_that_names_it() -> None:
    recipe = sound(TWICE, look=LOOK)
    by_id = {step.id: step for step in recipe.steps}
    assert list(by_id) == ["first--a", "first--b", "first--c", "again--a", "again--b", "again--c", "end"]
    assert by_id["first--a"].prompt == "{{inputs.what}} {{{{kindly}}", "a default is text and stays text"
    assert by_id["again--a"].prompt == "{{steps.first--a.output}} {{{{kindly}}"
    assert by_id["again--a"].depends_on == ("first--b", "first--c"), "it waits for all that nobody waits for"
    assert by_id["again--b"].depends_on == ("again--a",)
    assert by_id["end"].prompt == "{{steps.again--a.payload.findings}}"
    assert recipe.output == "{{steps.again--a.output}} {{steps.end.output}}"
    assert isinstance(preview(recipe, {"what": "x"}), Preview)
    assert sound(sound_text(recipe)) == recipe, "what it comes down to is a recipe of its own"


def sound_text(recipe: Recipe) -> str:
    return recipe.model_dump_json(by_alias=True, exclude_defaults=True)


def test_how_a_recipe_is_called_is_checked() -> None:
    calls = "name: x\nsteps:\n" + "".join(
        f"  - {{id: s{n}, recipe: {name}, with: {{{given}}}}}\n"
        for n, (name, given) in enumerate([("look", "tpic: x"), ("loook", ""), ("issue", "issue: GAL-1")])
    )
    assert wrong(calls, look=LOOK, issue=BUILT_IN["issue"]) == [
        "4:14: there is no recipe 'loook'; did you mean 'look'? [recipe_not_found]"
    ]
    rest = calls.replace("  - {id: s1, recipe: loook, with: {}}\n", "")
    assert wrong(rest, look=LOOK, issue=BUILT_IN["issue"]) == [
        "3:5: 'look' requires the input 'topic': with: {topic: VALUE} [input_invalid]",
        "3:35: 'look' has no input 'tpic'; did you mean 'topic'? [input_invalid]",
        "4:14: 'issue' has phases of an issue: such a recipe is extended, not put into another [phase_order]",
    ]


def test_what_is_wrong_in_another_file_is_told_with_its_path() -> None:
    told = wrong(TWICE, look=LOOK.replace("agent: check, depends_on: [a], prompt: p", "agent: chek, prompt: p"))
    assert told == ["look.yaml:6:13: 'chek' is not known as agent; did you mean 'check'? [unknown_role]"]
    reaches = LOOK.replace('output: "{{steps.a.output}}"', "")
    told = wrong(TWICE, look=reaches)
    assert [line.partition(":")[0] for line in told] == ["5", "6", "7"], "every place that wants it"
    assert all("the recipe 'look' has no `output`" in line for line in told)


def test_check_29_recipes_that_name_each_other_end() -> None:
    ring = "name: {0}\nsteps: [{{id: s, recipe: {1}}}]\n"
    assert wrong(ring.format("top", "top"), top=ring.format("top", "top"))
    (told,) = wrong(ring.format("x", "b"), b=ring.format("b", "c"), c=ring.format("c", "b"))
    assert told.startswith("c.yaml:2:17: these recipes name each other: b.yaml -> c.yaml -> b.yaml [include_cycle]")
    (itself,) = wrong("name: x\nextends: x\n", x="name: x\nextends: x\n")
    assert "include_cycle" in itself
    chain = {name: ring.format(name, then) for name, then in ("bc", "cd")}
    (deep,) = wrong(ring.format("x", "b"), **chain, d=ring.format("d", "e"), e="name: e\nsteps: [{id: s, gate: ask}]\n")
    assert "too_deep" in deep


def test_check_29_many_small_files_are_not_ten_thousand_steps() -> None:
    steps = "".join(f"  - {{id: s{n}, recipe: b}}\n" for n in range(200))
    many = "name: b\nsteps:\n" + "".join(f"  - {{id: s{n}, gate: ask}}\n" for n in range(60))
    assert wrong(f"name: x\nsteps:\n{steps}", b=many) == [
        "1:1: with the recipes that are put in there are 12000 steps, 1000 are accepted [too_many_steps]"
    ]


CHANGED: Final = """name: issue
extends: builtin:issue
edits:
  - insert_after: tasks
    step: {id: log, agent: make, write_set: [CHANGELOG.md], prompt: "One line on {{inputs.issue}}."}
  - {change: plan, set: {review: [check]}}
  - {remove: split}
"""


def test_check_32_what_is_hung_behind_a_step_is_waited_for() -> None:
    recipe = sound(CHANGED, **{"builtin:issue": BUILT_IN["issue"]})
    by_id = {step.id: step for step in recipe.steps}
    assert list(by_id) == ["claim", "plan", "tasks", "log", "final", "publish"]
    assert by_id["log"].depends_on == ("tasks",)
    assert by_id["final"].depends_on == ("tasks", "log")
    assert by_id["tasks"].depends_on == ("plan",), "what waited for a step that is gone waits for what it waited for"
    assert by_id["plan"].review == ("check",)
    assert by_id["final"].review == ("check", "simplify")
    assert recipe.description == "An issue from TODO/ to tested commits; plan, split and result are reviewed."


@pytest.mark.parametrize(
    ("edit", "told"),
    [
        ("{remove: splt}", "4:6: there is no step 'splt'; did you mean 'split'? [unknown_step]"),
        ("{}", "4:5: this edit does nothing: say what it is (accepted: insert_after, insert_before, replace, remove, "),
        ("{remove: plan, change: split}", "4:5: this edit is several things: remove, change [two_kinds]"),
        ("{insert_after: plan}", "4:5: the key 'step' is required with 'insert_after' [missing_key]"),
        ("{remove: split, set: {}}", "4:21: 'set' means nothing with 'remove' [unknown_key]"),
        ("{insert_before: plan, step: {id: tasks, gate: ask}}", "4:34: 'tasks' is there twice [duplicate_id]"),
        ("{replace: plan, step: {id: x, gate: ask}}", "4:28: what replaces 'plan' is called 'plan' [bad_id]"),
        (
            "{change: plan, set: {review: [chek]}}",
            "4:35: 'chek' is not known as review; did you mean 'check'? [unknown_role]",
        ),
        ("{change: final, set: {review: []}}", "4:21: nobody would review what is published"),
        ("{remove: tasks}", "2:1: in the step claim of builtin:issue: the way of an issue has no phase 'tasks'"),
        ("{insert_after: plan, step: {id: x, gate: ask, agent: chek}}", "4:51: 'chek' is not known as agent; did you"),
    ],
)
def test_an_edit_that_cannot_be_made_is_told_where_it_stands(edit: str, told: str) -> None:
    text = f"name: issue\nextends: builtin:issue\nedits:\n  - {edit}\n"
    found = wrong(text, **{"builtin:issue": BUILT_IN["issue"]})
    assert found[0].startswith(told) or told in found[0], found


def test_a_recipe_of_an_agent_asks_readers_alone_and_no_person() -> None:
    text = (
        "name: x\nsteps:\n  - {id: a, agent: explore, prompt: p, model: large}\n  - {id: b, agent: make, prompt: p}\n"
    )
    text += "  - {id: c, run: [ls]}\n  - {id: d, gate: ask}\n  - {id: e, gate: note, prompt: p}\n"
    found = [(problem.pointer, problem.rule) for problem in not_for_agents(sound(text))]
    assert found == [(f"/steps/{at}", "not_for_agents") for at in ("0/model", "1/agent", "2/run", "3/gate")]


def test_names_of_inner_steps_keep_to_themselves() -> None:
    """Two parts are two worlds: no id, and no reference, of one is that of the other."""
    recipe = sound(TWICE, look=LOOK)
    texts = " ".join(filter(None, (step.prompt for step in recipe.steps)))
    assert set(re.findall(r"steps\.([\w-]+)\.", texts)) == {"first--a", "again--a"}
