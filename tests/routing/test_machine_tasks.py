"""The queue of tasks: order, beginnings, fix tasks, rework of the split (matrix 1, NextTask)."""

from __future__ import annotations

import pytest
from routing.walks import TO_SPLIT, at_first_task, begin, event, walk, walk_with_decisions

from pipeline.matrix.routing.advance import advance
from pipeline.matrix.routing.state import Event, NewTask, RunState
from pipeline.outcomes import Outcome, Reason
from pipeline.vocabulary import Loop, Question, Signal, Step

ONE = "ACCEPTABLE DRAFTED:1 ACCEPTABLE"
OPEN_SPLIT = "ACCEPTABLE DRAFTED:1 CONVERGED!split-2-01"


def order(state: RunState) -> list[str]:
    return [*([state.current] if state.current else []), *state.queue]


def drafted(*specs: NewTask) -> Event:
    return Event(signal=Signal.DRAFTED, tasks=specs)


@pytest.mark.parametrize(
    ("depends_on", "expected"),
    [({}, "1 2 3 4"), ({"1": ("3",), "3": ("2",)}, "2 3 1 4")],
)
def test_tasks_come_in_the_order_of_the_split_and_wait_for_what_they_depend_on(
    depends_on: dict[str, tuple[str, ...]], expected: str
) -> None:
    specs = (NewTask(id=name, depends_on=depends_on.get(name, ())) for name in "1234")
    assert order(at_first_task(*specs)) == expected.split()


def test_done_tasks_are_listed_in_the_order_in_which_they_were_accepted() -> None:
    state = at_first_task(NewTask(id="1", depends_on=("2",)), NewTask(id="2"))
    state = walk(state, "RED=r2 GREEN=c2 RED=r1 GREEN=c1 FIX DRAFTED:fix-1 RED=rf GREEN=cf")
    assert [(task.id, task.candidate) for task in state.done_tasks] == [("2", "c2"), ("1", "c1"), ("fix-1", "cf")]


@pytest.mark.parametrize(
    "specs",
    [
        (NewTask(id="1", depends_on=("2",)), NewTask(id="2", depends_on=("1",))),
        (NewTask(id="1", depends_on=("1",)),),
        (NewTask(id="1", depends_on=("9",)),),
    ],
    ids=["circle", "itself", "unknown"],
)
def test_tasks_that_can_never_begin_are_refused(specs: tuple[NewTask, ...]) -> None:
    state = walk(begin(), "OK CLAIMED DRAFTED ACCEPTABLE")
    with pytest.raises(ValueError, match="tasks wait for"):
        advance(state, drafted(*specs))


def test_a_new_split_may_depend_on_done_tasks_but_not_on_dropped_ones() -> None:
    state = walk(at_first_task("1", "2"), "RED=r1 GREEN=c1 BLOCKED SPEC")
    assert order(walk(state, drafted(NewTask(id="3", depends_on=("1",))), "ACCEPTABLE")) == ["3"]
    with pytest.raises(ValueError, match="tasks wait for"):
        advance(state, drafted(NewTask(id="3", depends_on=("2",))))


@pytest.mark.parametrize(
    ("spec", "step", "ask"),
    [
        (NewTask(id="1"), Step.WRITE_TESTS, None),
        (NewTask(id="1", stub_first=True), Step.STUB, None),
        (NewTask(id="1", evidence="regression"), Step.CHECK_TESTS, Question.NOT_TESTABLE),
        (NewTask(id="1", evidence="regression", stub_first=True), Step.STUB, None),
    ],
    ids=["red", "stub-first", "regression", "regression with new symbols"],
)
def test_how_a_task_begins(spec: NewTask, step: Step, ask: Question | None) -> None:
    state = at_first_task(spec)
    assert (state.trunk.step, state.trunk.ask, state.trunk.origin) == (step, ask, None)


def test_a_task_that_begins_with_a_judgement_was_not_asked_by_the_task_before() -> None:
    state = walk(at_first_task("1", NewTask(id="2", evidence="regression")), "RED=r1 GREEN=c1")
    assert (state.trunk.step, state.current, state.trunk.origin, state.trunk.in_question) == (
        Step.CHECK_TESTS,
        "2",
        None,
        None,
    )
    assert walk(state, "ACCEPTABLE").task.red == "c1"


def test_the_last_task_is_followed_by_the_final_review() -> None:
    state, decisions = walk_with_decisions(at_first_task("1", "2"), "RED=r1 GREEN=c1 RED=r2 GREEN=c2")
    assert (state.trunk.step, state.current) == (Step.FINAL_REVIEW, None)
    done = [(effect.kind, dict(effect.data)) for decision in decisions for effect in decision.effects]
    assert done == [
        ("task_done", {"task": "1", "status": "done"}),
        ("task_done", {"task": "2", "status": "done"}),
    ]


def test_effects_have_ids_of_their_own() -> None:
    _, decisions = walk_with_decisions(at_first_task("1", "2"), "RED=r1 GREEN=c1 RED=r2 GREEN=c2 ACCEPTABLE PUBLISHED")
    ids = [effect.id for decision in decisions for effect in decision.effects]
    assert ids == ["e1", "e2", "e3"]


# --- already done ----------------------------------------------------------------------------------------------------


def test_when_all_is_done_already_only_the_tracker_is_published() -> None:
    done = "PASSES_ALREADY=t ALREADY_DONE"
    state = walk(at_first_task("1", "2"), done, done)
    assert state.trunk.step is Step.FINAL_REVIEW, "one word of a judgement closes no issue"
    ended = walk(state, "ACCEPTABLE PUBLISHED")
    assert (ended.outcome, ended.reason) == (Outcome.COMPLETED, Reason.NOTHING_TO_DO)


def test_blockers_are_filed_even_when_nothing_had_to_be_done() -> None:
    words = "OK CLAIMED DRAFTED CONVERGED!plan-2-01 DRAFTED:1 ACCEPTABLE PASSES_ALREADY=t ALREADY_DONE"
    assert walk(begin(), f"{words} ACCEPTABLE PUBLISHED").outcome is Outcome.COMPLETED_WITH_BLOCKERS


def test_one_change_is_enough_for_a_final_review() -> None:
    state = walk(at_first_task("1", "2"), "RED=r1 GREEN=c1 PASSES_ALREADY=t2 ALREADY_DONE")
    assert (state.trunk.step, state.head) == (Step.FINAL_REVIEW, "c1")
    assert [task.id for task in state.done_tasks] == ["1"]
    assert walk(state, "ACCEPTABLE PUBLISHED").reason is Reason.DONE


def test_already_done_takes_the_measurement_that_the_tests_pass() -> None:
    state = walk(at_first_task(), "BLOCKED")
    with pytest.raises(LookupError, match="cannot report ALREADY_DONE"):
        advance(state, event("ALREADY_DONE"))


# --- fix tasks -------------------------------------------------------------------------------------------------------


def test_fix_tasks_need_no_review_of_their_split() -> None:
    state = walk(at_first_task(), "RED=r GREEN=c FIX")
    assert (state.trunk.step, state.fixing) == (Step.SPLIT, True)
    state, (decision,) = walk_with_decisions(state, "DRAFTED:fix-1,fix-2")
    assert decision.row == "split/DRAFTED[drafting fix tasks]"
    assert (state.trunk.step, order(state)) == (Step.WRITE_TESTS, ["fix-1", "fix-2"])


def test_a_split_of_fix_tasks_that_breaks_hygiene_stays_one_of_fix_tasks() -> None:
    state = walk(at_first_task(), "RED=r GREEN=c FIX HYGIENE DRAFTED:fix-1")
    assert (state.trunk.step, state.current) == (Step.WRITE_TESTS, "fix-1")


PROOF = NewTask(id="fix-1", proof="final-1-01")


def test_a_proof_is_a_fix_task_that_begins_with_its_test() -> None:
    state = walk(at_first_task(), "RED=r GREEN=c PROVED", event("PROVED", tasks=(PROOF,)))
    assert (state.trunk.step, state.begins_with_a_proof, state.task.start) == (Step.WRITE_TESTS, True, "c")
    state = walk(state, "RED=r1")
    assert state.trunk.step is Step.IMPLEMENT
    again = walk(state, "TEST_DESIGN=c1 TEST_DESIGN")
    assert (again.trunk.step, again.begins_with_a_proof) == (Step.WRITE_TESTS, False), "@test is asked from here on"
    with pytest.raises(LookupError, match="cannot report PROOF_PASSES"):
        advance(again, event("PROOF_PASSES"))


def test_a_proof_that_passes_since_another_fix_leaves_nothing_to_do() -> None:
    second = PROOF.model_copy(update={"id": "fix-2", "proof": "final-1-02"})
    state = walk(at_first_task(), "RED=r GREEN=c PROVED", event("PROVED", tasks=(PROOF, second)), "RED=r1 GREEN=c1")
    state = walk(state, "PROOF_PASSES")
    assert (state.trunk.step, state.head) == (Step.FINAL_REVIEW, "c1")
    assert state.tasks["fix-2"].status.value == "already_done"
    assert not state.tasks["fix-2"].drops_tests


def test_only_the_split_of_fix_tasks_takes_proofs() -> None:
    with pytest.raises(LookupError, match="cannot report PROVED"):
        advance(walk(begin(), TO_SPLIT), event("PROVED", tasks=(PROOF,)))


def test_a_fix_task_that_is_split_again_keeps_the_review_cycle() -> None:
    state = walk(at_first_task(), "RED=r GREEN=c FIX DRAFTED:fix-1,fix-2 RED=r1 GREEN=c1 RED=r2 NOT_GREEN=c2 SPEC")
    assert (state.trunk.step, state.fixing, state.head, state.trunk.via) == (Step.SPLIT, True, "c1", Loop.SPLIT_REWORK)
    state = walk(state, "DRAFTED:fix-3 RED=r3 GREEN=c3 FIX DRAFTED:fix-4 RED=r4 GREEN=c4")
    assert [task.id for task in state.done_tasks] == ["1", "fix-1", "fix-3", "fix-4"]
    assert walk(state, "FIX").trunk.step is Step.PUBLISH


def test_a_task_of_the_plan_that_is_split_again_is_reviewed_again() -> None:
    state = walk(at_first_task("1", "2"), "RED=r GREEN=c BLOCKED SPEC DRAFTED:3")
    assert (state.trunk.step, state.fixing) == (Step.REVIEW_SPLIT, False)
    assert state.tasks["1"].status.value == "done"


def test_a_plan_that_is_reworked_during_fixes_is_split_and_reviewed_afresh() -> None:
    state = walk(at_first_task(), "RED=r GREEN=c FIX DRAFTED:fix-1 BLOCKED PLAN")
    assert not state.fixing
    assert walk(state, "DRAFTED ACCEPTABLE DRAFTED:2").trunk.step is Step.REVIEW_SPLIT


def test_a_split_that_is_revised_before_any_task_began_may_keep_its_ids() -> None:
    state = walk(begin(), "OK CLAIMED DRAFTED ACCEPTABLE DRAFTED:1,2 NEEDS_WORK DRAFTED:2,1 ACCEPTABLE")
    assert order(state) == ["2", "1"]
    state = walk(state, "RED=r2 GREEN=c2 RED=r1 GREEN=c1")
    assert [task.id for task in state.done_tasks] == ["2", "1"]


# --- blockers --------------------------------------------------------------------------------------------------------


def test_blockers_of_plan_split_and_result_are_on_record_together() -> None:
    reviewed = (
        "OK CLAIMED DRAFTED CONVERGED!plan-2-01 DRAFTED:1 CONVERGED!split-2-01 RED=r GREEN=c CONVERGED!final-2-01"
    )
    state = walk(begin(), reviewed)
    assert state.open_blockers == ("plan-2-01", "split-2-01", "final-2-01")
    ended = walk(state, "PUBLISHED")
    assert (ended.outcome, ended.reason) == (Outcome.COMPLETED_WITH_BLOCKERS, Reason.BLOCKERS)


@pytest.mark.parametrize(
    ("words", "left"),
    [
        ("CONVERGED@check!plan-2-01", "plan-2-01"),
        # a broken environment does not clear the record
        (f"{ONE} RED=r GREEN=c FIX!final-1-01 DRAFTED:fix-1 RED=r1 GREEN=c1 ENV_BROKEN", "final-1-01"),
        # what the split review left open stays through fix tasks
        (f"{OPEN_SPLIT} RED=r GREEN=c FIX DRAFTED:fix-1 RED=r1 GREEN=c1 ACCEPTABLE", "split-2-01"),
        # a new split clears what was said about the old one, a new plan everything
        ("CONVERGED!plan-2-01 DRAFTED:1 CONVERGED!split-2-01 BLOCKED SPEC", "plan-2-01"),
        ("CONVERGED!plan-2-01 DRAFTED:1 CONVERGED!split-2-01 BLOCKED PLAN", ""),
    ],
)
def test_what_stays_on_record(words: str, left: str) -> None:
    assert walk(begin(), "OK CLAIMED DRAFTED", words).open_blockers == tuple(left.split())


def test_a_decision_names_its_task() -> None:
    _, decisions = walk_with_decisions(at_first_task("1"), "RED=r GREEN=c ACCEPTABLE")
    assert [decision.task for decision in decisions] == ["1", "1", None]
