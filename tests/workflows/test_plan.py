from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from workflows.test_check import EXAMPLES, HEAD

from pipeline.agents.dispatch.roles import data_folder
from pipeline.app.start import issue_limits
from pipeline.config.layers import Flags
from pipeline.config.load import load
from pipeline.matrix.recipes.check import checked
from pipeline.matrix.recipes.plan import Preview, inputs_of, mermaid, planned_graph, preview
from pipeline.matrix.recipes.rules import going_along
from pipeline.matrix.recipes.templates import Reference, filled

if TYPE_CHECKING:
    from pathlib import Path


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
