"""A tracker that is not as the contract says: a clear error with the place, and not a byte written."""

from __future__ import annotations

import os
from datetime import date
from typing import TYPE_CHECKING

import pytest

from todo import (
    Edits,
    ErrorKind,
    FolderSource,
    MappingSource,
    NewIssue,
    Status,
    Tracker,
    TrackerError,
    is_issue_id,
    lint,
    write_edits,
)
from todo.issue import sort_key

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

GOOD = "---\nid: A-1\ntitle: t\nstatus: Todo\n---\n"


def snapshot(root: Path) -> dict[str, tuple[int, bytes]]:
    return {
        str(path.relative_to(root)): (path.lstat().st_mtime_ns, path.read_bytes() if path.is_file() else b"")
        for path in sorted(root.rglob("*"))
    }


OPERATIONS: tuple[Callable[[Tracker, str], Edits], ...] = (
    lambda tracker, issue_id: tracker.set_status(issue_id, Status.DONE),
    lambda tracker, issue_id: tracker.comment(issue_id, date(2026, 11, 20), "text"),
    lambda tracker, issue_id: tracker.create(NewIssue(title="t", parent=issue_id))[1],
)


def assert_refused(folder: Path, issue_id: str, kind: ErrorKind) -> TrackerError:
    """Try every write; each must refuse for the same reason and leave everything as it is."""
    before = snapshot(folder.parent)
    errors: list[TrackerError] = []
    for operation in OPERATIONS:
        with pytest.raises(TrackerError) as caught:
            write_edits(folder, operation(Tracker(FolderSource(folder)), issue_id))
        errors.append(caught.value)
    assert {error.kind for error in errors} == {kind}
    assert snapshot(folder.parent) == before
    return errors[0]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "TODO"
    path.mkdir()
    return path


def test_there_is_no_tracker(tmp_path: Path) -> None:
    error = assert_refused(tmp_path / "TODO", "A-1", ErrorKind.TRACKER_MISSING)
    assert "TODO" in error.message


def test_a_file_is_named_todo(tmp_path: Path) -> None:
    (tmp_path / "TODO").write_text("buy milk\n")
    assert "is a file" in assert_refused(tmp_path / "TODO", "A-1", ErrorKind.TRACKER_INVALID).message
    with pytest.raises(TrackerError, match="is a file"):
        Tracker(FolderSource(tmp_path / "TODO")).issues()


def test_the_tracker_is_a_link_to_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "TODO").symlink_to("real")
    with pytest.raises(TrackerError, match="symbolic link"):
        Tracker(FolderSource(tmp_path / "TODO")).issues()


def test_an_issue_file_is_a_link_to_elsewhere(folder: Path) -> None:
    (folder.parent / "secret").write_text(GOOD)
    (folder / "A-1.md").symlink_to("../secret")
    assert assert_refused(folder, "A-1", ErrorKind.TRACKER_INVALID).path == "A-1.md"


def test_an_issue_file_is_a_pipe(folder: Path) -> None:
    os.mkfifo(folder / "A-1.md")
    assert assert_refused(folder, "A-1", ErrorKind.TRACKER_INVALID).path == "A-1.md"


def test_an_issue_file_is_a_folder(folder: Path) -> None:
    (folder / "A-1.md").mkdir()
    assert assert_refused(folder, "A-1", ErrorKind.TRACKER_INVALID).path == "A-1.md"
    assert Tracker(FolderSource(folder)).ids == ()


def test_an_issue_file_is_huge(folder: Path) -> None:
    (folder / "A-1.md").write_text(GOOD + "x" * 5_000_000)
    assert "larger" in assert_refused(folder, "A-1", ErrorKind.TRACKER_INVALID).message
    with pytest.raises(TrackerError, match="larger"):
        Tracker(MappingSource({"A-1.md": (folder / "A-1.md").read_bytes()})).read("A-1")


@pytest.mark.parametrize(
    "issue_id",
    [
        "", "../A-1", "A/1", "A\\1", "..", ".", ".A", "A..1", "A.", "-A", "--json", "A 1", "A\n", "A\x00", "A\x1b[31m",
        "Ä-1", "README", "readme", "A-1.md", "A-1.lock", "null", "A@{1", "A:1", "A~1", "x" * 65,
    ],
)  # fmt: skip
def test_what_is_no_issue_id_is_refused_before_any_file_is_touched(folder: Path, issue_id: str) -> None:
    (folder / "A-1.md").write_text(GOOD)
    assert not is_issue_id(issue_id)
    assert_refused(folder, issue_id, ErrorKind.USAGE)


def test_an_issue_that_does_not_exist(folder: Path) -> None:
    assert assert_refused(folder, "A-1", ErrorKind.ISSUE_NOT_FOUND).path == "A-1.md"


@pytest.mark.parametrize(
    ("content", "words", "line"),
    [
        ("", "front matter", 1),
        ("# A-1\n", "front matter", 1),
        ("---\nid: A-1\n", "not closed", 1),
        (GOOD.replace("id: A-1\n", ""), "no `id`", None),
        (GOOD.replace("title: t\n", ""), "no `title`", None),
        (GOOD.replace("status: Todo\n", ""), "no `status`", None),
        (GOOD.replace("title: t", "title:"), "`title` must have one value", 3),
        (GOOD.replace("title: t", "title: [t]"), "`title` must have one value", None),
        (GOOD.replace("A-1", "A-2"), "named A-1.md", 2),
        (GOOD.replace("Todo", "todo"), "`todo` is not a status. Accepted: Todo, In Progress, Done", 4),
        (GOOD.replace("Todo", "'Done '"), "not a status", 4),
        (GOOD.replace("title: t", "id: A-1"), "`id` is there twice", 3),
        (GOOD.replace("title: t", "title: &a t"), "Anchors", 3),
        (GOOD.replace("title: t", "title: t\nlabels: bug"), r"`labels: \[bug\]`", 4),
        (GOOD.replace("title: t", "title: t\nlabels: [[bug]]"), "Each item of `labels`", None),
        (GOOD.replace("title: t", "title: t\ndepends-on: [../x]"), "`../x`", None),
        (GOOD.replace("title: t", "title: t\nparent: a b"), "`a b`", 4),
        (GOOD.replace("title: t", "title: t\nparent: A-9"), "parent A-9 does not exist", 4),
        (GOOD.replace("title: t", "title: t\nparent: A-1"), "A-1 -> A-1", None),
        (GOOD.replace("title: t", "title: t\ndepends-on: [A-1]"), "A-1 -> A-1", None),
        (GOOD.replace("title: t", "title: {a: 'b"), "not YAML", None),
    ],
)  # fmt: skip
def test_a_broken_issue_file(folder: Path, content: str, words: str, line: int | None) -> None:
    (folder / "A-1.md").write_text(content)
    error = assert_refused(folder, "A-1", ErrorKind.TRACKER_INVALID)
    assert error.path == "A-1.md"
    assert line in {None, error.line}
    with pytest.raises(TrackerError, match=words):
        Tracker(FolderSource(folder)).prerequisites("A-1")


def test_an_issue_file_that_is_not_utf8(folder: Path) -> None:
    (folder / "A-1.md").write_bytes(GOOD.encode() + b"\nna\xefve\n")
    error = assert_refused(folder, "A-1", ErrorKind.TRACKER_INVALID)
    assert (error.path, error.line) == ("A-1.md", 7)


def test_a_readme_that_is_not_utf8_stops_the_write_of_both_files(folder: Path) -> None:
    (folder / "A-1.md").write_text(GOOD)
    (folder / "README.md").write_bytes(b"# na\xefve\n")
    before = snapshot(folder)
    with pytest.raises(TrackerError, match="UTF-8") as caught:
        write_edits(folder, Tracker(FolderSource(folder)).set_status("A-1", Status.DONE))
    assert caught.value.path == "README.md"
    assert snapshot(folder) == before


@pytest.mark.parametrize("key", ["parent: {}", "depends-on: [{}]"])
def test_a_circle_of_several_issues(folder: Path, key: str) -> None:
    for issue_id, other in (("A-1", "A-2"), ("A-2", "A-3"), ("A-3", "A-2")):
        text = GOOD.replace("A-1", issue_id).replace("title: t", f"title: t\n{key.format(other)}")
        (folder / f"{issue_id}.md").write_text(text)
    error = assert_refused(folder, "A-1", ErrorKind.TRACKER_INVALID)
    assert "A-2 -> A-3 -> A-2" in error.message
    with pytest.raises(TrackerError, match="circle"):
        Tracker(FolderSource(folder)).prerequisites("A-1")


def test_a_long_chain_of_dependencies_is_no_circle(folder: Path) -> None:
    contents = {
        f"A-{number}.md": f"---\nid: A-{number}\ntitle: t\nstatus: Todo\ndepends-on: [A-{number + 1}]\n---\n".encode()
        for number in range(1, 3000)
    }
    assert len(Tracker(MappingSource(contents)).set_status("A-1", Status.DONE)) == 1


def test_nothing_is_added_inside_a_fence_that_is_never_closed(folder: Path) -> None:
    (folder / "A-1.md").write_text(GOOD + "text\n```\ncode\n")
    with pytest.raises(TrackerError, match="code fence") as caught:
        Tracker(FolderSource(folder)).comment("A-1", date(2026, 11, 20), "text")
    assert (caught.value.path, caught.value.line) == ("A-1.md", 7)


def test_a_file_that_is_no_issue_does_not_stop_the_list(folder: Path) -> None:
    (folder / "A-1.md").write_text(GOOD)
    (folder / "my notes.md").write_text("text\n")
    (folder / "notes.md").write_text("text\n")
    tracker = Tracker(FolderSource(folder))
    assert [issue.id for issue in tracker.issues()] == [issue.id for issue in tracker.ready()] == ["A-1"]
    assert [(error.path, "Rename it" in error.message) for error in tracker.unreadable()] == [
        ("my notes.md", True),
        ("notes.md", False),
    ]


def test_an_empty_tracker_gives_no_id_to_count_on() -> None:
    with pytest.raises(TrackerError, match="Give an id"):
        Tracker(MappingSource({})).create(NewIssue(title="t"))


def test_an_empty_comment_is_refused() -> None:
    with pytest.raises(TrackerError, match="text"):
        Tracker(MappingSource({"A-1.md": GOOD.encode()})).comment("A-1", date(2026, 11, 20), " \n\t")


ODD_NAMES = ("²", "A-²", "A-1.²", "٣", "A-1.٣", "A-" + "9" * 5000, "A-1." + "9" * 5000, "\u2028", "\udcff")


@pytest.mark.parametrize("name", ODD_NAMES, ids=lambda name: ascii(name)[:12])
def test_a_file_of_any_name_has_its_place_and_no_number(name: str) -> None:
    second = GOOD.replace("A-1", "A-2").encode()
    tracker = Tracker(MappingSource({"A-1.md": GOOD.encode(), "A-2.md": second, f"{name}.md": b"x\n"}))
    assert [one for one in tracker.ids if one != name] == ["A-1", "A-2"]
    assert tracker.create(NewIssue(title="t"))[0] == "A-3"
    assert tracker.create(NewIssue(title="t", parent="A-1"))[0] == "A-1.1"
    assert lint(tracker)


def test_numbers_in_names_are_compared_as_numbers() -> None:
    ids = ["A-0", "A-1", "A-01", "A-2", "A-9.9", "A-9.10", "A-010", "A-10", "A-" + "9" * 5000]
    assert sorted(ids, key=sort_key) == ["A-0", "A-01", "A-1", "A-2", "A-9.9", "A-9.10", "A-010", "A-10", ids[-1]]
