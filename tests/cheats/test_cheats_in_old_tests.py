"""@test cheats in what is there: old tests, fixtures, golden files, configuration."""

from __future__ import annotations

import pytest
from cheats.plays import plays_of

GROUP = "weakeners"
test_it_ends_as_the_catalogue_says = plays_of(GROUP, pytest.mark.broad)
