"""Writes Markdown for our documents, and parses it for hygiene: sections, fences, and prose without quotations."""

from __future__ import annotations

import re
from dataclasses import dataclass
from textwrap import indent
from typing import TYPE_CHECKING, Final

from pipeline.judge.reports.untrusted_text import OPENING, block, list_item

if TYPE_CHECKING:
    from collections.abc import Iterable

_LONGEST_LINE: Final = 5_000
_HEADING: Final = re.compile(r"^(?P<marks>#{1,6})\s+(?P<title>.*?)\s*#*$")
_QUOTED: Final = re.compile(
    r"(?<!`)(?P<ticks>`+)(?!`).*?(?<!`)(?P=ticks)(?!`)"  # inline code
    r"|\b[a-z][a-z0-9+.-]*://\S+"  # URLs
    r"|\"[^\"]*\"|“[^”]*”|«[^»]*»"  # quotations
)


@dataclass(frozen=True)
class Text:
    """A line with its place: number from 1, the H2 and H3 above it, whether it is a heading."""

    number: int
    text: str
    section: str
    subsection: str
    is_heading: bool = False

    @property
    def prose(self) -> str:
        """Return the line with inline code, URLs and quotations blanked out."""
        return _QUOTED.sub(lambda match: " " * len(match[0]), self.text)


@dataclass(frozen=True)
class Fence:
    """A fenced block: the line of its opening mark, its language, its lines, and the prose line before it."""

    number: int
    language: str
    lines: tuple[Text, ...]
    section: str
    label: str
    closed: bool

    @property
    def filled(self) -> tuple[str, ...]:
        """Return the lines that are not blank, without trailing space."""
        return tuple(line.text.rstrip() for line in self.lines if line.text.strip())


@dataclass(frozen=True)
class Document:
    """A parsed Markdown text. `front` is the front matter without its `---` lines."""

    front: tuple[Text, ...]
    prose: tuple[Text, ...]
    fences: tuple[Fence, ...]

    @property
    def headings(self) -> tuple[Text, ...]:
        """Return the lines that are headings."""
        return tuple(line for line in self.prose if line.is_heading)

    def section(self, title: str) -> tuple[Text, ...]:
        """Return the prose lines below the H2 heading `title`, without the heading."""
        wanted = title.casefold()
        return tuple(
            line for line in self.prose if line.section.casefold() == wanted and not line.text.startswith("## ")
        )


def parse(text: str) -> Document:
    """Return the parsed `text`; every text is valid."""
    # What comes after is patterns over lines; a line of a megabyte is nobody's prose and would only cost time.
    lines = [line[:_LONGEST_LINE] for line in text.replace("\r\n", "\n").split("\n")]
    end = front_matter_end(lines)
    front = tuple(Text(number, lines[number - 1], "", "") for number in range(2, end + 1)) if end else ()
    prose: list[Text] = []
    fences: list[Fence] = []
    section = subsection = label = mark = language = ""
    opened = 0
    inside: list[Text] = []
    for number, line in enumerate(lines[end + 1 if end else 0 :], start=end + 2 if end else 1):
        if mark:
            if len(line.strip()) >= len(mark) and set(line.strip()) == {mark[0]}:
                fences.append(Fence(opened, language, tuple(inside), section, label, closed=True))
                mark, inside = "", []
            else:
                inside.append(Text(number, line, section, subsection))
            continue
        if found := OPENING.match(line):
            mark, language, opened = found["mark"], found["info"].strip().casefold(), number
            continue
        heading = _HEADING.match(line)
        if heading and len(heading["marks"]) <= 2:  # noqa: PLR2004 - H1 and H2 both end a section
            section, subsection = heading["title"] if len(heading["marks"]) > 1 else "", ""
        elif heading and len(heading["marks"]) == 3:  # noqa: PLR2004 - H3
            subsection = heading["title"]
        prose.append(Text(number, line, section, subsection, is_heading=heading is not None))
        label = line.strip() or label
    if mark:
        fences.append(Fence(opened, language, tuple(inside), section, label, closed=False))
    return Document(front, tuple(prose), tuple(fences))


def front_matter_end(lines: list[str]) -> int:
    """Return the index of the `---` line that ends the front matter, 0 if there is none."""
    if not lines or lines[0].rstrip() != "---":
        return 0
    return next((index for index, line in enumerate(lines[1:], start=1) if line.rstrip() == "---"), 0)


def bullets(items: Iterable[str], mark: str = "-") -> str:
    """Return a Markdown list with one line per item, empty items left out."""
    return "\n".join(list_item(item, mark) for item in items if item.strip())


def fields(pairs: Iterable[tuple[str, str]]) -> str:
    """Return a Markdown list of named texts, empty texts left out; a text of several lines keeps its lines."""
    items: list[str] = []
    for name, text in pairs:
        body = block(text) if text.strip() else ""
        if body:
            items.append(f"- {name}: {body}" if "\n" not in body else f"- {name}:\n\n{indent(body, '  ')}\n")
    return "\n".join(items)


def sections(*parts: tuple[str, str]) -> str:
    """Return `## title` sections for pairs of title and body, those without a body left out."""
    return "".join(f"\n## {title}\n\n{body.strip()}\n" for title, body in parts if body.strip())
