"""The five trees of a task, line by line of matrix 4, with names for trees."""

from __future__ import annotations

import pytest
from routing.walks import START, TO_SPLIT, at_first_task, begin, event, walk

from pipeline.matrix.routing.advance import advance
from pipeline.matrix.routing.state import NewTask, RunState
from pipeline.vocabulary import Step


def trees(state: RunState, task: str = "1") -> str:
    """The trees as `head start stubs tests red candidate`, `-` for none."""
    found = state.tasks[task]
    names = (state.head, found.start, found.stubs, found.tests, found.red, found.candidate)
    return " ".join(name or "-" for name in names)


@pytest.mark.parametrize(
    ("line", "words", "step", "expected"),
    [
        ("a task begins at head", "", Step.WRITE_TESTS, "start start - - - -"),
        ("RED holds", "RED=r1", Step.IMPLEMENT, "r1 start - r1 r1 -"),
        ("tests that are not RED stay the last candidate", "ILLEGAL_RED=t1", Step.WRITE_TESTS, "start start - t1 - -"),
        ("a report without a change keeps it", "ILLEGAL_RED=t1 BLOCKED", Step.DIAGNOSE, "start start - t1 - -"),
        ("disputed tests wait for @check", "DISPUTED=t1", Step.CHECK_TESTS, "start start - t1 - -"),
        ("@check accepts the tests", "DISPUTED=t1 ACCEPTABLE", Step.IMPLEMENT, "t1 start - t1 t1 -"),
        ("@check refuses the tests", "DISPUTED=t1 NEEDS_WORK", Step.WRITE_TESTS, "start start - t1 - -"),
        ("NOT_TESTABLE accepted", "NOT_TESTABLE ACCEPTABLE", Step.IMPLEMENT, "start start - - start -"),
        ("NOT_TESTABLE drops tests", "NOT_TESTABLE=t1 ACCEPTABLE", Step.IMPLEMENT, "start start - t1 start -"),
        ("the seam is a new start", "MISSING_SEAM SEAM_DONE=s1", Step.WRITE_TESTS, "start s1 - - - -"),
        ("RED over the seam", "MISSING_SEAM SEAM_DONE=s1 RED=r1", Step.IMPLEMENT, "r1 s1 - r1 r1 -"),
        (
            "a seam that breaks a test is not kept",
            "MISSING_SEAM REGRESSION=s1",
            Step.CHECK_TESTS,
            "start start - - - -",
        ),
        ("an incomplete candidate is kept", "RED=r1 INCOMPLETE=c1", Step.DIAGNOSE, "r1 start - r1 r1 c1"),
        (
            "a retry starts from the candidate",
            "RED=r1 INCOMPLETE=c1 PRODUCTION_LOGIC",
            Step.IMPLEMENT,
            "r1 start - r1 r1 c1",
        ),
        ("so does an amended task", "RED=r1 NEEDS_FILE=c1 AMENDED", Step.IMPLEMENT, "r1 start - r1 r1 c1"),
        (
            "GREEN is accepted",
            "RED=r1 NOT_GREEN=c1 PRODUCTION_LOGIC GREEN=c2",
            Step.FINAL_REVIEW,
            "c2 start - r1 r1 c2",
        ),
        (
            "a redesign keeps the candidate",
            "RED=r1 TEST_DESIGN=c1 TEST_DESIGN",
            Step.WRITE_TESTS,
            "r1 start - r1 r1 c1",
        ),
        ("new tests, old candidate", "RED=r1 TEST_DESIGN=c1 TEST_DESIGN RED=r2", Step.IMPLEMENT, "r2 start - r2 r2 c1"),
        ("a stale xfail is rewritten over RED", "RED=r1 STALE_XFAIL=c1 RED=r2", Step.IMPLEMENT, "r2 start - r2 r2 c1"),
        (
            "tests that notice no fault are written again",
            "RED=r1 UNNOTICED_FAULTS=c1",
            Step.WRITE_TESTS,
            "r1 start - r1 r1 c1",
        ),
        (
            "once; then the candidate is accepted",
            "RED=r1 UNNOTICED_FAULTS=c1 RED=r2 UNNOTICED_FAULTS=c2",
            Step.FINAL_REVIEW,
            "c2 start - r2 r2 c2",
        ),
        ("tests that are all there is to add go on like RED", "TESTS_KEPT=t1", Step.IMPLEMENT, "t1 start - t1 t1 -"),
        ("doubtful ones wait for @check", "TESTS_DOUBTFUL=t1 ACCEPTABLE", Step.IMPLEMENT, "t1 start - t1 t1 -"),
        ("blind ones come back", "UNNOTICED_FAULTS=t1", Step.WRITE_TESTS, "start start - t1 - -"),
        (
            "already done keeps tests that notice faults",
            "PASSES_ALREADY=t1 TESTS_KEPT GREEN=t1",
            Step.FINAL_REVIEW,
            "t1 start - t1 t1 t1",
        ),
        (
            "and nothing of an earlier candidate",
            "RED=r1 TEST_DESIGN=c1 TEST_DESIGN PASSES_ALREADY=t2 TESTS_KEPT",
            Step.IMPLEMENT,
            "t2 start - t2 t2 t2",
        ),
        ("already done drops the tests", "PASSES_ALREADY=t1 ALREADY_DONE", Step.FINAL_REVIEW, "start start - t1 - -"),
        (
            "already done gives an earlier RED back too",
            "RED=r1 TEST_DESIGN=c1 TEST_DESIGN PASSES_ALREADY=t2 ALREADY_DONE",
            Step.FINAL_REVIEW,
            "start start - t2 r1 c1",
        ),
    ],
)
def test_the_trees_of_a_task(line: str, words: str, step: Step, expected: str) -> None:
    state = walk(at_first_task(), words)
    assert (state.trunk.step, trees(state)) == (step, expected), line


@pytest.mark.parametrize(
    ("line", "words", "step", "expected"),
    [
        ("stubs are made from the start", "", Step.STUB, "start start - - - -"),
        ("dirty stubs are not kept", "STUB_DIRTY=x", Step.STUB, "start start - - - -"),
        ("tests are written over the stubs", "STUBBED=s1", Step.WRITE_TESTS, "start start s1 - - -"),
        ("RED carries the stubs", "STUBBED=s1 RED=r1", Step.IMPLEMENT, "r1 start s1 r1 r1 -"),
        (
            "a seam is made over the stubs",
            "STUBBED=s1 MISSING_SEAM SEAM_DONE=m1",
            Step.WRITE_TESTS,
            "start m1 m1 - - -",
        ),
        (
            "NOT_TESTABLE drops the stubs",
            "STUBBED=s1 NOT_TESTABLE ACCEPTABLE",
            Step.IMPLEMENT,
            "start start s1 - start -",
        ),
    ],
)
def test_the_trees_of_a_task_with_stubs(line: str, words: str, step: Step, expected: str) -> None:
    state = walk(at_first_task(NewTask(id="1", stub_first=True)), words)
    assert (state.trunk.step, trees(state)) == (step, expected), line


def test_a_task_begins_where_the_last_one_ended() -> None:
    state = walk(at_first_task("1", "2"), "RED=r1 GREEN=c1")
    assert trees(state, "2") == "c1 c1 - - - -"


def test_a_fix_task_begins_at_head() -> None:
    state = walk(at_first_task(), "RED=r1 GREEN=c1 FIX DRAFTED:fix-1")
    assert trees(state, "fix-1") == "c1 c1 - - - -"
    assert state.task.fix


def test_the_base_of_a_fix_tasks_red_is_kept() -> None:
    state = walk(at_first_task(), "RED=r1 GREEN=c1 FIX")
    spec = NewTask(id="fix-1", red_base="start")
    state, _ = advance(state, event("DRAFTED", tasks=(spec,)))
    assert state.task.spec.red_base == "start"


def test_an_accepted_task_without_tests_is_known_as_such() -> None:
    assert not walk(at_first_task(), "NOT_TESTABLE ACCEPTABLE").task.testable
    assert walk(at_first_task(), "DISPUTED=t ACCEPTABLE").task.testable
    redesigned = "NOT_TESTABLE ACCEPTABLE NOT_GREEN=c TEST_DESIGN RED=r"
    assert walk(at_first_task(), redesigned).task.testable


def test_a_split_rework_gives_the_failing_tasks_start_back_and_keeps_what_is_done() -> None:
    state = walk(at_first_task("1", "2", "3"), "RED=r1 GREEN=c1 RED=r2 SPLIT_NEEDED=c2 SPLIT_NEEDED")
    assert (state.trunk.step, state.head, state.current, state.queue) == (Step.SPLIT, "c1", None, ())
    assert {task.id: task.status.value for task in state.tasks.values()} == {
        "1": "done",
        "2": "dropped",
        "3": "dropped",
    }


def test_a_plan_rework_goes_back_to_the_start_and_offers_the_work() -> None:
    state = walk(at_first_task("1", "2"), "RED=r1 GREEN=c1 RED=r2 NOT_GREEN=c2 PLAN")
    assert (state.trunk.step, state.head, state.current, state.queue) == (Step.PLAN, START, None, ())
    assert state.previous_work == "c2"
    assert {task.status.value for task in state.tasks.values()} == {"dropped"}
    assert state.done_tasks == ()


def test_without_a_candidate_the_accepted_work_is_offered() -> None:
    state = walk(at_first_task("1", "2"), "RED=r1 GREEN=c1 BLOCKED PLAN")
    assert state.previous_work == "c1"


def test_a_plan_rework_without_any_work_offers_none() -> None:
    assert walk(begin(), TO_SPLIT, "DRAFTED:1 BLOCK").previous_work is None


def test_work_of_an_older_revision_is_still_offered_when_a_newer_one_made_none() -> None:
    state = walk(at_first_task(), "RED=r1 NOT_GREEN=c1 PLAN DRAFTED ACCEPTABLE DRAFTED:2 BLOCK")
    assert state.previous_work == "c1"


def test_a_failed_run_keeps_head_and_candidate() -> None:
    state = walk(at_first_task(), "RED=r1 NOT_GREEN=c1 ESCAPE HANDLED")
    assert trees(state) == "r1 start - r1 r1 c1"


@pytest.mark.parametrize(
    ("words", "judged"),
    [
        ("DISPUTED=t1", "t1"),
        ("RED=r1 NOT_GREEN=c1", "c1"),
        ("RED=r1 NO_CHANGE", None),
        ("RED=r1 NOT_GREEN=c1 TEST_DESIGN PASSES_ALREADY=t2", "t2"),
        ("MISSING_SEAM INCOMPLETE=s1", "s1"),
        ("DISPUTED=t1 NEEDS_WORK DISPUTED=t2 NEEDS_WORK DISPUTED=t3 NEEDS_WORK", "t3"),
        ("ILLEGAL_RED=t1 ILLEGAL_RED=t2 BLOCKED=t3", "t3"),
    ],
)
def test_a_judgement_sees_the_candidate_in_question(words: str, judged: str | None) -> None:
    state = walk(at_first_task(), words)
    assert state.trunk.step in {Step.CHECK_TESTS, Step.DIAGNOSE}
    assert state.trunk.in_question == judged


def test_dirty_stubs_can_be_judged_though_they_are_not_kept() -> None:
    state = walk(at_first_task(NewTask(id="1", stub_first=True)), "INCOMPLETE=x")
    assert (state.trunk.step, state.trunk.origin, state.trunk.in_question) == (Step.DIAGNOSE, Step.STUB, "x")


def test_a_cosmetic_edit_becomes_the_head() -> None:
    assert walk(at_first_task(), "RED=r GREEN=c COSMETIC=e").head == "e"
