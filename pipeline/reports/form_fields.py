"""Turns a report's JSON Schema into a tree of form fields for a person."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from pipeline.reports.form_words import sentence
from pipeline.reports.forms import alternatives, deciding, resolved

if TYPE_CHECKING:
    from collections.abc import Mapping

_PLAIN: Final = {"boolean": "flag", "integer": "number", "string": "text"}


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
