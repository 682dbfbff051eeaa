"""A change of one tree put on another: what merges, what conflicts, and what is never overwritten."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from kit import Project

from pipeline.repo import Repository
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
