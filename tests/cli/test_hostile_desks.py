"""A repository can hold what looks like a desk; nobody waits there, and nothing is written."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from kit import PLAN, make_project

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

ASKED = {
    "schema": "redfirst.desk/1",
    "run_id": "run-GAL-1",
    "dispatch": "001-plan-orchestrator",
    "role": "orchestrator",
    "kind": "plan",
    "writable": True,
    "token": "t",
    "base": "b",
}


@pytest.mark.broad(but_first=1)
@pytest.mark.parametrize("said", [{}, {"kind": "nonsense"}, {"exchange": "\0"}], ids=["whole", "no-kind", "no-path"])
def test_a_folder_that_only_looks_like_a_desk_is_none(said: dict[str, str], tmp_path: Path) -> None:
    project = make_project(tmp_path)
    folder = project.root / "sub"
    (folder / "desk").mkdir(parents=True)
    (folder / "exchange").mkdir()
    (folder / "asked.json").write_text(json.dumps({**ASKED, "exchange": str(folder / "exchange"), **said}))
    (folder / "base.json").write_text("[]")
    report = tmp_path / "report.json"
    report.write_text(json.dumps(PLAN["report"]))
    done = project.redfirst("hand-in", "--report", str(report), cwd=folder / "desk")
    assert done.returncode == 2, done.stderr
    assert "Nothing waits for a person here" in done.stderr
    assert sorted(path.name for path in folder.iterdir()) == ["asked.json", "base.json", "desk", "exchange"]
