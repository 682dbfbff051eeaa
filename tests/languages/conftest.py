"""The kernel box, for all tests of languages."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from languages.measured import working_box

if TYPE_CHECKING:
    from pipeline.sandbox.boxes.bubblewrap import Bubblewrap


@pytest.fixture
def box() -> Bubblewrap:
    """Return a box that works."""
    return working_box()
