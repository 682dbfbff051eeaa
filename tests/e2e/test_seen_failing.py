"""Whole runs: what was seen failing on some bytes stays failing for them, until somebody has judged why.

The old test here counts, outside of everything that is compared, how often it met the new code, and fails in the runs
that it was told: what chance would do, done in order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from e2e.lanes import diagnoses, go_on, play
from e2e.test_done_is_done import TEST_NEW, is_unpublished, project_of, until_tests
from kit import AFTER_MAKE, GREET_DONE, MAKE, TESTS

if TYPE_CHECKING:
    from pathlib import Path

    from e2e.lanes import Played
    from kit import Entry, Project

pytestmark = pytest.mark.slow

UNBOXED = 'sandbox = "none"\n[agents.simplify]\nbackend = "off"\n'
OLD = "tests/test_count.py::test_counts"
NEW = "tests/test_new.py::test_empty"
FAILURE = "a counterexample was found"
UNTIL_MAKE: list[Entry] = [
    *until_tests(test_files=[{"path": "tests/test_new.py", "action": "create"}]),
    {**TESTS, "files": {"tests/test_new.py": TEST_NEW}, "report": {"verdict": "TESTS_READY"}},
]
MADE: Entry = {**MAKE, "files": {"greet.py": GREET_DONE}}
TO_MAKE = diagnoses(1, "production_logic", "the code has a hole")
TO_NOBODY = diagnoses(1, "environment", "the machine was full")


def counting(marks: Path, *failing: int, over: str = "a name is needed") -> str:
    """Return what fails in these of the runs that meet code with the words *over*."""
    return (
        "\n\ndef turn():\n    import greet, inspect, pathlib\n"
        f"    if {over!r} not in inspect.getsource(greet):\n        return\n"
        f"    marks = pathlib.Path({str(marks)!r})\n    marks.mkdir(exist_ok=True)\n"
        "    seen = len(list(marks.iterdir()))\n    (marks / str(seen)).touch()\n"
        f"    assert seen not in {failing!r}, {FAILURE!r}\n"
    )


def with_old_test(tmp_path: Path, *failing: int, over: str = "a name is needed") -> Project:
    turn = counting(tmp_path / "marks", *failing, over=over)
    return project_of(tmp_path, {"tests/test_count.py": f"import greet{turn}\n\ndef test_counts():\n    turn()\n"})


def unstable(played: Played) -> int:
    return played.rows.count("implement/GREEN_UNSTABLE")


def test_an_old_test_that_fails_once_is_a_question_and_the_same_bytes_do_not_answer_it(tmp_path: Path) -> None:
    project = with_old_test(tmp_path, 0)
    entries = [*UNTIL_MAKE, MADE, TO_MAKE, MADE, TO_NOBODY, TO_MAKE, *AFTER_MAKE]
    played = play(project, entries, extra=UNBOXED + "[limits]\nmake_retry = 3\n")
    assert unstable(played) == 2, played.rows
    assert (played.document["reason"], is_unpublished(project, played.document)) == ("environment", True)
    told = played.asked("diagnose").text("test_output")
    assert f"{OLD}: fails: " in told, "what is in question is named"
    assert FAILURE in told, "with the failure"
    assert FAILURE in played.asked("implement", 2).text("measured"), "@make is not asked over what seems well"
    # what a person has mended is measured again, and @make is not paid once more for the same bytes
    again = go_on(played, "resume")
    assert again.document.get("outcome") == "completed", (again.document, again.rows)


@pytest.mark.broad
def test_the_tasks_own_test_that_failed_once_stays_failing_for_the_same_bytes(tmp_path: Path) -> None:
    project = project_of(tmp_path)
    own = TEST_NEW.rstrip() + "\n    turn()\n" + counting(tmp_path / "marks", 1)
    tests = {**TESTS, "files": {"tests/test_new.py": own}, "report": {"verdict": "TESTS_READY"}}
    project.env |= {"REDFIRST_PROBES__REPEAT": "2"}
    played = play(project, [*UNTIL_MAKE[:-1], tests, MADE, TO_MAKE, MADE, TO_NOBODY], extra=UNBOXED)
    assert unstable(played) == 2, played.rows
    assert is_unpublished(project, played.document)


@pytest.mark.broad
def test_new_tests_that_two_runs_saw_differently_are_not_red_for_the_same_bytes(tmp_path: Path) -> None:
    marks = tmp_path / "marks"
    once = TEST_NEW.replace("    with ", "    if first():\n        return\n    with ")
    once += (
        f"\n\ndef first():\n    import pathlib\n    mark = pathlib.Path({str(marks)!r})\n"
        "    new = not mark.exists()\n    mark.touch()\n    return new\n"
    )
    varying = {**TESTS, "files": {"tests/test_new.py": once}, "report": {"verdict": "TESTS_READY"}}
    steady = {**varying, "files": {"tests/test_new.py": TEST_NEW}}
    played = play(project_of(tmp_path), [*UNTIL_MAKE[:-1], varying, varying, steady, MADE, *AFTER_MAKE], extra=UNBOXED)
    assert played.rows.count("write-tests/RED_UNSTABLE") == 2, played.rows
    assert "write-tests/RED" in played.rows, "other bytes are judged by themselves"
    assert played.document["outcome"] == "completed", played.document["_stderr"]
    said = played.asked("write-tests", 3).text("findings")
    assert f"unstable: {NEW}" in said
    assert "the same bytes" in said


@pytest.mark.broad
def test_what_fails_sometimes_over_the_code_before_as_well_is_flaky_as_ever(tmp_path: Path) -> None:
    project = with_old_test(tmp_path, 1, 2, 4, 6, over="def greet")
    played = play(project, [*UNTIL_MAKE, MADE, *AFTER_MAKE], extra=UNBOXED)
    assert played.document["outcome"] == "completed", (played.document["note"], played.rows)
    assert unstable(played) == 0


@pytest.mark.broad
def test_verify_refutes_a_commit_that_it_sees_failing_where_its_parent_never_does(tmp_path: Path) -> None:
    project = with_old_test(tmp_path, 50)
    played = play(project, [*UNTIL_MAKE, MADE, *AFTER_MAKE], extra=UNBOXED)
    assert played.document["outcome"] == "completed", (played.document["note"], played.rows)
    for number in range(50):
        (tmp_path / "marks" / str(number)).touch()
    found = project.document("verify", "run-GAL-1")
    assert found["_code"] == 7, found["_stderr"]
    assert "passed each time before, and fails sometimes now" in str(found["commits"])
