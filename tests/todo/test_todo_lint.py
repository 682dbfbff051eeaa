from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from todo import FolderSource, MappingSource, NewIssue, Rule, Status, Tracker, TrackerError, lint

if TYPE_CHECKING:
    from pathlib import Path

README = "# Issues\n\n## Bugs\n- [ ] [A-1](A-1.md) t\n- [x] [A-2](A-2.md) t\n- no box: [A-3](A-3.md)\n"


def issue(issue_id: str, *lines: str, status: str = "Todo", body: str = "") -> str:
    return "\n".join(["---", f"id: {issue_id}", "title: t", f"status: {status}", *lines, "---", body])


SOUND = {
    "README.md": README,
    "A-1.md": issue("A-1", "labels: [whatever]", body="## Sub-issues\n- [~] [A-1.1](A-1.1.md) t\n"),
    "A-1.1.md": issue("A-1.1", "parent: A-1", "depends-on: [A-2]", status="In Progress"),
    "A-2.md": issue("A-2", status="Done"),
    "A-3.md": issue("A-3", status="Done"),
}


def problems(**changed: str | None) -> list[tuple[str, int | None, Rule]]:
    contents = {name: text.encode() for name, text in (SOUND | changed).items() if text is not None}
    found = lint(Tracker(MappingSource(contents)))
    assert all(problem.message for problem in found)
    return [(problem.path, problem.line, problem.rule) for problem in found]


def test_a_sound_tracker_has_no_problems() -> None:
    assert problems() == []


@pytest.mark.parametrize("key", ["lables", "depend-on", "depends_on", "Label", "stauts"])
def test_a_key_that_is_nearly_ours_is_told(key: str) -> None:
    assert problems(**{"A-2.md": issue("A-2", f"{key}: []", status="Done")}) == [("A-2.md", None, Rule.MISSPELT_KEY)]


@pytest.mark.parametrize("key", ["reporter", "estimate", "priority", "children", "tile-set"])
def test_a_key_of_somebody_else_is_theirs(key: str) -> None:
    assert problems(**{"A-2.md": issue("A-2", f"{key}: []", status="Done")}) == []


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"A-2.md": "broken"}, [("A-2.md", 1, Rule.BROKEN_FILE)]),
        ({"A-2.md": issue("A-2", status="Done", body="text\n```\ncode\n")}, [("A-2.md", 7, Rule.UNCLOSED)]),
        ({"README.md": README + "<!-- to be closed\n"}, [("README.md", 7, Rule.UNCLOSED)]),
        ({"README.md": README.replace("no box: [A-3](A-3.md)", "[A-3](A-3.md) takes [ ] and [~]")}, []),
        ({"A-2.md": issue("A-9")}, [("A-2.md", 2, Rule.BROKEN_FILE)]),
        ({"A-2.md": issue("A-2", status="Doing")}, [("A-2.md", 4, Rule.BROKEN_FILE)]),
        ({"my notes.md": "text"}, [("my notes.md", None, Rule.FILE_NAME)]),
        ({"a-2.md": issue("a-2", "parent: A-7")}, [
            ("a-2.md", None, Rule.PARENT), ("a-2.md", None, Rule.SAME_ID),
        ]),
        ({"A-3.md": issue("A-3", "depends-on: [A-8]")}, [("A-3.md", None, Rule.DEPENDENCY)]),
        ({"A-3.md": issue("A-3", "depends-on: [A-3]")}, [("A-3.md", None, Rule.CYCLE)]),
        ({"A-2.md": issue("A-2", "depends-on: [A-3]", status="Done"), "A-3.md": issue("A-3", "depends-on: [A-1.1]")}, [
            ("A-1.1.md", None, Rule.CYCLE),
        ]),
        ({"README.md": README.replace("[x]", "[ ]")}, [("README.md", 5, Rule.LISTED_STATUS)]),
        ({"A-1.1.md": issue("A-1.1", "parent: A-1", status="Done")}, [("A-1.md", 8, Rule.LISTED_STATUS)]),
        ({"README.md": README + "- [x] [A-2](A-2.md) t\n"}, [("README.md", 7, Rule.LISTED_TWICE)]),
        ({"README.md": README + "- [~] [A-1.1](A-1.1.md) t\n"}, [("README.md", 7, Rule.LISTED_ELSEWHERE)]),
        ({"README.md": README + "- [ ] [A-7](A-7.md) t\n"}, [("README.md", 7, Rule.LISTED_UNKNOWN)]),
        ({"README.md": README.replace("- [x]", "see")}, [("A-2.md", None, Rule.NOT_LISTED)]),
        ({"README.md": None}, [(name, None, Rule.NOT_LISTED) for name in ("A-1.md", "A-2.md", "A-3.md")]),
        ({"A-1.md": issue("A-1")}, [("A-1.1.md", None, Rule.NOT_LISTED)]),
        ({"A-1.1.md": issue("A-1.1", status="In Progress")}, [
            ("A-1.1.md", None, Rule.NOT_LISTED), ("A-1.md", 8, Rule.LISTED_ELSEWHERE),
        ]),
    ],
)  # fmt: skip
def test_a_problem_is_found_and_no_other(
    changed: dict[str, str | None], expected: list[tuple[str, int | None, Rule]]
) -> None:
    assert problems(**changed) == expected


def test_a_readme_that_is_not_utf8_is_one_problem_among_others() -> None:
    contents = {name: text.encode() for name, text in SOUND.items()} | {"README.md": b"\xff"}
    found = {(problem.path, problem.rule) for problem in lint(Tracker(MappingSource(contents)))}
    assert ("README.md", Rule.BROKEN_FILE) in found


def test_no_tracker_is_an_error_not_a_problem(tmp_path: Path) -> None:
    with pytest.raises(TrackerError):
        lint(Tracker(FolderSource(tmp_path / "TODO")))


def test_what_the_operations_write_is_sound() -> None:
    tracker = Tracker(MappingSource({}))
    for new in (
        NewIssue(title="One [x](y.md) `q`", id="A-1", category="Bugs"),
        NewIssue(title="- [ ] two: 'x' #", description="## Sub-issues\n- nothing\n```\n"),
        NewIssue(title="three", parent="A-1", description="<!-- open", test_hints="- ```"),
        NewIssue(title="four", parent="A-1", depends_on=("A-1.1",)),
    ):
        tracker = tracker.with_edits(tracker.create(new)[1])
    for issue_id, status in (("A-1.1", Status.DONE), ("A-2", Status.IN_PROGRESS), ("A-1", Status.DONE)):
        tracker = tracker.with_edits(tracker.set_status(issue_id, status))
    assert lint(tracker) == []
    assert [read.id for read in tracker.ready()] == ["A-1.2"]
