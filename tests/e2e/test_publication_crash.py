"""A driver that dies while it publishes, and branch, files or signature in the way: never a branch ahead of its files.

Nothing that the user put there is taken away, and there is never a second set of commits.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest
from crashes import KILLED, Result, die_at, problems
from e2e.lanes import Played, go_on, play
from e2e.shapes import SUM, SUM_CODE, SUM_DONE, SUMS, answers, sums_project
from kit import FILES, HONEST, MAKE, PLAN, SPLIT, TASK, make_project

if TYPE_CHECKING:
    from pathlib import Path

    from kit import Entry, Project

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


# --- what a killed move of the user's files left ----------------------------------------------------------------------

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


# --- what is in the way: parked, nothing changed, and how to go on (architecture) -------------------------------------

FAST = '[agents.simplify]\nbackend = "off"\n'
NEW_FILE = {"path": "messages.py", "action": "create"}
SCRIPT: list[Entry] = [
    {**PLAN, "report": {**PLAN["report"], "files": [*PLAN["report"]["files"], NEW_FILE]}},
    *HONEST[1:3],
    {**SPLIT, "report": {"tasks": [{**TASK, "files": [*TASK["files"], NEW_FILE]}]}},
    *HONEST[4:6],
    {**MAKE, "files": {**MAKE["files"], "messages.py": 'EMPTY = "a name is needed"\n'}},
    *HONEST[7:],
]


def parked_at_commit(tmp_path: Path) -> Played:
    """Return a run that has everything and waits for a person before it publishes."""
    project = make_project(tmp_path, {**FILES, "notes.txt": "mine\n", "TODO/GAL-2.md": FILES["TODO/GAL-1.md"]})
    project.write({"TODO/GAL-2.md": FILES["TODO/GAL-1.md"].replace("GAL-1", "GAL-2")})
    project.commit()
    played = play(project, SCRIPT, "--approve", "commit", extra=FAST)
    assert played.document.get("reason") == "approval", played.document
    return played


def standing(project: Project) -> tuple[str, str, str]:
    """Return all that a refused publication must leave alone: branch, index, files."""
    return project.git("rev-parse", "work"), project.git("write-tree"), project.git("status", "--porcelain")


@pytest.mark.broad
def test_whatever_is_in_the_way_parks_the_run_and_is_mended_one_by_one(tmp_path: Path) -> None:
    parked = parked_at_commit(tmp_path)
    project = parked.project

    project.git("config", "commit.gpgsign", "true")
    project.git("config", "gpg.program", "/bin/false")
    before = standing(project)
    document = go_on(parked, "approve").document
    assert (document.get("reason"), document["_code"]) == ("signing", 4), document
    assert standing(project) == before
    project.git("config", "--unset", "commit.gpgsign")

    project.write({"messages.py": "# my own\n"})
    before = standing(project)
    document = go_on(parked, "resume").document
    assert (document.get("reason"), document["_code"]) == ("worktree_changed", 4), document
    assert "messages.py" in document["note"]
    assert standing(project) == before
    assert (project.root / "messages.py").read_text(encoding="utf-8") == "# my own\n"
    (project.root / "messages.py").unlink()

    project.write({"greet.py": "# edited\n", "notes.txt": "mine, edited\n"})
    before = standing(project)
    document = go_on(parked, "resume").document
    assert document.get("reason") == "worktree_changed", document
    assert "greet.py" in document["note"]
    assert standing(project) == before
    assert (project.root / "greet.py").read_text(encoding="utf-8") == "# edited\n"
    project.git("checkout", "--quiet", "--", "greet.py")

    issue = project.root / "TODO" / "GAL-1.md"
    ours = issue.read_text(encoding="utf-8")
    issue.write_text(ours + "\nA thought of mine.\n", encoding="utf-8")
    document = go_on(parked, "resume").document
    assert document.get("reason") == "worktree_changed", document
    assert "TODO/GAL-1.md" in document["note"]
    assert issue.read_text(encoding="utf-8").endswith("A thought of mine.\n")
    issue.write_text(ours, encoding="utf-8")

    project.git("commit", "--quiet", "--message", "mine", "--only", "--", "notes.txt")
    project.write({"notes.txt": "mine, edited again\n"})
    document = go_on(parked, "resume").document
    assert (document.get("outcome"), document["_code"]) == ("completed", 0), document
    assert parked.subjects() == ["mine", "fix: reject empty names", "chore(todo): close GAL-1"]
    assert (project.root / "notes.txt").read_text(encoding="utf-8") == "mine, edited again\n"
    assert project.git("status", "--porcelain") == "M notes.txt", "an edit elsewhere is in nobody's way"
    assert "status: Done" in issue.read_text(encoding="utf-8")
    assert len([line for line in project.journal() if line["kind"] == "publish_intended"]) == 2
