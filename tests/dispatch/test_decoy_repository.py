from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

import pytest
from runs.real import alone, make_repository

from pipeline.errors import UserError
from pipeline.process import BoxError
from pipeline.run.checkout import PrivateCheckout
from pipeline.sandbox.views.decoy_repository import Decoy, Source

pytestmark = pytest.mark.slow

if TYPE_CHECKING:
    from pathlib import Path


def git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    folder = tmp_path / "tree"
    folder.mkdir()
    (folder / "app.py").write_text("a = 1\n")
    (folder / ".gitignore").write_text("*.log\n")
    (folder / "kept.log").write_text("tracked although ignored\n")
    return folder


def test_the_decoy_has_one_commit_with_every_file(tree: Path) -> None:
    Decoy(tree / ".git", tree).make()
    assert git(tree, "rev-list", "--count", "HEAD") == "1"
    assert git(tree, "ls-files").split() == [".gitignore", "app.py", "kept.log"]
    assert git(tree, "status", "--porcelain") == ""


@pytest.mark.broad
def test_it_is_the_same_whether_objects_are_taken_over_or_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    alone(monkeypatch, tmp_path / "home")
    inner = make_repository(tmp_path / "inner", {"lib.c": "1\n", "deep/er.c": "2\n"}).worktree
    top = make_repository(tmp_path / "project", {"app.py": "one\n", "src/b.txt": "b\n", "c.w": "c", "d.id": "$Id$\n"})
    attributes = "*.txt eol=crlf\n*.id ident\n*.w filter=upper\n"
    (top.worktree / ".gitattributes").write_text(attributes)
    (top.worktree / "link").symlink_to("src")
    (top.worktree / "tool").touch(0o755)
    (top.worktree / "line\nbreak").write_text("x")
    git(top.worktree, "config", "filter.upper.smudge", "tr a-z A-Z")
    git(top.worktree, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(inner), "vendor/lib")
    git(top.worktree, "add", "--all")
    tree = git(top.worktree, "write-tree")
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        PrivateCheckout(top, tmp_path / "state").fill(tree, tmp_path / name)
    assert (tmp_path / "one/c.w").read_text() == "C"
    Decoy(tmp_path / "one/.git", tmp_path / "one").make()
    Decoy(tmp_path / "two/.git", tmp_path / "two").make(Source(top, tree))
    for asked in ("rev-parse HEAD", "ls-tree -r HEAD", "status --porcelain", "fsck --strict"):
        assert git(tmp_path / "one", *asked.split()) == git(tmp_path / "two", *asked.split())
    assert "vendor/lib/deep/er.c" in git(tmp_path / "two", "ls-files")
    assert git(tmp_path / "two", "status", "--porcelain") == ""
    assert git(tmp_path / "two", "rev-list", "--all", "--count") == "1"


def test_the_content_of_files_is_read_from_the_commit(tree: Path) -> None:
    (tree / "line\nbreak").write_text("x\n")
    (tree / "empty").touch()
    (tree / "large").write_bytes(b"0\n" * 100_000)
    decoy = Decoy(tree / ".git", tree)
    decoy.make()
    for path in tree.iterdir():
        if path.is_file():
            path.write_text("changed")
    wanted = ["app.py", "line\nbreak", "empty", "large", "kept.log"]
    assert {path: len(content) for path, content in decoy.contents(wanted)} == {
        "app.py": 6, "line\nbreak": 2, "empty": 0, "large": 200_000, "kept.log": 25,
    }  # fmt: skip
    for missing in ("nowhere", "app.py/inner", "no\nwhere"):
        with pytest.raises(BoxError):
            list(decoy.contents(["app.py", missing]))


def test_filters_and_line_ends_of_the_project_do_not_touch_the_bytes(tree: Path) -> None:
    (tree / ".gitattributes").write_text(
        "* filter=lfs diff=lfs ident\n*.txt text eol=crlf\n*.w working-tree-encoding=UTF-16\n"
    )
    (tree / "a.txt").write_bytes(b"one\r\ntwo\n$Id$\n")
    (tree / "b.w").write_bytes(b"\xff\xfea\x00")
    Decoy(tree / ".git", tree).make()
    assert subprocess.check_output(["git", "cat-file", "blob", "HEAD:a.txt"], cwd=tree) == b"one\r\ntwo\n$Id$\n"
    assert subprocess.check_output(["git", "cat-file", "blob", "HEAD:b.w"], cwd=tree) == b"\xff\xfea\x00"
    assert git(tree, "status", "--porcelain") == ""


def test_no_hook_and_nothing_of_the_users_git_gets_in(
    tree: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    template = tmp_path / "template"
    (template / "hooks").mkdir(parents=True)
    hook = template / "hooks" / "pre-commit"
    hook.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    hook.chmod(0o755)
    config = tmp_path / "config"
    config.write_text(
        f"[init]\n\ttemplateDir = {template}\n[core]\n\thooksPath = {template}/hooks\n[user]\n\tname = Real Person\n"
    )
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(config))
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "somewhere"))
    Decoy(tree / ".git", tree).make()
    monkeypatch.delenv("GIT_DIR")
    assert not (tmp_path / "ran").exists()
    assert not (tree / ".git" / "hooks").exists()
    assert git(tree, "log", "--format=%an %ad", "--date=iso") == "base 2000-01-01 00:00:00 +0000"


def test_links_execute_bits_and_odd_names_are_in_the_commit(tree: Path) -> None:
    (tree / "deep" / "er").mkdir(parents=True)
    (tree / "deep" / "er" / 'a "quoted"\n\\name').write_text("x")
    (tree / os.fsdecode(b"not utf-8 \xff")).write_text("y")
    (tree / "tool").write_text("#!/bin/sh\n")
    (tree / "tool").chmod(0o755)
    (tree / "link").symlink_to("app.py")
    (tree / "folder-link").symlink_to("deep")
    Decoy(tree / ".git", tree).make()
    assert git(tree, "status", "--porcelain") == ""
    modes = [line.split(" ")[0] for line in git(tree, "ls-tree", "HEAD", "tool", "link", "folder-link").splitlines()]
    assert modes == ["120000", "120000", "100755"]
    assert git(tree, "rev-list", "--count", "HEAD") == "1"


def test_a_git_that_fails_is_broken_machinery(tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "git"
    program.write_text("#!/bin/sh\necho no >&2; exit 1\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(BoxError, match=r"git failed in the view: .*fast-import.*: no"):
        Decoy(tree / ".git", tree).make()
    program.unlink()
    with pytest.raises(UserError, match="Cannot write"):
        Decoy(tree / "app.py" / "below", tree).make()


def test_a_git_that_is_not_there_is_broken_machinery(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(BoxError, match="decoy"):
        Decoy(tree / ".git", tree).make()
