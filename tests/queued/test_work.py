"""Orders become branches: whole runs of a worker with scripted agents."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from queued.sums_project import make

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow


def test_orders_become_branches_each_in_a_worktree_of_its_own(tmp_path: Path) -> None:
    queued = make(tmp_path, 2)
    queued.add()
    events = queued.work("--jobs", "2")
    assert sorted(event["type"] for event in events) == [
        *["redfirst.order.ended.v1"] * 2,
        *["redfirst.order.started.v1"] * 2,
    ]
    assert queued.branches() == ["gal-1-double-m1", "gal-2-double-m2"]
    assert [order["outcome"] for order in queued.orders()] == ["completed", "completed"]
