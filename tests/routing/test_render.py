"""The matrix in print: complete, in the seed's order, and valid Markdown and Mermaid."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest

from pipeline.outcomes import Outcome, Reason
from pipeline.routing.actions import Again, AskPerson, Forward, Goto, LeaveOut, NextTask, Retry, Return, Stop
from pipeline.routing.matrix import BOUNDS, MATRIX
from pipeline.routing.render import (
    ISSUE_TRANSITIONS,
    as_json,
    block_names,
    blocks,
    bounds_markdown,
    groups,
    issue_lifecycle_mermaid,
    phase7_mermaid,
    pipeline_mermaid,
    refresh,
    table_markdown,
)
from pipeline.routing.vocabulary import Loop, Question, Step
from pipeline.routing.words import action_words, routed_words

if TYPE_CHECKING:
    from collections.abc import Callable


def rows_of(markdown: str) -> list[list[str]]:
    """The cells of a Markdown table, without head and rule."""
    return [line.strip("| ").split(" | ") for line in markdown.splitlines()[2:]]


def cells(step: str, signal: str) -> list[str]:
    """The cells of the one row without a given."""
    found = [
        line
        for line in (re.split(r" ?\| ?", text)[1:-1] for text in table_markdown().splitlines())
        if line[1] == step and line[3].startswith(f"`{signal}`") and not line[4]
    ]
    assert len(found) == 1
    return found[0]


def test_the_table_has_every_row_of_the_matrix_with_six_cells() -> None:
    lines = table_markdown().splitlines()
    assert lines[0] == "| Phase | Step | Signal source | Signal | Given | Action |"
    assert len(lines) == len(MATRIX) + 2
    assert {line.count("|") for line in lines} == {7}


def test_the_table_is_in_the_order_of_the_seeds_phases() -> None:
    phases = [cell[0] for cell in rows_of(table_markdown())]
    assert list(dict.fromkeys(phases)) == ["1", "2", "3", "4", "5", "5.5", "6", "6+7", "7", "8", "9", "-", "any"]
    assert all(
        phases.index(phase) + phases.count(phase) - 1 == len(phases) - 1 - phases[::-1].index(phase) for phase in phases
    )


@pytest.mark.parametrize(
    ("step", "signal", "action"),
    [
        ("SANITY", "OK", "to ISSUE (2)"),
        ("SANITY", "PRECONDITION", "stop: rejected"),
        ("ISSUE", "CLAIMED_ELSEWHERE", "stop: rejected (claimed_elsewhere)"),
        ("PLAN", "HYGIENE", "PLAN (3) again, at most 2 per draft, then FAILURE"),
        (
            "REVIEW_PLAN",
            "NEEDS_WORK",
            "back to PLAN (3), at most 3 reviews per plan revision, then SPLIT (5), blockers on record",
        ),
        ("REVIEW_SPLIT", "BLOCK", "back to PLAN (3), at most 2 per run, then FAILURE"),
        ("WRITE_TESTS", "MISSING_SEAM", "to SEAM (6), at most 1 per task, then CHECK_TESTS (6), question not_testable"),
        ("SEAM", "SEAM_DONE", "to WRITE_TESTS (6)"),
        (
            "IMPLEMENT",
            "GREEN",
            "next task, after the last FINAL_REVIEW (8); of tasks side by side first INTEGRATE (7)",
        ),
        ("IMPLEMENT", "NEEDS_FILE", "to DIAGNOSE (7), question amend"),
        (
            "DIAGNOSE",
            "PRODUCTION_LOGIC",
            "back to IMPLEMENT (7), at most 1 per task and red tree, then WRITE_TESTS (6) by test_design",
        ),
        ("DIAGNOSE", "AMENDED", "back to the step that asked, at most 2 per task, then SPLIT (5) by split_rework"),
        ("GATE", "APPROVED", "go on where the gate stood"),
        ("GATE", "REJECTED_TO_PLAN", "back to PLAN (3), as often as a person asks"),
        (
            "any",
            "MALFORMED",
            (
                "ask the same slot again, at most 1 per slot, then make, test: DIAGNOSE (7), question diagnose; "
                "simplify: left out; others: parked (agent_unusable)"
            ),
        ),
    ],
)
def test_a_cell_says_where_how_often_and_what_then(step: str, signal: str, action: str) -> None:
    assert cells(step, signal)[-1] == action


def test_the_same_signal_is_told_apart_by_what_is_given() -> None:
    published = [line for line in table_markdown().splitlines() if "`PUBLISHED`" in line]
    assert [re.split(r" ?\| ?", line)[5] for line in published] == [
        "",
        "blockers on record",
        "every task was done already",
    ]


def test_the_bounds_table_has_every_loop() -> None:
    found = {line[0]: line[1:] for line in rows_of(bounds_markdown())}
    assert list(found) == [f"`{loop}`" for loop in BOUNDS]
    assert found["`plan_review`"] == ["3 reviews per plan revision", "SPLIT (5), blockers on record"]
    assert found["`dispatches`"] == ["30 per run, and 10 more per task of the present split", "parked (budget)"]
    assert found["`human`"] == ["unbounded: each turn costs a person's act", "never"]


def test_the_groups_for_a_terminal_have_every_row_and_every_limit() -> None:
    *steps, (_, limits) = groups()
    assert sum(len(rows) for _, rows in steps) == len(MATRIX)
    assert [name for name, _ in limits] == [loop.value for loop in BOUNDS]
    assert dict(steps)["PLAN (3)"][1] == ("HYGIENE", "PLAN (3) again, limit hygiene")
    assert dict(limits)["hygiene"] == "2 per draft, then FAILURE"


def test_every_action_has_words_of_its_own() -> None:
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
    words = [routed_words(action, Step.SPLIT) for action in actions]
    assert len(set(words)) == len(words)


def test_the_way_back_is_named_by_where_one_stands() -> None:
    retry = Retry(Step.WRITE_TESTS, Loop.TEST_REWRITE)
    assert action_words(retry, Step.WRITE_TESTS) == "WRITE_TESTS (6) again"
    assert action_words(retry, Step.DIAGNOSE) == "back to WRITE_TESTS (6)"
    assert action_words(retry, Step.STUB) == "to WRITE_TESTS (6)"


# --- as a document ---------------------------------------------------------------------------------------------------


def test_the_document_has_every_row_and_bound_and_survives_json() -> None:
    document = json.loads(json.dumps(as_json()))
    assert document["schema"] == "redfirst.routes/1"
    assert [row["id"] for row in document["rows"]] == [row.id for row in MATRIX]
    assert [bound["loop"] for bound in document["bounds"]] == [loop.value for loop in BOUNDS]
    seam = next(row for row in document["rows"] if row["id"] == "write-tests/MISSING_SEAM")
    assert seam["action"] == {"do": "Retry", "to": "seam", "loop": "seam", "ask": None}
    assert seam["steps"] == ["write-tests"]
    reask = next(bound for bound in document["bounds"] if bound["loop"] == "reask")
    assert reask["by_role"]["simplify"] == {"do": "LeaveOut"}
    assert document["slots"]["review-plan"] == ["check", "simplify"]
    assert document["gates"]["plan"] == ["APPROVED", "REJECTED_TO_PLAN"]


def test_row_ids_are_unique() -> None:
    assert len({row.id for row in MATRIX}) == len(MATRIX)


# --- diagrams --------------------------------------------------------------------------------------------------------

FLOW_NODE = re.compile(r'    (?P<id>\w+)(?:\["[^"]+"\]|\(\["[^"]+"\]\))')
FLOW_EDGE = re.compile(r'    (?P<here>\w+) (?:-->|-\.->)\|"(?P<label>[\w ,().-]+)"\| (?P<there>\w+)')
STATE_NAME = re.compile(r'    state "[\w ,().+-]+" as (?P<id>\w+)')
STATE_EDGE = re.compile(r"    (?P<here>\[\*\]|\w+) --> (?P<there>\[\*\]|\w+)(?:: (?P<label>[\w ,()/.-]+))?")


def flow_edges(diagram: str) -> set[tuple[str, str, str]]:
    found = (FLOW_EDGE.fullmatch(line) for line in diagram.splitlines())
    return {(edge["here"], edge["there"], edge["label"]) for edge in found if edge}


def state_edges(diagram: str) -> dict[tuple[str, str], str]:
    found = (STATE_EDGE.fullmatch(line) for line in diagram.splitlines())
    return {(edge["here"], edge["there"]): edge["label"] or "" for edge in found if edge}


def test_every_line_of_the_pipeline_is_a_node_or_an_edge_between_nodes() -> None:
    head, *lines = pipeline_mermaid().splitlines()
    assert head == "flowchart TD"
    nodes = {found["id"] for line in lines if (found := FLOW_NODE.fullmatch(line))}
    edges = [found for line in lines if (found := FLOW_EDGE.fullmatch(line))]
    assert len(nodes) + len(edges) == len(lines)
    assert {end for edge in edges for end in (edge["here"], edge["there"])} == nodes


def test_the_pipeline_shows_the_seeds_arrows() -> None:
    edges = flow_edges(pipeline_mermaid())
    assert {
        ("P1", "P2", "OK"),
        ("P2", "P3", "CLAIMED"),
        ("P3", "P4", "DRAFTED"),
        ("P4", "P5", "ACCEPTABLE, CONVERGED, NOT_ASKED"),
        ("P4", "P3", "NEEDS_WORK, BLOCK"),
        ("P4", "P5", "plan_review used up"),
        ("P55", "P3", "BLOCK"),
        ("P55", "P5", "NEEDS_WORK"),
        ("P6", "P7", "RED, TESTS_KEPT, ACCEPTABLE and 1 more"),
        ("P7", "P8", "GREEN, last task, GREEN_INCOMPLETE, last task, ACCEPTED, last task"),
        ("P7D", "P3", "SPEC (asked by BUILD), SPLIT_NEEDED (asked by BUILD), PLAN"),
        ("P2", "P7", "CLAIMED (one writer)"),
        ("P8", "P9", "ACCEPTABLE, CONVERGED"),
        ("P8", "P5", "FIX, PROVED"),
        ("P8", "P3", "PLAN"),
        ("P9", "DONE", "PUBLISHED, PUBLISHED (blockers on record), PUBLISHED (every task was done already)"),
    } <= edges
    assert any(here == "P7D" and there == "P3" and "test_design used up" in label for here, there, label in edges)


@pytest.mark.parametrize("draw", [phase7_mermaid, issue_lifecycle_mermaid])
def test_every_line_of_a_state_diagram_is_a_name_an_edge_or_a_note(draw: Callable[[], str]) -> None:
    head, *lines = draw().partition("    note right")[0].rstrip().splitlines()
    assert head == "stateDiagram-v2"
    assert all(STATE_NAME.fullmatch(line) or STATE_EDGE.fullmatch(line) for line in lines)


def test_phase_7_names_every_signal_of_its_steps() -> None:
    text = " ".join(state_edges(phase7_mermaid()).values())
    within = (Step.STUB, Step.WRITE_TESTS, Step.CHECK_TESTS, Step.SEAM, Step.IMPLEMENT, Step.BUILD, Step.DIAGNOSE)
    for row in MATRIX:
        if row.step in within:
            assert re.search(rf"\b{row.signal}\b", text), row.id


def test_phase_7_shows_the_way_from_a_stuck_make_to_new_tests_and_to_the_plan() -> None:
    edges = state_edges(phase7_mermaid())
    assert "INCOMPLETE" in edges["Implement", "Diagnose"]
    assert "PRODUCTION_LOGIC" in edges["Diagnose", "Implement"]
    assert "make_retry used up" in edges["Diagnose", "WriteTests"]
    assert "test_design used up" in edges["Diagnose", "Plan"]
    assert edges["Implement", "Next"] == "GREEN, GREEN_INCOMPLETE, unnoticed_faults used up"


def test_phase_7_names_only_states_that_are_declared() -> None:
    declared = {found["id"] for line in phase7_mermaid().splitlines() if (found := STATE_NAME.fullmatch(line))}
    used = {end for edge in state_edges(phase7_mermaid()) for end in edge} - {"[*]"}
    assert used == declared


def test_the_issue_changes_where_the_matrix_says_so() -> None:
    ids = {row.id for row in MATRIX}
    assert {change.row for change in ISSUE_TRANSITIONS if change.row} <= ids
    edges = state_edges(issue_lifecycle_mermaid())
    assert {("[*]", "Todo"), ("Todo", "InProgress"), ("InProgress", "Done"), ("InProgress", "Todo")} <= set(edges)


# --- blocks ----------------------------------------------------------------------------------------------------------

PAGE = "# Title\n\n<!-- generated:bounds -->\nold\nlines\n<!-- end generated -->\n\nText.\n"


def test_a_block_is_renewed_and_the_text_around_it_stays() -> None:
    text = refresh(PAGE)
    assert text.startswith("# Title\n\n<!-- generated:bounds -->\n| Loop |")
    assert text.endswith("|\n<!-- end generated -->\n\nText.\n")
    assert refresh(text) == text


def test_an_empty_block_is_filled() -> None:
    text = refresh("<!-- generated:bounds -->\n<!-- end generated -->\n")
    assert text == f"<!-- generated:bounds -->\n{bounds_markdown()}\n<!-- end generated -->\n"


def test_each_block_ends_at_its_own_marker() -> None:
    page = "".join(f"<!-- generated:{name} -->\n<!-- end generated -->\nbetween\n" for name in blocks())
    assert block_names(page) == list(blocks())
    assert refresh(page).count("\nbetween\n") == len(blocks())


def test_a_block_that_does_not_exist_is_an_error() -> None:
    with pytest.raises(LookupError, match="no generated block is called bonds; there are matrix, bounds"):
        refresh(PAGE.replace("generated:bounds", "generated:bonds"))
