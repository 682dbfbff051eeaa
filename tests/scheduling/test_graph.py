"""Graphs of steps: what conflicts never overlaps, what is seen does not depend on time, and every graph ends."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.matrix.scheduling.graph import CycleError, Plan, Posture, Step, conflict_of, planned
from pipeline.matrix.scheduling.patterns import parsed

if TYPE_CHECKING:
    from random import Random

AREAS = [("a",), ("b",), ("a/x", "c"), ("**/*",), ("*.py",), ("a/*.py",)]


@st.composite
def graphs(draw: st.DrawFn) -> list[Step]:
    count = draw(st.integers(1, 14))
    steps: list[Step] = []
    for number in range(count):
        depends_on = (
            draw(st.lists(st.sampled_from([step.id for step in steps]), unique=True, max_size=3)) if steps else []
        )
        posture = draw(st.sampled_from(list(Posture)))
        reads, writes = (tuple(map(parsed, draw(st.sampled_from(AREAS)))) for _ in range(2))
        steps.append(Step(f"s{number}", tuple(depends_on), posture, reads, writes))
    return draw(st.permutations(steps))


def walked(steps: list[Step], plan: Plan, random: Random, side_by_side: int) -> tuple[dict[str, tuple[str, ...]], int]:
    """Start what may start, end one at random, until nothing is left; return what each saw at its start."""
    by_id = {step.id: step for step in steps}
    ended: set[str] = set()
    running: list[str] = []
    saw: dict[str, tuple[str, ...]] = {}
    most = 0
    while len(ended) < len(steps):
        for id_ in plan.order:
            waits = {*by_id[id_].depends_on, *(found.earlier for found in plan.after[id_])}
            if id_ not in saw and waits <= ended and len(running) < side_by_side:
                for beside in running:
                    first, second = (by_id[one] for one in sorted((id_, beside), key=plan.order.index))
                    assert conflict_of(first, second) is None, (first, second)
                assert set(plan.before(id_)) <= ended
                saw[id_] = plan.before(id_)
                running.append(id_)
        assert running, "nothing can start, and nothing runs"
        most = max(most, len(running))
        ended.add(running.pop(random.randrange(len(running))))
    return saw, most


@given(graphs(), st.integers(1, 4), st.randoms(), st.randoms())
@settings(max_examples=150)
def test_conflicting_steps_never_overlap_and_time_changes_nothing(
    steps: list[Step], limit: int, one: Random, other: Random
) -> None:
    plan = planned(steps, side_by_side=limit)
    first, most = walked(steps, plan, one, limit)
    second, _ = walked(steps, plan, other, limit)
    assert first == second
    assert most <= limit
    assert sorted(plan.order) == sorted(step.id for step in steps)


@pytest.mark.broad
@given(graphs())
def test_of_two_steps_in_conflict_one_is_before_the_other(steps: list[Step]) -> None:
    plan = planned(steps, side_by_side=3)
    by_id = {step.id: step for step in steps}
    for at, later in enumerate(plan.order):
        for earlier in plan.order[:at]:
            if conflict_of(by_id[earlier], by_id[later]) is not None:
                assert earlier in plan.before(later)


def test_an_edge_names_the_patterns_that_meet() -> None:
    fix = Step("fix", posture=Posture.ISOLATED, writes=(parsed("src/**"),))
    log = Step("log", posture=Posture.ISOLATED, writes=(parsed("docs"), parsed("src/log.py")))
    (found,) = planned([fix, log], side_by_side=2).after["log"]
    assert (found.earlier, found.later, found.patterns) == ("fix", "log", ("src/**", "src/log.py"))


def test_readers_beside_each_other_and_beside_isolated_writers_need_no_edge() -> None:
    everything = (parsed("**/*"),)
    steps = [
        Step("one", reads=everything),
        Step("two", reads=everything),
        Step("write", posture=Posture.ISOLATED, writes=everything),
        Step("try", posture=Posture.SCRATCH, writes=everything),
        Step("publish", posture=Posture.SHARED, writes=everything),
    ]
    plan = planned(steps, side_by_side=5)
    assert [plan.waves[step.id] for step in steps] == [1, 1, 1, 1, 2]
    assert plan.before("try") == ()
    assert plan.before("publish") == ("one", "two", "write")


def test_a_cycle_is_named_in_a_circle() -> None:
    steps = [Step("a", ("c",)), Step("b", ("a",)), Step("c", ("b",)), Step("d")]
    with pytest.raises(CycleError) as caught:
        planned(steps, side_by_side=1)
    cycle = caught.value.cycle
    assert cycle[0] == cycle[-1]
    assert set(cycle) == {"a", "b", "c"}
    for step, waits_for in pairwise(cycle):
        assert waits_for in next(one for one in steps if one.id == step).depends_on
