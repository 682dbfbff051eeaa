"""The catalogue itself: as many ways as were asked for, each with one name and one end."""

from __future__ import annotations

from collections import Counter

from cheats.catalogue import GROUPS, everything
from cheats.kinds import By, Cheat, Honest


def test_there_are_enough_of_each() -> None:
    cheats = [one for one in everything() if isinstance(one, Cheat)]
    honest = [one for one in everything() if isinstance(one, Honest)]
    assert len(cheats) >= 48
    assert len(honest) >= 25
    assert {cheat.who for cheat in cheats} == {"@test", "@make"}


def test_each_has_a_name_of_its_own() -> None:
    twice = [name for name, count in Counter(one.id for one in everything()).items() if count > 1]
    assert twice == []


def test_every_mechanism_has_a_cheat() -> None:
    assert {one.ends.by for one in everything() if isinstance(one, Cheat)} == set(By)


def test_a_crowd_writes_no_file_twice() -> None:
    for group in GROUPS.values():
        for who in ("@test", "@make"):
            files = [{*one.tests, *one.code} for one in group.cheats if one.crowd and one.who == who]
            assert len(set[str]().union(*files)) == sum(map(len, files))
