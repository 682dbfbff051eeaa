"""Says what a report takes: templates to fill in by hand, and the few lines that its author reads of its schema."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, cast

from pipeline.judge.reports.untrusted_text import one_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pipeline.judge.reports.reviews import ToAnswer

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


_PLAIN = {"string": "text", "integer": "number", "boolean": "true or false", "null": "null"}
_CRITERIA: Final = "`criteria` has an entry for each of these: `task`, `id`, `met`, and a `note` where it is not met."
_ANSWERS: Final = (
    "`answers` has an entry for each of these questions on the tasks: `true` when all is well. Else it is a sentence, "
    "with a finding of concern `split`. ACCEPTABLE needs an answer to each question."
)


def shape(schema: Mapping[str, Any]) -> str:
    """Return a line for each alternative of a report: its keys with their types, `?` after optional ones.

    Raises:
        ValueError: the schema uses a word that has no short form yet.
    """
    return "\n".join(_shape(schema, each) for each in alternatives(schema))


def optional(schema: Mapping[str, Any]) -> list[str]:
    """Return the keys that every alternative of a report may leave out."""
    needed = {field.name for each in alternatives(schema) for field in required(schema, each)}
    names = dict.fromkeys(name for each in alternatives(schema) for name in each.get("properties", {}))
    return [name for name in names if name not in needed]


def entries(schema: Mapping[str, Any]) -> dict[str, str]:
    """Return the short form of an entry of each list of objects in a report, by the name of the list."""
    found: dict[str, str] = {}
    for each in alternatives(schema):
        for name, part in each.get("properties", {}).items():
            if part.get("type") != "array":
                continue
            entry = resolved(schema, part["items"])
            if entry.get("type") == "object":
                found[name] = _object(schema, entry)
    return found


def _shape(schema: Mapping[str, Any], part: Mapping[str, Any]) -> str:
    if "$ref" in part:
        return _shape(schema, schema["$defs"][part["$ref"].removeprefix("#/$defs/")])
    if "const" in part:
        return json.dumps(part["const"])
    if "enum" in part:
        return " | ".join(json.dumps(word) for word in part["enum"])
    if "anyOf" in part:
        return " | ".join(_shape(schema, each) for each in part["anyOf"])
    match part.get("type"):
        case "array":
            return f"[{_shape(schema, part['items'])}, ...]"
        case "object":
            return _object(schema, part)
        case str(word) if word in _PLAIN:
            return _PLAIN[word]
        case word:
            raise ValueError(f"no short form for {word}")


def _object(schema: Mapping[str, Any], part: Mapping[str, Any]) -> str:
    required = set(part.get("required", ()))
    properties = cast("dict[str, Mapping[str, Any]]", part["properties"])
    keys = sorted(properties, key=lambda name: name not in required)
    said = (f'"{name}"{"" if name in required else "?"}: {_shape(schema, properties[name])}' for name in keys)
    return "{" + ", ".join(said) + "}"


def questions_md(to_answer: Iterable[ToAnswer], schema: Mapping[str, Any]) -> str:
    """Return what the fields `criteria` and `answers` have to answer; empty where the request has neither.

    Args:
        to_answer: What belongs into `criteria`.
        schema: Of the report, without the fields that are not asked for.
    """
    criteria = "\n".join(f"* task {one.task}, {one.id}: {one_line(one.text)}" for one in to_answer)
    asked = f"{_CRITERIA}\n\n{criteria}" if criteria else ""
    return "\n\n".join(part for part in (asked, _on_tasks(schema)) if part)


def _on_tasks(schema: Mapping[str, Any]) -> str:
    answers = schema.get("properties", {}).get("answers")
    if answers is None:
        return ""
    fields: Mapping[str, Mapping[str, Any]] = resolved(schema, answers)["properties"]
    questions = "\n".join(f"* `{name}`: {one['description']}" for name, one in fields.items())
    return f"{_ANSWERS}\n\n{questions}"
