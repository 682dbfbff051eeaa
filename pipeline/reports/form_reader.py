"""Reads a form that a person filled in (`form_text`) into a report, with the line of each field for messages."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, cast

from pipeline.reports.decode import pointer_of
from pipeline.reports.form_fields import Blank, Sort
from pipeline.reports.form_lines import joined
from pipeline.reports.form_text import either
from pipeline.reports.forms import meant
from pipeline.reports.schema_errors import Fault

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipeline.reports.form_text import Begun

_FLAGS: Final = {"yes": True, "true": True, "no": False, "false": False}
_TAB: Final = 4


@dataclass
class Filled:
    """A form as read: the report, the faults, and the fields' lines.

    Args:
        report: The report.
        faults: What in it cannot be read.
        lines: By JSON pointer the line, from 0, where a field stands.
    """

    report: dict[str, Any]
    faults: list[Fault] = field(default_factory=list[Fault])
    lines: dict[str, int] = field(default_factory=dict[str, int])


def read_form(report: Blank, text: str, begun: Begun) -> Filled:
    """Return a form as read; an entry that was begun for the person and left unchanged counts as empty."""
    lines = [_Line(number, line) for number, line in enumerate(text.split("\n"))]
    filled = Filled({})
    reader = _Reader(filled, begun)
    filled.report = reader.part(report, [line for line in lines if not line.text.startswith("#")], ())
    word = next((str(filled.report[one.name]) for one in report.parts if one.words and one.name in filled.report), "")
    for one in report.parts:
        if word and one.name in filled.report and one.belongs_to and word not in one.belongs_to:
            pointer = pointer_of((one.name,))
            filled.faults.append(
                Fault(pointer, f"it belongs to {either(one.belongs_to)}; empty it, or change the word")
            )
    return filled


@dataclass(frozen=True)
class _Line:
    number: int
    text: str

    @property
    def indent(self) -> int:
        return len(self.text[: len(self.text) - len(self.text.lstrip())].expandtabs(_TAB))

    @property
    def is_empty(self) -> bool:
        return not self.text.strip()

    @property
    def is_entry(self) -> bool:
        return self.text.strip() == "-" or self.text.lstrip().startswith(("- ", "-\t"))


_Place = tuple[str | int, ...]


@dataclass
class _Reader:
    filled: Filled
    begun: Begun

    def fault(self, place: _Place, text: str, number: int | None = None) -> None:
        pointer = pointer_of(place)
        if number is not None:
            self.filled.lines[pointer] = number
        self.filled.faults.append(Fault(pointer, text))

    def part(self, blank: Blank, lines: Sequence[_Line], place: _Place) -> dict[str, Any]:
        """Return the values of a part's fields; each line begins a field or belongs to the one above."""
        found: dict[str, Any] = {}
        known = {one.name: one for one in blank.parts}
        written = [line for line in lines if not line.is_empty]
        indent = written[0].indent if written else 0
        at = 0
        while at < len(lines):
            line = lines[at]
            at += 1
            if line.is_empty:
                continue
            name, colon, rest = line.text.strip().partition(":")
            one = known.get(name.strip()) if colon and line.indent == indent else None
            if one is None:
                accepted = ", ".join(known)
                self.fault((*place, f"line {line.number}"), f"no field begins here; known: {accepted}", line.number)
                continue
            end = at
            while end < len(lines) and self._belongs(lines[end], indent, one):
                end += 1
            self.filled.lines.setdefault(pointer_of((*place, one.name)), line.number)
            value = self.value(one, rest.strip(), lines[at:end], (*place, one.name))
            if value is not None and one.name in found:
                self.fault((*place, one.name), "this is filled in twice", line.number)
            elif value is not None:
                found[one.name] = value
            at = end
        if found:  # "none" is an answer, where a list has to be given
            found |= {one.name: [] for one in blank.parts if one.needs_list and one.name not in found}
        return found

    def _belongs(self, line: _Line, indent: int, one: Blank) -> bool:
        is_mine = one.sort is Sort.LIST and line.is_entry and line.indent == indent
        return line.is_empty or line.indent > indent or is_mine

    def value(self, blank: Blank, rest: str, below: Sequence[_Line], place: _Place) -> Any:
        """Return the value of a field, None if it is empty."""
        match blank.sort:
            case Sort.PART:
                found = self.part(blank, below, place)
                if rest not in {"", "{}"}:
                    self.fault(place, f"write the fields below, indented: {', '.join(p.name for p in blank.parts)}")
                return found or None
            case Sort.LIST:
                return self.entries(blank, rest, below, place) or None
            case _:
                text = joined(rest, [line.text for line in below])
                return None if not text else self.scalar(blank, text, place)

    def entries(self, blank: Blank, rest: str, below: Sequence[_Line], place: _Place) -> list[Any]:
        entry = blank.parts[0]
        if rest and rest != "[]":
            if entry.sort is Sort.PART:
                self.fault(place, "write the entries below, each beginning with -")
                return []
            return self.inline(entry, rest, place)
        found: list[Any] = []
        begun = self.begun.get(str(place[0]), ()) if len(place) == 1 else ()
        for lines in _groups(below, goes_on=entry.sort is not Sort.PART):
            here = (*place, len(found))
            self.filled.lines[pointer_of(here)] = lines[0].number
            if not lines[0].is_entry:
                self.fault(here, "an entry begins with -", lines[0].number)
                continue
            first = lines[0].text.replace("-", " ", 1)
            inner = [_Line(lines[0].number, first), *lines[1:]]
            value = (
                self.part(entry, inner, here)
                if entry.sort is Sort.PART
                else self.value(entry, first.strip(), lines[1:], here)
            )
            if value not in (None, {}) and value not in begun:
                found.append(value)
        return found

    def inline(self, entry: Blank, rest: str, place: _Place) -> list[Any]:
        """Return the entries of a list on one line: JSON, `[a, b]`, or a single entry."""
        try:
            said: object = json.loads(rest)
        except ValueError:
            said = [one.strip() for one in rest[1:-1].split(",")] if rest[0] + rest[-1] == "[]" else [rest]
        entries = cast("list[object]", said) if isinstance(said, list) else [said]
        values = [self.scalar(entry, str(one), (*place, at)) for at, one in enumerate(entries) if str(one).strip()]
        return [value for value in values if value is not None]

    def scalar(self, blank: Blank, text: str, place: _Place) -> Any:
        match blank.sort:
            case Sort.WORD:
                word = meant(blank.words, text)
                if word is None:
                    self.fault(place, f"found {text[:60]!r}; accepted: {', '.join(blank.words)}")
                return word
            case Sort.FLAG:
                flag = _FLAGS.get(text.casefold())
                if flag is None and blank.also_text:
                    return text
                if flag is None:
                    self.fault(place, f"found {text[:60]!r}; accepted: yes, no")
                return flag
            case Sort.NUMBER:
                if text.removeprefix("-").isdecimal():
                    return int(text)
                if not blank.also_text:
                    self.fault(place, f"found {text[:60]!r}; accepted: a number")
                return text if blank.also_text else None
            case _:
                return text


def _groups(lines: Sequence[_Line], *, goes_on: bool) -> list[list[_Line]]:
    """Return the lines of each list entry; empty lines before the first belong to none.

    Where a text *goes on*, a line that is no entry belongs to the one above, however it is indented: editors wrap so.
    """
    indent = next((line.indent for line in lines if not line.is_empty), 0)
    groups: list[list[_Line]] = []
    for line in lines:
        begins = not groups or (line.indent <= indent and (line.is_entry or not goes_on))
        if begins and not line.is_empty:
            groups.append([line])
        elif groups:
            groups[-1].append(line)
    return groups
