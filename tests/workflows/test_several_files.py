"""Recipes that extend others, and what is wrong between files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pytest

from pipeline.agents.dispatch.roles import data_folder
from pipeline.matrix.recipes.check import Source, checked
from pipeline.matrix.recipes.rules import not_for_agents

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pipeline.matrix.recipes.model import Recipe

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


def test_check_29_recipes_that_extend_each_other_end() -> None:
    one = "name: {0}\nextends: {1}\n"
    (itself,) = wrong(one.format("top", "top"), top=one.format("top", "top"))
    assert "include_cycle" in itself
    (told,) = wrong(one.format("x", "b"), b=one.format("b", "c"), c=one.format("c", "b"))
    assert told.startswith("c.yaml:2:1: these recipes name each other: b.yaml -> c.yaml -> b.yaml [include_cycle]")
    chain = {name: one.format(name, then) for name, then in ("bc", "cd")}
    (deep,) = wrong(one.format("x", "b"), **chain, d=one.format("d", "e"), e="name: e\nsteps: [{id: s, gate: ask}]\n")
    assert "too_deep" in deep


def test_what_is_wrong_in_another_file_is_told_with_its_path() -> None:
    told = wrong("name: x\nextends: look\n", look="name: look\nsteps: [{id: a, agent: chek, prompt: p}]\n")
    assert told == ["look.yaml:2:17: 'chek' is not known as agent; did you mean 'check'? [unknown_role]"]


def test_a_recipe_is_no_step_of_another() -> None:
    told = wrong("name: x\nsteps:\n  - {id: s, recipe: look}\n", look="name: look\nsteps: [{id: s, gate: ask}]\n")
    assert "the key 'recipe' is unknown" in told[0]


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
    problems = not_for_agents(sound(text))
    assert "chooses its model" in problems[0].message
    found = [(problem.pointer, problem.rule) for problem in problems]
    assert found == [(f"/steps/{at}", "not_for_agents") for at in ("0/model", "1/agent", "2/run", "3/gate")]
