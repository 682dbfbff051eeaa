"""Cheats in a JavaScript package."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest
from cheats.plays import check, params

if TYPE_CHECKING:
    from cheats.catalogue import Theatre
    from cheats.kinds import Cheat, Honest

GROUP = "package"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("node") is None, reason="this machine has no node"),
]


@pytest.mark.parametrize("one", params(GROUP))
@pytest.mark.broad
def test_it_ends_as_the_catalogue_says(one: Cheat | Honest, theatre: Theatre, request: pytest.FixtureRequest) -> None:
    check(theatre, one, request)
