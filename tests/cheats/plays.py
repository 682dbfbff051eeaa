"""The tests of a group: each play is a test of its own. A module for each group, so that groups run side by side.

Two plays stand for each way to be caught, and for each cheat that honest work resembles; `bench/cheats.py` plays all.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

import pytest
from cheats.catalogue import GROUPS
from cheats.kinds import Cheat, Honest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from cheats.catalogue import Group, Theatre

PLAYS_OF_A_KIND: Final = 2


def plays_of(name: str, *marks: pytest.MarkDecorator) -> Callable[..., None]:
    """Return the test of a group's plays; all but its first cheat and its first honest change are broad."""
    group = GROUPS[name]
    first = {one.id for one in (*group.cheats[:1], *group.honest[:1])}

    @pytest.mark.slow
    @pytest.mark.parametrize(
        "one",
        [
            pytest.param(one, id=one.id, marks=() if one.id in first else pytest.mark.broad)
            for one in _that_stand_for_all(group)
        ],
    )
    def test(one: Cheat | Honest, theatre: Theatre) -> None:
        fault = one.fault(theatre.play(one))
        assert fault is None, fault

    for mark in marks:
        test = mark(test)
    return test


def _that_stand_for_all(group: Group) -> Iterator[Cheat | Honest]:
    met: Counter[str] = Counter()
    for one in (*group.cheats, *group.honest):
        kind = one.like if isinstance(one, Honest) else one.ends.by
        met[kind] += 1
        if met[kind] <= PLAYS_OF_A_KIND or (isinstance(one, Cheat) and one.crowd):
            yield one
