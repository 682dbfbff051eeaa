"""Whole runs: old tests are measured as they were over the new code, whatever was done to their text."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from e2e.lanes import play
from e2e.shapes import FAST, SUMS, answers, evidence, sums_project
from e2e.test_done_is_done import BREAKING
from e2e.test_masked_tests import PATCHES
from kit import FILES, GREET_DONE, HONEST, TEST_GREET, TEST_GREET_NEW, judge, make_project

if TYPE_CHECKING:
    from pathlib import Path

    from e2e.lanes import Played
    from kit import Entry

pytestmark = pytest.mark.slow

SIGNAL = "implement/HIDDEN_REGRESSION"
OLD = "greet.check::nothing"
AGREES = judge("tests", verdict="ACCEPTABLE")


def played(tmp_path: Path, changed: str, new: str, code: str, *answered: Entry, **task: Any) -> Played:
    """Return a run in which the old check becomes *changed*, beside a *new* one, and the sum *code*."""
    script = answers(SUMS, {"greet.check": f"nothing: {changed}\ntwo: {new}\n"}, {"greet.sum": f"{code}\n"})
    script[3]["report"]["tasks"][0] |= task
    before = [one for one in answered if one is AGREES]
    after = [one for one in answered if one is not AGREES]
    return play(sums_project(tmp_path), [*script[:6], *before, script[6], *after, *script[7:]], extra=FAST)


def told(played: Played) -> str:
    return played.asked("diagnose", role="check").text("test_output")


def test_a_changed_test_over_broken_code_is_a_signal_and_none_over_right_code(tmp_path: Path) -> None:
    wrong = judge("diagnose", diagnosis="production_logic", notes="nothing stays nothing")
    right = answers(SUMS, {}, {"greet.sum": "greet n = n * 2\n"})[6]
    found = played(tmp_path, "greet 2 = 4", "greet 2 = 4", "greet n = n + 2", AGREES, wrong, right)
    assert found.document["outcome"] == "completed", (found.rows, found.document["note"])
    assert found.rows.count(SIGNAL) == 1, "over the code that makes nothing of nothing again, the test may be another"
    assert f"changed to fit: {OLD} fails: " in told(found)
    assert evidence(found.project, "task-1.json")["green"]["as_they_were"] == []
    checked = found.project.redfirst("verify", "HEAD~1")
    assert checked.returncode == 0, checked.stdout


def test_what_the_task_lists_is_told_to_the_final_review_by_its_id_and_reason(tmp_path: Path) -> None:
    listed = [{"id": OLD, "reason": "the issue adds one"}]
    found = played(tmp_path, "greet 0 = 1", "greet 2 = 3", "greet n = n + 1", tests_to_change=listed)
    assert found.document["outcome"] == "completed", (found.rows, found.document["note"])
    line = f"{OLD} fails in its old form, as planned: the issue adds one"
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
    script = answers(FILES, {"tests/test_greet.py": other}, {"greet.py": renamed}, symbols=symbols)
    found = play(make_project(tmp_path), [*script[:7], leave, *script[7:]])
    assert found.document["outcome"] == "completed", (found.rows, found.document["note"])
    assert found.rows.count(SIGNAL) == 1, found.rows
    assert "tests/test_greet.py cannot be collected any more: ImportError: cannot import name 'greet'" in told(found)
    assert len(found.dispatches("implement")) == 1, "what is listed since is measured again, and nobody is asked"


NEAR = "from greet import greet\n\n\ndef test_it_ends_so():\n    assert greet('Bob').endswith('!')\n"
FAR = "".join(f"def test_{n}():\n    assert {n} < 3\n\n\n" for n in range(3))
MEASURED = "the old tests as they were over the new code, must pass: "


@pytest.mark.parametrize(("above", "ran"), [("", 2), ("import test_greet\n\n\n", 5)])
def test_with_the_changed_file_only_its_nearest_are_run_if_no_other_file_mentions_it(
    tmp_path: Path, above: str, ran: int
) -> None:
    files = {**FILES, "tests/test_near.py": NEAR, "tests/test_of_numbers.py": above + FAR}
    found = play(make_project(tmp_path, files), HONEST)
    assert found.document["outcome"] == "completed", (found.rows, found.document["note"])
    assert f"{MEASURED}{ran} passed" in found.document["_stderr"]
    assert "old tests near the change over the new code again" not in found.document["_stderr"], "that was such a run"


def test_a_changed_file_that_patches_the_code_for_its_neighbours_is_a_signal(tmp_path: Path) -> None:
    less = TEST_GREET.replace('== "Hello, Ada!"', '.startswith("Hello, Ada")')
    files = {**FILES, "tests/test_greet.py": less, "tests/test_near.py": NEAR, "tests/test_of_numbers.py": FAR}
    old = less.partition("\n")[2]
    tests = {"tests/test_greet.py": TEST_GREET_NEW.replace(TEST_GREET.partition("\n")[2], f"{PATCHES}\n{old}")}
    wrong = judge("diagnose", diagnosis="production_logic", notes="it has to end so")
    right = answers(FILES, {}, {"greet.py": GREET_DONE})[6]
    script = answers(FILES, tests, {"greet.py": BREAKING})
    found = play(make_project(tmp_path, files), [*script[:7], wrong, right, *script[7:]])
    assert found.rows.count(SIGNAL) == 1, (found.rows, found.document["note"])
    assert "changed to fit: tests/test_near.py::test_it_ends_so fails: " in told(found)
