"""Says to a report's author in a few lines what its JSON Schema takes, and what it has to answer in this request."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, cast

from pipeline.reports.forms import alternatives, resolved
from pipeline.reports.untrusted_text import one_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pipeline.reports.reviews import ToAnswer

_PLAIN = {"string": "text", "integer": "number", "boolean": "true or false", "null": "null"}
_CRITERIA: Final = "`criteria` has an entry for each of these: `task`, `id`, `met`, and a `note` where it is not met."
_ANSWERS: Final = (
    "`answers` has an entry for each of these questions on the tasks: `true` when all is well. Else it is a sentence, "
    "with a finding of concern `split`."
)


def shape(schema: Mapping[str, Any]) -> str:
    """Return a line for each alternative of a report: its keys with their types, `?` after optional ones.

    Raises:
        ValueError: the schema uses a word that has no short form yet.
    """
    return "\n".join(_shape(schema, each) for each in alternatives(schema))


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
