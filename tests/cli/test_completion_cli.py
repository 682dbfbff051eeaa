"""What the shell completes: words of the repository and of the program, without a sound where there is none."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from kit import REDFIRST, make_project

if TYPE_CHECKING:
    from pathlib import Path

    from kit import Project

pytestmark = pytest.mark.slow

HEAVY = {"anyio", "git", "todo", "tree_sitter", "pipeline.git", "pipeline.steps"}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    made = make_project(tmp_path_factory.mktemp("completed"))
    made.write({".workflow/run-GAL-1/run.json": "{}", ".workflow/run-GAL-1@2/run.json": "{}"})
    made.git("worktree", "add", "--quiet", str(made.root.parent / "linked"))
    (made.root.parent / "linked/.workflow/run-GAL-7").mkdir(parents=True)
    (made.root.parent / "linked/.workflow/run-GAL-7/run.json").touch()
    return made


def offered(folder: Path, line: str) -> list[str]:
    """Return what bash is offered for the last word of a line, and nothing else is printed."""
    env = {
        "PATH": os.environ["PATH"],
        "_REDFIRST_COMPLETE": "complete_bash",
        "COMP_WORDS": f"redfirst {line}",
        "COMP_CWORD": str(len(line.split(" "))),
    }
    done = subprocess.run([str(REDFIRST)], cwd=folder, env=env, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.split()


@pytest.mark.broad(but_first=1)
@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("run ", ["GAL-1"]),
        ("resume ", ["run-GAL-1", "run-GAL-1@2", "run-GAL-7"]),
        ("run GAL-1 --approve plan,", ["plan,split", "plan,commit"]),
        ("issue edit G", ["GAL-1"]),
        ("issue status GAL-1 in", ["in-progress"]),
        ("agents explain ma", ["make"]),
        ("agents try make --kind im", ["implement"]),
        ("config set budget.c", ["budget.cost_usd"]),
        ("run GAL-1 --set limits.st", ["limits.stub_retry="]),
        ("run GAL-1 --agent ma", ["make="]),
        ("run GAL-1 --agent pm=b", ["pm=builtin"]),
        ("run GAL-1 --agent make=h", ["make=human"]),
        ("init --agent com", ["command"]),
        ("schema dispatch-", ["dispatch-result"]),
    ],
)  # fmt: skip
def test_words_of_the_repository_and_of_the_program(project: Project, line: str, words: list[str]) -> None:
    assert offered(project.root, line) == words


@pytest.mark.broad
def test_outside_of_a_repository_nothing_is_offered_and_nothing_is_said(tmp_path: Path) -> None:
    for line in ("run ", "show ", "issue edit ", "verify "):
        assert offered(tmp_path, line) == []
    (tmp_path / ".git").write_text("nonsense")
    assert offered(tmp_path, "show ") == []


def test_a_completion_loads_nothing_heavy(project: Project) -> None:
    code = (
        "import atexit, sys, redfirst\n"
        "atexit.register(lambda: print(*sorted(sys.modules), file=sys.stderr))\n"
        "redfirst.main()"
    )
    env = {**os.environ, "_REDFIRST_COMPLETE": "complete_bash", "COMP_WORDS": "redfirst run ", "COMP_CWORD": "2"}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=project.root, env=env, capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["GAL-1"]
    assert not set(done.stderr.split()) & HEAVY


@pytest.mark.broad
def test_worktrees_that_git_links_by_relative_paths_are_known(tmp_path: Path) -> None:
    made = make_project(tmp_path)
    linked = tmp_path / "linked"
    made.git("worktree", "add", "--quiet", str(linked))
    (linked / ".workflow/run-GAL-7").mkdir(parents=True)
    (linked / ".workflow/run-GAL-7/run.json").touch()
    (linked / ".git").write_text(f"gitdir: ../{made.root.name}/.git/worktrees/linked\n")
    (made.root / ".git/worktrees/linked/gitdir").write_text("../../../../linked/.git\n")
    assert offered(made.root, "resume ") == offered(linked, "resume ") == ["run-GAL-7"]


@pytest.mark.broad
def test_branches_of_a_submodule_are_known(tmp_path: Path) -> None:
    made = make_project(tmp_path)
    (made.root / ".git").rename(tmp_path / "elsewhere.git")
    (made.root / ".git").write_text("gitdir: ../elsewhere.git\n")
    assert "work" in offered(made.root, "verify ")
