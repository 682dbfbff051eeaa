"""What is measured finds a repository of one commit, the measured tree; it neither changes it nor leaves anything."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

import anyio
import pytest
from runs.real import git, make_repository
from steps.probed import PYPROJECT, repository, seen, tree_of, without_run

from pipeline.config.model import Checks, Config
from pipeline.judge.evidence.observation import Ended
from pipeline.sandbox.boxes.bubblewrap import Bubblewrap
from pipeline.sandbox.boxes.limits import BOX_USER
from pipeline.sandbox.boxes.nobox import NoBox
from pipeline.sandbox.views.decoy_repository import Decoy, Source, history_shown
from pipeline.testing.measure.project_checks import measure_checks

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.sandbox.boxes.box import ProvableBox

pytestmark = pytest.mark.slow

BWRAP = shutil.which("bwrap") or ""
BOXES = [
    *([Bubblewrap(BWRAP), Bubblewrap(BWRAP, BOX_USER)] if BWRAP and os.geteuid() == 0 else []),
    *([Bubblewrap(BWRAP)] if BWRAP and os.geteuid() != 0 else []),
    NoBox(),
]
ASKS = """
import os, pathlib, subprocess


def git(*words):
    return subprocess.check_output(["git", *words], text=True).strip()


def test_root():
    assert git("rev-parse", "--show-toplevel") == os.getcwd()


def test_files():
    assert set(git("ls-files").splitlines()) == {"pyproject.toml", "shop.py", "tests/test_git.py"}
    assert git("status", "--porcelain") == ""
    assert git("rev-list", "--all", "--count") == "1"


def test_version():
    assert git("describe", "--tags") == git("describe") == "v1.10"
    assert set(git("tag").splitlines()) == {"v1.9", "v1.10"}


def test_origin():
    assert git("remote", "get-url", "origin") == "https://example.org/ada/shop.git"


def test_nothing_of_the_users_is_there():
    assert "secret" not in git("log", "--all", "--format=%an %ae %s") + pathlib.Path(".git/config").read_text()
"""
CHANGES = """
import pathlib, subprocess, pytest


@pytest.mark.parametrize("words", [["commit", "--allow-empty", "-qm", "x"], ["tag", "mine"], ["config", "a.b", "c"]])
def test_changes(words):
    assert subprocess.run(["git", *words], capture_output=True).returncode == 0


def test_moves():
    pathlib.Path(".git").rename("elsewhere")
"""


@pytest.mark.broad(but_first=1)
@pytest.mark.parametrize("box", BOXES, ids=lambda box: f"{box.name}-{box.owner}")
def test_a_test_that_asks_git_passes_as_at_a_desk(tmp_path: Path, box: ProvableBox) -> None:
    project = repository(tmp_path, {"pyproject.toml": PYPROJECT, "shop.py": "A = 1\n"}, {"tests/test_git.py": ASKS})
    project.git("rm", "-rq", "--ignore-unmatch", "TODO")
    project.git("commit", "--allow-empty", "-qm", "secret words")
    project.git("tag", "v1.9", "HEAD~1")
    project.env["GIT_COMMITTER_DATE"] = "2026-02-02T03:04:05 +0000"
    project.git("commit", "--allow-empty", "-qm", "later")
    project.git("tag", "v1.10")
    project.git("commit-tree", "-m", "aside", "HEAD^{tree}")
    project.git("tag", "v9", project.git("commit-tree", "-m", "aside", "HEAD^{tree}"))
    project.git("remote", "add", "origin", "https://ada:secret@example.org/ada/shop.git?secret=1")
    checks = Config(checks=Checks(commands=(("git", "ls-files", "--error-unmatch", "shop.py"),)))
    with without_run(project, box=box, config=checks) as lab:
        shown = seen(lab)
        assert {entry: str(record.outcome) for entry, record in shown.records.items()} == {
            f"tests/test_git.py::test_{name}": Ended.PASSED
            for name in ("root", "files", "version", "origin", "nothing_of_the_users_is_there")
        }
        assert not shown.touched
        assert anyio.run(lambda: measure_checks(lab, tree_of(lab, "HEAD"), over="it")) == {}


@pytest.mark.skipif(not BWRAP, reason="bubblewrap is not installed")
def test_what_is_measured_cannot_change_the_repository_and_leaves_nothing(tmp_path: Path) -> None:
    files = {"pyproject.toml": PYPROJECT, "shop.py": "A = 1\n"}
    project = repository(tmp_path, files, {"tests/test_git.py": CHANGES})
    before = project.git("rev-parse", "HEAD"), project.git("for-each-ref"), (project.root / ".git/config").read_bytes()
    with without_run(project, box=Bubblewrap(BWRAP, BOX_USER if os.geteuid() == 0 else None)) as lab:
        shown = seen(lab)
        assert {record.outcome for record in shown.records.values()} == {Ended.FAILED}
        assert len(shown.records) == 4
        assert not shown.touched
        with lab.copies.lent(tree_of(lab, "HEAD")) as folder:
            assert not (folder / ".git").exists()
            assert not (folder / "elsewhere").exists()
            decoy = folder.with_name("decoy")
            assert git(folder, f"--git-dir={decoy}", "rev-list", "--all", "--count") == "1"
            assert "a.b" not in git(folder, f"--git-dir={decoy}", "config", "--list")
    after = project.git("rev-parse", "HEAD"), project.git("for-each-ref"), (project.root / ".git/config").read_bytes()
    assert after == before


@pytest.mark.broad(but_first=3)
@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("https://example.org/a/b.git", "https://example.org/a/b.git"),
        ("https://token@example.org:8443/a/b?x=secret#y", "https://example.org:8443/a/b"),
        ("https://ada:token@example.org/a/b.git", "https://example.org/a/b.git"),
        ("ssh://git@example.org:22/a/b.git", "ssh://git@example.org:22/a/b.git"),
        ("git@example.org:a/b.git", "git@example.org:a/b.git"),
        ("/home/ada/private/b.git", "b.git"),
        ("../private/b/", "b"),
        ("file:///home/ada/private/b.git", "b.git"),
        ('https://example.org/a"\n[core]\n\thooksPath = /x', ""),
        ("https://[bad/a", ""),
    ],
)
def test_the_address_of_origin_is_told_without_credentials_and_folders(tmp_path: Path, given: str, told: str) -> None:
    made = make_repository(tmp_path / "project")
    git(made.worktree, "config", "remote.origin.url", given)
    shown = history_shown(made, tmp_path / "state")
    assert shown.origin == told
    files = tmp_path / "files"
    files.mkdir()
    Decoy(files / ".git", files, shown).make(Source(made, made.tree_of("HEAD")))
    assert git(files, "config", "--get", "--default=", "remote.origin.url") == told
    git(made.worktree, "config", "remote.origin.url", "https://example.org/other")
    assert history_shown(made, tmp_path / "state") == shown, "a run sees the same until it ends"
