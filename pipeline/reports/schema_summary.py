"""Summarises a report's JSON Schema in a few lines for its author."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, cast

from pipeline.reports.forms import alternatives

if TYPE_CHECKING:
    from collections.abc import Mapping

_PLAIN = {"string": "text", "integer": "number", "boolean": "true or false", "null": "null"}


def shape(schema: Mapping[str, Any]) -> str:
    """Return a line for each alternative of a report: its keys with their types, `?` after optional ones.

    Raises:
        ValueError: the schema uses a word that has no short form yet.
    """
    return "\n".join(_shape(schema, each) for each in alternatives(schema))


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
