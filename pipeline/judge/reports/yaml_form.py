"""A report as a form: a YAML document with comments, which a person fills in with any editor.

`form_text` writes it, `read_form` reads what was saved, with the line of each field, and `marked` writes what is wrong
as a comment above that line. What is left empty is left out. No text gets lost: what YAML would take for a comment, a
tag or an anchor is a fault, and a text of several lines keeps them.
"""

from __future__ import annotations

import io
import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError
from ruamel.yaml.scalarstring import DoubleQuotedScalarString, LiteralScalarString

from pipeline.characters import visible
from pipeline.judge.reports.decode import pointer_of
from pipeline.judge.reports.form_words import sentence
from pipeline.judge.reports.report_templates import alternatives, deciding, meant, resolved
from pipeline.judge.reports.schema_errors import Fault

PROBLEM: Final = "#! "
_WIDTH: Final = 78
_LEAD: Final = re.compile(r"^(\s*)([-+*] |)")
_PLAIN: Final = {"boolean": "flag", "integer": "number", "string": "text"}
_FLAGS: Final = {"yes": True, "true": True, "no": False, "false": False}
_AS_TEXT: Final = "write | behind the field, and the text in the lines below, indented"
_AS_ENTRIES: Final = "Entries of one list begin with - at the same place, and their fields stand below the first one"
_INDENTED: Final = ("found '-'", "found '?'", "found '<block sequence start>'")

Begun = Mapping[str, Sequence[Mapping[str, str]]]
"""List entries that are begun for the person, by field, such as the findings to answer."""


class Sort(StrEnum):
    """The type of a form field's content."""

    TEXT = "text"
    WORD = "word"
    FLAG = "flag"
    NUMBER = "number"
    LIST = "list"
    PART = "part"


@dataclass(frozen=True)
class Blank:
    """A form field.

    Args:
        name: Its key; empty for an entry of a list.
        sort: What is written there.
        also_text: Whether any text does as well (`yes`, or a sentence).
        words: What is accepted, where that is a closed list.
        says: The sentence on it.
        required_in: The words of the report's decision with which it must be filled in; empty for the one report.
        belongs_to: The words with which it may be.
        is_required: Whether it must be filled in, with any word.
        parts: The fields of a part; of a list, its entry alone.
    """

    name: str
    sort: Sort
    also_text: bool = False
    words: tuple[str, ...] = ()
    says: str = ""
    is_required: bool = False
    required_in: tuple[str, ...] = ()
    belongs_to: tuple[str, ...] = ()
    parts: tuple[Blank, ...] = ()

    @property
    def needs_list(self) -> bool:
        """Return whether a list is required in this field; it may be empty."""
        return self.is_required and self.sort is Sort.LIST


def blanks_of(schema: Mapping[str, Any]) -> Blank:
    """Return the form fields of a report; those of alternatives are merged, with the deciding one first."""
    every = [_part(schema, each, "") for each in alternatives(schema)]
    decision = deciding(schema)
    if len(every) == 1 or decision is None:
        return every[0]
    found: dict[str, Blank] = {}
    for each in every:
        mine = next(part.words for part in each.parts if part.name == decision.name)
        for part in each.parts:
            known = found.get(part.name)
            found[part.name] = Blank(
                part.name,
                part.sort,
                part.also_text,
                (*known.words, *part.words) if known is not None and part.name == decision.name else part.words,
                part.says,
                is_required=part.name == decision.name,
                required_in=(*(known.required_in if known else ()), *(mine if part.is_required else ())),
                belongs_to=(*(known.belongs_to if known else ()), *mine),
                parts=part.parts,
            )
    last = [found.pop(name) for name in ("out_of_scope",) if name in found]
    return Blank("", Sort.PART, parts=(*found.values(), *last))


def _part(schema: Mapping[str, Any], part: Mapping[str, Any], name: str, says: str = "") -> Blank:
    required = part.get("required", ())
    fields = [
        _field(schema, each, key, sentence(part.get("title", ""), key), is_required=key in required)
        for key, each in part["properties"].items()
    ]
    fields.sort(key=lambda one: (not one.is_required, one.name == "out_of_scope"))
    return Blank(name, Sort.PART, says=says, parts=tuple(fields))


def _field(schema: Mapping[str, Any], value: Mapping[str, Any], name: str, says: str, *, is_required: bool) -> Blank:
    options = [resolved(schema, each) for each in value.get("anyOf", (value,))]
    options = [each for each in options if each.get("type") != "null"]
    chosen = options[0]
    if chosen.get("type") == "array":
        entry = _field(schema, chosen["items"], "", "", is_required=True)
        return Blank(name, Sort.LIST, says=says, is_required=is_required, parts=(entry,))
    if "properties" in chosen:
        inner = _part(schema, chosen, name, says)
        return Blank(name, Sort.PART, says=says, is_required=is_required, parts=inner.parts)
    words = (chosen["const"],) if "const" in chosen else tuple(chosen.get("enum", ()))
    sort = Sort.WORD if words else Sort(_PLAIN[chosen["type"]])
    also_text = len(options) > 1 and any(each.get("type") == "string" for each in options[1:])
    return Blank(name, sort, also_text, words, says, is_required)


def form_text(report: Blank, head: Iterable[str], begun: Mapping[str, Any], notes: Mapping[str, Sequence[str]]) -> str:
    """Return the text of a form that is empty but for what is begun; entries that say nothing are left out.

    Args:
        report: Its fields.
        head: What stands above it, as comments.
        begun: By field, the value or the entries that are there already.
        notes: By field, what else there is to know of it.
    """
    text = [head_text(head)]
    for one in report.parts:
        known = [line for note in notes.get(one.name, ()) for line in _comment(note, "#   ", "  ")]
        lines = [*_comment(f"{one.name}{_when(one)}: {one.says}{_accepted(one)}", hang="  "), *_inner(one, "  ")]
        text.append("\n".join(("", *lines, *known, _dumped({one.name: _begun(one, begun.get(one.name))}))))
    return "\n".join(text) + "\n"


def head_text(head: Iterable[str]) -> str:
    """Return the comments above a form; what is wrapped goes on below its text."""
    lines: list[str] = []
    for text in head:
        lead, bullet = _LEAD.findall(text)[0]
        lines += _comment(text.strip(), f"# {lead}", " " * len(bullet))
    return "\n".join(lines)


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
        what = f"{name}: {fault.text}" if name else fault.text
        above.setdefault(places.get(place, 0), []).extend(_comment(what, PROBLEM))
    return "\n".join(line for number, each in enumerate(lines) for line in (*above.get(number, ()), each))


def unmarked(text: str) -> str:
    """Return a form without the problems that were written into it."""
    return "\n".join(line for line in text.split("\n") if not line.startswith(PROBLEM.strip()))


def either(words: Sequence[str]) -> str:
    """Return words as a choice: `A, B or C`."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


def _comment(text: str, mark: str = "# ", hang: str = "") -> list[str]:
    wrapped = textwrap.wrap(text, _WIDTH - len(mark) - len(hang), break_long_words=False, break_on_hyphens=False)
    return [f"{mark}{hang if number else ''}{line}".rstrip() for number, line in enumerate(wrapped or [""])]


def _inner(one: Blank, indent: str) -> Iterator[str]:
    """Yield a line for each field of a part, or of a list's entries."""
    for part in one.parts[0].parts if one.sort is Sort.LIST else one.parts:
        required = " (required)" if part.is_required else ""
        yield from _comment(f"{part.name}{required}: {part.says}{_accepted(part)}", f"# {indent}", "  ")
        yield from _inner(part, indent + "  ")


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


def _begun(one: Blank, value: Any) -> Any:
    """Return what a field has when the form is opened: its value, else what is there to be filled in."""
    if one.sort is Sort.PART:
        known: Mapping[str, Any] = value or {}
        return {part.name: _begun(part, known.get(part.name)) for part in one.parts}
    if one.sort is Sort.LIST:
        return [_begun(one.parts[0], each) for each in value or (None,)]
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None or isinstance(value, int):
        return value
    text = visible(str(value), keep="\n\t")
    if "\n" not in text:  # a number needs no quotes here: each scalar is read as a text
        return int(text) if re.fullmatch("[1-9][0-9]{0,8}", text) else text
    shows = not text[0].isspace() and text.rstrip() == text.removesuffix("\n")  # else nobody could see where it ends
    return LiteralScalarString(text) if shows else DoubleQuotedScalarString(text)


def _dumped(value: Mapping[str, Any]) -> str:
    yaml: Any = YAML()
    yaml.width = 1 << 20  # a text of one line stays one
    yaml.indent(mapping=2, sequence=4, offset=2)
    text = io.StringIO()
    yaml.dump(value, text)
    return text.getvalue().removesuffix("\n")


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
    filled = Filled({})
    reader = _Reader(filled, text, begun)
    yaml: Any = YAML()
    try:
        node: Any = yaml.compose(text)
    except YAMLError as error:
        said: Any = error
        mark, why = getattr(said, "problem_mark", None), getattr(said, "problem", "a character that is none")
        advice = _AS_ENTRIES if str(why).endswith(_INDENTED) else f"For a text, {_AS_TEXT}"
        reader.fault(("yaml",), f"this cannot be read: {why}. {advice}", mark.line if mark else 0)
        return filled
    filled.report = reader.part(report, node, ()) if node is not None else {}
    word = next((str(filled.report[one.name]) for one in report.parts if one.words and one.name in filled.report), "")
    for one in report.parts:
        if word and one.name in filled.report and one.belongs_to and word not in one.belongs_to:
            reader.fault((one.name,), f"it belongs to {either(one.belongs_to)}; empty it, or change the word")
    return filled


_Place = tuple[str | int, ...]


@dataclass
class _Reader:
    """Reads nodes of YAML by what the form asks for; its scalars are texts until a field says what they are."""

    filled: Filled
    text: str
    begun: Begun

    def fault(self, place: _Place, what: str, line: int | None = None) -> None:
        if line is not None:
            self.filled.lines[pointer_of(place)] = line
        self.filled.faults.append(Fault(pointer_of(place), what))

    def part(self, blank: Blank, node: Any, place: _Place) -> dict[str, Any]:
        """Return the values of a part's fields."""
        known = {one.name: one for one in blank.parts}
        if node.id != "mapping":
            if not _is_empty(node):
                line = node.start_mark.line
                self.fault((*place, f"line {line}"), f"no field begins here; known: {', '.join(known)}", line)
            return {}
        found: dict[str, Any] = {}
        for key, value in node.value:
            one, line = known.get(str(key.value)), key.start_mark.line
            if one is None:
                self.fault((*place, f"line {line}"), f"no field begins here; known: {', '.join(known)}", line)
                continue
            here = (*place, one.name)
            self.filled.lines.setdefault(pointer_of(here), line)
            said = self.value(one, value, here)
            if said is not None and one.name in found:
                self.fault(here, "this is filled in twice", line)
            elif said is not None:
                found[one.name] = said
        if found:  # "none" is an answer, where a list has to be given
            found |= {one.name: [] for one in blank.parts if one.needs_list and one.name not in found}
        return found

    def value(self, blank: Blank, node: Any, place: _Place) -> Any:
        """Return the value of a field, None if it is empty."""
        if _is_empty(node):
            return None
        if node.anchor is not None or not node.tag.startswith("tag:yaml.org,2002:"):
            return self.fault(place, f"a text cannot begin so; {_AS_TEXT}")
        match blank.sort:
            case Sort.PART:
                return self.part(blank, node, place) or None
            case Sort.LIST:
                return self.entries(blank.parts[0], node, place) or None
            case _ if node.id == "scalar":
                return self.scalar(blank, self.written(node, place), place)
            case _:
                return self.fault(place, f"this is read as fields or entries; for a text, {_AS_TEXT}")

    def entries(self, entry: Blank, node: Any, place: _Place) -> list[Any]:
        if node.id == "scalar" and entry.sort is not Sort.PART:
            return [found] if (found := self.value(entry, node, (*place, 0))) is not None else []
        if node.id != "sequence":
            self.fault(place, "write the entries below, each beginning with -")
            return []
        found: list[Any] = []
        begun = self.begun.get(str(place[0]), ()) if len(place) == 1 else ()
        for each in node.value:
            here = (*place, len(found))
            self.filled.lines[pointer_of(here)] = each.start_mark.line
            value = self.value(entry, each, here)
            if value not in (None, {}) and value not in begun:
                found.append(value)
        return found

    def written(self, node: Any, place: _Place) -> str:
        """Return the text of a scalar; lines of one without quotes stay, which YAML would join."""
        start, end = node.start_mark.index, node.end_mark.index
        if node.style in {"|", ">"}:
            return str(node.value).replace("\a", "")  # which ruamel.yaml puts where a folded line was broken
        if self.text[end:].split("\n", 1)[0].lstrip().startswith("#"):
            self.fault(place, f"what stands behind # would be a comment; {_AS_TEXT}")
        if node.style is not None:
            return str(node.value)
        text, margin = self.text[start:end], self.text[:start].rpartition("\n")[2]
        if not margin.strip():  # it begins in a line of its own
            return textwrap.dedent(margin + text)
        first, _, below = text.partition("\n")
        return f"{first}\n{textwrap.dedent(below)}" if below else first

    def scalar(self, blank: Blank, text: str, place: _Place) -> Any:
        match blank.sort:
            case Sort.WORD:
                word = meant(blank.words, text)
                if word is None:
                    self.fault(place, f"found {text[:60]!r}; accepted: {', '.join(blank.words)}")
                return word
            case Sort.FLAG:
                flag = _FLAGS.get(text.strip().casefold())
                if flag is None and not blank.also_text:
                    self.fault(place, f"found {text[:60]!r}; accepted: yes, no")
                return text if flag is None and blank.also_text else flag
            case Sort.NUMBER:
                if text.removeprefix("-").isdecimal():
                    return int(text)
                if not blank.also_text:
                    self.fault(place, f"found {text[:60]!r}; accepted: a number")
                return text if blank.also_text else None
            case _:
                return text


def _is_empty(node: Any) -> bool:
    """Return whether nothing is written: no text, or an empty list."""
    return node is None or (not node.value and node.anchor is None and node.tag.startswith("tag:yaml.org,2002:"))
