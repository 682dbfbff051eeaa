"""Whatever people put into their issue files, a write changes the bytes that it means to change and no other."""

from __future__ import annotations

from datetime import date
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from todo import INDEX_NAME, MappingSource, Status, Tracker

pytestmark = pytest.mark.slow

DAY = date(2026, 11, 20)
WORDS = st.text(st.characters(exclude_categories=("C", "Zl", "Zp", "Zs")), min_size=1, max_size=8)
ENDS = st.sampled_from(["\n", "\r\n"])
BLANKS = st.sampled_from(["", " ", "   "])


class Written(NamedTuple):
    """An issue file in two pieces around the word of its status."""

    before: str
    status: Status
    after: str

    @property
    def content(self) -> bytes:
        return self.with_status(self.status)

    def with_status(self, status: Status) -> bytes:
        return (self.before + status + self.after).encode()


def quoted(word: str) -> str:
    return '"' + word.replace("\\", "\\\\").replace('"', '\\"') + '"'


@st.composite
def unknown_lines(draw: st.DrawFn) -> list[str]:
    """Front matter that we know nothing of: comments, odd quoting, nested values, block scalars."""
    word = draw(WORDS)
    key = draw(st.sampled_from(["owner", "Sprint", "x-note", "'quoted key'", "größe"]))
    return draw(
        st.sampled_from(
            [
                [f"# {word}"],
                [f"{key}: {quoted(word)}   # status: Todo"],
                [f"{key}: 'it''s {word.replace(chr(39), '')}'"],
                [f"{key}:", f"  - {quoted(word)}", "  - {a: [b, c]}"],
                [f"{key}: |", "  status: Todo", "", f"  {word}"],
                [f"{key}: >-", f"  {word}", "  folded"],
                [f"? {key}", ": no   # really"],
                [f"{key}: 2026-11-20"],
                [""],
            ]
        )
    )


@st.composite
def status_line(draw: st.DrawFn) -> tuple[str, Status, str]:
    status = draw(st.sampled_from(list(Status)))
    before, after = draw(
        st.sampled_from([("", ""), ("'", "'"), ('"', '"'), ("  ", "  "), ("", "   # Todo | Done"), ("|-\n  ", "")])
    )
    key = draw(st.sampled_from(["status: ", '"status": ', "status:   ", "? status\n: "]))
    return key + before, status, after


BODY_LINES = st.sampled_from(
    [
        "",
        "text",
        "# GAL-1: a title",
        "## Comments",
        "## comments:",
        "### Comments",
        "## Sub-issues",
        "## An unknown section ##",
        "- 2026-01-01 - a comment",
        "- item",
        "  ## not a section",
        "1. first",
        "   ```",
        "```",
        "````py",
        "~~~",
        "---",
        "status: Todo",
        "<!-- ## Comments",
        "-->",
        "\ttab",
        "    ## code",
        "| a | [GAL-2](GAL-2.md) |",
        "trailing  ",
        "ünïcode \u2028 😀 \x0c",
    ]
)


@st.composite
def written_issues(draw: st.DrawFn, *, body: st.SearchStrategy[str] = BODY_LINES) -> Written:
    key, status, rest = draw(status_line())
    known = [["id: GAL-1"], ["title: " + quoted(draw(WORDS))], ["parent: ~"], ["labels: [ bug , 'a b' ]"]]
    unknown: list[list[str]] = []
    keys: set[str] = set()
    for lines in draw(st.lists(unknown_lines(), max_size=5)):
        name = lines[0].lstrip("? ").partition(":")[0]
        if name not in keys or lines[0][:1] in {"", "#"}:
            keys.add(name)
            unknown.append(lines)
    blocks = draw(st.permutations([*known, *unknown, ["STATUS"]]))
    front = "\n".join(line for block in blocks for line in block)
    head, _, tail = front.partition("STATUS")
    text = draw(st.lists(body, max_size=12))
    start = draw(st.sampled_from(["", "\ufeff"])) + "---" + draw(BLANKS) + "\n"
    end = "\n---" + draw(BLANKS) + draw(st.sampled_from(["", "\n"])) if not text else "\n---\n"
    finish = draw(st.sampled_from(["", "\n", "\n\n"])) if text else ""
    before, after = start + head + key, rest + tail + end + "\n".join(text) + finish
    return Written(with_ends(draw, before), status, with_ends(draw, after))


def with_ends(draw: st.DrawFn, text: str) -> str:
    """Give each line an end of its own, so that files mix them."""
    if draw(st.booleans()):
        return text.replace("\n", draw(ENDS))
    first, *others = text.split("\n")
    return first + "".join(draw(ENDS) + line for line in others)


def tracker_of(content: bytes) -> Tracker:
    return Tracker(MappingSource({"GAL-1.md": content}))


@given(written_issues(), st.sampled_from(list(Status)))
def test_a_status_change_keeps_every_byte_but_the_word(issue: Written, status: Status) -> None:
    edits = tracker_of(issue.content).set_status("GAL-1", status)
    assert dict(edits) == ({} if status is issue.status else {"GAL-1.md": issue.with_status(status)})


@given(written_issues(), st.text(min_size=1).filter(lambda text: bool(text.strip())))
def test_a_comment_is_only_ever_inserted(issue: Written, text: str) -> None:
    content = issue.content
    try:
        edits = tracker_of(content).comment("GAL-1", DAY, text)
    except Exception as error:  # noqa: BLE001  (the one reason that is allowed is checked)
        assert "code fence or HTML comment" in str(error)  # noqa: PT017  (as above)
        return
    changed = edits["GAL-1.md"]
    place = next((at for at, (old, new) in enumerate(zip(content, changed, strict=False)) if old != new), len(content))
    # The inserted bytes may begin like those they push on, so the kept rest is looked for, not computed.
    assert any(content[at:] == changed[len(changed) - len(content) + at :] for at in range(place + 1))
    assert b"- 2026-11-20 - " in changed
    Tracker(MappingSource(dict(edits))).read("GAL-1")


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("- [ ] [GAL-1](GAL-1.md) Title", "- [~] [GAL-1](GAL-1.md) Title"),
        (
            "  * [x] **[GAL-1](./GAL-1.md#top)**: see [GAL-2](GAL-2.md) [ ]",
            "  * [~] **[GAL-1](./GAL-1.md#top)**: see [GAL-2](GAL-2.md) [ ]",
        ),
        ('1. [X] [the first](<GAL-1.md> "hint")', '1. [~] [the first](<GAL-1.md> "hint")'),
        ("| [ ] | [GAL-1](GAL-1.md) | me |", "| [~] | [GAL-1](GAL-1.md) | me |"),
        ("- [GAL-1](GAL-1.md), which has no box", "- [GAL-1](GAL-1.md), which has no box"),
    ],
)
@pytest.mark.parametrize("end", ["\n", "\r\n", ""])
def test_only_the_box_of_a_line_changes_whatever_its_form(line: str, expected: str, end: str) -> None:
    issue = b"---\nid: GAL-1\ntitle: t\nstatus: Todo\n---\n"
    before = f"\ufeff# Mine\r\n## B\n```\n{line}\n```\n<!--\n{line}\n-->\nsee [GAL-1](GAL-1.md)\n"
    readme = before + line + end
    tracker = Tracker(MappingSource({"GAL-1.md": issue, INDEX_NAME: readme.encode()}))
    there = tracker.set_status("GAL-1", Status.IN_PROGRESS)
    assert there.get(INDEX_NAME, readme.encode()) == (before + expected + end).encode()
