"""Cheats, and honest work, where new symbols are scaffolded first."""

from __future__ import annotations

import pytest
from cheats.plays import plays_of

GROUP = "stubs"
test_it_ends_as_the_catalogue_says = plays_of(GROUP, pytest.mark.broad)
