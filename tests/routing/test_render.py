"""The matrix in print: complete, valid Markdown and Mermaid, and DESIGN.md shows the one that the program has.

What each cell, bound and arrow says stands in the generated blocks of DESIGN.md, which are compared with what is
generated now.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pipeline.matrix.routing.actions import Again, AskPerson, Forward, Goto, LeaveOut, NextTask, Retry, Return, Stop
from pipeline.matrix.routing.matrix import BOUNDS, MATRIX
from pipeline.matrix.routing.plain_words import action_words, routed_words
from pipeline.matrix.routing.render import (
    ISSUE_TRANSITIONS,
    as_json,
    blocks,
    bounds_markdown,
    groups,
    issue_lifecycle_mermaid,
    phase7_mermaid,
    pipeline_mermaid,
    refresh,
    table_markdown,
)
from pipeline.outcomes import Outcome, Reason
from pipeline.vocabulary import Loop, Question, Step

if TYPE_CHECKING:
    from collections.abc import Callable

DESIGN = Path(__file__).parents[2] / "DESIGN.md"
NAMES = ["matrix", "bounds", "pipeline", "phase7", "issue-lifecycle"]
MARKS = re.compile(r"^<!-- generated:([\w-]+) -->$", re.MULTILINE)
MEND = (
    'renew DESIGN.md with: python -c "from pathlib import Path; from pipeline.matrix.routing.render import refresh; '
    "p = Path('DESIGN.md'); p.write_text(refresh(p.read_text()))\""
)


def test_the_document_shows_what_the_program_does() -> None:
    text = DESIGN.read_text(encoding="utf-8")
    assert list(blocks()) == NAMES
    assert sorted(MARKS.findall(text)) == sorted(NAMES), "each block is there once"
    assert text == refresh(text), MEND


def test_the_table_has_every_row_of_the_matrix_in_the_order_of_the_phases() -> None:
    lines = table_markdown().splitlines()
    assert lines[0] == "| Phase | Step | Signal source | Signal | Given | Action |"
    assert len(lines) == len(MATRIX) + 2
    assert {line.count("|") for line in lines} == {7}
    phases = [line.strip("| ").split(" | ")[0] for line in lines[2:]]
    order = ["1", "2", "3", "4", "5", "5.5", "6", "6+7", "7", "8", "9", "-", "any"]
    assert phases == sorted(phases, key=order.index)


def test_the_bounds_and_the_groups_for_a_terminal_have_every_loop() -> None:
    loops = [loop.value for loop in BOUNDS]
    assert [line.strip("| ").split(" | ")[0].strip("`") for line in bounds_markdown().splitlines()[2:]] == loops
    *steps, (_, limits) = groups()
    assert sum(len(rows) for _, rows in steps) == len(MATRIX)
    assert [name for name, _ in limits] == loops


def test_every_action_has_words_of_its_own_and_the_way_back_is_named_by_where_one_stands() -> None:
    actions = [
        Goto(Step.PLAN),
        Goto(Step.DIAGNOSE, Question.AMEND),
        Retry(Step.PLAN, Loop.PLAN_REWORK),
        Return(Loop.SCOPE_AMEND),
        Again(Loop.REASK),
        AskPerson(Loop.QUESTIONS),
        LeaveOut(),
        NextTask(),
        Forward(),
        Stop(Outcome.PARKED, Reason.BUDGET),
        Stop(Outcome.FAILED),
    ]
    assert len({routed_words(action, Step.SPLIT) for action in actions}) == len(actions)
    retry = Retry(Step.WRITE_TESTS, Loop.TEST_REWRITE)
    at = (Step.WRITE_TESTS, Step.DIAGNOSE, Step.STUB)
    assert [action_words(retry, step) for step in at] == [
        "WRITE_TESTS (6) again",
        "back to WRITE_TESTS (6)",
        "to WRITE_TESTS (6)",
    ]


def test_the_json_document_has_every_row_and_bound() -> None:
    document = json.loads(json.dumps(as_json()))
    assert document["schema"] == "redfirst.routes/1"
    ids = [row["id"] for row in document["rows"]]
    assert ids == [row.id for row in MATRIX]
    assert len(set(ids)) == len(ids)
    assert [bound["loop"] for bound in document["bounds"]] == [loop.value for loop in BOUNDS]
    seam = next(row for row in document["rows"] if row["id"] == "write-tests/MISSING_SEAM")
    assert seam["action"] == {"do": "Retry", "to": "seam", "loop": "seam", "ask": None}
    assert seam["steps"] == ["write-tests"]
    reask = next(bound for bound in document["bounds"] if bound["loop"] == "reask")
    assert reask["by_role"]["simplify"] == {"do": "LeaveOut"}
    assert document["slots"]["review-plan"] == ["check", "simplify"]
    assert document["gates"]["plan"] == ["APPROVED", "REJECTED_TO_PLAN"]


# --- diagrams --------------------------------------------------------------------------------------------------------

FLOW_NODE = re.compile(r'    (?P<id>\w+)(?:\["[^"]+"\]|\(\["[^"]+"\]\))')
FLOW_EDGE = re.compile(r'    (?P<here>\w+) (?:-->|-\.->)\|"(?P<label>[\w ,().-]+)"\| (?P<there>\w+)')
STATE_NAME = re.compile(r'    state "[\w ,().+-]+" as (?P<id>\w+)')
STATE_EDGE = re.compile(r"    (?P<here>\[\*\]|\w+) --> (?P<there>\[\*\]|\w+)(?:: (?P<label>[\w ,()/.-]+))?")


def test_every_line_of_the_pipeline_is_a_node_or_an_edge_between_nodes() -> None:
    head, *lines = pipeline_mermaid().splitlines()
    assert head == "flowchart TD"
    nodes = {found["id"] for line in lines if (found := FLOW_NODE.fullmatch(line))}
    edges = [found for line in lines if (found := FLOW_EDGE.fullmatch(line))]
    assert len(nodes) + len(edges) == len(lines)
    assert {end for edge in edges for end in (edge["here"], edge["there"])} == nodes


@pytest.mark.parametrize("draw", [phase7_mermaid, issue_lifecycle_mermaid])
def test_every_line_of_a_state_diagram_is_a_name_an_edge_or_a_note(draw: Callable[[], str]) -> None:
    head, *lines = draw().partition("    note right")[0].rstrip().splitlines()
    assert head == "stateDiagram-v2"
    assert all(STATE_NAME.fullmatch(line) or STATE_EDGE.fullmatch(line) for line in lines)


def test_phase_7_names_every_signal_of_its_steps_and_only_states_that_are_declared() -> None:
    lines = phase7_mermaid().splitlines()
    edges = [found for line in lines if (found := STATE_EDGE.fullmatch(line))]
    text = " ".join(edge["label"] or "" for edge in edges)
    within = (Step.STUB, Step.WRITE_TESTS, Step.CHECK_TESTS, Step.SEAM, Step.IMPLEMENT, Step.BUILD, Step.DIAGNOSE)
    for row in MATRIX:
        if row.step in within:
            assert re.search(rf"\b{row.signal}\b", text), row.id
    declared = {found["id"] for line in lines if (found := STATE_NAME.fullmatch(line))}
    assert {end for edge in edges for end in (edge["here"], edge["there"])} - {"[*]"} == declared


def test_the_issue_changes_where_the_matrix_says_so() -> None:
    assert {change.row for change in ISSUE_TRANSITIONS if change.row} <= {row.id for row in MATRIX}


# --- blocks ----------------------------------------------------------------------------------------------------------


def test_a_block_is_renewed_and_the_text_around_it_stays() -> None:
    page = "# Title\n\n<!-- generated:bounds -->\nold\nlines\n<!-- end generated -->\n\nText.\n"
    text = refresh(page)
    assert text == page.replace("old\nlines", bounds_markdown())
    assert refresh(text) == text
    assert refresh(page.replace("old\nlines\n", "")) == text, "an empty one is filled"
    with pytest.raises(LookupError, match="no generated block is called bonds; there are matrix, bounds"):
        refresh(page.replace("generated:bounds", "generated:bonds"))


def test_each_block_ends_at_its_own_marker() -> None:
    page = "".join(f"<!-- generated:{name} -->\n<!-- end generated -->\nbetween\n" for name in blocks())
    assert MARKS.findall(page) == list(blocks())
    assert refresh(page).count("\nbetween\n") == len(blocks())
