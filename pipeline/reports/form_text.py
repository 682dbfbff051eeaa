"""Writes a report's form for a person to fill in with any editor: lines of `field: text`, `- ` for list entries.

It looks like YAML and is simpler: text is taken as it stands, with quotes, colons and stars, and goes on in the lines
below that are indented further. A line that begins with `#` is a comment. What is left empty is left out.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from pipeline.reports.form_fields import Blank, Sort

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pipeline.reports.schema_errors import Fault

PROBLEM: Final = "#! "
_WIDTH: Final = 78


Begun = Mapping[str, Sequence[Mapping[str, str]]]
"""List entries that are begun for the person, by field, such as the findings to answer."""


def form_text(report: Blank, head: Iterable[str], begun: Begun, notes: Mapping[str, Sequence[str]]) -> str:
    """Return the text of an empty form.

    Args:
        report: Its fields.
        head: What stands above it, as comments.
        begun: Entries that are begun already.
        notes: By field, what else there is to know of it.
    """
    lines = head_text(head).split("\n")
    for one in report.parts:
        known = (line for note in notes.get(one.name, ()) for line in _comment(note, "#   ", "  "))
        lines += ["", *_told(one), *known, *_empty(one, "", begun.get(one.name, ()))]
    return "\n".join(lines) + "\n"


def head_text(head: Iterable[str]) -> str:
    """Return the comments above a form."""
    return "\n".join(line for text in head for line in _comment(text))


def with_head(text: str, head: Iterable[str]) -> str:
    """Return a form that was begun before, with a new head in place of the old one."""
    lines = unmarked(text).split("\n")
    end = next((number for number, line in enumerate(lines) if not line.startswith("#")), 0)
    return "\n".join([head_text(head), *lines[end:]])


def marked(text: str, places: Mapping[str, int], faults: Iterable[Fault]) -> str:
    """Return a filled-in form with each problem written above the line that it is about.

    Args:
        text: The form.
        places: By JSON pointer the line, from 0, where a field stands.
        faults: What is wrong.
    """
    lines = text.split("\n")
    above: dict[int, list[str]] = {}
    for fault in faults:
        place = fault.pointer
        while place and place not in places:
            place = place.rpartition("/")[0]
        name = fault.pointer.removeprefix(place).lstrip("/")
        told = f"{name}: {fault.text}" if name else fault.text
        above.setdefault(places.get(place, 0), []).extend(_comment(told, PROBLEM))
    marks = [[*above.get(number, ()), line] for number, line in enumerate(lines)]
    return "\n".join(line for group in marks for line in group)


def unmarked(text: str) -> str:
    """Return a form without the problems that were written into it."""
    return "\n".join(line for line in text.split("\n") if not line.startswith(PROBLEM.strip()))


def _comment(text: str, mark: str = "# ", hang: str = "") -> list[str]:
    wrapped = textwrap.wrap(text, _WIDTH - len(mark) - len(hang), break_long_words=False, break_on_hyphens=False)
    return [f"{mark}{hang if number else ''}{line}".rstrip() for number, line in enumerate(wrapped or [""])]


def _told(one: Blank) -> list[str]:
    lines = _comment(f"{one.name}{_when(one)}: {one.says}{_accepted(one)}", hang="  ")
    return [*lines, *_inner(one, "  ")]


def _inner(one: Blank, indent: str) -> list[str]:
    """Return a line for each field of a part, or of a list's entries."""
    parts = one.parts[0].parts if one.sort is Sort.LIST else one.parts
    lines: list[str] = []
    for part in parts:
        required = " (required)" if part.is_required else ""
        lines += _comment(f"{part.name}{required}: {part.says}{_accepted(part)}", f"# {indent}", "  ")
        lines += _inner(part, indent + "  ")
    return lines


def _when(one: Blank) -> str:
    if one.is_required:
        return " (required)"
    if one.required_in:
        others = [word for word in one.belongs_to if word not in one.required_in]
        return f" (required for {either(one.required_in)}{'; also for ' + either(others) if others else ''})"
    return f" (for {either(one.belongs_to)})" if one.belongs_to and one.name != "out_of_scope" else ""


def _accepted(one: Blank) -> str:
    many = " One entry for each; copy the lines for more." if one.sort is Sort.LIST else ""
    inner = one.parts[0] if one.sort is Sort.LIST else one
    if inner.words:
        return f"{many} One of: {', '.join(inner.words)}."
    return f"{many} Yes or no." if inner.sort is Sort.FLAG and not inner.also_text else many


def either(words: Sequence[str]) -> str:
    """Return words as a choice: `A, B or C`."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


def _empty(one: Blank, indent: str, begun: Sequence[Mapping[str, str]] = ()) -> list[str]:
    lines = [f"{indent}{one.name}:"]
    if one.sort is Sort.PART:
        return [*lines, *(line for part in one.parts for line in _empty(part, indent + "  "))]
    if one.sort is not Sort.LIST:
        return lines
    entry = one.parts[0]
    if entry.sort is not Sort.PART:
        return [*lines, f"{indent}  -"]
    for known in begun or ({},):
        inner = [line for part in entry.parts for line in _empty(part, indent + "    ")]
        written = [_with_value(line, known) for line in inner]
        lines += [f"{indent}  - {written[0].lstrip()}", *written[1:]]
    return lines


def _with_value(line: str, known: Mapping[str, str]) -> str:
    name = line.strip().removesuffix(":")
    return f"{line} {known[name]}" if name in known else line
