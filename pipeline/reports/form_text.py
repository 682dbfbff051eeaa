"""Writes a report's form for a person to fill in with any editor: lines of `field: text`, `- ` for list entries.

It looks like YAML and is simpler: text is taken as it stands, with quotes, colons and stars, and goes on in the lines
below that are indented further. A line that begins with `#` is a comment. What is left empty is left out.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from pipeline.policy.characters import visible
from pipeline.reports.form_fields import Blank, Sort
from pipeline.reports.form_lines import written

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pipeline.reports.schema_errors import Fault

PROBLEM: Final = "#! "
_WIDTH: Final = 78
_LEAD: Final = re.compile(r"^(\s*)([-+*] |)")


Begun = Mapping[str, Sequence[Mapping[str, str]]]
"""List entries that are begun for the person, by field, such as the findings to answer."""


def form_text(report: Blank, head: Iterable[str], begun: Mapping[str, Any], notes: Mapping[str, Sequence[str]]) -> str:
    """Return the text of a form that is empty but for what is begun; entries that say nothing are left out.

    Args:
        report: Its fields.
        head: What stands above it, as comments.
        begun: By field, the value or the entries that are there already, with escapes for what is hidden in a text.
        notes: By field, what else there is to know of it.
    """
    lines = head_text(head).split("\n")
    for one in report.parts:
        known = (line for note in notes.get(one.name, ()) for line in _comment(note, "#   ", "  "))
        lines += ["", *_told(one), *known, *_filled(one, "", begun.get(one.name))]
    return "\n".join(lines) + "\n"


def head_text(head: Iterable[str]) -> str:
    """Return the comments above a form; what is wrapped goes on below its text."""
    return "\n".join(line for text in head for line in _hanging(text))


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


def _hanging(text: str) -> list[str]:
    lead, bullet = _LEAD.findall(text)[0]
    return _comment(text.strip(), f"# {lead}", " " * len(bullet))


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


def _filled(one: Blank, indent: str, value: Any) -> list[str]:
    """Return the lines of a field with its value; one without a value is there to be filled in."""
    name, deeper = f"{indent}{one.name}:", f"{indent}  "
    if one.sort is Sort.PART:
        return [name, *_parts(one, deeper, value)]
    if one.sort is not Sort.LIST:
        return written(name, _said(value), deeper)
    return [name, *(line for each in value or (None,) for line in _entry(one.parts[0], deeper, each))]


def _entry(one: Blank, indent: str, value: Any) -> list[str]:
    if one.sort is not Sort.PART:
        return written(f"{indent}-", _said(value), f"{indent}  ")
    first, *more = _parts(one, f"{indent}  ", value)
    return [f"{indent}- {first.lstrip()}", *more]


def _parts(one: Blank, indent: str, value: Any) -> list[str]:
    known: Mapping[str, Any] = value or {}
    return [line for part in one.parts for line in _filled(part, indent, known.get(part.name))]


def _said(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "" if value is None else visible(str(value), keep="\n\t")
