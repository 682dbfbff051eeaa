"""Who begins now, and why not: the same facts give the same answer."""

from __future__ import annotations

import random
from typing import Any

import pytest

from pipeline.queue.pick import Candidate, Room, meet, pick


def one(order: str, number: int = 1, **more: Any) -> Candidate:
    return Candidate(order, order.upper(), number, **more)


def begun(candidates: list[Candidate], room: Room) -> list[str]:
    return [verdict.order for verdict in pick(candidates, room) if verdict.begins]


def why(candidates: list[Candidate], room: Room) -> dict[str, str]:
    return {verdict.order: verdict.why for verdict in pick(candidates, room)}


def test_what_goes_on_is_first_then_priority_then_the_list_of_ready_issues_then_age() -> None:
    candidates = [
        one("late", 9, ready=4),
        one("early", 8, ready=1),
        one("urgent", 7, ready=5, priority=1),
        one("unlisted", 1),
        one("answered", 6, goes_on=True),
        one("older", 2, ready=4),
    ]
    expected = ["answered", "urgent", "early", "older", "late", "unlisted"]
    for seed in range(20):
        random.Random(seed).shuffle(candidates)  # noqa: S311  (an order, no secret)
        assert begun(candidates, Room(jobs=6)) == expected


@pytest.mark.parametrize(
    ("room", "expected", "word"),
    [
        (Room(jobs=2), ["a", "b"], "limits.work.jobs"),
        (Room(jobs=4, here=1), ["a"], "limits.work.per_repo"),
        (Room(jobs=4, providers={"x": 2}), ["a", "b"], "limits.work.per_provider"),
        (Room(jobs=4, full="the disk is full"), [], "the disk is full"),
    ],
)
def test_no_more_begin_than_there_is_room_for(room: Room, expected: list[str], word: str) -> None:
    candidates = [one(name, number, providers=frozenset({"x"})) for number, name in enumerate("abc")]
    assert begun(candidates, room) == expected
    assert all(word in said for order, said in why(candidates, room).items() if order not in expected)


def test_who_asks_another_provider_is_not_in_the_way() -> None:
    asked = {"a": "x", "b": "x", "c": "y"}
    candidates = [one(name, number, providers=frozenset({asked[name]})) for number, name in enumerate(asked)]
    assert begun(candidates, Room(jobs=4, providers={"x": 1, "y": 1})) == ["a", "c"]


def test_who_is_hindered_takes_no_room() -> None:
    candidates = [one("a", 1, hindered="GAL-2 has to land first"), one("b", 2)]
    assert why(candidates, Room(jobs=1)) == {"a": "GAL-2 has to land first", "b": ""}


@pytest.mark.parametrize(
    ("some", "others", "met"),
    [
        (["src/a.py"], ["src/a.py"], True),
        (["src/a.py"], ["src/a.pyi"], False),
        (["src/a"], ["src/a/b.py"], True),
        (["src/a/b.py"], ["src/a/"], True),
        ([], ["a"], False),
    ],
)
def test_plans_meet_where_a_path_is_in_both_or_below_one(some: list[str], others: list[str], met: bool) -> None:
    assert meet(some, others) is met
    assert meet(others, some) is met


def test_overlap_waits_only_where_it_is_asked_for() -> None:
    live = {"run-GAL-9": frozenset({"src/a.py"})}
    candidates = [one("a", 1, writes=frozenset({"src/a.py"})), one("b", 2, writes=frozenset({"b.py"})), one("c", 3)]
    assert begun(candidates, Room(jobs=4, writes=live)) == ["a", "b", "c"]
    assert begun(candidates, Room(jobs=4, writes=live, waits=True)) == ["b", "c"]
    assert "run-GAL-9" in why(candidates, Room(jobs=4, writes=live, waits=True))["a"]


def test_two_that_begin_together_do_not_overlap_either() -> None:
    both = [one(name, number, writes=frozenset({"a.py"})) for number, name in enumerate("ab")]
    assert begun(both, Room(jobs=4, waits=True)) == ["a"]
