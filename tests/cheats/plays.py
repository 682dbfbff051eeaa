"""The tests of a group: each play is a test of its own. A module for each group, so that groups run side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from cheats.catalogue import GROUPS

if TYPE_CHECKING:
    from collections.abc import Callable

    from cheats.catalogue import Theatre
    from cheats.kinds import Cheat, Honest


def plays_of(name: str, *marks: pytest.MarkDecorator) -> Callable[..., None]:
    """Return the test of a group's plays; all but its first cheat and its first honest change are broad."""
    group = GROUPS[name]
    first = {one.id for one in (*group.cheats[:1], *group.honest[:1])}

    @pytest.mark.slow
    @pytest.mark.parametrize(
        "one",
        [
            pytest.param(one, id=one.id, marks=() if one.id in first else pytest.mark.broad)
            for one in (*group.cheats, *group.honest)
        ],
    )
    def test(one: Cheat | Honest, theatre: Theatre) -> None:
        fault = one.fault(theatre.play(one))
        assert fault is None, fault

    for mark in marks:
        test = mark(test)
    return test
