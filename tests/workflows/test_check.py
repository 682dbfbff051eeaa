"""What is wrong with a recipe is told at once, each with its rule, its place and the nearest word."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest

from pipeline.matrix.recipes.check import checked
from pipeline.matrix.recipes.model import Recipe

DOCS: Final = Path(__file__).parents[2] / "docs"
PAGE: Final = (DOCS / "reference" / "recipes.md").read_text(encoding="utf-8")
GUIDE: Final = (DOCS / "how-to" / "own-recipe.md").read_text(encoding="utf-8")
EXAMPLES: Final = re.findall(r"^```yaml recipe\n(.*?)^```", PAGE + GUIDE, re.MULTILINE | re.DOTALL)
HEAD: Final = "name: x\ninputs: [{name: topic}, {name: code, type: path, default: src}]\nsteps:\n"
ISSUE: Final = "name: x\ninputs: [{name: id, type: issue}]\nsteps:\n"
LAST: Final = "  - {id: t, phase: tasks}\n  - {id: r, phase: review, depends_on: [t], review: [check]}\n"
END: Final = LAST + "  - {id: p, phase: publish, depends_on: [r]}\n"
WAY: Final = ISSUE + "  - {id: i, phase: issue}\n  - {id: a, phase: plan, depends_on: [i]}\n"
ASK: Final = "prompt: p"


def step(words: str) -> str:
    return f"{HEAD}  - {{id: first, agent: check, {ASK}}}\n  - {{{words}}}\n"


def rules(text: str) -> list[tuple[str, int]]:
    recipe, problems = checked(text)
    assert (recipe is None) == bool(problems)
    return [(problem.rule, problem.line) for problem in problems]


@pytest.mark.parametrize("text", EXAMPLES)
def test_the_examples_of_the_page_are_sound(text: str) -> None:
    recipe, problems = checked(text)
    assert not problems
    assert isinstance(recipe, Recipe)


def test_the_only_step_that_is_wrong_makes_no_empty_list() -> None:
    assert rules(f"name: x\nsteps:\n  - {{id: a, agent: chek, {ASK}}}\n") == [("unknown_role", 3)]
    assert rules("name: x\nsteps: []\n") == [("wrong_type", 2)]


BROKEN: Final[dict[str, list[str]]] = {
    "unknown_key": [step(f"id: a, agent: check, {ASK}, timeout: 3"), step("id: a, gate: ask, write_set: [b]")],
    "missing_key": ["name: x\n", step("agent: check, prompt: p"), step("id: a, agent: check")],
    "wrong_type": [
        "- x\n",
        "",
        step(f"id: a, agent: check, {ASK}, timeout_s: soon"),
        step(f'id: a, agent: check, {ASK}, for_each: "x {{{{inputs.topic}}}}"'),
        step(f"id: a, agent: make, {ASK}, depends_on: [first], accept: {{tests: first}}"),
        step("id: a, apply_from: first, depends_on: [first]"),
        step('id: a, publish: "{{inputs.topic}}"'),
        step(f'id: a, agent: check, {ASK}, for_each: "{{{{inputs.topic}}}}"'),
        step('id: a, file_issues: "{{steps.first.output}}", depends_on: [first]'),
        "name: x\ninputs: [{name: a, type: change}, {name: b, type: change}]\nsteps: [{id: a, gate: ask}]\n",
        step(f"id: a, agent: make, {ASK}, accept: {{regression: false}}"),
        step(f"id: a, agent: make, {ASK}, payload: findings.v1"),
        step(f"id: a, agent: make, {ASK}, review: [simplify]"),
        "name: x\ninputs: [{name: a, required: true, default: b}]\nsteps: [{id: a, gate: ask}]\n",
        WAY.replace("[i]}", "[i], review: [simplify]}") + END.replace("tasks}", "tasks, depends_on: [a]}"),
        WAY.replace("issue}\n  - {id: a", "issue, review: [check]}\n  - {id: a")
        + END.replace("tasks}", "tasks, depends_on: [a]}"),
    ],
    "unknown_word": [step("id: a, gate: aprove"), step(f"id: a, agent: make, {ASK}, workspace_mode: own")],
    "no_kind": [step("id: a, depends_on: [first]")],
    "two_kinds": [step("id: a, gate: ask, run: [ls]")],
    "duplicate_id": [
        step("id: first, gate: ask"),
        "name: x\ninputs: [{name: a}, {name: a}]\nsteps: [{id: a, gate: ask}]\n",
    ],
    "bad_id": [step("id: A b, gate: ask"), "name: X Y\nsteps: [{id: a, gate: ask}]\n"],
    "unknown_step": [step("id: a, gate: ask, depends_on: [frist]"), step("id: a, gate: ask, back_to: frist")],
    "unknown_role": [step(f"id: a, agent: chek, {ASK}"), step(f"id: a, agent: make, {ASK}, review: [chek]")],
    "unknown_schema": [step(f"id: a, agent: check, {ASK}, payload: findings.v2")],
    "cycle": ["name: x\nsteps:\n  - {id: a, gate: ask, depends_on: [b]}\n  - {id: b, gate: ask, depends_on: [a]}\n"],
    "unknown_reference": [
        step('id: a, agent: check, prompt: "{{inputs.topci}}"'),
        step('id: a, agent: check, prompt: "{{steps.frist.output}}", depends_on: [first]'),
        step('id: a, agent: check, prompt: "{{item}}"'),
        step('id: a, agent: check, prompt: "{{first}}"'),
        step('id: a, agent: make, prompt: p, write_set: ["{{steps.first.output}}"], depends_on: [first]'),
        HEAD + '  - {id: a, gate: ask}\noutput: "{{steps.b.output}}"\n',
    ],
    "not_an_ancestor": [
        step('id: a, agent: check, prompt: "{{steps.first.output}}"'),
        step("id: a, gate: ask, back_to: first"),
        step("id: a, gate: ask, provides: [door]") + "  - {id: b, gate: ask, requires: [door]}\n",
    ],
    "bad_pattern": [
        step(f"id: a, agent: make, {ASK}, write_set: [{text}]") for text in ("../b", "/etc", ".git", "TODO")
    ],
    "reader_writes": [step(f"id: a, agent: explore, {ASK}, write_set: [b]")],
    "too_many_steps": ["name: x\nsteps:\n" + "".join(f"  - {{id: s{n}, gate: ask}}\n" for n in range(1_001))],
    "too_many_patterns": [step(f"id: a, agent: make, {ASK}, write_set: [{', '.join(f'f{n}' for n in range(201))}]")],
    "phase_order": [
        ISSUE + "  - {id: a, phase: split}\n  - {id: b, phase: plan, depends_on: [a]}\n",
        ISSUE + "  - {id: a, phase: plan}\n  - {id: b, phase: split}\n",
        ISSUE + "  - {id: a, phase: plan}\n  - {id: b, phase: plan, depends_on: [a]}\n",
        WAY + END,
        WAY + LAST.replace("tasks}", "tasks, depends_on: [a]}"),
    ],
    "unreviewed_writer": [
        HEAD
        + f"  - {{id: w, agent: make, {ASK}, workspace_mode: scratch}}\n  - {{id: a, apply_from: w, depends_on: [w]}}\n"
        + '  - {id: p, publish: "fix: x", depends_on: [a]}\n',
        HEAD + f'  - {{id: w, agent: make, {ASK}}}\n  - {{id: p, publish: "fix: x", depends_on: [w]}}\n',
        WAY + END.replace("tasks}", "tasks, depends_on: [a]}").replace(", review: [check]", ""),
    ],
    "late_issue": [(WAY + END.replace("tasks}", "tasks, depends_on: [a]}")).replace(", type: issue", "")],
    "seam_without_provider": [step("id: a, gate: ask, requires: [door]")],
    "seam_twice": [step("id: a, gate: ask, provides: [door, door]")],
    "looks_like_option": [
        step('id: a, run: ["{{inputs.topic}}"]'),
        step('id: a, run: [grep, "{{inputs.topic}}"]'),
    ],
    "name_is_issue": ["name: gal-39\nsteps: [{id: a, gate: ask}]\n"],
    "not_yaml": ["name: [\n", "name: &x y\n", "name: x\nname: y\n"],
    "too_large": ["#" * ((1 << 20) + 1)],
}


BETWEEN_FILES: Final = {"recipe_not_found", "include_cycle", "too_deep", "input_invalid", "not_for_agents"}
"""Rules of several files, and of who asks: `test_several_files.py`."""


def test_check_04_every_rule_is_broken_by_what_it_names_and_by_nothing_else() -> None:
    for rule, texts in BROKEN.items():
        for text in texts:
            assert {found for found, _ in rules(text)} == {rule}, (rule, text[:300])


def test_the_page_names_every_rule() -> None:
    named = set(re.findall(r"`(\w+)`", PAGE.partition("## What is checked")[2].partition("\n## ")[0]))
    assert named - BETWEEN_FILES == set(BROKEN)


def test_check_05_all_problems_are_told_at_once_with_line_column_and_the_nearest_word() -> None:
    text = HEAD + (
        "  - {id: cause, agent: chek, prompt: p}\n"
        '  - {id: fix, agent: make, depends_on: [cuase], prompt: "{{inputs.topci}}"}\n'
        "stepps: []\n"
    )
    _, problems = checked(text)
    assert [str(problem) for problem in problems] == [
        "4:17: 'chek' is not known as agent; did you mean 'check'? [unknown_role]",
        "5:41: there is no step 'cuase'; did you mean 'cause'? [unknown_step]",
        "5:49: there is no input 'topci'; did you mean 'topic'? [unknown_reference]",
        "6:1: the key 'stepps' is unknown; did you mean 'steps'? [unknown_key]",
    ]


def test_check_06_a_cycle_is_printed() -> None:
    text = "name: x\nsteps:\n" + "".join(
        f"  - {{id: s{n}, gate: ask, depends_on: [s{(n + 1) % 3}]}}\n" for n in range(3)
    )
    (problem,) = checked(text)[1]
    assert re.search(r"(s\d) -> s\d -> s\d -> \1", problem.message)


def test_what_is_text_stays_text() -> None:
    recipe, _ = checked(
        'name: x\ninputs: [{name: n, default: 3}]\nsteps: [{id: a, run: [echo, 3, "true", --, "{{inputs.n}}"]}]\n'
    )
    assert recipe is not None
    assert recipe.inputs[0].default == "3"
    assert recipe.steps[0].run == ("echo", "3", "true", "--", "{{inputs.n}}")
