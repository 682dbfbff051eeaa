"""Cheats, and honest work, in a Rust crate."""

from __future__ import annotations

import pytest
from cheats.plays import plays_of
from languages.crates import needs_cargo

GROUP = "crates"
test_it_ends_as_the_catalogue_says = plays_of(GROUP, pytest.mark.broad, needs_cargo)
