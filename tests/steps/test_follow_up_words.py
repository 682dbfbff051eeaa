"""What is refused of @pm's words, and how worded items are filed: by our library, once, as data."""

from __future__ import annotations

from typing import Any

import pytest

from pipeline.judge.reports.parse import parse_report
from pipeline.judge.reports.reviews import FollowUps
from pipeline.steps.publication.follow_ups import TITLE_LIMIT, Item, file_items, refusal
from pipeline.vocabulary import Role
from todo import MappingSource, Status, Tracker


def issue(issue_id: str, title: str, *, status: str = "Todo", parent: str = "null", label: str = "bug") -> bytes:
    head = f"id: {issue_id}\ntitle: {title}\nstatus: {status}\nparent: {parent}\nlabels: [{label}]\n"
    return f"---\n{head}---\n# {issue_id}: {title}\n".encode()


TRACKER = Tracker(
    MappingSource(
        {
            "A-1.md": issue("A-1", "The issue of the run"),
            "A-1.1.md": issue("A-1.1", "Known bug", parent="A-1"),
            "A-1.2.md": issue("A-1.2", "Old bug", status="Done", parent="A-1"),
            "A-2.md": issue("A-2", "Another", label="api"),
        }
    )
)
EXISTING = [found for found in TRACKER.issues() if found.id != "A-1"]


def item(title: str, label: str = "bug", **more: Any) -> Item:
    return Item(labels=(label,), title=title, body="As seen.", provenance="Seen by a test.", seen_as=title, **more)


WANTED = (item("One"), item("Two", "tech-debt"))


def answer(*issues: dict[str, Any]) -> FollowUps:
    parsed = parse_report("follow-ups", Role.PM, None, {"issues": list(issues)})
    assert isinstance(parsed, FollowUps), parsed
    return parsed


@pytest.mark.parametrize(
    "issues",
    [
        [],
        [{"item": 1, "title": "a"}],
        [{"item": "2", "title": "a"}, {"item": 1, "title": "b"}],
        [{"item": 1, "title": "a", "labels": ["bug", "api"], "duplicate_of": "A-2"}],
        [{"item": 2, "title": "a", "labels": ["api"]}],
        [{"item": 1, "title": "x" * TITLE_LIMIT}],
    ],
)
def test_what_can_be_filed_is_taken(issues: list[dict[str, Any]]) -> None:
    assert refusal(answer(*issues), WANTED, EXISTING) is None


@pytest.mark.parametrize(
    ("entry", "pointer", "told"),
    [
        ({"item": 3}, "/issues/0/item", "accepted: 1 to 2"),
        ({"item": 0}, "/issues/0/item", "accepted: 1 to 2"),
        ({"item": "Two"}, "/issues/0/item", "accepted: 1 to 2"),
        ({"item": "٢"}, "/issues/0/item", "accepted: 1 to 2"),
        ({"item": "9" * 5000}, "/issues/0/item", "accepted: 1 to 2"),
        ({"title": "x" * (TITLE_LIMIT + 1)}, "/issues/0/title", "120"),
        ({"labels": ["wontfix"]}, "/issues/0/labels", "accepted: bug, api"),
        ({"labels": ["tech-debt"]}, "/issues/0/labels", "'tech-debt', which no issue uses"),
        ({"duplicate_of": "A-9"}, "/issues/0/duplicate_of", "null if in doubt"),
        ({"duplicate_of": "A-1"}, "/issues/0/duplicate_of", "not among the existing issues"),
        ({"duplicate_of": "A-1.2"}, "/issues/0/duplicate_of", "Done"),
    ],
)
def test_what_cannot_be_true_is_refused_with_the_place(entry: dict[str, Any], pointer: str, told: str) -> None:
    wrong = refusal(answer({"item": 1, "title": "a", **entry}), WANTED, EXISTING)
    assert wrong is not None
    assert wrong.pointer == pointer
    assert told in wrong.sentence


def test_one_entry_for_each_item_and_one_label_more() -> None:
    twice = refusal(answer({"item": 1, "title": "a"}, {"item": "1", "title": "b"}), WANTED, EXISTING)
    assert twice is not None
    assert twice.pointer == "/issues/1/item"
    many = [*EXISTING, Tracker(MappingSource({"B-1.md": issue("B-1", "x", label="web")})).read("B-1")]
    labels = refusal(answer({"item": 1, "title": "a", "labels": ["api", "web"]}), WANTED, many)
    assert labels is not None
    assert "more than one label beside 'bug'" in labels.sentence


def test_a_title_is_one_line_of_front_matter() -> None:
    parsed = parse_report("follow-ups", Role.PM, None, {"issues": [{"item": 1, "title": "a\nstatus: Done"}]})
    assert not isinstance(parsed, FollowUps)
    hostile = item("x").model_copy(update={"title": "---\u2028id: A-7 # \x1b[2J\u202e"})
    (filed,), edits = file_items(TRACKER, "A-1", (hostile,))
    read = TRACKER.with_edits(edits).read(filed)
    assert (read.id, read.parent, read.status) == ("A-1.3", "A-1", Status.TODO)
    assert read.title.isprintable()


def test_other_words_do_not_hide_that_it_is_open_already() -> None:
    reworded = item("Known bug").model_copy(update={"title": "Something else"})
    same_words = item("Something else").model_copy(update={"title": "known BUG!"})
    closed = item("Old bug")
    filed, edits = file_items(TRACKER, "A-1", (reworded, same_words, closed))
    assert filed == ("A-1.3",)
    assert TRACKER.with_edits(edits).read("A-1.3").title == "Old bug"


def test_a_duplicate_is_not_filed_and_two_of_one_title_are() -> None:
    one, two = (item(name).model_copy(update={"title": "Same words"}) for name in ("One", "Two"))
    filed, edits = file_items(TRACKER, "A-1", (item("Three", duplicate_of="A-2"), one, two, item("TWO!", "followup")))
    assert filed == ("A-1.3", "A-1.4")
    assert [TRACKER.with_edits(edits).read(name).title for name in filed] == ["Same words", "Same words"]
