"""What the final review leaves open at its end is a blocker: on record, filed, shown (matrix 3)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from e2e.lanes import (
    finding,
    makes,
    module,
    module_task,
    modules_project,
    play,
    review,
    split_into,
    until_tests,
    writes,
)

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow


def test_a_finding_whose_fix_comes_to_nothing_is_on_record_filed_and_shown(tmp_path: Path) -> None:
    fix = module_task(1, title="Refuse what is negative", test_files=[], evidence="regression")
    entries = [
        *until_tests(module_task(1)),
        writes(1),
        makes(1),
        review("review-result", "NEEDS WORK", finding("Negative values are taken", "MEDIUM", concern="production")),
        split_into(fix),
        {"when": {"kind": "judge", "question": "not_testable"}, "report": {"accepted": True, "notes": "small"}},
        {**makes(1, task="fix-1"), "files": {"m1.py": module(1, 1) + "\n# a comment, and no fix\n"}},
        review("review-result", "NEEDS WORK", prior=[{"id": "final-1-01", "status": "open"}]),
    ]
    played = play(modules_project(tmp_path, range(1, 2)), entries, extra='[agents.simplify]\nbackend = "off"\n')
    assert "final-review/CONVERGED" in played.rows, played.document["_stderr"]
    assert (played.document["outcome"], played.document["_code"]) == ("completed_with_blockers", 3)
    assert (played.document["blockers"], played.document["advisory"]) == (["final-1-01"], [])
    (filed,) = played.document["follow_ups"]
    issue = played.project.git("show", f"work:TODO/{filed}.md")
    assert "title: Negative values are taken" in issue
    assert "followup" in issue
    shown = played.project.redfirst("show")
    assert "Negative values are taken" in shown.stdout
