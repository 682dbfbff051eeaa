"""Honest changes of old tests and of production that resemble a cheat: never turned down."""

from __future__ import annotations

import pytest
from cheats.plays import plays_of

GROUP = "honest changes"
test_it_ends_as_the_catalogue_says = plays_of(GROUP, pytest.mark.broad)
