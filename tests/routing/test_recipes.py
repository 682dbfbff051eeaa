"""The matrix with what a recipe leaves out: passed by a row, paid by nothing, and every way still ends."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import pytest
from routing.search import Search
from routing.test_machine_search import ONE, TWO, limits
from routing.walks import begin, event, tasks, walk, walk_with_decisions
from workflows.test_several_files import BUILT_IN, sound

from pipeline.matrix.recipes.plan import phases_of
from pipeline.matrix.routing.actions import Goto, NextTask
from pipeline.matrix.routing.lookup import UnroutedSignalError, signals_of
from pipeline.matrix.routing.matrix import MATRIX
from pipeline.matrix.routing.simulation import dispatches_due
from pipeline.matrix.routing.state import EVERYBODY, Event, Phases, Trees
from pipeline.vocabulary import Loop, Role, Signal, Step

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pipeline.matrix.routing.state import RunState

FOUND: Final = {name: phases_of(sound(text, **BUILT_IN)) for name, text in BUILT_IN.items()}
PHASES: Final = {name: phases for name, phases in FOUND.items() if phases is not None}
QUICK: Final = PHASES["quick"]
SOLO: Final = PHASES["solo"]
OWN: Final = replace(QUICK, own=("log", "more"))
LENIENT: Final = replace(QUICK, plan=(Role.CHECK,), own_split=True)


def test_which_built_in_recipes_are_ways_of_an_issue() -> None:
    assert set(PHASES) == {"issue", "quick", "solo"}
    assert PHASES["issue"] == EVERYBODY
    assert Phases((), (), (Role.CHECK,), own_split=False) == QUICK
    assert replace(QUICK, one_writer=True) == SOLO


def test_what_is_passed_is_paid_by_nothing() -> None:
    rows = {row.id: row.action for row in MATRIX if row.signal is Signal.NOT_ASKED}
    assert rows == {
        "review-plan/NOT_ASKED": Goto(Step.SPLIT),
        "split/NOT_ASKED": NextTask(),
        "review-split/NOT_ASKED": NextTask(),
    }


def test_quick_goes_from_the_plan_to_its_tasks_and_asks_four_times_for_one() -> None:
    drafted = event("NOT_ASKED", tasks=tasks("1"))
    state = begin(phases=QUICK)
    asked = 0
    for said in (*map(event, ("OK", "CLAIMED", "DRAFTED", "NOT_ASKED")), drafted, event("RED=r"), event("GREEN=g")):
        before = state
        state, (decision,) = walk_with_decisions(state, said)
        assert decision.counters == {}
        asked += dispatches_due(decision, before, state)
    assert state.trunk.step is Step.FINAL_REVIEW
    assert state.phases.slots(Step.FINAL_REVIEW) == (Role.CHECK,)
    assert asked == 4
    assert walk(state, "ACCEPTABLE", "PUBLISHED").outcome == "completed"


def test_where_the_recipe_asks_nobody_nothing_else_can_be_reported() -> None:
    at_review = walk(begin(phases=QUICK), "OK CLAIMED DRAFTED")
    assert signals_of(at_review) == {Signal.NOT_ASKED, Signal.CANCELLED}
    assert signals_of(walk(at_review, "NOT_ASKED")) == {Signal.NOT_ASKED, Signal.CANCELLED}
    with pytest.raises(UnroutedSignalError):
        walk(at_review, "ACCEPTABLE")
    with pytest.raises(UnroutedSignalError):
        walk(begin(), "OK CLAIMED DRAFTED NOT_ASKED")
    with pytest.raises(ValueError, match="must name a slot"):
        walk(
            begin(phases=QUICK),
            "OK CLAIMED DRAFTED NOT_ASKED",
            event("NOT_ASKED", tasks=tasks("1")),
            "RED=r GREEN=g MALFORMED@simplify",
        )


def test_what_goes_back_to_the_split_is_split_anew_and_not_reviewed() -> None:
    first = event("NOT_ASKED", tasks=tasks("1"))
    again = event("DRAFTED", tasks=tasks("2"))
    at_task = walk(begin(phases=QUICK), "OK CLAIMED DRAFTED NOT_ASKED", first, "RED=r NOT_GREEN=c")
    back = walk(at_task, "SPEC")
    assert (back.trunk.step, Signal.NOT_ASKED in signals_of(back)) == (Step.SPLIT, False)
    assert walk(back, again).trunk.step is Step.REVIEW_SPLIT
    assert walk(back, again, "NOT_ASKED").current == "2"
    fixed = walk(at_task, "PRODUCTION_LOGIC", "GREEN=g", "FIX")
    assert walk(fixed, event("DRAFTED", tasks=tasks("fix-1"))).current == "fix-1"


@pytest.mark.parametrize("gate", ["plan", "split"])
def test_who_wants_to_see_plan_or_split_gets_a_split(gate: str) -> None:
    state = walk(begin(gates=[gate], phases=QUICK), "OK CLAIMED DRAFTED NOT_ASKED")
    state = walk(state, "APPROVED") if gate == "plan" else state
    assert not state.passes_split
    after = walk(state, event("DRAFTED", tasks=tasks("1")), "NOT_ASKED")
    assert (after.trunk.gate, after.current) == (("split", None) if gate == "split" else (None, "1"))


def test_steps_of_its_own_are_done_before_the_review_and_again_when_tasks_were_accepted_since() -> None:
    to_tasks = ("OK CLAIMED DRAFTED NOT_ASKED", event("NOT_ASKED", tasks=tasks("1")))
    state = walk(begin(phases=OWN), *to_tasks, "RED=r GREEN=g")
    assert (state.trunk.step, state.own_step, state.slots) == (Step.FINAL_REVIEW, "log", (Role.MAKE,))
    with pytest.raises(UnroutedSignalError):
        walk(state, "ACCEPTABLE")
    stuck = walk(state, "NOT_WRITTEN")
    assert (stuck.outcome, stuck.reason, stuck.head) == ("parked", "agent_unusable", "g")
    before = state
    state, (decision,) = walk_with_decisions(state, "WRITTEN=w1")
    assert (state.own_step, decision.counters) == ("more", {"own_steps@split 1": 1})
    assert dispatches_due(decision, before, state) == 1
    state = walk(state, "WRITTEN=w2")
    assert (state.own_step, state.head, state.slots) == (None, "w2", (Role.CHECK,))
    with pytest.raises(UnroutedSignalError):
        walk(state, "WRITTEN=w3")
    assert walk(state, "COSMETIC=e").own_step is None, "an edit of ours leaves what they wrote"
    fixed = walk(state, "FIX DRAFTED:2 RED=r2 GREEN=g2")
    assert (fixed.trunk.step, fixed.own_step, fixed.tasks["2"].start) == (Step.FINAL_REVIEW, "log", "w2")
    assert walk(fixed, "WRITTEN=w3 WRITTEN=w4 ACCEPTABLE PUBLISHED").outcome == "completed"
    again = walk(state, "PLAN DRAFTED NOT_ASKED", event("NOT_ASKED", tasks=tasks("3")), "RED=r3 GREEN=g3")
    assert (again.own_step, again.written) == ("log", ())


def test_solo_asks_twice_and_mends_what_the_review_finds_in_the_same_task() -> None:
    claimed = event("CLAIMED", tasks=tasks("1"))
    state = walk(begin(phases=SOLO), "OK", claimed)
    assert (state.trunk.step, state.current, SOLO.least()) == (Step.BUILD, "1", 2)
    green = walk(state, built("GREEN", "c"))
    assert (green.trunk.step, green.head, green.accepted) == (Step.FINAL_REVIEW, "c", ("1",))
    assert walk(green, "ACCEPTABLE", "PUBLISHED").outcome == "completed"
    mending = walk(green, "COSMETIC=e", "FIX")
    task = mending.tasks["1"]
    assert (mending.trunk.step, mending.head, mending.accepted, mending.fixing) == (Step.BUILD, "start", (), False)
    assert (task.candidate, task.start, task.status) == ("e", "start", "active")
    mended = walk(mending, built("GREEN", "d"))
    assert (mended.head, mended.accepted, mended.done_tasks[0].candidate) == ("d", ("1",), "d")


def test_what_one_writer_does_not_bring_about_is_planned_with_its_work_as_a_patch() -> None:
    state = walk(begin(phases=SOLO), "OK", event("CLAIMED", tasks=tasks("1")))
    for number, said in enumerate(("ILLEGAL_RED", "NOT_GREEN", "REGRESSION")):
        assert state.trunk.step is Step.BUILD
        state = walk(state, built(said, f"c{number}"))
    assert (state.trunk.step, state.trunk.origin) == (Step.DIAGNOSE, Step.BUILD)
    with pytest.raises(UnroutedSignalError):
        walk(state, "TESTS_KEPT")
    again = walk(state, "PRODUCTION_LOGIC")
    assert (again.trunk.step, walk(again, built("NOT_GREEN", "c3")).trunk.step) == (Step.BUILD, Step.PLAN)
    for word in ("SPEC", "SPLIT_NEEDED", "PLAN"):
        planned = walk(state, word)
        assert (planned.trunk.step, planned.one_writer, planned.previous_work) == (Step.PLAN, False, "c2")
    tasked = walk(planned, "DRAFTED", "NOT_ASKED", event("NOT_ASKED", tasks=tasks("2")))
    assert (tasked.trunk.step, tasked.current) == (Step.WRITE_TESTS, "2")


def test_work_without_tests_is_accepted_only_when_it_was_signed_off() -> None:
    state = walk(begin(phases=SOLO), "OK", event("CLAIMED", tasks=tasks("1")), "NOT_TESTABLE=c")
    assert (state.trunk.step, state.task.testable) == (Step.CHECK_TESTS, False)
    done = walk(state, "ACCEPTABLE")
    assert (done.trunk.step, done.head, done.tasks["1"].status) == (Step.FINAL_REVIEW, "c", "done")
    assert walk(state, "NEEDS_WORK").trunk.step is Step.BUILD
    gate = walk(begin(gates=["commit"], phases=SOLO), "OK", event("CLAIMED", tasks=tasks("1")), built("GREEN", "c"))
    assert signals_of(walk(gate, "ACCEPTABLE")) == {Signal.APPROVED, Signal.REJECTED_TO_PLAN, Signal.REJECTED_TO_FIX}
    assert walk(gate, "ACCEPTABLE", "REJECTED_TO_FIX").trunk.step is Step.BUILD


def built(said: str, tree: str) -> Event:
    trees = Trees(start="start", tests=f"{tree}-red", red=f"{tree}-red", candidate=tree)
    return Event(signal=Signal(said), tree=tree, trees=trees)


WAYS: Final[Mapping[str, RunState]] = {
    "quick": begin(limits(Loop.PLAN_REWORK, Loop.SPLIT_REWORK, Loop.REASK, final_review=2), phases=QUICK),
    "quick, gates": begin(limits(Loop.PLAN_REWORK), ["plan", "split", "commit"], park=True, phases=QUICK),
    "a split without a plan's review": begin(limits(Loop.PLAN_REWORK, Loop.HYGIENE), phases=LENIENT),
    "steps of its own": begin(limits(Loop.PLAN_REWORK, final_review=2, own_steps=2), phases=OWN),
    "solo": begin(limits(Loop.PLAN_REWORK, Loop.BUILD, Loop.TEST_DIAGNOSIS, final_review=2), phases=SOLO),
    "solo, gates": begin(limits(Loop.BUILD, final_review=2), ["commit"], park=True, phases=SOLO),
    "issue": begin(limits(Loop.PLAN_REWORK, plan_review=2, split_review=2, final_review=2)),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", WAYS)
@pytest.mark.broad(but_first=2)
def test_a_small_run_of_each_recipe_never_stands_in_the_same_situation_twice(name: str) -> None:
    found = Search([ONE if name != "quick" else TWO]).run(WAYS[name])
    assert found.wrong == ()
    assert found.situations > 100
