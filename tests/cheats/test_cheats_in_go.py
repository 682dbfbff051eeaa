"""Cheats, and honest work, in a Go module."""

from __future__ import annotations

import pytest
from cheats.plays import plays_of
from languages.modules import needs_go

GROUP = "module"
test_it_ends_as_the_catalogue_says = plays_of(GROUP, pytest.mark.broad, needs_go)
