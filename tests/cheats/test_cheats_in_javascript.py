"""Cheats in a JavaScript package."""

from __future__ import annotations

import shutil

import pytest
from cheats.plays import plays_of

GROUP = "package"
test_it_ends_as_the_catalogue_says = plays_of(
    GROUP, pytest.mark.broad, pytest.mark.skipif(shutil.which("node") is None, reason="this machine has no node")
)
