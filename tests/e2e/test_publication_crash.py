"""A driver that dies while it publishes: never a branch that is ahead of its files, never a second set of commits."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from crashes import KILLED, Result, die_at, problems
from e2e.shapes import SUM, SUM_DONE, sums_project

if TYPE_CHECKING:
    from pathlib import Path

    from kit import Project

pytestmark = pytest.mark.slow

INSTANTS = (
    "after git commit-tree",
    "before git update-ref .* refs/redfirst/publish",
    "after git update-ref .* refs/redfirst/publish",
    "after journal publish_intended",
    "after replace GAL-1.md",
    "after replace README.md",
    "before git read-tree -m",
    "after git read-tree -m",
    "after git update-ref .* refs/heads/work",
    "after journal published",
    "after git update-ref .* -d refs/redfirst/publish",
    "after git update-ref .* -d refs/redfirst/claims",
    "after replace summary.md",
    "after journal run_finished",
)
"""The sub-steps of a publication, in their order."""
TRACKER = {"TODO/GAL-1.md", "TODO/README.md"}
BETWEEN_FILES_AND_BRANCH = "after git read-tree -m"
A_FEW = ("after journal publish_intended", BETWEEN_FILES_AND_BRANCH, "after journal published")


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Result:
    """Return what the run comes to when nobody kills its driver."""
    project = sums_project(tmp_path_factory.mktemp("undisturbed"))
    assert project.run()["_code"] == 0
    return Result.of(project)


def died(tmp_path: Path, instant: str) -> Project:
    """Return a project whose driver died at *instant*, before anything was on the branch."""
    project = sums_project(tmp_path)
    assert die_at(project, instant, 1, "run", "GAL-1") == KILLED
    return project


def start_of(project: Project) -> str:
    """Return the commit that the run began at."""
    return project.git("rev-parse", "main")


def result_of(project: Project) -> str:
    """Return the last commit of the publication that the journal names."""
    intended = [line for line in project.journal() if line["kind"] == "publish_intended"]
    return intended[-1]["data"]["commits"][-1]


def check_branch_is_not_ahead(project: Project) -> None:
    """Assert that the branch is where it was, or that index and files are what it points to."""
    if project.git("rev-parse", "work") == start_of(project):
        staged = project.git("diff", "--cached", "--name-only")
        assert not staged or project.git("write-tree") == project.git("rev-parse", f"{result_of(project)}^{{tree}}")
    else:
        assert project.git("status", "--porcelain") == ""
        assert project.git("rev-parse", "work") == result_of(project)


@pytest.mark.broad(but_first=1)
@pytest.mark.parametrize("instants", [A_FEW, INSTANTS], ids=["a few", "each"])
def test_death_at_each_sub_step_ends_in_the_same_commits(
    instants: tuple[str, ...], tmp_path: Path, undisturbed: Result
) -> None:
    project = died(tmp_path, instants[0])
    for instant in instants[1:]:
        assert die_at(project, instant, 1, "resume", "GAL-1") == KILLED, instant
        check_branch_is_not_ahead(project)
    document = project.document("resume", "GAL-1")
    assert (document["_code"], document["outcome"]) == (0, "completed")
    assert document["commits"] == list(undisturbed.commits)
    assert Result.of(project) == undisturbed
    assert problems(project) == []
    assert [line["kind"] for line in project.journal()].count("publish_intended") == 1
    assert [line["kind"] for line in project.journal()].count("published") == 1


@pytest.mark.broad
def test_death_between_files_and_branch_leaves_our_change_staged_and_resume_commits_it(
    tmp_path: Path, undisturbed: Result
) -> None:
    project = died(tmp_path, BETWEEN_FILES_AND_BRANCH)
    assert project.git("rev-parse", "work") == start_of(project)
    assert (project.root / "greet.sum").read_text() == SUM_DONE
    assert project.git("diff", "--cached", "--name-only").splitlines() == [
        "TODO/GAL-1.md",
        "TODO/README.md",
        "greet.check",
        "greet.sum",
    ]
    # an edit of the user's that comes on top is theirs, and stays
    (project.root / "greet.sum").write_text(SUM_DONE + "# mine\n")
    assert project.document("resume", "GAL-1")["outcome"] == "completed"
    assert Result.of(project) == undisturbed
    assert (project.root / "greet.sum").read_text() == SUM_DONE + "# mine\n"


@pytest.mark.broad
def test_the_user_commits_what_was_staged_and_is_told_that_nothing_is_left_to_do(tmp_path: Path) -> None:
    project = died(tmp_path, BETWEEN_FILES_AND_BRANCH)
    project.git("commit", "--quiet", "--message", "mine")
    mine = project.git("rev-parse", "work")
    document = project.document("resume", "GAL-1")
    assert (document["_code"], document["outcome"], document["reason"]) == (4, "parked", "branch_moved")
    assert "already carries exactly this result" in document["note"]
    assert "redfirst abandon run-GAL-1" in document["safe_next_actions"]
    assert project.untouched_since(mine)
    assert project.document("abandon", "GAL-1")["_code"] == 0
    assert project.untouched_since(mine)
    assert problems(project) == []


@pytest.mark.broad
def test_the_user_commits_something_else_and_the_result_goes_on_top(tmp_path: Path, undisturbed: Result) -> None:
    project = died(tmp_path, BETWEEN_FILES_AND_BRANCH)
    project.write({"notes.txt": "mine\n"})
    project.git("add", "notes.txt")
    project.git("commit", "--quiet", "--message", "mine", "--only", "--", "notes.txt")
    document = project.document("resume", "GAL-1")
    assert (document["_code"], document["outcome"]) == (0, "completed"), document
    assert project.git("diff", "--name-only", "work", undisturbed.commits[-1], "--", ":!TODO") == "notes.txt"
    assert problems(project) == []


@pytest.mark.broad
def test_an_edit_of_a_touched_file_parks_the_run_and_undoing_it_lets_it_go_on(
    tmp_path: Path, undisturbed: Result
) -> None:
    project = died(tmp_path, "after journal publish_intended")
    (project.root / "greet.sum").write_text(SUM + "# mine\n")
    document = project.document("resume", "GAL-1")
    assert (document["_code"], document["reason"]) == (4, "worktree_changed")
    assert "greet.sum" in document["note"]
    assert (project.root / "greet.sum").read_text() == SUM + "# mine\n"
    assert project.git("rev-parse", "work") == start_of(project)
    assert project.git("diff", "--cached", "--name-only") == ""
    project.git("checkout", "--", "greet.sum")
    assert project.document("resume", "GAL-1")["outcome"] == "completed"
    assert Result.of(project) == undisturbed
    assert problems(project) == []


@pytest.mark.broad
def test_files_that_a_killed_git_left_half_written_are_written_again(tmp_path: Path, undisturbed: Result) -> None:
    project = died(tmp_path, "before git read-tree -m")
    for share in (0.0, 0.5, 1.0):
        for path in ("greet.sum", "TODO/GAL-1.md"):
            content = project.git("show", f"{result_of(project)}:{path}") + "\n"
            (project.root / path).write_text(content[: int(len(content) * share)])
        (project.root / "greet.check").unlink(missing_ok=True)  # git removes a file before it writes the new one
        assert die_at(project, "before git read-tree -m", 1, "resume", "GAL-1") == KILLED
        assert project.git("diff", "--name-only", "--diff-filter=M") == ""
    assert project.document("resume", "GAL-1")["outcome"] == "completed"
    assert Result.of(project) == undisturbed
    assert problems(project) == []


@pytest.mark.broad
def test_a_lock_that_we_may_not_have_left_is_named_and_our_own_are_removed(tmp_path: Path, undisturbed: Result) -> None:
    project = died(tmp_path, "before git read-tree -m")
    for name, reason in (("index.lock", "worktree_changed"), ("refs/heads/work.lock", "branch_moved")):
        lock = project.root / ".git" / name
        lock.write_bytes(b"")
        os.utime(lock, (1, 1))  # it was there before we began to publish
        document = project.document("resume", "GAL-1")
        assert (document["_code"], document["reason"]) == (4, reason)
        assert name in document["note"]
        assert "moved from" not in document["note"]
        lock.unlink()
        assert project.git("rev-parse", "work") == start_of(project)
        assert (project.root / "greet.sum").read_text() == SUM
        assert {line.split()[-1] for line in project.git("status", "--porcelain").splitlines()} <= TRACKER
    for name in ("index.lock", "refs/heads/work.lock", "HEAD.lock"):
        (project.root / ".git" / name).write_bytes(b"")
    assert project.document("resume", "GAL-1")["outcome"] == "completed"
    assert Result.of(project) == undisturbed
    assert problems(project) == []


@pytest.mark.broad
def test_a_run_that_is_abandoned_between_files_and_branch_takes_its_change_back(tmp_path: Path) -> None:
    project = died(tmp_path, BETWEEN_FILES_AND_BRANCH)
    assert project.document("abandon", "GAL-1")["_code"] == 0
    assert project.untouched_since(start_of(project))
    assert problems(project) == []
    assert "+greet n = n * 2" in (project.run_folder() / "work.patch").read_text()
