"""Splits Markdown into lines that keep their ends, and finds its headings, its sections, its code and comments.

It is read as CommonMark by markdown-it. Headings are those of the text itself: one in a list item or a quotation, or an
underlined (setext) one, begins no section.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

_LINES: Final = re.compile(r"[^\r\n]*(?>\r\n|\n|\r)|[^\r\n]+")
_LIST_LINE: Final = re.compile(r"[ \t]|(?:[-+*]|\d{1,9}[.)])(?:[ \t]|$)")


def split_lines(text: str) -> list[str]:
    r"""Return the lines with their ends: \n, \r\n or \r, and no other character."""
    return _LINES.findall(text)


def newline_of(lines: list[str]) -> str:
    r"""Return the line end of the first line, \n if it has none."""
    first = lines[0] if lines else ""
    return first[len(first.rstrip("\r\n")) :] or "\n"


def last_filled(lines: list[str], start: int, end: int) -> int:
    """Return the index of the last line in the range that is not blank, `start - 1` when all are."""
    return next((index for index in range(end - 1, start - 1, -1) if lines[index].strip()), start - 1)


def insert_after(lines: list[str], index: int, added: list[str], newline: str) -> list[str]:
    """Return the lines with `added` (without line ends) after `index`; a missing final line end stays missing."""
    ended = [line + newline for line in added]
    if index >= 0 and not lines[index].endswith(("\r", "\n")):
        ended[-1] = added[-1]
        return [*lines[:index], lines[index] + newline, *ended]
    return [*lines[: index + 1], *ended, *lines[index + 1 :]]


def is_list_line(line: str) -> bool:
    """Return whether the line begins or continues a list item, so that an item may follow without a blank line."""
    return _LIST_LINE.match(line.rstrip("\r\n")) is not None


class Heading(NamedTuple):
    """An ATX heading: its line, level and title."""

    at: int
    level: int
    title: str


class Section(NamedTuple):
    """A heading and the lines up to the next heading that is not deeper; indices into the lines, end excluded."""

    heading: int
    start: int
    end: int


@dataclass(frozen=True)
class Outline:
    """The headings and hidden lines of a text, as indices into its lines."""

    headings: tuple[Heading, ...]
    hidden: frozenset[int]
    """Lines in code fences and HTML comments."""
    unclosed: int | None
    """The line that opens a fence or comment which nothing closes, so that text added at the end would be in it."""
    size: int

    def section(self, title: str, level: int = 2) -> Section | None:
        """Return the first section with a title (case and a final colon do not matter) and level."""
        wanted = title.casefold()
        for position, heading in enumerate(self.headings):
            if heading.level == level and heading.title.rstrip(":").rstrip().casefold() == wanted:
                following = (other.at for other in self.headings[position + 1 :] if other.level <= level)
                return Section(heading.at, heading.at + 1, next(following, self.size))
        return None


def outline(lines: list[str]) -> Outline:
    """Return the headings and hidden lines of a Markdown text."""
    headings: list[Heading] = []
    hidden: set[int] = set()
    unclosed: int | None = None
    for token in _reader().parse("".join(lines)):
        start, end = token.map or (0, 0)
        if token.type == "heading_open" and token.level == 0 and set(token.markup) == {"#"}:
            headings.append(Heading(start, len(token.markup), _title(lines[start])))
        is_comment = token.type == "html_block" and token.content.lstrip().startswith("<!--")
        if token.type == "fence" or is_comment:
            hidden.update(range(start, end))
            is_closed = "-->" in token.content if is_comment else _is_closed(token.markup, lines[start:end])
            unclosed = start if not is_closed and token.level == 0 else unclosed
    return Outline(tuple(headings), frozenset(hidden), unclosed, len(lines))


@cache
def _reader() -> MarkdownIt:
    from markdown_it import MarkdownIt  # noqa: PLC0415  (only who changes or lints a page needs it)

    return MarkdownIt("commonmark").disable("inline")


def _title(line: str) -> str:
    """Return the title of an ATX heading, without closing `#` marks."""
    title = line.strip().lstrip("#").strip(" \t")
    bare = title.rstrip("#")
    return (bare if not bare or bare.endswith((" ", "\t")) else title).strip()


def _is_closed(mark: str, lines: list[str]) -> bool:
    """Return whether the last line of a fence closes it."""
    last = lines[-1].strip()
    return len(lines) > 1 and len(last) >= len(mark) and set(last) == {mark[0]}
