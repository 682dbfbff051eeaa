from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from todo import Edits, ErrorKind, FolderSource, Status, Tracker, TrackerError, write_edits

if TYPE_CHECKING:
    from pathlib import Path

ISSUE = b"---\nid: A-1\ntitle: t\nstatus: Todo\n---\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "TODO"
    path.mkdir()
    (path / "A-1.md").write_bytes(ISSUE)
    (path / "README.md").write_bytes(b"- [ ] [A-1](A-1.md) t\n")
    return path


def test_all_files_are_written_and_nothing_is_left_over(folder: Path) -> None:
    write_edits(folder, Tracker(FolderSource(folder)).set_status("A-1", Status.DONE))
    assert (folder / "A-1.md").read_bytes() == ISSUE.replace(b"Todo", b"Done")
    assert (folder / "README.md").read_bytes() == b"- [x] [A-1](A-1.md) t\n"
    assert sorted(path.name for path in folder.iterdir()) == ["A-1.md", "README.md"]


def test_a_file_keeps_its_mode_and_a_new_one_gets_the_usual(folder: Path) -> None:
    (folder / "A-1.md").chmod(0o640)
    write_edits(folder, Edits({"A-1.md": b"x", "A-2.md": b"y"}, {"A-1.md": ISSUE}))
    (folder / "usual").touch()
    modes = {name: (folder / name).stat().st_mode & 0o7777 for name in ("A-1.md", "A-2.md", "usual")}
    assert modes["A-1.md"] == 0o640
    assert modes["A-2.md"] == modes["usual"]


@pytest.mark.parametrize("later", [b"", ISSUE + b"edited by a person\n", None])
def test_a_file_changed_in_the_meantime_stops_the_write_of_all(folder: Path, later: bytes | None) -> None:
    edits = Tracker(FolderSource(folder)).set_status("A-1", Status.DONE)
    if later is None:
        (folder / "A-1.md").unlink()
    else:
        (folder / "A-1.md").write_bytes(later)
    with pytest.raises(TrackerError, match="meantime") as caught:
        write_edits(folder, edits)
    assert (caught.value.kind, caught.value.path) == (ErrorKind.WORKTREE_CHANGED, "A-1.md")
    assert FolderSource(folder).read("A-1.md") == later
    assert (folder / "README.md").read_bytes() == b"- [ ] [A-1](A-1.md) t\n"


@pytest.mark.parametrize("name", ["../out.md", "sub/A-1.md", "/tmp/out.md", "A-1.md/", ".hidden.md", "", "."])  # noqa: S108  (must be refused)
def test_a_name_that_leaves_the_folder_is_refused(folder: Path, name: str) -> None:
    with pytest.raises(TrackerError, match="not the name") as caught:
        write_edits(folder, Edits({"A-1.md": b"x", name: b"y"}, {"A-1.md": ISSUE}))
    assert caught.value.kind is ErrorKind.USAGE
    assert (folder / "A-1.md").read_bytes() == ISSUE


def test_a_write_that_fails_half_way_leaves_every_file_as_it_was(folder: Path) -> None:
    long_name = "A" * 250 + ".md"
    with pytest.raises(TrackerError, match="cannot be written"):
        write_edits(folder, Edits({"A-1.md": b"x", long_name: b"y"}, {"A-1.md": ISSUE}))
    assert (folder / "A-1.md").read_bytes() == ISSUE
    assert sorted(path.name for path in folder.iterdir()) == ["A-1.md", "README.md"]


def test_a_tracker_reads_each_file_once_so_that_a_later_change_is_noticed(folder: Path) -> None:
    tracker = Tracker(FolderSource(folder))
    tracker.read("A-1")
    (folder / "A-1.md").write_bytes(ISSUE.replace(b"title: t", b"title: u"))
    with pytest.raises(TrackerError, match="meantime"):
        write_edits(folder, tracker.set_status("A-1", Status.DONE))
