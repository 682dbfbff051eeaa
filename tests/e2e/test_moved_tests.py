"""Whole runs: a test file gets another name. Its tests are kept under the new one, and are neither new nor removed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from e2e.shapes import evidence
from kit import (
    AFTER_MAKE,
    FILES,
    MAKE,
    PLAN,
    PLAN_ACCEPTED,
    PLAN_SIMPLE,
    SPLIT_ACCEPTED,
    TASK,
    Project,
    judge,
    make_project,
)

if TYPE_CHECKING:
    from pathlib import Path

    from kit import Entry

pytestmark = [pytest.mark.slow, pytest.mark.broad]

OLD, NEW = "tests/test_greet.py", "tests/test_greeting.py"
MOVE = {"path": NEW, "action": "rename", "from": OLD}
BEFORE = FILES[OLD]


def played(tmp_path: Path, text: str, *answers: Entry, **task: Any) -> tuple[Project, dict[str, Any]]:
    """Return the run of one task in which @test moves the file of tests and leaves this text in it."""
    project = make_project(tmp_path)
    split = {"when": {"kind": "split"}, "report": {"tasks": [{**TASK, "test_files": [MOVE], **task}]}}
    moved = {"when": {"kind": "write-tests"}, "files": {OLD: None, NEW: text}, "report": {"verdict": "TESTS_READY"}}
    entries = [PLAN, PLAN_ACCEPTED, PLAN_SIMPLE, split, SPLIT_ACCEPTED, moved, *answers, *AFTER_MAKE]
    project.use_script(entries, '[agents.simplify]\nbackend = "off"\n')
    return project, project.run()


def moved_only(tmp_path: Path, text: str, *answers: Entry) -> tuple[Project, dict[str, Any]]:
    """Return the run of a task that only moves tests."""
    return played(tmp_path, text, *answers, evidence="regression", files=[], symbols=[])


@pytest.mark.broad
def test_a_task_may_move_a_test_file_and_nothing_else(tmp_path: Path) -> None:
    project, document = moved_only(tmp_path, BEFORE)
    assert document.get("outcome") == "completed", (project.rows(), document["_stderr"])
    assert "write-tests/RED" in project.rows()
    assert project.git("diff", "--name-status", "HEAD~2", "HEAD~1") == f"R100\t{OLD}\t{NEW}"
    (old,) = evidence(project, "baseline.json")["outcomes"]
    ledger = evidence(project, "task-1.json")["ledger"]
    assert (ledger["red"], list(ledger["guards"])) == ({}, [old.replace(OLD, NEW)])
    found = project.redfirst("verify", "HEAD~1")
    assert "moved" in found.stdout, found.stdout
    assert "refuted" not in found.stdout, found.stdout


@pytest.mark.broad
def test_a_test_file_that_moves_with_its_module_is_none_that_was_changed_to_fit(tmp_path: Path) -> None:
    files = [{"path": "greeting.py", "action": "create"}, {"path": "greet.py", "action": "delete"}]
    moved = {**MAKE, "files": {"greeting.py": FILES["greet.py"], "greet.py": None}}
    text = BEFORE.replace("from greet ", "from greeting ")
    symbols = [{"path": "greeting.py", "name": "greet", "new": True}]
    agrees = judge("tests", verdict="ACCEPTABLE")
    project, document = played(tmp_path, text, agrees, moved, files=files, symbols=symbols)
    assert document.get("outcome") == "completed", (project.rows(), document["_stderr"])
    assert "implement/HIDDEN_REGRESSION" not in project.rows()
    found = project.redfirst("verify", "HEAD~1")
    assert "refuted" not in found.stdout, found.stdout
