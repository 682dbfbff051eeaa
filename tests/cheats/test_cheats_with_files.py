"""@make cheats with files, claims, and by reaching for the test runner."""

from __future__ import annotations

import pytest
from cheats.plays import plays_of

GROUP = "makers"
test_it_ends_as_the_catalogue_says = plays_of(GROUP, pytest.mark.broad)
