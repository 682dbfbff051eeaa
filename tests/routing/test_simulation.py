"""Walking the matrix from a file: strict about what it reads, exact about what it says."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.matrix.routing.simulation import SignalsError, Walk, entries_of, simulate, walk_text, walk_value
from pipeline.matrix.routing.state import Settings
from pipeline.outcomes import Outcome, Reason
from pipeline.vocabulary import Loop, Signal, Step

if TYPE_CHECKING:
    from collections.abc import Sequence

ONE_TASK: list[Any] = [
    "OK",
    "CLAIMED",
    "DRAFTED",
    "ACCEPTABLE",
    {"signal": "DRAFTED", "tasks": [{"id": "1"}]},
    "ACCEPTABLE",
]

ANY_DISPATCH = "MALFORMED, VIOLATION, TIMED_OUT, UNAVAILABLE, BUDGET, ESCAPE, CANCELLED, ENV_BROKEN"


def walk(*entries: Any, run: Settings | None = None) -> Walk:
    return simulate(json.dumps(list(entries)), run)


def refused(*entries: Any) -> SignalsError:
    with pytest.raises(SignalsError) as caught:
        walk(*entries)
    return caught.value


def test_tasks_side_by_side_report_by_their_names() -> None:
    split = {"signal": "DRAFTED", "tasks": [{"id": "1"}, {"id": "2"}, {"id": "3", "depends_on": ["1"]}]}
    begun = [*ONE_TASK[:4], split, "ACCEPTABLE"]
    run = Settings(parallel=2)
    walked = walk(*begun, run=run)
    assert walked.value["side_by_side"] == ["1", "2"]
    assert "The run waits in WRITE_TESTS (6) of task 1 for one of:" in walk_text(walked)
    other = [{"signal": word, "task": "2"} for word in ("RED", "GREEN")]
    assert walk(*begun, *other, run=run).value["side_by_side"] == ["1"], "task 2 waits for its turn"
    first = [{"signal": word, "task": "1"} for word in ("RED", "GREEN", "ACCEPTED")]
    walked = walk(*begun, *other, *first, {"signal": "REGRESSION", "task": "2"}, run=run)
    assert walk_value(walked)["side_by_side"] == ["2", "3"]
    assert "task_redo 1/1" in walk_text(walked)
    last = [*({"signal": word, "task": "2"} for word in ("GREEN", "ACCEPTED")), "RED", "GREEN", "ACCEPTED"]
    done = walk(*begun, *other, *first, {"signal": "REGRESSION", "task": "2"}, *last, run=run)
    assert (done.state.trunk.step, done.state.accepted) == (Step.FINAL_REVIEW, ("1", "2", "3"))
    with pytest.raises(SignalsError, match="task 3 reports nothing now; only: 1, 2") as caught:
        walk(*begun, {"signal": "RED", "task": "3"}, run=run)
    assert caught.value.pointer == "/6/task"


# --- reading ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        '["OK", {"signal": "CLAIMED", "note": "n"}]',
        "- OK\n- signal: CLAIMED\n  note: n\n",
        "[OK, {signal: CLAIMED, note: n}]",
    ],
    ids=["json", "yaml", "flow"],
)
def test_yaml_and_json_say_the_same(text: str) -> None:
    assert entries_of(text) == [{"signal": "OK"}, {"signal": "CLAIMED", "note": "n"}]


@pytest.mark.parametrize(
    ("text", "message", "pointer"),
    [
        ("{OK", "This is neither YAML nor JSON", ""),
        ("OK", "Expected a list of signals", ""),
        ("", "Expected a list of signals", ""),
        ("{signal: OK}", "Expected a list of signals", ""),
        ("[OK, 7]", "Entry 2: Input should be a valid dictionary", "/1"),
        ("[{role: check}]", "Entry 1, signal: Field required", "/0/signal"),
        ("[OK, {signal: CLAIMED, roel: pm}]", "Entry 2, roel: Extra inputs are not permitted", "/1/roel"),
        ("[{signal: OK, role: chek}]", "Entry 1, role: Input should be 'orchestrator', 'check'", "/0/role"),
        ("[{signal: OK, tasks: [{id: 1}]}]", "Entry 1, tasks.0.id: Input should be a valid string", "/0/tasks/0/id"),
    ],
)
def test_a_malformed_file_is_refused_with_its_place(text: str, message: str, pointer: str) -> None:
    with pytest.raises(SignalsError) as caught:
        simulate(text)
    assert message in str(caught.value)
    assert caught.value.pointer == pointer


# --- walking ---------------------------------------------------------------------------------------------------------


def test_trees_that_are_left_out_get_names() -> None:
    state = walk(*ONE_TASK, "RED", {"signal": "NOT_GREEN", "tree": "mine"}).state
    assert (state.task.red, state.task.candidate) == ("tree-7", "mine")


CIRCLE = {"signal": "DRAFTED", "tasks": [{"id": "1", "depends_on": ["2"]}, {"id": "2", "depends_on": ["1"]}]}


@pytest.mark.parametrize(
    ("entries", "pointer", "message"),
    [
        (
            ["OK", "CLAIMED", "DRAFTED", "MALFORMED"],
            "/3",
            "Entry 4: MALFORMED must name a slot of review-plan that is still asked: check, simplify.",
        ),
        (
            ["OK", "CLAIMED", {"signal": "DRAFTED", "role": "make"}],
            "/2/role",
            "Entry 3: PLAN (3) does not ask make, only: orchestrator.",
        ),
        (
            ["OK", "CLAIMED", "DRAFTED", "ACEPTABLE"],
            "/3/signal",
            "Entry 4: REVIEW_PLAN (4) cannot take ACEPTABLE, only: ACCEPTABLE, CONVERGED, NEEDS_WORK",
        ),
        ([*ONE_TASK[:4], "DRAFTED"], "/4/tasks", 'Entry 5: the split needs its tasks, for example tasks: [{id: "1"}].'),
        ([*ONE_TASK[:4], CIRCLE], "/4", "Entry 5: tasks wait for each other"),
        (["PRECONDITION"], "/0", "Entry 1: PRECONDITION in sanity must say its reason."),
        (["OK", "NOT_FOUND", "CLAIMED"], "/2/signal", "Entry 3: CLAIMED comes after the run has ended as rejected; it"),
        ([*ONE_TASK, "ENV_BROKEN", "RED"], "/7/signal", "the run is parked and cannot take RED, only: RESUMED"),
    ],
)
def test_an_entry_that_cannot_be_taken_is_refused_with_its_place(
    entries: list[Any], pointer: str, message: str
) -> None:
    error = refused(*entries)
    assert (error.pointer, message in str(error)) == (pointer, True), error


def test_what_is_misspelt_is_told_with_what_is_near() -> None:
    error = refused("OK", "CLAIMED", "DRAFTED", "ACEPTABLE")
    assert str(error).endswith("Did you mean ACCEPTABLE?")
    assert error.accepted[:2] == ("ACCEPTABLE", "CONVERGED")


def test_a_parked_run_goes_on_only_when_it_is_resumed() -> None:
    parked: Sequence[Any] = [*ONE_TASK, "ENV_BROKEN"]
    assert walk(*parked).waits_for == ("RESUMED",)
    state = walk(*parked, "RESUMED", "RED").state
    assert (state.trunk.step, state.resumes) == (Step.IMPLEMENT, 1)


def test_a_gate_waits_for_a_person() -> None:
    run = Settings(gates=frozenset({"plan"}))
    walked = walk(*ONE_TASK[:4], run=run)
    assert walked.waits_for == ("APPROVED", "REJECTED_TO_PLAN")
    assert walk(*ONE_TASK[:4], "APPROVED", run=run).state.trunk.step is Step.SPLIT


def test_blockers_are_on_record_at_the_end() -> None:
    entries: list[Any] = [
        "OK",
        "CLAIMED",
        "DRAFTED",
        {"signal": "CONVERGED", "role": "check", "blockers": ["plan-2-01"]},
    ]
    walked = walk(*entries, *ONE_TASK[4:], "RED", "GREEN", "ACCEPTABLE", "PUBLISHED")
    assert walked.state.outcome is Outcome.COMPLETED_WITH_BLOCKERS
    assert walk_value(walked)["blockers"] == ["plan-2-01"]


def test_dispatches_are_counted_as_slots_that_are_asked() -> None:
    assert walk("OK", "CLAIMED").state.dispatches == 1
    assert walk("OK", "CLAIMED", "MALFORMED").state.dispatches == 2
    assert walk("OK", "CLAIMED", "DRAFTED").state.dispatches == 3  # two reviewers
    left_out = {"signal": "MALFORMED", "role": "simplify"}
    assert walk("OK", "CLAIMED", "DRAFTED", left_out).state.dispatches == 4
    assert walk("OK", "CLAIMED", "DRAFTED", left_out, left_out).state.dispatches == 4
    done = walk(*ONE_TASK, "RED", "GREEN", "ACCEPTABLE", "PUBLISHED")
    assert (done.state.outcome, done.state.reason, done.waits_for) == (Outcome.COMPLETED, Reason.DONE, ())
    assert done.state.dispatches == 9


# --- what it says ----------------------------------------------------------------------------------------------------


def test_each_decision_is_told_with_its_row_what_it_paid_and_its_effects() -> None:
    run = Settings(limits={Loop.PLAN_REVIEW: 2}, gates=frozenset({"plan"}))
    text = walk_text(walk("OK", "CLAIMED", "DRAFTED", "NEEDS_WORK", "DRAFTED", "BLOCK", "APPROVED", run=run))
    assert text.splitlines() == [
        "  1  SANITY (1)  OK: to ISSUE (2)",
        "     row sanity/OK",
        "  2  ISSUE (2)  CLAIMED: to PLAN (3)",
        "     row issue/CLAIMED",
        "  3  PLAN (3)  DRAFTED: to REVIEW_PLAN (4)",
        "     row plan/DRAFTED",
        "  4  REVIEW_PLAN (4)  NEEDS_WORK: back to PLAN (3)",
        "     row review-plan/NEEDS_WORK; plan_review 1/1",
        "  5  PLAN (3)  DRAFTED: to REVIEW_PLAN (4)",
        "     row plan/DRAFTED",
        "  6  REVIEW_PLAN (4)  BLOCK: to SPLIT (5)",
        "     row review-plan/BLOCK; plan_review used up",
        "     gate_opened gate=plan",
        "     run_parked outcome=parked reason=approval",
        "  7  GATE  APPROVED: go on where the gate stood: SPLIT (5)",
        "     row gate/APPROVED",
        "",
        f"The run waits in SPLIT (5) for one of: BASELINE_IMPOSSIBLE, DRAFTED, HYGIENE, QUESTION, {ANY_DISPATCH}.",
        "Dispatches: at most 7/30.",
    ]


def test_a_task_is_named_where_there_is_one() -> None:
    lines = walk_text(walk(*ONE_TASK, "NEEDS_FILE", "AMENDED", "CANCELLED", "RESUMED")).splitlines()
    assert "  6  REVIEW_SPLIT (5.5)  ACCEPTABLE: next task: WRITE_TESTS (6) task 1" in lines
    assert "  8  DIAGNOSE (7) task 1  AMENDED: back to the step that asked: WRITE_TESTS (6) task 1" in lines
    assert " 10  WRITE_TESTS (6)  RESUMED" in lines


def test_the_end_is_told_with_its_exit_code() -> None:
    failed = walk_text(walk("OK", "CLAIMED", "ESCAPE", "HANDLED"))
    assert "Outcome: failed (escape), exit 6." in failed
    assert "waits" not in failed
    parked = walk_text(walk("OK", "CLAIMED", "BUDGET"))
    assert "Outcome: parked (budget), exit 5.\nThe run waits in PLAN (3) for one of: RESUMED." in parked


def test_more_dispatches_than_the_limit_are_pointed_out() -> None:
    run = Settings(limits={Loop.DISPATCHES: 2})
    assert "at most 3/2. A run that needs them all is parked" in walk_text(walk("OK", "CLAIMED", "DRAFTED", run=run))
    assert walk_text(walk("OK", "CLAIMED", run=run)).endswith("at most 1/2.")


def test_the_document_says_the_same() -> None:
    value = json.loads(json.dumps(walk_value(walk(*ONE_TASK, "ILLEGAL_RED", "CANCELLED", "RESUMED", "RED"))))
    assert (value["schema"], value["ok"]) == ("redfirst.simulation/1", True)
    rewritten = value["decisions"][6]
    assert rewritten == {
        "number": 7,
        "signal": "ILLEGAL_RED",
        "step": "write-tests",
        "phase": "6",
        "task": "1",
        "row": "write-tests/ILLEGAL_RED",
        "action": {"do": "Retry", "to": "write-tests", "loop": "test_rewrite", "ask": None},
        "words": "WRITE_TESTS (6) again",
        "counters": {"test_rewrite@task 1": 1},
        "exhausted": [],
        "effects": [],
    }
    assert value["decisions"][7]["effects"] == [{"kind": "run_parked", "outcome": "cancelled", "reason": "interrupted"}]
    assert value["decisions"][8] == {"number": 9, "signal": "RESUMED", "step": "write-tests", "phase": "6"}
    assert (value["step"], value["task"], value["outcome"], value["exit_code"]) == ("implement", "1", None, None)
    assert value["dispatches"] == {"at_most": 8, "limit": 40}


def test_the_documents_end_has_outcome_and_exit_code() -> None:
    value = walk_value(walk("OK", "NOT_FOUND"))
    assert (value["outcome"], value["reason"], value["exit_code"], value["waits_for"]) == (
        "rejected",
        "issue_not_found",
        2,
        [],
    )


WORDS = st.sampled_from([*(signal.value for signal in Signal), "RESUMED"])


@given(
    st.lists(
        st.one_of(WORDS, st.fixed_dictionaries({"signal": WORDS, "role": st.sampled_from(["check", "make"])})),
        max_size=6,
    )
)
def test_any_list_of_signals_is_walked_or_refused_in_words(entries: list[Any]) -> None:
    try:
        walked = walk(*entries)
    except SignalsError as error:
        assert str(error).startswith("Entry ")  # noqa: PT017  (either of two outcomes is right)
    else:
        assert len(walked.taken) == len(entries)
        assert walk_text(walked)
