"""The stage of a group."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from cheats.catalogue import GROUPS

if TYPE_CHECKING:
    from cheats.catalogue import Theatre


@pytest.fixture(scope="module")
def theatre(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Theatre:
    """Return the stage of the group that the test module names."""
    return GROUPS[request.node.obj.GROUP].open(tmp_path_factory.mktemp("stage"))
