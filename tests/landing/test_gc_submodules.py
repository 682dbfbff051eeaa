"""`run --worktree` fills submodules from what is here, and `gc` takes such a worktree away if nothing of it is lost."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from kit import FILES, HONEST, make_project
from runs.real import make_repository

if TYPE_CHECKING:
    from pathlib import Path

    from kit import Project

pytestmark = [pytest.mark.slow, pytest.mark.broad]

NEEDS = """import pathlib


def test_data():
    assert pathlib.Path("vendor/lib/data.txt").read_text() == "Hello"
"""


def fate(project: Project, worktree: Path, *argv: str) -> tuple[str, str]:
    things = project.document("gc", "--older-than", "0s", *argv)["things"]
    return next((line["status"], line["why"]) for line in things if line["what"] == str(worktree))


def test_a_worktree_with_submodules_is_filled_without_a_network_and_goes_when_it_is_done(tmp_path: Path) -> None:
    library = make_repository(tmp_path / "library", {"data.txt": "Hello"}).worktree
    project = make_project(tmp_path, {**FILES, "tests/test_data.py": NEEDS})
    project.git("switch", "--quiet", "main")
    allow = ("-c", "protocol.file.allow=always")
    project.git(*allow, "submodule", "add", "--quiet", str(library), "vendor/lib")
    project.commit("vendor")
    library.rename(tmp_path / "out-of-reach")
    settings = (project.root / ".git/config").read_bytes()
    project.use_script(HONEST)

    done = project.run("--worktree", "--base", "main")

    assert done["outcome"] == "completed", done["_stderr"]
    assert "failed before already" not in done["_stderr"]
    worktree = tmp_path / "project-gal-1"
    assert (worktree / "vendor/lib/data.txt").read_text() == "Hello"
    assert project.git("status", "--porcelain", cwd=worktree) == ""
    assert (project.root / ".git/config").read_bytes() == settings, "worktrees share it"
    assert project.git("ls-tree", "HEAD", "vendor/lib", cwd=worktree).startswith("160000 ")
    project.git("merge", "--quiet", "--ff-only", done["branch"])
    mine = worktree / "vendor/lib/mine.txt"
    mine.write_text("nobody else has this\n")
    said = ("kept", "submodules in it are not as they were filled: vendor/lib")
    assert fate(project, worktree, "--apply") == said
    mine.unlink()
    (worktree / "vendor/lib/data.txt").write_text("mine")
    assert fate(project, worktree, "--apply") == said
    (worktree / "vendor/lib/data.txt").write_text("Hello")
    assert fate(project, worktree, "--apply")[0] == "removed"
    assert not worktree.exists()


def test_a_run_that_is_refused_leaves_no_worktree_with_submodules(tmp_path: Path) -> None:
    library = make_repository(tmp_path / "library", {"data.txt": "Hello"}).worktree
    project = make_project(tmp_path, {**FILES, "redfirst.toml": 'sandbox = "none"\n'})
    project.git("switch", "--quiet", "main")
    project.git("-c", "protocol.file.allow=always", "submodule", "add", "--quiet", str(library), "vendor/lib")
    project.commit("vendor")
    refused = project.run("--worktree", "--base", "main")
    assert "took back the worktree" in refused["_stderr"], refused
    assert not (tmp_path / "project-gal-1").exists()
    assert project.git("worktree", "list").count("\n") == 0
