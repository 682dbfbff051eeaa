"""Makes texts of agents, tests and people safe to stand in our documents: they hide nothing and end no structure.

Markdown is read by people as rendered, by agents as written, and by our own linter line by line. What is ambiguous
between these readings (a fence in a list, one that is never closed, `---` below a line, raw HTML) is rewritten until
all of them agree. The bytes as they came are kept in the transcripts.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from pipeline.characters import on_one_line, visible

OPENING: Final = re.compile(r"^(?P<lead>\s*(?:(?:[-*+]|1[.)])\s+)*)(?P<mark>`{3,}(?=[^`]*$)|~{3,})(?P<info>.*)$")
"""A line that opens a code fence, alone or first in list items that may interrupt a paragraph (CommonMark)."""

_COLOUR: Final = re.compile("(?:\x1b\\[|\x9b)[0-9;:]*m")
_BREAK: Final = re.compile("\r\n?|[\x85\u2028\u2029\v\f]")
_HEADING: Final = re.compile(r"(?P<indent> {0,3})#{1,6}(?=[ \t]|$)")
_UNDERLINE: Final = re.compile(r" {0,3}(?:=+|-+)[ \t]*")
_LEAD: Final = r"(?P<lead>[ \t>]*(?:(?:[-*+]|\d{1,9}[.)])[ \t>]+)*)"
_MARKUP: Final = re.compile(rf"{_LEAD}(?=<(?!https?://|mailto:)[A-Za-z/!?]|\[(?![^\[\]\\]*\](?!:)))")
_COMMENT: Final = "<!--"
_SHOWN_COMMENT: Final = "&lt;!--"


def clean(text: str) -> str:
    """Return `text` without colours, with newline as the only line break and hidden characters shown as escapes."""
    return visible(_COLOUR.sub("", _BREAK.sub("\n", text)), keep="\n\t")


def legible(document: str) -> str:
    """Return a document for reading, with newlines as line breaks and hidden or terminal-steering characters shown."""
    return visible(re.sub("\r\n?", "\n", document.removeprefix("\ufeff")), keep="\n\t")


def one_line(text: str) -> str:
    """Return `text` on one line, for a heading, a list item or a table cell; not empty unless `text` is."""
    return (on_one_line(clean(text)) or on_one_line(visible(text.strip()))).replace(_COMMENT, _SHOWN_COMMENT)


def list_item(text: str, mark: str = "-") -> str:
    """Return `text` as one list item; it opens no fence in it, and no HTML."""
    return _without_markup(OPENING.sub(r"\g<lead>\\\g<mark>\g<info>", f"{mark} {one_line(text)}"))


@dataclass(frozen=True)
class _Fence:
    mark: str
    column: int

    @property
    def closing(self) -> str:
        return " " * self.column + self.mark

    def is_closed_by(self, line: str) -> bool:
        text = line.strip()
        return len(text) >= len(self.mark) and set(text) == {self.mark[0]}

    def is_left_by(self, line: str) -> bool:
        # The list item that may hold the fence ends here, and the fence with it.
        indent = line[: len(line) - len(line.lstrip())].expandtabs(4)
        return bool(line.strip()) and len(indent) < self.column


def block(text: str) -> str:
    """Return a text of several lines with headings as H4, markup shown and fences closed."""
    out: list[str] = []
    fence: _Fence | None = None
    said = clean(text).strip() or visible(text.strip())  # a text of nothing but terminal sequences is shown as it is
    for line in said.split("\n"):
        if fence is not None and fence.is_left_by(line):
            out.append(fence.closing)
            fence = None
        if fence is not None:
            closes = fence.is_closed_by(line)
            out.append(fence.closing if closes else line.rstrip())
            fence = None if closes else fence
        elif found := OPENING.match(line):
            fence = _Fence(found["mark"], len(found["lead"].expandtabs(4)))
            out.append(line.rstrip())
        else:
            out.append(_prose(line, out[-1] if out else ""))
    return "\n".join([*out, fence.closing] if fence is not None else out)


def fenced(text: str, language: str = "") -> str:
    """Return `text` in a code fence that nothing in it can end."""
    body = clean(text).strip("\n")
    ticks = max((len(run) for run in re.findall(r"`+", body)), default=0)
    mark = "`" * max(3, ticks + 1)
    return f"{mark}{language}\n{body}\n{mark}"


def _prose(line: str, above: str) -> str:
    """Return a line outside a fence with its markup shown: it starts no section, no HTML, no link definition."""
    line = line.rstrip().replace(_COMMENT, _SHOWN_COMMENT)
    if heading := _HEADING.match(line):
        return f"{heading['indent']}#### {line[heading.end() :].strip()}".rstrip()
    if above.strip() and _UNDERLINE.fullmatch(line):
        return f"\\{line.lstrip()}"
    return _without_markup(line)


def _without_markup(line: str) -> str:
    markup = _MARKUP.match(line)
    return line if markup is None else f"{line[: markup.end()]}\\{line[markup.end() :]}"
