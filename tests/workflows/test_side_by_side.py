"""Tasks of one run side by side: begun together, accepted in the order of the split, measured as they are accepted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from workflows.side_by_side import doubled, lanes, make, play, verified

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow


def test_two_independent_tasks_run_side_by_side_and_are_committed_in_order(tmp_path: Path) -> None:
    project = make(tmp_path, 2)
    played = play(project, doubled(["ant", "bee"]))
    assert played.document["_code"] == 0, played.document["_stderr"]
    rows = lanes(project)
    assert {"task-1 implement/GREEN", "task-1 integrate/ACCEPTED", "task-2 integrate/ACCEPTED"} <= set(rows)
    assert rows.index("task-1 integrate/ACCEPTED") < rows.index("task-2 integrate/ACCEPTED")
    assert verified(project) == ["fix: double ant", "fix: double bee", "chore(todo): close GAL-1"]
