"""What a killed move of the user's files left is taken back, and nothing that the user put there is."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from crashes import KILLED, die_at, problems
from e2e.shapes import SUM_CODE, SUMS, answers, sums_project

if TYPE_CHECKING:
    from pathlib import Path

    from kit import Project

pytestmark = pytest.mark.slow

TESTS = {"extra.check": "two: greet 2 = 4\n"}


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A project whose run has everything and waits at the gate before publication."""
    project = sums_project(tmp_path, answers(SUMS, TESTS, SUM_CODE))
    document = project.run("--approve", "commit")
    assert document.get("reason") == "approval", document
    return project


def as_first_version(project: Project) -> None:
    """Let the journal be one of version 0.1.0, which did not say when it moved the user's files."""
    lines = [line for line in project.journal() if line["kind"] != "publish_moving"]
    text = "".join(json.dumps({**line, "seq": number}) + "\n" for number, line in enumerate(lines, 1))
    (project.run_folder() / "journal.jsonl").write_text(text, encoding="utf-8")


def refused_then_killed(project: Project) -> None:
    """Let a publication be refused, and the driver that tries it again die in the middle."""
    project.write({"extra.check": "mine: greet 1 = 1\n"})
    assert project.document("approve", "GAL-1")["reason"] == "worktree_changed"
    (project.root / "extra.check").unlink()
    assert die_at(project, "after git read-tree -m", 1, "resume", "GAL-1") == KILLED
    as_first_version(project)


@pytest.mark.broad
def test_a_run_of_the_first_version_that_died_after_a_refusal_goes_on(project: Project) -> None:
    refused_then_killed(project)
    document = project.document("resume", "GAL-1")
    assert (document["_code"], document["outcome"]) == (0, "completed"), document
    assert problems(project) == []


@pytest.mark.broad
def test_a_run_of_the_first_version_that_died_after_a_refusal_is_given_up(project: Project) -> None:
    refused_then_killed(project)
    assert project.document("abandon", "GAL-1")["_code"] == 0
    assert project.untouched_since(project.git("rev-parse", "main"))


@pytest.mark.parametrize("content", ["", TESTS["extra.check"]])
@pytest.mark.broad
def test_a_file_of_the_user_that_ours_begins_with_stays(project: Project, content: str) -> None:
    project.write({"extra.check": content})
    assert die_at(project, "after journal publish_moving", 2, "approve", "GAL-1") == KILLED
    document = project.document("resume", "GAL-1")
    assert document["reason"] == "worktree_changed", document
    assert "extra.check" in document["note"]
    assert project.document("abandon", "GAL-1")["_code"] == 0
    assert (project.root / "extra.check").read_text(encoding="utf-8") == content


def test_a_shorter_file_of_the_user_that_stands_in_the_way_before_the_move_stays(project: Project) -> None:
    project.write({"greet.sum": ""})
    assert die_at(project, "before git read-tree -m", 1, "approve", "GAL-1") == KILLED
    assert project.document("abandon", "GAL-1")["_code"] == 0
    assert project.git("status", "--porcelain") == "M greet.sum"
