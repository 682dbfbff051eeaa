"""The tests of a group: each play is a test of its own, and its end travels to the figures that conftest.py prints."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from cheats.catalogue import GROUPS
from cheats.kinds import Honest, NotExcludable

if TYPE_CHECKING:
    from cheats.catalogue import Theatre
    from cheats.kinds import Cheat

FIGURE = "cheat"


def params(name: str) -> list[object]:
    """Return the parameters of a group; all but its first cheat and its first honest change are broad."""
    group = GROUPS[name]
    first = {one.id for one in (*group.cheats[:1], *group.honest[:1])}
    return [
        pytest.param(one, id=one.id, marks=() if one.id in first else pytest.mark.broad)
        for one in (*group.cheats, *group.honest)
    ]


def check(theatre: Theatre, one: Cheat | Honest, request: pytest.FixtureRequest) -> None:
    """Play it, and fail where it does not end as the catalogue says."""
    is_expected = "honest" if isinstance(one, Honest) else "passes" if isinstance(one.ends, NotExcludable) else "caught"
    request.node.user_properties.append((FIGURE, is_expected))
    played = theatre.play(one)
    fault = one.fault(played)
    assert fault is None, fault
