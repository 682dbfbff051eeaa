"""A change of one tree put on another, and ignored files brought along: nothing is overwritten, no link is followed."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

import pytest
from kit import Project
from languages.direct import write
from runs.real import make_repository

from pipeline.errors import UserError
from pipeline.repo import Repository
from pipeline.run.ignored import bring_ignored, include_ignored, include_patterns, put_ignored
from pipeline.steps.publication.trees import put_on

if TYPE_CHECKING:
    from pathlib import Path


LINES = "1\n2\n3\n4\n5\n"
START = {"a": LINES, "b": "b\n", "folder/x": "x\n"}

Files = dict[str, str | None]

CASES: dict[str, tuple[Files, Files, dict[str, str] | None]] = {
    "other files": ({"b": "mine\n"}, {"a": "ours\n", "new": "n\n"}, {"a": "ours\n", "b": "mine\n", "new": "n\n"}),
    "other lines": ({"a": LINES + "6\n"}, {"a": "0\n" + LINES}, {"a": "0\n" + LINES + "6\n"}),
    "the same change": ({"a": "1\n"}, {"a": "1\n"}, {"a": "1\n"}),
    "the same lines": ({"a": "mine\n"}, {"a": "ours\n"}, None),
    "changed and gone": ({"a": "mine\n"}, {"a": None}, None),
    "gone and changed": ({"a": None}, {"a": "ours\n"}, None),
    "both new": ({"new": "mine\n"}, {"new": "ours\n"}, None),
    "a folder where a file comes": ({"new/x": "mine\n"}, {"new": "ours\n"}, None),
    "a file where a folder comes": ({"new": "mine\n"}, {"new/x": "ours\n"}, None),
    "a folder of ours becomes a file": ({"b": "mine\n"}, {"folder/x": None, "folder": "f\n"}, {"folder": "f\n"}),
    "theirs is in that folder": ({"folder/y": "mine\n"}, {"folder/x": None, "folder": "f\n"}, None),
}


def tree_of(project: Project, files: Files) -> str:
    """Return the tree of the start with these files."""
    there = {name: content for name, content in {**START, **files}.items() if content is not None}
    project.git("read-tree", "--empty")
    blobs = [project.home / str(number) for number, _ in enumerate(there)]
    for path, content in zip(blobs, there.values(), strict=True):
        path.write_text(content, encoding="utf-8")
    oids = project.git("hash-object", "-w", *map(str, blobs)).split()
    infos = (("--cacheinfo", f"100644,{oid},{name}") for oid, name in zip(oids, there, strict=True))
    project.git("update-index", "--add", "--replace", *(word for info in infos for word in info))
    return project.git("write-tree")


@pytest.mark.slow
def test_each_case(tmp_path: Path) -> None:
    root, home = tmp_path / "project", tmp_path / "home"
    root.mkdir()
    home.mkdir()
    project = Project(root, home)
    project.git("init", "--quiet")
    repository = Repository.find(root)
    start = tree_of(project, {})
    for name, (theirs, ours, expected) in CASES.items():
        there = tree_of(project, theirs)
        put = put_on(repository, there, start, tree_of(project, ours))
        assert bool(put.conflicts) is (expected is None), name
        found = {e.path: (repository.blob(e.oid) or b"").decode() for e in repository.entries(put.tree)}
        kept = {path: content for path, content in theirs.items() if content is not None}
        wanted = kept if expected is None else expected
        assert {path: found.get(path) for path in wanted} == wanted, name
        assert set(found) - set(wanted) <= set(START), name
    after = tree_of(project, {"b": "mine\n"})
    assert put_on(repository, start, start, after).tree == after


# --- `.worktreeinclude`: which files are kept -------------------------------------------------------------------------

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
