"""Makes texts of strangers safe for a page: no markup, nothing hidden, an end."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from markupsafe import Markup, escape

from pipeline.characters import HIDDEN, escaped, visible

if TYPE_CHECKING:
    from collections.abc import Container, Iterator

LONGEST: Final = 4_000
"""Characters of one text on a page; files have all of it."""
_MOST_LINES: Final = 3_000
_HEADING: Final = re.compile(r"(#{1,6})\s+(.*)")
_ITEM: Final = re.compile(r"(\s*)(?:[-*+]|\d{1,3}[.)])\s+(.*)")
_FENCE: Final = re.compile(r"\s*(`{3,}|~{3,})")
_FILE: Final = re.compile(r"(?<![\w./-])[\w-][\w./-]{0,200}\.(?:md|patch|json)(?!\w)")
_INLINE: Final = re.compile(r"`([^`]+)`|\*\*([^*]+)\*\*")


def clipped(text: str, longest: int = LONGEST) -> str:
    """Return the beginning of a text that may be very long, and how much there is behind it."""
    return text if len(text) <= longest else f"{text[:longest]} ... ({len(text) - longest:,} characters more)"


def printed(value: object) -> object:
    """Return what a template prints: a text as it is safe to be seen; our own markup as it is."""
    return visible(clipped(value), keep="\n\t") if isinstance(value, str) and not isinstance(value, Markup) else value


def shown(text: str) -> Markup:
    """Return a text in which hidden characters are escapes that look unlike text."""
    cut, parts, at = clipped(text), list[Markup](), 0
    for found in HIDDEN.finditer(cut):
        if found[0] in "\n\t":
            continue
        parts += [escape(cut[at : found.start()]), Markup('<span class="escape">{}</span>').format(escaped(found[0]))]
        at = found.end()
    return Markup("").join([*parts, escape(cut[at:])])


def field_text(text: str) -> Markup:
    """Return the text of a field, whole, as a form sends it back: it leaves the first line break out."""
    return Markup("\n{}").format(escape(text)) if text else Markup("")


def plain_lines(text: str) -> Markup:
    """Return a text that is no Markdown, line by line."""
    lines = text.split("\n")
    left = [Markup("... {} lines more").format(len(lines) - _MOST_LINES)] if len(lines) > _MOST_LINES else []
    return Markup("\n").join([*map(shown, lines[:_MOST_LINES]), *left])


def linked(text: str, names: Container[str], address: str) -> Markup:
    """Return a text in which names of files of a run lead to these."""
    parts, at = list[Markup](), 0
    for found in _FILE.finditer(text, 0, LONGEST):
        if found[0] in names:
            link = Markup('<a class="mono" href="{}/files/{}">{}</a>').format(address, found[0], found[0])
            parts += [shown(text[at : found.start()]), link]
            at = found.end()
    return Markup("").join([*parts, shown(text[at:])])


@dataclass(frozen=True)
class TextLine:
    """A line of a Markdown text.

    Args:
        number: From 1.
        kind: What it is: h1 to h6, item, quote, code, blank, text.
        indent: How deep an item is.
        html: What is to be seen.
    """

    number: int
    kind: str
    indent: int
    html: Markup


def markdown_lines(text: str) -> list[TextLine]:
    """Return a Markdown text line by line. Links, images and HTML stay the text that they are."""
    lines = text.split("\n")
    found = list(_lines(lines[:_MOST_LINES]))
    if len(lines) > _MOST_LINES:
        found.append(TextLine(_MOST_LINES + 1, "text", 0, escape(f"... {len(lines) - _MOST_LINES} lines more")))
    while found and found[-1].kind == "blank":
        found.pop()
    return found


def _lines(lines: list[str]) -> Iterator[TextLine]:
    mark = ""
    for number, raw in enumerate(lines, 1):
        line = clipped(raw.rstrip())
        fence = _FENCE.match(line)
        if fence and (not mark or (fence[1].startswith(mark) and not line.strip().strip(mark[0]))):
            mark = "" if mark else fence[1]
            yield TextLine(number, "fence", 0, shown(line))
        elif mark:
            yield TextLine(number, "code", 0, shown(line))
        elif not line:
            yield TextLine(number, "blank", 0, Markup(""))
        elif heading := _HEADING.match(line):
            yield TextLine(number, f"h{len(heading[1])}", 0, _inline(heading[2]))
        elif item := _ITEM.match(line):
            yield TextLine(number, "item", min(len(item[1]) // 2, 4), _inline(item[2]))
        elif line.startswith(">"):
            yield TextLine(number, "quote", 0, _inline(line[1:].strip()))
        else:
            yield TextLine(number, "text", 0, _inline(line))


def _inline(text: str) -> Markup:
    parts, at = list[Markup](), 0
    for found in _INLINE.finditer(text):
        form = Markup("<code>{}</code>") if found[1] is not None else Markup("<strong>{}</strong>")
        parts += [shown(text[at : found.start()]), form.format(shown(found[1] or found[2]))]
        at = found.end()
    return Markup("").join([*parts, shown(text[at:])])
