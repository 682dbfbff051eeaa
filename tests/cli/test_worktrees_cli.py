"""Runs in several worktrees, from the real program: what is listed where, and whether what is printed works there."""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from kit import HONEST, ISSUE, REDFIRST, Project, make_project
from runs.real import git, make_repository

from pipeline.app.worktrees import left_behind, slug_of
from pipeline.repo import Repository

pytestmark = pytest.mark.slow


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A project with GAL-1 parked at its first gate in the linked worktree project-gal-1."""
    made = make_project(tmp_path)
    made.use_script(HONEST)
    assert made.run("--worktree", "--approve", "plan")["reason"] == "approval"
    return made


@pytest.mark.parametrize(
    ("title", "slug"),
    [
        ("Reject empty names", "reject-empty-names"),
        ("A negative max_length is taken without a word", "a-negative-max-length-is-taken"),
        ("Say more than one word at the end of the road", "say-more-than-one-word-at-the-end"),
        ("Do not cut where the fortieth letter-- is the end", "do-not-cut-where-the-fortieth-letter"),
        ("To the", "to-the"),
        ("x" * 50, "x" * 40),
        ("!?", ""),
    ],
)
def test_a_branch_ends_with_a_whole_word_that_could_end_a_sentence(title: str, slug: str) -> None:
    assert slug_of(title) == slug


@pytest.mark.parametrize("flags", [("--agent", "humn"), ("--set", "limits.sean=1")])
def test_flags_that_no_run_can_begin_with_are_refused_before_a_worktree_is_made(
    tmp_path: Path, flags: tuple[str, str]
) -> None:
    made = make_project(tmp_path)
    there, branches = sorted(tmp_path.iterdir()), git(made.root, "branch")
    done = made.redfirst("run", "GAL-1", "--worktree", *flags)
    assert done.returncode == 2, done.stderr
    assert "made the worktree" not in done.stderr
    assert (sorted(tmp_path.iterdir()), git(made.root, "branch")) == (there, branches)


def typed(project: Project, command: str) -> subprocess.CompletedProcess[str]:
    """Run a command as it was printed, where it was printed."""
    words = shlex.split(command, comments=True)
    if words[0] == "redfirst":
        return project.redfirst(*words[1:])
    env = project.environment()
    return subprocess.run(["sh", "-c", command], cwd=project.root, env=env, capture_output=True, text=True, check=False)


def all_work(project: Project, actions: list[str]) -> None:
    for action in actions:
        done = typed(project, action)
        assert done.returncode == 0, f"{action}: {done.stderr}"


def listed(project: Project, *argv: str) -> list[dict[str, Any]]:
    return project.document("issue", *argv)["issues"]


def test_what_is_not_committed_is_said_not_to_be_in_the_new_worktree(tmp_path: Path) -> None:
    here = make_repository(tmp_path / "here", {"app.py": "one\n"})
    git(tmp_path / "here", "worktree", "add", "-q", str(tmp_path / "there"), "HEAD", "-b", "new")
    made = Repository.find(tmp_path / "there")
    assert left_behind(here, made) == ()
    (tmp_path / "here" / "app.py").write_text("two\n")
    (tmp_path / "here" / "note.txt").write_text("new\n")
    assert left_behind(here, made) == ("not committed, so not in that worktree: app.py, note.txt",)


@pytest.mark.broad
def test_a_run_of_another_worktree_is_seen_and_answered_from_the_main_checkout(project: Project) -> None:
    there = project.root.parent / "project-gal-1"
    (line,) = project.document("runs")["runs"]
    assert (line["name"], line["worktree"], line["status"]) == ("run-GAL-1", str(there), "parked")
    said = project.redfirst("doctor", "--json", cwd=there).stdout
    worktree = next(each for each in json.loads(said)["checks"] if each["id"] == "worktree")
    assert worktree["status"] == "ok", worktree
    assert "TODO/GAL-1.md" in worktree["message"], "what a live run shows is no work to commit or stash"
    shown = project.document("show", "GAL-1")
    all_work(project, [each for each in shown["safe_next_actions"] if each.split()[1] in {"show", "diff"}])
    done = project.document("approve", "GAL-1")
    assert (done["outcome"], done["run_dir"]) == ("completed", str(there / ".workflow/run-GAL-1"))
    all_work(project, done["safe_next_actions"])
    assert any(f"git -C {there} log" in action for action in done["safe_next_actions"])
    assert project.git("status", "--porcelain") == ""
    assert project.git("log", "--format=%s", "-1", cwd=there).startswith("chore(todo)")
    assert project.redfirst("diff", "GAL-1", "--stat").stdout.splitlines()[-1].startswith("2 files")
    project.git("worktree", "remove", str(there))
    refused = project.document("show", "GAL-1")["error"]
    assert "is over, and its folder is gone" in refused["message"]
    all_work(project, refused["safe_next_actions"])


@pytest.mark.broad
def test_a_claimed_issue_is_not_ready_and_a_second_start_says_who_has_it(project: Project) -> None:
    there = project.root.parent / "project-gal-1"
    claim = {"run": "run-GAL-1", "worktree": str(there), "status": "parked"}
    assert [issue["claim"] for issue in listed(project, "list")] == [claim]
    assert listed(project, "ready") == []
    assert f"GAL-1 is not listed: claimed by run-GAL-1 in {there}, parked" in project.redfirst("issue", "ready").stderr
    assert "run-GAL-1 in project-gal-1: parked" in project.redfirst("issue", "list").stdout
    for again in (["run", "GAL-1"], ["run", "GAL-1", "--worktree"]):
        refused = project.document(*again)
        assert (refused["error"]["kind"], refused["_code"]) == ("claimed_elsewhere", 75)
        assert f"run-GAL-1 in {there}, which is parked at approval point plan (1 of 1)" in refused["error"]["message"]
        assert "remove" not in refused["error"]["message"]
        assert "redfirst" not in refused["error"]["message"], "a command stands once, in what is next"
        actions = refused["error"]["safe_next_actions"]
        assert actions == ["redfirst show run-GAL-1", "redfirst approve run-GAL-1", "redfirst abandon run-GAL-1"]
    all_work(project, [actions[0], actions[2]])
    assert [issue["id"] for issue in listed(project, "ready")] == ["GAL-1"]


@pytest.mark.broad
def test_a_claim_of_a_deleted_worktree_is_named_and_freed_from_another(project: Project) -> None:
    there = project.root.parent / "project-gal-1"
    project.git("worktree", "lock", "--reason", "on a disk", str(there))
    shutil.rmtree(there)
    assert "on a disk" in project.document("abandon", "GAL-1")["error"]["message"]
    project.git("worktree", "unlock", str(there))
    (line,) = project.document("runs")["runs"]
    assert (line["name"], line["status"], line["issue"]) == ("run-GAL-1", "gone", "GAL-1")
    assert "redfirst abandon GAL-1" in line["problem"]
    for asked in (["show", "GAL-1"], ["run", "GAL-1", "--worktree"]):
        assert project.document(*asked)["error"]["safe_next_actions"] == ["redfirst abandon GAL-1"]
    all_work(project, ["redfirst abandon GAL-1"])
    again = project.run("--worktree")
    assert (again["outcome"], again["branch"]) == ("completed", "gal-1-2-reject-empty-names")
    assert again["run_id"] == "run-GAL-1@2"


@pytest.mark.broad
def test_what_is_refused_elsewhere_is_mended_where_it_is_said(project: Project) -> None:
    there = project.root.parent / "project-gal-1"
    refused = project.document("resume", "GAL-1")
    assert refused["error"]["safe_next_actions"][0] == "redfirst approve run-GAL-1"
    (there / "greet.py").write_text("mine\n", encoding="utf-8")
    parked = project.document("approve", "GAL-1")
    assert parked["reason"] == "worktree_changed"
    assert f"git -C {there} status" in parked["safe_next_actions"]
    all_work(project, [each for each in parked["safe_next_actions"] if each.startswith("git")])
    project.git("commit", "--quiet", "--message", "mine", "--only", "--", "greet.py", cwd=there)
    parked = project.document("resume", "GAL-1")
    assert parked["reason"] == "branch_moved"
    for document in (parked, project.document("show", "GAL-1")):
        assert f"git -C {there} cherry-pick" in document["note"], "within a sentence, too"
        assert "git cherry-pick" not in document["note"]


@pytest.mark.broad
def test_an_issue_that_is_not_committed_is_no_missing_one(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    project.use_script(HONEST)
    filed = project.redfirst("issue", "new", "--title", "Reject long names", "--id", "GAL-2", "--body", "TODO/GAL-1.md")
    assert (filed.stdout, "TODO/GAL-2.md" in filed.stderr, "commit it" in filed.stderr) == ("GAL-2\n", True, True)
    for asked in (
        ("run", "GAL-2", "--worktree"),
        ("agents", "try", "check", "--kind", "review-plan", "--issue", "GAL-2"),
    ):
        refused = project.document(*asked)["error"]
        assert "TODO/GAL-2.md is not committed" in refused["message"], refused
        assert (refused["kind"], refused["path"]) == ("issue_not_found", "TODO/GAL-2.md")
        assert refused["safe_next_actions"] == ["git add TODO && git commit -m 'file GAL-2'"]
    project.git("switch", "--quiet", "--create", "elsewhere")
    all_work(project, refused["safe_next_actions"])
    refused = project.document("run", "GAL-2", "--worktree")["error"]
    assert refused["safe_next_actions"] == ["redfirst run GAL-2 --worktree --base elsewhere"]
    all_work(project, refused["safe_next_actions"])
    assert "There is no issue GAL-3" in project.document("run", "GAL-3", "--worktree")["error"]["message"]


@pytest.mark.broad
def test_what_was_printed_before_something_failed_is_not_printed_again(project: Project) -> None:
    project.write({"TODO/GAL-2.md": ISSUE.replace("GAL-1", "GAL-2")})
    with Path("/dev/full").open("w") as full:
        asked = subprocess.run(
            [str(REDFIRST), "issue", "ready"],
            cwd=project.root,
            env=project.environment(),
            stdout=subprocess.PIPE,
            stderr=full,
            text=True,
            check=False,
        )
    assert asked.stdout.count("GAL-2") == 1


def test_a_worktree_of_a_run_that_is_refused_is_taken_back(tmp_path: Path) -> None:
    made = make_project(tmp_path)
    made.use_script(HONEST)
    made.configure('[agents]\nbackend = "command"\nargv = ["no-such-program"]\n')
    before = made.git("for-each-ref"), made.git("worktree", "list")
    refused = made.document("run", "GAL-1", "--worktree")
    assert refused["_code"] == 2
    assert f"took back the worktree {tmp_path / 'project-gal-1'}" in refused["_stderr"]
    assert not any("project-gal-1" in action for action in refused["error"]["safe_next_actions"])
    assert (made.git("for-each-ref"), made.git("worktree", "list")) == before
    assert not (tmp_path / "project-gal-1").exists()
