"""Cheats, and honest work, in a Rust crate."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from cheats.plays import check, params
from languages.crates import needs_cargo

if TYPE_CHECKING:
    from cheats.catalogue import Theatre
    from cheats.kinds import Cheat, Honest

GROUP = "crates"
pytestmark = [pytest.mark.slow, needs_cargo]


@pytest.mark.parametrize("one", params(GROUP))
@pytest.mark.broad
def test_it_ends_as_the_catalogue_says(one: Cheat | Honest, theatre: Theatre, request: pytest.FixtureRequest) -> None:
    check(theatre, one, request)
