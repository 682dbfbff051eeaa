"""What @test and @make say of their own work reaches the reviewers and summary.md, whatever is measured."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from e2e.lanes import diagnoses, makes, module_task, module_test, modules_project, play, until_tests, writes
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


def test_what_stopped_make_before_other_tests_were_written_is_settled(tmp_path: Path) -> None:
    wrong = module_test(1, 2)
    gives_up = {"result": "INCOMPLETE", "blocking_issue": "the test wants 2", "out_of_scope": [{"title": "m1 is slow"}]}
    story: list[Entry] = [
        *until_tests(module_task(1)),
        writes(1, wrong),
        {**makes(1), "report": gives_up},
        diagnoses(1, "test_design", "one it is"),
        writes(1),
        *AFTER_MAKE,
    ]
    played = play(modules_project(tmp_path, range(1, 2)), story)
    assert played.document.get("outcome") == "completed", played.document["_stderr"]
    notes = played.artifact("reviews/work-notes-1.md")
    assert "m1 is slow" in notes
    assert "the test wants 2" not in notes


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
