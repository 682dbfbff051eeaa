"""`.worktreeinclude`: which files are kept, and that no link leads out of the worktree or out of a measured copy."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

import pytest
from languages.direct import write
from runs.real import make_repository

from pipeline.errors import UserError
from pipeline.run.ignored import bring_ignored, include_ignored, include_patterns, put_ignored

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.repo import Repository

TRACKED = {".gitignore": "/settings/\n*.key\n", ".worktreeinclude": "settings/\n*.key\n", "app.py": "one\n"}


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return make_repository(tmp_path / "project", TRACKED)


def kept(repository: Repository, place: Path) -> dict[str, str]:
    place.mkdir(exist_ok=True)
    include_ignored(repository, place)
    found = place / "include"
    return {str(path.relative_to(found)): path.read_text() for path in found.rglob("*") if path.is_file()}


def test_ignored_files_that_match_are_kept_as_they_are(repository: Repository, tmp_path: Path) -> None:
    write(repository.worktree, {"settings/a/b.json": "{}", "x.key": "k", "app.py": "two\n"})
    (repository.worktree / "x.key").chmod(0o600)
    assert kept(repository, tmp_path / "place") == {"settings/a/b.json": "{}", "x.key": "k"}
    copy = write(tmp_path / "copy", {"app.py": "one\n"})
    put_ignored(tmp_path / "place", copy)
    assert (copy / "settings/a/b.json").read_text() == "{}"
    assert stat.S_IMODE((copy / "x.key").stat().st_mode) == 0o600


def test_a_new_worktree_gets_what_its_own_list_names(repository: Repository, tmp_path: Path) -> None:
    write(repository.worktree, {"settings/a/b.json": "{}", "x.key": "k", ".worktreeinclude": "*.key\n", "y.tmp": "t"})
    made = tmp_path / "made"
    repository.add_worktree(made, "other", repository.resolve("HEAD") or "")
    bring_ignored(repository, made)
    assert (made / "settings/a/b.json").read_text() == "{}"
    assert (made / "x.key").read_text() == "k"
    assert not (made / "y.tmp").exists()


def test_links_and_fifos_of_the_worktree_are_left_out(repository: Repository, tmp_path: Path) -> None:
    secret = write(tmp_path / "home", {"id": "SECRET"}) / "id"
    write(repository.worktree, {"settings/real": "1"})
    (repository.worktree / "settings/link").symlink_to(secret)
    (repository.worktree / "link.key").symlink_to(secret)
    (repository.worktree / "settings/folder").symlink_to(secret.parent)
    os.mkfifo(repository.worktree / "settings/fifo")
    assert kept(repository, tmp_path / "place") == {"settings/real": "1"}


def test_a_list_that_is_a_link_does_not_count(repository: Repository, tmp_path: Path) -> None:
    write(repository.worktree, {"x.key": "k"})
    (repository.worktree / ".worktreeinclude").rename(tmp_path / "list")
    (repository.worktree / ".worktreeinclude").symlink_to(tmp_path / "list")
    assert include_patterns(repository.worktree) == ()
    assert kept(repository, tmp_path / "place") == {}


def test_a_list_without_end_is_refused(repository: Repository) -> None:
    (repository.worktree / ".worktreeinclude").write_text("x\n" * 600_000)
    with pytest.raises(UserError, match="larger than"):
        include_patterns(repository.worktree)


@pytest.mark.parametrize("where", ["settings", "settings/a", "settings/a/b.json"])
@pytest.mark.slow
def test_a_link_in_a_measured_tree_is_not_written_through(repository: Repository, tmp_path: Path, where: str) -> None:
    """A tree of another commit may have a link where the worktree has a folder of ignored files."""
    write(repository.worktree, {"settings/a/b.json": "{}"})
    kept(repository, tmp_path / "place")
    home = write(tmp_path / "home", {"a/b.json": "mine", "b.json": "mine"})
    copy = write(tmp_path / "copy", {"app.py": "one\n"})
    (copy / where).parent.mkdir(parents=True, exist_ok=True)
    (copy / where).symlink_to(home / "b.json" if where.endswith(".json") else home)
    put_ignored(tmp_path / "place", copy)
    assert {path.read_text() for path in home.rglob("*.json")} == {"mine"}
    assert (copy / "settings/a/b.json").read_text() == "{}"
    assert not (copy / "settings").is_symlink()
