"""Renders the text of a new issue file and the bullet of a comment (contract 3)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from todo.errors import usage
from todo.frontmatter import written_scalar
from todo.issue import NewIssue, Status
from todo.outline import outline, split_lines

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import date


_ENDS: Final = re.compile(r"\r\n?")
_SPACE: Final = re.compile(r"\s+")
_OPENING: Final = re.compile(r"`+|~+")
_UNPRINTABLE: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


def clean(text: str) -> str:
    r"""Return the text with line ends as \n, and control characters and lone surrogates replaced."""
    return _UNPRINTABLE.sub("\ufffd", _ENDS.sub("\n", text))


def one_line(text: str) -> str:
    """Return the text on one line: a line break with the blanks around it is one blank, and so is a tab."""
    return _SPACE.sub(lambda found: " " if found[0].strip(" ") else found[0], clean(text)).strip()


def bullet(day: date, text: str) -> list[str]:
    """Return the lines of a dated bullet; the lines after the first are indented, so that they belong to it.

    Raises:
        TrackerError: usage, for a text without a word in it.
    """
    lines = [line.rstrip() for line in clean(text).strip().split("\n")]
    if lines == [""]:
        raise usage("A comment needs a text.")
    rest = [f"  {line}" if line else "" for line in lines[1:]]
    return [f"- {day.isoformat()} - {lines[0]}", *rest]


def issue_file(issue_id: str, new: NewIssue) -> str:
    """Return the text of a new issue's file with status Todo."""
    title = one_line(new.title)
    parts = ["\n".join(_front_matter(issue_id, title, new)), f"# {issue_id}: {title}\n"]
    parts += [_closed(text) for text in (new.description,) if text.strip()]
    parts += [f"Provenance: {one_line(new.provenance)}\n"] if new.provenance.strip() else []
    if new.acceptance_criteria:
        parts.append(
            "## Acceptance criteria\n" + "".join(f"- [ ] {one_line(line)}\n" for line in new.acceptance_criteria)
        )
    if new.test_hints.strip():
        parts.append("## Integration test hints\n" + _closed(new.test_hints))
    return parts[0] + "\n".join(parts[1:])


def _front_matter(issue_id: str, title: str, new: NewIssue) -> list[str]:
    return [
        "---",
        f"id: {issue_id}",
        f"title: {written_scalar(title)}",
        f"status: {Status.TODO}",
        f"parent: {new.parent or 'null'}",
        f"labels: {_flow(one_line(label) for label in new.labels)}",
        f"depends-on: {_flow(new.depends_on)}",
        "---",
        "",
    ]


def _flow(words: Iterable[str]) -> str:
    return f"[{', '.join(written_scalar(word) for word in words)}]"


def _closed(text: str) -> str:
    """Return the text with an open code fence or HTML comment closed, so that it does not swallow what follows."""
    lines = split_lines(clean(text).strip("\n") + "\n")
    unclosed = outline(lines).unclosed
    if unclosed is not None:
        opening = lines[unclosed].strip()
        fence = _OPENING.match(opening)
        lines.append(f"{fence[0] if fence else '-->'}\n")
    return "".join(lines)


def check_new(new: NewIssue) -> None:
    """Return if an issue can be filed so.

    Raises:
        TrackerError: usage; it has no title, an empty label, or both a parent and a category.
    """
    if not one_line(new.title):
        raise usage("An issue needs a title.")
    if not all(one_line(label) for label in new.labels):
        raise usage("A label needs a word.")
    if new.parent is not None and new.category:
        raise usage("A sub-issue is listed in its parent only: give a parent or a category.")
