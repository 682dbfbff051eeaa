"""What a repository asks of commits: sign-off, ticket, pattern, and hooks that a run does not start."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest
from e2e.shapes import FAST, SUMS_HONEST, sums_project
from kit import make_project

if TYPE_CHECKING:
    from pathlib import Path

    from kit import Project

pytestmark = pytest.mark.slow

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
