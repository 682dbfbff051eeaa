from __future__ import annotations

from datetime import date

import pytest

from todo import INDEX_NAME, ErrorKind, MappingSource, NewIssue, Status, Tracker, TrackerError

DAY = date(2026, 11, 20)
README = "# Issues\n\n## Bugs\n- [ ] [GAL-39](GAL-39.md) Reject empty names\n\n## Features\n\nNew things.\n"


def issue(issue_id: str, *lines: str, status: str = "Todo", title: str = "A title", body: str = "") -> bytes:
    front = [f"id: {issue_id}", f"title: {title}", f"status: {status}", *lines]
    return ("---\n" + "\n".join(front) + "\n---\n" + body).encode()


def test_work_on_an_issue_that_is_only_the_template_cannot_begin() -> None:
    template = "# A-1: A title\n\n<!-- What is wrong,\nand why. -->\n\n## Acceptance criteria\n\n<!-- one line -->\n"
    with pytest.raises(TrackerError, match="only the comments") as caught:
        tracker(**{"A-1.md": issue("A-1", body=template)}).prerequisites("A-1")
    assert (caught.value.kind, caught.value.path) == (ErrorKind.TRACKER_INVALID, "A-1.md")
    assert tracker(**{"A-1.md": issue("A-1", body=f"{template}- [ ] it raises\n")}).prerequisites("A-1") is None
    assert tracker(**{"A-1.md": issue("A-1", body="# A-1: a title alone\n")}).prerequisites("A-1") is None


def tracker(**files: bytes | str) -> Tracker:
    contents = {name: text.encode() if isinstance(text, str) else text for name, text in files.items()}
    return Tracker(MappingSource(contents))


def gal(**more: bytes | str) -> Tracker:
    body = "# GAL-39: Reject empty names\n\nText.\n\n## Comments\n- 2026-11-01 - old\n"
    files: dict[str, bytes | str] = {
        "GAL-39.md": issue("GAL-39", "labels: [bug]", title="Reject empty names", body=body),
        INDEX_NAME: README,
    }
    return tracker(**(files | more))


def test_an_issue_is_read_with_types() -> None:
    files = {"GAL-1.md": issue("GAL-1", "parent: null", "labels: [bug, yes]", "depends-on:\n- GAL-2", body="# x\n")}
    read = tracker(**files).read("GAL-1")
    assert (read.id, read.title, read.status) == ("GAL-1", "A title", Status.TODO)
    assert (read.parent, read.labels, read.depends_on, read.body) == (None, ("bug", "yes"), ("GAL-2",), "# x\n")


@pytest.mark.parametrize("parent", ["parent: null", "parent: ~", "parent:", "parent: # none", "x: y"])
def test_every_spelling_of_no_parent_is_none(parent: str) -> None:
    assert tracker(**{"A-1.md": issue("A-1", parent)}).read("A-1").parent is None


@pytest.mark.parametrize("labels", ["labels: null", "labels:", "labels: []", "labels: [ ]", "x: y"])
def test_every_spelling_of_no_labels_is_none(labels: str) -> None:
    assert tracker(**{"A-1.md": issue("A-1", labels)}).read("A-1").labels == ()


def test_issues_come_in_the_order_people_count_in() -> None:
    names = ["GAL-10", "GAL-2", "GAL-39", "GAL-39.10", "GAL-39.2", "ACE-7"]
    found = tracker(**{f"{name}.md": issue(name) for name in names}).issues()
    assert [read.id for read in found] == ["ACE-7", "GAL-2", "GAL-10", "GAL-39", "GAL-39.2", "GAL-39.10"]


def test_ready_is_todo_with_all_dependencies_done() -> None:
    files = {
        "A-1.md": issue("A-1", status="Done"),
        "A-2.md": issue("A-2", "depends-on: [A-1]"),
        "A-3.md": issue("A-3", "depends-on: [A-1, A-2]"),
        "A-4.md": issue("A-4", "depends-on: [A-9]"),
        "A-5.md": issue("A-5", status="In Progress"),
        "A-6.md": issue("A-6"),
    }
    assert [read.id for read in tracker(**files).ready()] == ["A-2", "A-6"]


def test_prerequisites_are_judged_in_the_order_of_the_matrix() -> None:
    files = {
        "A-1.md": issue("A-1", status="Done"),
        "A-2.md": issue("A-2", "depends-on: [A-1]"),
        "A-3.md": issue("A-3", "depends-on: [A-9, A-2, A-1, A-5]"),
        "A-4.md": issue("A-4", "depends-on: [A-1, A-9]"),
        "A-5.md": issue("A-5", "depends-on: [A-9]", status="In Progress"),
    }
    found = tracker(**files)
    assert found.prerequisites("A-2") is None
    kinds: dict[str, tuple[ErrorKind, tuple[str, ...]]] = {}
    for issue_id in ("A-7", "A-5", "A-3", "A-4"):
        obstacle = found.prerequisites(issue_id)
        assert obstacle is not None
        assert all(other in obstacle.message for other in obstacle.issues)
        kinds[issue_id] = (obstacle.kind, obstacle.issues)
    assert kinds == {
        "A-7": (ErrorKind.ISSUE_NOT_FOUND, ("A-7",)),
        "A-5": (ErrorKind.ISSUE_NOT_TODO, ("A-5",)),
        "A-3": (ErrorKind.DEPENDENCY_UNMET, ("A-2", "A-5")),
        "A-4": (ErrorKind.DEPENDENCY_MISSING, ("A-9",)),
    }


def test_a_top_level_issue_is_shown_in_the_readme() -> None:
    edits = gal().set_status("GAL-39", Status.IN_PROGRESS)
    assert edits[INDEX_NAME].decode() == README.replace("- [ ]", "- [~]")
    assert b"\nstatus: In Progress\n" in edits["GAL-39.md"]
    assert set(edits) == {INDEX_NAME, "GAL-39.md"}


def test_a_sub_issue_is_shown_in_its_parent_only() -> None:
    body = "## Sub-issues\n- [ ] [A-1.1](A-1.1.md) one\n## Comments\n- 2026-11-01 - [ ] [A-1.1](A-1.1.md)\n"
    files: dict[str, bytes | str] = {
        "A-1.md": issue("A-1", body=body),
        "A-1.1.md": issue("A-1.1", "parent: A-1"),
        INDEX_NAME: "- [ ] [A-1](A-1.md) t, of which [A-1.1](A-1.1.md)\n",
    }
    edits = tracker(**files).set_status("A-1.1", Status.DONE)
    assert set(edits) == {"A-1.md", "A-1.1.md"}
    assert edits["A-1.md"].endswith(body.replace("- [ ] [A-1.1]", "- [x] [A-1.1]", 1).encode())


def test_a_box_out_of_step_is_mended_though_the_status_is_so_already() -> None:
    found = gal(**{INDEX_NAME: README.replace("- [ ]", "- [x]")})
    assert found.set_status("GAL-39", Status.TODO) == {INDEX_NAME: README.encode()}


def test_a_missing_line_is_added_to_readme_and_parent() -> None:
    files: dict[str, bytes | str] = {
        INDEX_NAME: "## Bugs\n- [ ] [B-1](B-1.md) b",
        "A-1.md": issue("A-1", body="Text.\n## Comments\n- 2026-11-01 - x\n"),
        "A-1.1.md": issue("A-1.1", "parent: A-1", title="'Sub # one'"),
    }
    found = tracker(**files)
    assert found.set_status("A-1", Status.DONE)[INDEX_NAME].decode() == (
        "## Bugs\n- [ ] [B-1](B-1.md) b\n\n## Uncategorised\n- [x] [A-1](A-1.md) A title"
    )
    assert found.set_status("A-1.1", Status.IN_PROGRESS)["A-1.md"].decode().endswith(
        "Text.\n\n## Sub-issues\n- [~] [A-1.1](A-1.1.md) Sub # one\n\n## Comments\n- 2026-11-01 - x\n"
    )  # fmt: skip


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("## Comments\n- a\n", "## Comments\n- a\n- 2026-11-20 - new\n"),
        ("## Comments\n\n## Next\n", "## Comments\n- 2026-11-20 - new\n\n## Next\n"),
        ("## Comments\r\n- a\r\n\r\n## Next\r\n", "## Comments\r\n- a\r\n- 2026-11-20 - new\r\n\r\n## Next\r\n"),
        ("## Comments\nprose", "## Comments\nprose\n\n- 2026-11-20 - new"),
        ("text", "text\n\n## Comments\n- 2026-11-20 - new"),
        ("text\n\n\n", "text\n\n## Comments\n- 2026-11-20 - new\n\n\n"),
        ("```\n## Comments\n```\n", "```\n## Comments\n```\n\n## Comments\n- 2026-11-20 - new\n"),
        ("## Comments\n- a\n\n  ```\n  ## b\n  ```\n# End\n", None),
        ("", "## Comments\n- 2026-11-20 - new\n"),
    ],
)
def test_a_comment_goes_to_the_end_of_comments(body: str, expected: str | None) -> None:
    content = issue("A-1", body=body)
    changed = tracker(**{"A-1.md": content}).comment("A-1", DAY, "new")["A-1.md"]
    wanted = expected or body.replace("# End", "- 2026-11-20 - new\n# End")
    assert changed == content.removesuffix(body.encode()) + wanted.encode()


def test_a_text_of_several_lines_stays_one_bullet() -> None:
    found = gal()
    edits = found.comment("GAL-39", DAY, "\none\r\ntwo  \n\n## three\x1b[31m\ud800\n")
    expected = "- 2026-11-01 - old\n- 2026-11-20 - one\n  two\n\n  ## three\ufffd[31m\ufffd\n"
    assert edits["GAL-39.md"].decode().endswith(expected)


def test_edits_compose_and_remember_what_they_were_computed_from() -> None:
    start = gal()
    first = start.set_status("GAL-39", Status.DONE)
    second = start.with_edits(first).comment("GAL-39", DAY, "done")
    third_id, third = start.with_edits(first.then(second)).create(NewIssue(title="more", parent="GAL-39"))
    merged = first.then(second).then(third)
    assert set(merged) == {INDEX_NAME, "GAL-39.md", "GAL-39.1.md"}
    assert merged.before == {name: start.raw(name) for name in merged}
    assert merged.before["GAL-39.1.md"] is None
    after = start.with_edits(merged)
    assert (after.read("GAL-39").status, after.read(third_id).parent) == (Status.DONE, "GAL-39")
    assert after.read("GAL-39").body.endswith(
        "Text.\n\n## Sub-issues\n- [ ] [GAL-39.1](GAL-39.1.md) more\n\n"
        "## Comments\n- 2026-11-01 - old\n- 2026-11-20 - done\n"
    )


def test_a_new_sub_issue_is_filed_in_full() -> None:
    new = NewIssue(
        title="  Clean up:\n the parser ",
        parent="GAL-39",
        labels=("tech-debt", "a, b"),
        depends_on=("GAL-39",),
        description="Why.\n```\nnot closed",
        acceptance_criteria=("it works", "it\nstays"),
        test_hints="See `tests/`.",
        provenance="run-GAL-39, final review",
    )
    issue_id, edits = gal().create(new)
    assert issue_id == "GAL-39.1"
    assert edits["GAL-39.1.md"].decode() == (
        '---\nid: GAL-39.1\ntitle: "Clean up: the parser"\nstatus: Todo\nparent: GAL-39\n'
        'labels: [tech-debt, "a, b"]\ndepends-on: [GAL-39]\n---\n'
        "# GAL-39.1: Clean up: the parser\n\nWhy.\n```\nnot closed\n```\n\nProvenance: run-GAL-39, final review\n\n"
        "## Acceptance criteria\n- [ ] it works\n- [ ] it stays\n\n## Integration test hints\nSee `tests/`.\n"
    )
    assert b"## Sub-issues\n- [ ] [GAL-39.1](GAL-39.1.md) Clean up: the parser\n" in edits["GAL-39.md"]
    assert set(edits) == {"GAL-39.1.md", "GAL-39.md"}


def test_child_ids_count_on_and_are_never_given_twice() -> None:
    body = "## Sub-issues\n- [x] [A-1.7](A-1.7.md) its file is gone\n"
    files = {"A-1.md": issue("A-1", body=body), "A-1.2.md": issue("A-1.2", "parent: A-1"), "A-1.x.md": issue("A-1.x")}
    found = tracker(**files)
    one, edits = found.create(NewIssue(title="a", parent="A-1"))
    two, _ = found.with_edits(edits).create(NewIssue(title="b", parent="A-1"))
    assert (one, two) == ("A-1.8", "A-1.9")


@pytest.mark.parametrize(
    ("ids", "expected"),
    [
        (["GAL-2", "GAL-10", "ACE-99"], "GAL-11"),
        (["B-1", "A-5"], "A-6"),
        (["T-001", "T-009", "T-009.12"], "T-010"),
        (["WEB-UI-3"], "WEB-UI-4"),
    ],
)
def test_a_top_level_id_counts_on_the_most_used_prefix(ids: list[str], expected: str) -> None:
    issue_id, _ = tracker(**{f"{name}.md": issue(name) for name in ids}).create(NewIssue(title="t"))
    assert issue_id == expected


@pytest.mark.parametrize(
    ("category", "expected"),
    [
        ("bugs", README.replace("names\n", "names\n- [ ] [GAL-40](GAL-40.md) t\n")),
        ("Features", README + "\n- [ ] [GAL-40](GAL-40.md) t\n"),
        ("New one", README + "\n## New one\n- [ ] [GAL-40](GAL-40.md) t\n"),
        (None, README + "\n## Uncategorised\n- [ ] [GAL-40](GAL-40.md) t\n"),
    ],
)
def test_a_new_top_level_issue_is_listed_under_its_category(category: str | None, expected: str) -> None:
    _, edits = gal().create(NewIssue(title="t", category=category))
    assert edits[INDEX_NAME].decode() == expected


def test_a_line_is_added_after_the_whole_of_the_last_item() -> None:
    readme = "## Bugs\n- [ ] [GAL-39](GAL-39.md) x\n\n  more\n\n\nprose\n"
    _, edits = gal(**{INDEX_NAME: readme}).create(NewIssue(title="t", category="Bugs"))
    assert edits[INDEX_NAME].decode() == readme.replace("more\n", "more\n- [ ] [GAL-40](GAL-40.md) t\n")


def test_a_duplicate_is_an_open_issue_of_the_same_title_among_its_siblings() -> None:
    files = {
        "A-1.md": issue("A-1", title="Fix the parser"),
        "A-2.md": issue("A-2", title='"Old: one"', status="Done"),
        "A-1.1.md": issue("A-1.1", "parent: A-1", title="Clean-up, the  Cache"),
    }
    found = tracker(**files)
    assert [read.id for read in (found.find_duplicate("clean up: the cache!", "A-1"),) if read] == ["A-1.1"]
    assert found.find_duplicate("clean up the cache", "A-2") is None
    assert found.find_duplicate("old one") is None
    assert [read.id for read in (found.find_duplicate("FIX THE PARSER."),) if read] == ["A-1"]
    assert found.find_duplicate("!!!") is None


@pytest.mark.parametrize(
    ("new", "kind", "words"),
    [
        (NewIssue(title=" \n"), ErrorKind.USAGE, "title"),
        (NewIssue(title="t", labels=(" ",)), ErrorKind.USAGE, "label"),
        (NewIssue(title="t", parent="GAL-39", category="Bugs"), ErrorKind.USAGE, "parent or a category"),
        (NewIssue(title="t", id="gal-39"), ErrorKind.USAGE, "already"),
        (NewIssue(title="t", id="../x"), ErrorKind.USAGE, "not an issue id"),
        (NewIssue(title="t", parent="GAL-7"), ErrorKind.ISSUE_NOT_FOUND, "GAL-7"),
        (NewIssue(title="t", depends_on=("GAL-7",)), ErrorKind.DEPENDENCY_MISSING, "GAL-7"),
        (NewIssue(title="t", depends_on=("-x",)), ErrorKind.USAGE, "not an issue id"),
    ],
)
def test_what_cannot_be_filed_is_refused(new: NewIssue, kind: ErrorKind, words: str) -> None:
    with pytest.raises(TrackerError, match=words) as caught:
        gal().create(new)
    assert caught.value.kind is kind
