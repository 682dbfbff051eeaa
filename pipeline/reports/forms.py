"""Builds report templates to fill in by hand: every key of a schema, with a marker where a value is needed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, cast

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

TO_FILL: Final = "..."
_KEYS: Final = ("verdict", "result", "diagnosis", "accepted")
"""The keys that decide between a report's alternatives."""


@dataclass(frozen=True)
class Field:
    """A required key of a report.

    Args:
        name: The key.
        words: What is accepted, where that is a closed list.
        kind: The JSON type: string, boolean, array, object ...
    """

    name: str
    words: tuple[str, ...]
    kind: str


def blanks(schema: Mapping[str, Any]) -> list[dict[str, object]]:
    """Return a report template for each alternative of a schema, required keys first."""
    return [_blank(schema, each) for each in alternatives(schema)]


def alternatives(schema: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the alternatives of a report's schema: those of a union, else the schema itself."""
    return [resolved(schema, each) for each in schema["oneOf"]] if "oneOf" in schema else [schema]


def required(schema: Mapping[str, Any], alternative: Mapping[str, Any]) -> list[Field]:
    """Return the required keys of an alternative."""
    return [_field(schema, name, alternative["properties"][name]) for name in alternative.get("required", ())]


def deciding(schema: Mapping[str, Any]) -> Field | None:
    """Return the key that decides between alternatives, with all its words; None if there is none."""
    fields = [field for each in alternatives(schema) for field in required(schema, each) if field.name in _KEYS]
    if not fields:
        return None
    return Field(fields[0].name, tuple(word for field in fields for word in field.words), fields[0].kind)


def giving_up(schema: Mapping[str, Any], reason: str) -> dict[str, object] | None:
    """Return the report that nothing can be done, None if the schema has no such answer."""
    for word, key in (("BLOCKED", "problem"), ("CANNOT_PROCEED", "missing"), ("INCOMPLETE", "blocking_issue")):
        field = deciding(schema)
        if field is not None and word in field.words:
            return {field.name: word, key: reason}
    return None


def meant(words: Iterable[str], said: str) -> str | None:
    """Return the word that a person means: case does not matter, nor whether `_`, `-` or a space joins its parts.

    The log says `NEEDS_WORK`, the report `NEEDS WORK`.
    """
    return next((word for word in words if _plain(word) == _plain(said)), None)


def with_exact_words(schema: Mapping[str, Any], report: Mapping[str, Any]) -> dict[str, Any]:
    """Return the report with its deciding word corrected to an accepted one, where the word is recognised."""
    decision = deciding(schema)
    said = report.get(decision.name) if decision is not None else None
    word = meant(decision.words, said) if decision is not None and isinstance(said, str) else None
    return {**report, decision.name: word} if decision is not None and word is not None else dict(report)


def _plain(word: str) -> str:
    return " ".join(word.casefold().replace("_", " ").replace("-", " ").split())


def unfilled(value: object, place: str = "") -> str | None:
    """Return the JSON pointer of the first value left to fill in, None if there is none."""
    if value == TO_FILL:
        return place
    inner: Iterable[tuple[object, object]] = ()
    if isinstance(value, dict):
        inner = cast("dict[object, object]", value).items()
    elif isinstance(value, list):
        inner = enumerate(cast("list[object]", value))
    return next((found for key, each in inner if (found := unfilled(each, f"{place}/{key}")) is not None), None)


def _blank(schema: Mapping[str, Any], alternative: Mapping[str, Any]) -> dict[str, object]:
    properties = cast("dict[str, Any]", alternative.get("properties", {}))
    wanted = required(schema, alternative)
    names = {field.name for field in wanted}
    filled: dict[str, object] = {field.name: _placeholder(schema, properties[field.name]) for field in wanted}
    return filled | {name: each.get("default") for name, each in properties.items() if name not in names}


def _placeholder(schema: Mapping[str, Any], part: Mapping[str, Any]) -> object:
    part = resolved(schema, part)
    words = _words(part)
    if words:
        return " | ".join(words)
    match part.get("type"):
        case "array":
            return [_placeholder(schema, part["items"])]
        case "object":
            return _blank(schema, part)
        case "boolean":
            return "true | false"
        case _:
            return TO_FILL


def _field(schema: Mapping[str, Any], name: str, part: Mapping[str, Any]) -> Field:
    part = resolved(schema, part)
    return Field(name, _words(part), part.get("type", "string"))


def _words(part: Mapping[str, Any]) -> tuple[str, ...]:
    return (part["const"],) if "const" in part else tuple(part.get("enum", ()))


def resolved(schema: Mapping[str, Any], part: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the schema that a part refers to, or the part itself."""
    name = str(part.get("$ref", "")).removeprefix("#/$defs/")
    return cast("Mapping[str, Any]", schema["$defs"][name]) if name else part
