"""Finished runs land on their base: each picked onto what those before made of it, and measured there again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from landing.finished import make_fleet

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow


def test_a_finished_run_lands_where_the_base_moved(tmp_path: Path) -> None:
    fleet = make_fleet(tmp_path, 2)
    run = fleet.run(1)
    fleet.project.write({"other.txt": "of somebody else\n"})
    fleet.project.commit("other work")
    before = fleet.project.git("rev-parse", "main")
    told = fleet.land()
    assert (told["_code"], [line["status"] for line in told["runs"]]) == (0, ["landed"]), told
    (line,) = told["runs"]
    assert fleet.project.git("rev-list", "--reverse", f"{before}..main").splitlines() == line["commits"]
    assert fleet.project.git("status", "--porcelain") == ""
    assert (fleet.project.root / "f1.sum").read_text() == "f1 n = n * 2\n"
    copied = fleet.project.git("log", "-1", "--format=%(trailers:key=Rebased-From,valueonly)", line["commits"][0])
    assert copied == run["commits"][0]
    assert fleet.boxes() == ["- [x] [GAL-1](GAL-1.md) Reject empty names", "- [ ] [GAL-2](GAL-2.md) Reject empty names"]
    again = fleet.land("GAL-1")
    assert [(line["status"], line["why"]) for line in again["runs"]] == [("already", ["main has its commits already"])]
    assert fleet.project.git("rev-parse", "main") == told["after"] == again["after"]
    assert fleet.show("GAL-1")["landed"] is True
