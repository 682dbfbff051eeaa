"""@test cheats legally: RED, and GREEN without the work, because the tests look elsewhere."""

from __future__ import annotations

import pytest
from cheats.plays import plays_of

GROUP = "blind"
test_it_ends_as_the_catalogue_says = plays_of(GROUP, pytest.mark.broad)
