"""Termination: the graph of all situations of small runs has no circle, and the budget ends every run (matrix 2)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import pytest
from routing.search import Search
from routing.walks import begin

from pipeline.matrix.routing.advance import advance
from pipeline.matrix.routing.state import NewTask
from pipeline.vocabulary import Loop, Step

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pipeline.matrix.routing.advance import Decision
    from pipeline.matrix.routing.state import Event, RunState


pytestmark = pytest.mark.slow

ONE: Final = (NewTask(id="a"),)
TWO: Final = (NewTask(id="a", stub_first=True), NewTask(id="b", evidence="regression", depends_on=("a",)))
DRY: Final = dict.fromkeys(Loop, 0)
REVIEWS: Final = {Loop.PLAN_REVIEW: 2, Loop.SPLIT_REVIEW: 2, Loop.FINAL_REVIEW: 2}


def limits(*loops: Loop, **others: int) -> Mapping[Loop, int]:
    """Nothing may be paid but these loops, once each, and *others* so often."""
    return {**DRY, **dict.fromkeys(loops, 1), **{Loop(name): limit for name, limit in others.items()}}


SMALL: Final[Mapping[str, tuple[Mapping[Loop, int], tuple[NewTask, ...]]]] = {
    "every limit is reached": (DRY, TWO),
    "the reviews": ({**limits(Loop.PLAN_REWORK, Loop.SPLIT_REWORK, Loop.COSMETIC), **REVIEWS}, ONE),
    "the drafts": (limits(Loop.HYGIENE, Loop.REASK, Loop.PLAN_REWORK, Loop.SPLIT_REWORK), ONE),
    "the tests": (limits(Loop.TEST_REWRITE, Loop.TEST_DIAGNOSIS, Loop.SEAM, Loop.REASK, Loop.SPLIT_REWORK), ONE),
    "test design, as often as by default": (limits(Loop.MAKE_RETRY, test_design=2, plan_rework=2), ONE),
    "files, as often as by default": (limits(Loop.MAKE_RETRY, scope_amend=2, split_rework=2, plan_rework=1), ONE),
    "stubs": (limits(Loop.STUB_RETRY, Loop.TEST_REWRITE, Loop.TEST_DIAGNOSIS, plan_rework=1), TWO),
    "two tasks": (limits(Loop.TEST_REWRITE, Loop.MAKE_RETRY, Loop.SCOPE_AMEND), TWO),
    "fix tasks": (limits(Loop.SPLIT_REWORK, Loop.TEST_REWRITE, final_review=3), ONE),
}


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.broad(but_first=1)
def test_a_small_run_never_stands_in_the_same_situation_twice(name: str) -> None:
    counts, split = SMALL[name]
    found = Search([split]).run(begin(counts))
    assert found.wrong == ()
    assert found.situations > 100  # the search went somewhere


def test_gates_that_a_person_opens_add_no_circle() -> None:
    start = begin({**limits(Loop.PLAN_REWORK), **REVIEWS}, ["plan", "split", "commit"], park=True)
    assert Search([ONE]).run(start).wrong == ()


@pytest.mark.parametrize("allowed", [0, 1, 4, 9])
@pytest.mark.broad(but_first=1)
def test_every_way_ends_within_the_dispatches_of_the_budget(allowed: int) -> None:
    counts = {**limits(Loop.PLAN_REWORK, Loop.MAKE_RETRY, Loop.TEST_DESIGN), Loop.DISPATCHES: allowed}
    found = Search([ONE], budget=True).run(begin(counts))
    assert found.wrong == ()
    asks_nobody = 5  # SANITY, ISSUE, simplify left out, PUBLISH or FAILURE, parking for the budget
    assert found.longest <= allowed + 10 * len(ONE) + asks_nobody


def forgetful(state: RunState, event: Event) -> tuple[RunState, Decision]:
    """A machine whose counts never get empty."""
    after, decision = advance(state, event)
    return replace(after, counters={}), decision


def careless(state: RunState, event: Event) -> tuple[RunState, Decision]:
    """A machine that loses the measured RED."""
    after, decision = advance(state, event)
    if after.trunk.step is Step.IMPLEMENT:
        after = after.with_task(replace(after.task, red=None))
    return after, decision


def test_the_search_notices_a_limit_that_does_not_get_empty() -> None:
    found = Search([ONE], decide=forgetful).run(begin(limits(Loop.HYGIENE)))
    assert any("circle" in wrong for wrong in found.wrong)


def test_the_search_notices_an_implementation_without_red() -> None:
    found = Search([ONE], decide=careless).run(begin(DRY))
    assert "IMPLEMENT was entered without RED or a sign-off" in found.wrong
