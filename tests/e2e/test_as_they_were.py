"""Whole runs: old tests are measured as they were over the new code, whatever was done to their text."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from e2e.lanes import play
from e2e.shapes import answers, evidence
from kit import FILES, GREET_DONE, MAKE, TEST_GREET_NEW, judge, make_project

if TYPE_CHECKING:
    from pathlib import Path

    from e2e.lanes import Played
    from kit import Entry

pytestmark = pytest.mark.slow

SIGNAL = "implement/HIDDEN_REGRESSION"
OLD = "tests/test_greet.py::test_greets_by_name"
EXACT = 'greet("Ada") == "Hello, Ada!"'
LOOSE = 'greet("Ada").startswith("Hello")'
BROKEN = GREET_DONE.replace("!", ".")
AGREES = judge("tests", verdict="ACCEPTABLE")
CODE = judge("diagnose", diagnosis="production_logic", notes="a greeting ends with !")


def played(tmp_path: Path, tests: str, code: str, *answered: Entry, **task: Any) -> Played:
    """Return a run in which the old file of tests becomes *tests*, and the code *code*."""
    project = make_project(tmp_path)
    script = answers(FILES, {"tests/test_greet.py": tests}, {"greet.py": code})
    script[3]["report"]["tasks"][0] |= task
    at = next(at for at, one in enumerate(script) if one["when"] == {"kind": "implement"})
    before = [one for one in answered if one is AGREES]
    after = [one for one in answered if one is not AGREES]
    return play(project, [*script[:at], *before, script[at], *after, *script[at + 1 :]])


def told(played: Played) -> str:
    return played.asked("diagnose", role="check").text("test_output")


def test_a_loosened_test_over_broken_code_is_a_signal_and_none_over_right_code(tmp_path: Path) -> None:
    loosened = TEST_GREET_NEW.replace(EXACT, LOOSE)
    found = played(tmp_path, loosened, BROKEN, AGREES, CODE, MAKE)
    assert found.document["outcome"] == "completed", (found.rows, found.document["note"])
    assert found.rows.count(SIGNAL) == 1, "over the code that says `Hello, Ada!` again, the test may ask less"
    assert f"changed to fit: {OLD} fails: " in told(found)
    assert evidence(found.project, "task-1.json")["green"]["as_they_were"] == []
    checked = found.project.redfirst("verify", "HEAD~1")
    assert checked.returncode == 0, checked.stdout


def test_what_the_task_lists_is_told_to_the_final_review_by_its_id_and_reason(tmp_path: Path) -> None:
    changed = TEST_GREET_NEW.replace("Hello, Ada!", "Hello, Ada.")
    listed = [{"id": OLD, "reason": "the issue ends it with a dot"}]
    found = played(tmp_path, changed, BROKEN, tests_to_change=listed)
    assert found.document["outcome"] == "completed", (found.rows, found.document["note"])
    line = f"{OLD} fails in its old form, as planned: the issue ends it with a dot"
    assert line in found.asked("final-review", role="check").text("evidence")
    checked = found.project.redfirst("verify", "HEAD~1")
    assert checked.returncode == 0, checked.stdout
    assert line in checked.stdout
    place = found.folder / "evidence/task-1.json"  # as an earlier version wrote it
    earlier: dict[str, Any] = {**json.loads(place.read_text("utf-8")), "loosened": ["words"], "reworked": []}
    del earlier["green"]["as_they_were"]
    place.write_text(json.dumps(earlier), "utf-8")
    checked = found.project.redfirst("verify", "HEAD~1")
    assert checked.returncode == 0, checked.stdout


@pytest.mark.broad
def test_an_old_file_that_cannot_be_collected_any_more_is_a_signal_with_its_error(tmp_path: Path) -> None:
    other = TEST_GREET_NEW.replace("from greet import greet", "from greet import salute as greet")
    renamed = GREET_DONE.replace("def greet", "def salute")
    symbols = [{"path": "greet.py", "name": "salute", "new": True}]
    leave = judge(
        "diagnose",
        diagnosis="production_logic",
        notes="all is as the issue says",
        tests_to_change=[{"id": "tests/test_greet.py", "reason": "greet is called salute"}],
    )
    found = played(tmp_path, other, renamed, leave, symbols=symbols)
    assert found.document["outcome"] == "completed", (found.rows, found.document["note"])
    assert found.rows.count(SIGNAL) == 1, found.rows
    assert "tests/test_greet.py cannot be collected any more: ImportError: cannot import name 'greet'" in told(found)
    assert len(found.dispatches("implement")) == 1, "what is listed since is measured again, and nobody is asked"
