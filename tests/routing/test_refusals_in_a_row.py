"""A role whose answers do not count, three in a row, or the same bytes twice: the run parks before all is paid."""

from __future__ import annotations

import pytest
from routing.walks import at_first_task, begin, event, walk, walk_with_decisions

from pipeline.matrix.routing.advance import MatrixMachine
from pipeline.matrix.routing.lookup import limit_of, why_unusable
from pipeline.matrix.routing.state import EVERYBODY, Event, NewTask, RunState, Settings
from pipeline.outcomes import Outcome, Reason
from pipeline.vocabulary import Loop, Role, Signal, Step

UNUSABLE = (Outcome.PARKED, Reason.AGENT_UNUSABLE)
AGAIN = "PRODUCTION_LOGIC"


def refused(state: RunState, *said: str) -> RunState:
    """The state after these; `VIOLATION@make#1` is one whose refusal is called 1."""
    for word in " ".join(said).split():
        name, _, refusal = word.partition("#")
        state = walk(state, event(name, refusal=refusal or None))
    return state


@pytest.mark.parametrize(
    ("words", "role"),
    [
        (f"RED=r VIOLATION@make MALFORMED@make {AGAIN} TIMED_OUT@make", Role.MAKE),
        (f"MALFORMED@test MALFORMED@test {AGAIN} VIOLATION@test", Role.TEST),
    ],
)
def test_three_answers_in_a_row_that_do_not_count_park_the_run(words: str, role: Role) -> None:
    state, decisions = walk_with_decisions(at_first_task(), words)
    assert (state.outcome, state.reason, decisions[-1].exhausted) == (*UNUSABLE, (Loop.UNUSABLE,))
    before = walk(at_first_task(), words.rpartition(" ")[0])
    assert why_unusable(before, role, Signal.TIMED_OUT, None) == f"3 dispatches of @{role.value} in a row did not count"


def test_an_answer_that_counts_ends_the_row_whatever_is_measured_of_it() -> None:
    state = walk(at_first_task(), f"RED=r VIOLATION@make MALFORMED@make {AGAIN} NOT_GREEN TEST_DESIGN RED=s")
    assert walk(state, "VIOLATION@make").outcome is None


def test_what_another_role_says_between_ends_no_row() -> None:
    state = walk(at_first_task(), f"RED=r VIOLATION@make VIOLATION@make MALFORMED@check {AGAIN}")
    assert (state.outcome, walk(state, "VIOLATION@make").reason) == (None, Reason.AGENT_UNUSABLE)


@pytest.mark.parametrize("between", ["UNAVAILABLE", "ENV_BROKEN", "BUDGET", "CANCELLED"])
def test_what_says_nothing_of_an_answer_ends_no_row_and_a_resumed_run_begins_a_new_one(between: str) -> None:
    state = walk(at_first_task(), f"RED=r VIOLATION@make VIOLATION@make {AGAIN}", between)
    assert state.refused or state.counters
    resumed = MatrixMachine("start", Settings()).resume(state)
    assert walk(resumed, "VIOLATION@make").outcome is None


def test_the_same_bytes_refused_the_same_way_are_not_asked_for_a_third_time() -> None:
    state = refused(at_first_task(), "RED=r VIOLATION@make#1")
    assert why_unusable(state, Role.MAKE, Signal.VIOLATION, "1") is not None
    same = refused(state, "VIOLATION@make#1")
    assert (same.outcome, same.reason) == UNUSABLE
    other = refused(state, "VIOLATION@make#2")
    assert (other.outcome, other.trunk.step) == (None, Step.DIAGNOSE)
    assert refused(other, AGAIN, "VIOLATION@make#1").reason is Reason.AGENT_UNUSABLE


def test_what_was_refused_before_an_answer_that_counted_is_forgotten() -> None:
    state = refused(at_first_task(), "RED=r VIOLATION@make#1 NOT_GREEN", AGAIN, "VIOLATION@make#1")
    assert (state.outcome, state.trunk.step) == (None, Step.IMPLEMENT)


def test_a_draft_that_comes_again_as_it_was_is_not_asked_for_again() -> None:
    state = refused(begin(), "OK CLAIMED HYGIENE#1 HYGIENE#1")
    assert (state.outcome, state.reason) == UNUSABLE
    differs = refused(begin(), "OK CLAIMED HYGIENE#1 HYGIENE#2 HYGIENE#3")
    assert differs.trunk.step is Step.FAILURE  # drafts that differ have the bound of their own


def test_simplify_is_left_out_of_each_review_at_once_when_it_was_refused_three_times() -> None:
    words = "MALFORMED@simplify MALFORMED@simplify NEEDS_WORK DRAFTED MALFORMED@simplify"
    state = walk(begin(), "OK CLAIMED DRAFTED", words)
    assert (state.outcome, state.trunk.left_out) == (None, frozenset({Role.SIMPLIFY}))


def test_the_limit_is_configured_as_the_number_of_dispatches() -> None:
    once = begin({Loop.UNUSABLE: 1, Loop.REASK: 5})
    assert limit_of(once, Loop.UNUSABLE) == 0
    assert walk(once, "OK CLAIMED MALFORMED@orchestrator").reason is Reason.AGENT_UNUSABLE
    four = begin({Loop.UNUSABLE: 4, Loop.REASK: 5})
    assert walk(four, "OK CLAIMED", "MALFORMED@orchestrator " * 3).outcome is None


def test_tasks_side_by_side_have_rows_of_their_own() -> None:
    specs = tuple(NewTask(id=name, after=()) for name in ("1", "2", "3"))
    state = MatrixMachine("start", Settings(parallel=3, phases=EVERYBODY)).initial()
    state = walk(state, "OK CLAIMED DRAFTED ACCEPTABLE", Event(signal=Signal.DRAFTED, tasks=specs), "ACCEPTABLE")
    for name in ("1", "2", "3"):
        state = walk(state, event("MALFORMED@test", lane=f"task-{name}", refusal="x"))
    assert state.outcome is None
    state = walk(state, event("MALFORMED@test", lane="task-2", refusal="x"))
    assert (state.outcome, state.reason) == UNUSABLE
