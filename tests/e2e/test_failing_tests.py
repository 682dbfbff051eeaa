"""Whole runs: a test that fails already can be the RED of a task as it is, and Done means that it passes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from e2e.test_done_is_done import FAST, is_unpublished, played, until_tests
from kit import AFTER_MAKE, FILES, GREET, HONEST, MAKE, NEW_ID, TEST_GREET_NEW, TESTS, judge, make_project

if TYPE_CHECKING:
    from pathlib import Path

    from kit import Entry

pytestmark = [pytest.mark.slow, pytest.mark.broad]

FAILING = {**FILES, "tests/test_greet.py": TEST_GREET_NEW}
NAMES_IT = {"acceptance_criteria": [f"{NEW_ID} passes"]}
NOTHING: Entry = {**TESTS, "files": {}, "report": {"verdict": "TESTS_READY"}}


def test_make_this_failing_test_pass(tmp_path: Path) -> None:
    project = make_project(tmp_path, FAILING)
    document = played(project, [*until_tests(**NAMES_IT), NOTHING, MAKE, *AFTER_MAKE])
    assert document.get("outcome") == "completed", document["_stderr"]
    assert project.rows()[6:8] == ["write-tests/RED", "implement/GREEN"]
    evidence = json.loads((project.run_folder() / "evidence/task-1.json").read_text(encoding="utf-8"))
    assert list(evidence["ledger"]["red"]) == [NEW_ID]
    checked = project.document("verify", "work~1")
    assert checked["_code"] == 0, checked


@pytest.mark.broad
def test_a_failing_test_of_another_file_is_taken_with_the_leave_of_check(tmp_path: Path) -> None:
    project = make_project(tmp_path, {**FAILING, "tests/test_other.py": "def test_other():\n    assert True\n"})
    task = {"test_files": [{"path": "tests/test_other.py", "action": "modify"}]}
    named = {**NOTHING, "report": {"verdict": "TESTS_READY", "tests": [{"id": NEW_ID}]}}
    agreed = judge("tests", verdict="ACCEPTABLE")
    document = played(project, [*until_tests(**task), named, agreed, MAKE, *AFTER_MAKE])
    assert project.rows()[6:9] == ["write-tests/DISPUTED", "check-tests/ACCEPTABLE", "implement/GREEN"]
    assert document.get("outcome") == "completed", document["_stderr"]


@pytest.mark.broad
def test_judged_by_regression_the_named_test_passes_or_nothing_is_done(tmp_path: Path) -> None:
    project = make_project(tmp_path, FAILING)
    task = {"evidence": "regression", **NAMES_IT}
    lazy = {**MAKE, "files": {"greet.py": GREET + "\n# tidied\n"}}
    entries = [*until_tests(**task), lazy, *AFTER_MAKE]
    document = played(project, entries)
    assert "implement/NOT_GREEN" in project.rows()
    assert is_unpublished(project, document)


@pytest.mark.broad
def test_the_next_run_takes_up_what_a_failed_one_left_on_the_branch(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    stuck = FAST + '[limits]\nplan_rework = 0\n[failure]\nkeep = "wip"\n'
    wrong = {**MAKE, "files": {"greet.py": GREET + "\n# wrong\n"}}
    gives_up = judge("diagnose", diagnosis="plan", notes="it is wrong")
    failed = played(project, [*until_tests(), TESTS, wrong, gives_up], stuck)
    assert failed.get("outcome") == "failed", failed["_stderr"]
    project.use_script(HONEST)
    again = project.run()
    assert again.get("outcome") == "completed", again["_stderr"]
    assert project.rows("run-GAL-1@2")[6:8] == ["write-tests/RED", "implement/GREEN"]


TABLE = """from greet import greet

NAMED = {{"Ada": "Hello, Ada!"{more}}}


def outcome(name):
    try:
        return greet(name)
    except ValueError:
        return None


def test_each_name():
    for name, text in NAMED.items():
        assert outcome(name) == text
"""


@pytest.mark.broad
def test_rows_that_are_added_to_a_table_are_red_where_their_test_is_named(tmp_path: Path) -> None:
    test = "tests/test_greet.py::test_each_name"
    project = make_project(tmp_path, {**FILES, "tests/test_greet.py": TABLE.format(more="")})
    rows = {"tests/test_greet.py": TABLE.format(more=', "": None')}
    named = {**TESTS, "files": rows, "report": {"verdict": "TESTS_READY", "tests": [{"id": test}]}}
    agreed = judge("tests", verdict="ACCEPTABLE")
    document = played(project, [*until_tests(), named, agreed, MAKE, *AFTER_MAKE])
    assert document.get("outcome") == "completed", (project.rows(), document["_stderr"])
    assert project.rows()[6:9] == ["write-tests/CHANGED_OLD_TEST", "check-tests/ACCEPTABLE", "implement/GREEN"]
    evidence = json.loads((project.run_folder() / "evidence/task-1.json").read_text(encoding="utf-8"))
    assert list(evidence["ledger"]["red"]) == [test]
    checked = project.document("verify", "work~1")
    assert checked["_code"] == 0, checked
