"""One worktree, one unfinished run; what a repository brings along, has as its base, and asks of commits."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest
from e2e.shapes import FAST, SUMS_HONEST, sums_project
from kit import (
    AFTER_MAKE,
    HONEST,
    ISSUE,
    MAKE,
    PLAN,
    PLAN_ACCEPTED,
    PLAN_SIMPLE,
    SPLIT,
    SPLIT_ACCEPTED,
    TESTS,
    UNTIL_TESTS,
    make_project,
)

if TYPE_CHECKING:
    from pathlib import Path

    from kit import Project


pytestmark = pytest.mark.slow


@pytest.mark.broad
def test_a_second_unfinished_run_in_one_worktree_is_refused_before_any_agent_is_asked(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    project.write({"TODO/GAL-2.md": ISSUE.replace("GAL-1", "GAL-2")})
    project.commit("a second issue")
    project.use_script(HONEST)
    assert project.run("--approve", "plan")["reason"] == "approval"

    refused = project.document("run", "GAL-2")
    assert (refused["_code"], refused["error"]["kind"]) == (75, "locked")
    assert "redfirst abandon run-GAL-1" in refused["error"]["safe_next_actions"]
    assert not project.run_folder("run-GAL-2").exists()

    assert project.document("approve", "GAL-1")["outcome"] == "completed"


@pytest.mark.broad
def test_the_claim_of_a_run_whose_folder_was_deleted_can_be_given_back(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    project.use_script(UNTIL_TESTS)
    assert project.run("--approve", "split")["reason"] == "approval"
    shutil.rmtree(project.root / ".workflow")
    project.git("checkout", "--", "TODO")
    assert project.document("run", "GAL-1")["error"]["kind"] == "claimed_elsewhere"

    freed = project.document("abandon", "run-GAL-1")
    assert (freed["_code"], freed["issue"]) == (0, "GAL-1")
    assert project.git("for-each-ref", "refs/redfirst/claims") == ""
    project.use_script(HONEST)
    assert project.run()["outcome"] == "completed"


def test_a_folder_with_a_dollar_in_its_name_is_found(tmp_path: Path) -> None:
    place = tmp_path / "$HOME and $x"
    place.mkdir()
    project = make_project(place)
    assert project.document("runs")["ok"] is True


# --- a `.workflow` that the repository brings: the driver would write through its links -------------------------------


@pytest.mark.broad(but_first=1)
@pytest.mark.parametrize("name", [".workflow", ".workflow/.gitignore", ".workflow/run-GAL-1/journal.jsonl"])
def test_nothing_is_written_through_a_link_of_the_repository(name: str, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    if name == ".workflow":
        victim.mkdir()
    else:
        victim.write_text("precious\n")
    project = make_project(tmp_path)
    link = project.root / name
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(victim)
    project.git("add", "--force", name)
    project.git("commit", "--quiet", "--message", "planted")
    project.use_script(HONEST)
    document = project.run()
    assert (document["_code"], document["error"]["kind"]) == (2, "usage"), document
    assert name in document["error"]["message"]
    assert victim.read_text() == "precious\n" if victim.is_file() else list(victim.iterdir()) == []


def test_a_run_that_the_repository_brings_is_not_gone_on_with(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    project.use_script(HONEST)
    assert project.run("--approve", "plan")["reason"] == "approval"
    project.git("add", "--force", ".workflow/run-GAL-1/run.json")
    project.git("commit", "--quiet", "--message", "planted", "--", ".workflow/run-GAL-1/run.json")
    document = project.document("approve", "GAL-1")
    assert (document["_code"], document["error"]["kind"]) == (2, "usage"), document


# --- a clone with no local branch of the base: origin's own is the base, and landing is a push ------------------------

STORY = [PLAN, PLAN_ACCEPTED, PLAN_SIMPLE, SPLIT, SPLIT_ACCEPTED, TESTS, MAKE, *AFTER_MAKE]


def cloned(tmp_path: Path) -> tuple[Project, Path]:
    """Return a project whose base, `trunk`, is only origin's."""
    project = make_project(tmp_path)
    project.use_script(STORY)
    hub = tmp_path / "hub.git"
    project.git("init", "-q", "--bare", "-b", "trunk", str(hub))
    project.git("remote", "add", "origin", str(hub))
    project.git("push", "-q", "origin", "HEAD:trunk")
    project.git("fetch", "-q", "origin")
    project.git("remote", "set-head", "origin", "trunk")
    here = project.git("branch", "--show-current").strip()
    for name in project.git("for-each-ref", "--format=%(refname:short)", "refs/heads").split():
        if name != here:
            project.git("branch", "-q", "-D", name)
    return project, hub


@pytest.mark.broad
def test_origins_own_branch_is_the_base_and_land_says_what_to_push(tmp_path: Path) -> None:
    project, hub = cloned(tmp_path)
    branch = project.git("branch", "--show-current").strip()
    said = {check["id"]: check for check in project.document("doctor", "--json")["checks"]}
    assert said["repository"]["message"].endswith("base origin/trunk")
    document = project.run()
    assert document["outcome"] == "completed", document
    push = f"git push origin {branch}:trunk"
    assert push in str(document)
    refused = project.redfirst("land")
    assert refused.returncode == 2
    assert push in refused.stderr + refused.stdout
    assert project.git("rev-parse", "origin/trunk") != project.git("rev-parse", "HEAD")  # nobody pushed
    project.git(*push.split()[1:])
    assert project.git("rev-parse", "trunk", cwd=hub) == project.git("rev-parse", "HEAD")
    assert push not in project.redfirst("show").stdout


def test_a_local_branch_of_that_name_is_the_base(tmp_path: Path) -> None:
    project, _ = cloned(tmp_path)
    project.git("branch", "trunk", "origin/trunk")
    said = {check["id"]: check for check in project.document("doctor", "--json")["checks"]}
    assert said["repository"]["message"].endswith("base trunk")


# --- what is asked of commits: sign-off, ticket, pattern, and hooks that a run does not start -------------------------

HOOK = """#!/bin/sh
grep -q '^Signed-off-by: ' "$1" || { echo no sign-off >&2; exit 1; }
grep -q '^Refs: GAL-1$' "$1" || { echo no footer >&2; exit 1; }
head -1 "$1" | grep -q '^GAL-[0-9]*: ' || { echo no ticket >&2; exit 1; }
"""
RULES = """
[commits]
sign_off = true
subject = "{issue}: {type}: {title}"
pattern = '^GAL-\\d+: '
footers = ["Refs: {issue}"]
"""


def hooked(project: Project, text: str = HOOK, name: str = "commit-msg") -> Path:
    hook = project.root / ".git" / "hooks" / name
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(text, encoding="utf-8")
    hook.chmod(0o755)
    return hook


def test_each_commit_is_as_the_hook_wants_it(tmp_path: Path) -> None:
    project = sums_project(tmp_path, extra=FAST + RULES)
    hook = hooked(project)
    before = project.git("rev-parse", "HEAD")
    document = project.run()
    assert document["outcome"] == "completed", document
    assert f"the commit-msg hook ({hook}) is not run" in document["_stderr"]
    commits = project.git("rev-list", f"{before.strip()}..HEAD").split()
    assert len(commits) > 1
    for commit in commits:
        message = tmp_path / "message"
        message.write_text(project.git("log", "-1", "--format=%B", commit) + "\n", encoding="utf-8")
        said = subprocess.run([hook, message], capture_output=True, text=True, check=False)
        assert (said.returncode, said.stderr) == (0, ""), message.read_text(encoding="utf-8")


def test_a_pattern_that_no_commit_would_match_stops_before_anybody_is_asked(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    project.use_script(SUMS_HONEST, "\n[commits]\npattern = '^GAL-\\d+: '\n")
    document = project.run()
    assert document["ok"] is False
    assert "'feat: take what it says'" in document["error"]["message"]
    assert 'subject = "{issue}: {type}: {title}"' in document["error"]["message"]
    assert not (project.root / ".workflow").exists() or not list((project.root / ".workflow").glob("run-*"))


@pytest.mark.broad
@pytest.mark.parametrize(
    ("text", "extra", "is_told"),
    [
        ("#!/bin/sh\nexec pre-commit run\n", "", True),
        ("#!/bin/sh\nexec pre-commit run\n", '\n[checks]\ncommands = [["ruff", "check"]]\n', True),
        ("#!/bin/sh\nexec pre-commit run\n", '\n[checks]\ncommands = [["pre-commit", "run", "-a"]]\n', False),
        ("#!/bin/sh\nmake lint\n", '\n[checks]\ncommands = [["sh", ".githooks/pre-commit"]]\n', False),
        ("#!/bin/sh\nmake lint\n", '\n[commits]\nhooks = ["pre-commit"]\n', False),
    ],
)
def test_doctor_says_which_hook_is_not_run(tmp_path: Path, text: str, extra: str, is_told: bool) -> None:
    project = make_project(tmp_path)
    hook = hooked(project, text, "pre-commit")
    project.use_script(SUMS_HONEST, extra)
    checks = project.document("doctor", "--json")["checks"]
    told = [check for check in checks if check["id"] == "hooks"]
    assert bool(told) is is_told
    assert all(str(hook) in check["message"] and "[checks]" in check["message"] for check in told)
