"""What is wrong with a recipe is told at once, each with its rule, its place and the nearest word; what it would do."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest

from pipeline.agents.dispatch.roles import data_folder
from pipeline.app.start import issue_limits
from pipeline.config.layers import Flags
from pipeline.config.load import load
from pipeline.matrix.recipes.check import checked
from pipeline.matrix.recipes.model import Recipe
from pipeline.matrix.recipes.plan import Preview, inputs_of, mermaid, planned_graph, preview
from pipeline.matrix.recipes.rules import going_along
from pipeline.matrix.recipes.templates import Reference, filled

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


# --- what a recipe would do -------------------------------------------------------------------------------------------


def shown(text: str, **given: str) -> Preview:
    recipe, problems = checked(text)
    assert recipe is not None, problems
    values, wrong = inputs_of(recipe, given)
    assert not wrong
    found = preview(recipe, values)
    assert isinstance(found, Preview), found
    return found


def test_order_areas_and_the_most_dispatches_of_the_examples() -> None:
    research, fix = (shown(text, **given) for text, given in zip(EXAMPLES, ({"topic": "x"}, {}), strict=True))
    assert [(step.id, step.wave, step.times) for step in research.steps] == [
        ("angles", 1, 1), ("look", 2, 6), ("doubt", 3, 1), ("brief", 4, 1),
    ]  # fmt: skip
    assert [(step.id, step.writes) for step in fix.steps if step.writes] == [("fix", ("**/*",)), ("ship", ("**/*",))]
    assert (fix.dispatches, fix.limit) == (11, 80)


def test_what_a_person_may_send_back_counts_and_a_note_is_no_gate() -> None:
    text = HEAD + (
        "  - {id: aside, agent: check, prompt: p, attempts: 1}\n"
        "  - {id: draft, agent: check, prompt: p, attempts: 1}\n"
        "  - {id: tell, gate: note, depends_on: [draft]}\n"
        "  - {id: ok, gate: approve, depends_on: [draft], back_to: draft}\n"
    )
    assert {step.id: step.dispatches for step in shown(text).steps} == {"aside": 1, "draft": 6, "tell": 0, "ok": 0}
    assert shown(text).gates == 1


def test_writers_whose_areas_meet_wait_and_the_patterns_are_named() -> None:
    text = HEAD + (
        '  - {id: one, agent: make, prompt: p, write_set: ["{{inputs.code}}"]}\n'
        "  - {id: two, agent: make, prompt: p, write_set: [docs]}\n"
        "  - {id: three, agent: make, prompt: p, write_set: [docs/x.md, 'src/*.py']}\n"
    )
    waves = {step.id: step.wave for step in shown(text).steps}
    assert waves == {"one": 1, "two": 1, "three": 2}
    after = {step.id: [(found.earlier, found.patterns) for found in step.after] for step in shown(text).steps}
    assert after["three"] == [("one", ("src", "src/*.py")), ("two", ("docs", "docs/x.md"))]
    assert '-.->|"src ~ src/*.py"| s_three' in mermaid(shown(text))
    assert {step.id: step.wave for step in shown(text, code="lib").steps} == {"one": 1, "two": 1, "three": 2}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"topci": "x"}, "there is no input 'topci'"),
        ({}, "the input 'topic' is required"),
        ({"topic": "x", "code": "../b"}, "a pattern has no empty part"),
    ],
)
def test_inputs_that_do_not_fit_are_told(given: dict[str, str], message: str) -> None:
    text = HEAD.replace("{name: topic}", "{name: topic, required: true}") + "  - {id: a, gate: ask}\n"
    recipe, _ = checked(text)
    assert recipe is not None
    assert message in inputs_of(recipe, given)[1][0].message


def test_check_29_a_value_is_put_in_as_it_is_and_never_read_again() -> None:
    for hostile in ("$(x)", "--config=x", "a\nb", "{{inputs.topic}}", "{{{{"):
        assert filled("say {{inputs.topic}} {{{{", lambda _, hostile=hostile: hostile) == f"say {hostile} {{{{"
    assert filled("{{ item.name }}", repr) == repr(Reference("item.name", path=("name",)))


def test_an_item_may_be_a_path_so_that_others_wait_for_all_below_its_folder() -> None:
    each = 'for_each: "{{steps.list.payload}}", depends_on: [list]'
    text = HEAD + (
        "  - {id: list, agent: check, prompt: p, payload: {type: array}}\n"
        f'  - {{id: w, agent: make, prompt: p, {each}, write_set: ["docs/{{{{item}}}}.md"]}}\n'
        "  - {id: inside, agent: make, prompt: p, write_set: [docs/a/b.md]}\n"
        "  - {id: beside, agent: make, prompt: p, write_set: [src]}\n"
    )
    steps = {step.id: step for step in shown(text).steps}
    assert steps["w"].writes == ("docs/**/*",)
    assert [found.earlier for found in steps["inside"].after] == ["w"]
    assert not steps["beside"].after


def test_how_many_tasks_are_side_by_side_is_said_by_the_user_or_else_by_the_recipe(tmp_path: Path) -> None:
    environ = {"HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path)}
    text = (data_folder("commands") / "issue.yaml").read_text()
    issue, two = checked(text)[0], checked(f"{text}max_concurrency: 2\n")[0]
    for recipe, values, beside in ((issue, (), 3), (two, (), 2), (two, ("limits.parallel=4",), 4)):
        assert recipe is not None
        loaded = load(tmp_path, environ=environ, flags=Flags.parse(values, ()))
        assert issue_limits(loaded, recipe)["parallel"] == beside


def test_the_folder_of_the_issues_is_no_area_wherever_it_is() -> None:
    recipe, problems = checked(
        HEAD + "  - {id: aside, agent: make, prompt: p, write_set: [issues/a.md], review: [check]}\n"
    )
    assert recipe is not None, problems
    assert isinstance(preview(recipe, {"topic": "", "code": "src"}), Preview)
    found = preview(recipe, {"topic": "", "code": "src"}, tracker="Issues")
    assert isinstance(found, tuple)
    assert [(problem.rule, problem.message) for problem in found] == [
        ("bad_pattern", "'issues/a.md' with these inputs: issues is the tracker's folder, which only redfirst writes")
    ]


def test_what_a_published_step_was_written_over_is_published_too_and_has_to_be_looked_at() -> None:
    text = HEAD + (
        "  - {id: under, agent: make, prompt: p, write_set: [src]}\n"
        "  - {id: aside, agent: make, prompt: p, write_set: [docs]}\n"
        "  - {id: over, agent: make, prompt: p, write_set: [src/a.py], review: [check]}\n"
        '  - {id: ship, publish: "fix: x", depends_on: [over]}\n'
    )
    recipe, problems = checked(text)
    assert recipe is not None, problems
    found = preview(recipe, {"topic": "", "code": "src"})
    assert isinstance(found, tuple)
    assert [(problem.rule, "'under'" in problem.message) for problem in found] == [("unreviewed_writer", True)]
    recipe, _ = checked(text.replace("write_set: [src]}", "write_set: [src], review: [check]}"))
    assert recipe is not None
    plan = planned_graph(recipe, {})
    assert going_along({step.id: step for step in recipe.steps}, plan, {"over"}) == ("under", "over")
