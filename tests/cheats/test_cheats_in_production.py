"""@make cheats in production code that knows its tests."""

from __future__ import annotations

import pytest
from cheats.plays import plays_of

GROUP = "liars"
test_it_ends_as_the_catalogue_says = plays_of(GROUP, pytest.mark.broad)
