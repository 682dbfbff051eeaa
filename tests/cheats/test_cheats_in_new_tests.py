"""@test cheats in new tests: they assert nothing, or are RED for a reason that is none."""

from __future__ import annotations

from cheats.plays import plays_of

GROUP = "writers"
test_it_ends_as_the_catalogue_says = plays_of(GROUP)
