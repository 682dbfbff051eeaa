"""Splits Markdown into lines that keep their ends, and finds its headings, its sections, its code and comments.

Follows CommonMark for what decides whether a line is a heading: code fences, HTML comments, list items that hold them,
paragraphs that run on. Underlined (setext) headings are not sections.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, NamedTuple

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


_MARKS: Final = re.compile(r"#{1,6}(?=[ \t]|$)")
_BULLET: Final = re.compile(r"([-+*]|\d{1,9}[.)])([ \t]+|$)")
_FENCE: Final = re.compile(r"(`{3,})[^`]*|(~{3,}).*")
_UNDERLINE: Final = re.compile(r"(?:-+|=+) *")
_COMMENT_END: Final = re.compile("-->")
_MAX_INDENT: Final = 3
_MAX_ITEMS: Final = 100
"""The depth of nested list items that is read; deeper nesting is meant to exhaust the reader."""


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


class _Block(NamedTuple):
    """An open code fence or HTML comment; `column` is the column of the list item's content that holds it."""

    opened: int
    closing: re.Pattern[str]
    column: int


def outline(lines: list[str]) -> Outline:
    """Return the headings and hidden lines of a Markdown text."""
    scanner = _Scanner()
    for index, line in enumerate(lines):
        scanner.read(index, line.rstrip("\r\n").expandtabs(4))
    block = scanner.block
    unclosed = block.opened if block is not None and not block.column else None
    return Outline(tuple(scanner.headings), frozenset(scanner.hidden), unclosed, len(lines))


class _Scanner:
    """Reads a text line by line; `items` are the columns at which the content of the open list items begins."""

    def __init__(self) -> None:
        self.headings: list[Heading] = []
        self.hidden: set[int] = set()
        self.block: _Block | None = None
        self.items: list[int] = []
        self.in_paragraph = False
        self.in_empty_item = False

    def read(self, index: int, line: str) -> None:
        """Read the next line; its tabs are expanded."""
        text = line.lstrip(" ")
        indent = len(line) - len(text)
        if self.block is not None and (not text or indent >= self.block.column):
            self.hidden.add(index)
            if self.block.closing.search(line):
                self.block = None
            return
        self.block = None
        if text:
            self._read_text(index, text, indent)
        else:
            if self.in_empty_item:
                self.items.pop()
            self.in_paragraph = self.in_empty_item = False

    def _read_text(self, index: int, text: str, indent: int) -> None:
        around = [column for column in self.items if column <= indent]
        goes_on = self.in_paragraph and len(around) == len(self.items)
        self.in_empty_item = False
        if indent - (around[-1] if around else 0) > _MAX_INDENT:
            if not self.in_paragraph:
                self.items = around
            return
        if goes_on and _UNDERLINE.fullmatch(text):
            self.in_paragraph = False
            return
        before = len(around)
        while len(around) < _MAX_ITEMS and (bullet := _BULLET.match(text)):
            if goes_on and len(around) == before and _cannot_interrupt(bullet):
                break
            spaces = len(bullet[2])
            code = spaces > _MAX_INDENT + 1
            indent += len(bullet[1]) + (spaces if spaces and not code else 1)
            around.append(indent)
            text = text[bullet.end() :]
            if code or not text:
                self.items, self.in_paragraph, self.in_empty_item = around, False, not text
                return
        block = _opening(text, index, around[-1] if around else 0)
        heading = _heading(text, index)
        if block is not None:
            self.hidden.add(index)
            one_line = block.closing is _COMMENT_END and _COMMENT_END.search(text)
            self.block = None if one_line else block
        elif heading and not around:
            self.headings.append(heading)
        starts_block = block is not None or heading is not None
        # Text that is indented less than the item it follows still belongs to its paragraph.
        if starts_block or len(around) > before or not self.in_paragraph:
            self.items = around
        self.in_paragraph = not starts_block


def _heading(text: str, index: int) -> Heading | None:
    """Return the heading on a line, without closing `#` marks; None if the line is no heading."""
    marks = _MARKS.match(text)
    if marks is None:
        return None
    title = text[marks.end() :].rstrip(" \t")
    bare = title.rstrip("#")
    return Heading(index, marks.end(), (bare if bare.endswith((" ", "\t")) else title).strip())


def _cannot_interrupt(bullet: re.Match[str]) -> bool:
    """Return whether a bullet cannot interrupt a paragraph: it is empty, or its number is not 1."""
    return bullet.end() == len(bullet.string) or bullet[1] not in {"-", "+", "*", "1.", "1)"}


def _opening(text: str, index: int, column: int) -> _Block | None:
    if text.startswith("<!--"):
        return _Block(index, _COMMENT_END, column)
    fence = _FENCE.fullmatch(text)
    if fence is None:
        return None
    mark = fence[1] or fence[2]
    return _Block(index, re.compile(rf"^ {{0,{column + _MAX_INDENT}}}{mark[0]}{{{len(mark)},}} *$"), column)
