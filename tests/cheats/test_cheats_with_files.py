"""@make cheats with files, claims, and by reaching for the test runner."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from cheats.plays import check, params

if TYPE_CHECKING:
    from cheats.catalogue import Theatre
    from cheats.kinds import Cheat, Honest

GROUP = "makers"
pytestmark = pytest.mark.slow


@pytest.mark.parametrize("one", params(GROUP))
@pytest.mark.broad
def test_it_ends_as_the_catalogue_says(one: Cheat | Honest, theatre: Theatre, request: pytest.FixtureRequest) -> None:
    check(theatre, one, request)
