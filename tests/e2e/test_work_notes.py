"""What @test and @make say of their own work reaches the reviewers and summary.md, whatever is measured."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from e2e.lanes import play
from kit import AFTER_MAKE, MAKE, TESTS, UNTIL_TESTS, make_project

if TYPE_CHECKING:
    from pathlib import Path

    from kit import Entry

pytestmark = pytest.mark.slow

GAP = "the second criterion is not done: there is no rule for blanks"
LEFT: list[Entry] = [
    {**TESTS, "report": {"verdict": "TESTS_READY", "notes": "blanks are not tested"}},
    {**MAKE, "report": {"result": "INCOMPLETE", "blocking_issue": GAP, "out_of_scope": [{"title": "greet(1) fails"}]}},
]


@pytest.mark.broad
def test_what_is_missing_beside_green_is_a_signal_of_its_own_and_read_by_the_reviewers(tmp_path: Path) -> None:
    played = play(make_project(tmp_path), [*UNTIL_TESTS, *LEFT, *AFTER_MAKE])
    assert "implement/GREEN_INCOMPLETE" in played.rows
    notes = played.artifact("reviews/work-notes-1.md")
    assert f"task 1, @make (implement) says that this is in the way: {GAP}" in notes
    assert "task 1, @test (write-tests) notes: blanks are not tested" in notes
    assert "@make (implement) reports a bug that was there before, and that is filed: greet(1) fails" in notes
    assert GAP in played.artifact("summary.md")
    prompts = [
        path.read_text() for path in played.project.run_folder().glob("dispatches/*final-review-check*/prompt.md")
    ]
    assert len(prompts) == 1
    assert "work-notes-1.md" in prompts[0]
