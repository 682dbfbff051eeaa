"""Turns pydantic's errors into messages for an agent or a person: where, the value found, the accepted ones."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, cast

from pipeline.judge.reports.decode import JsonObject, pointer_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pydantic_core import ErrorDetails

_LONGEST_ECHO: Final = 60
NOTHING: Final = object()
"""The result of `step` for a missing place; None is a JSON value."""


@dataclass(frozen=True)
class Fault:
    """A fault of a document, at a JSON pointer."""

    pointer: str
    text: str


def step(value: object, part: str | int) -> object:
    """Return the element `part` of `value`; `NOTHING` if there is none."""
    if isinstance(value, dict) and isinstance(part, str):
        return cast("JsonObject", value).get(part, NOTHING)
    if isinstance(value, list) and isinstance(part, int):
        items = cast("list[object]", value)
        return items[part] if part < len(items) else NOTHING
    return NOTHING


def place_of(fault: ErrorDetails, document: JsonObject) -> tuple[str | int, ...]:
    """Return the place of an error in the document; pydantic's location also names union members."""
    value: object = document
    place: list[str | int] = []
    for index, part in enumerate(fault["loc"]):
        below = step(value, part)
        is_missing_key = fault["type"] == "missing" and index == len(fault["loc"]) - 1
        if below is not NOTHING or is_missing_key:
            place.append(part)
            value = below
    if fault["type"].startswith("union_tag_"):
        place.append(fault.get("ctx", {})["discriminator"].strip("'"))
    return tuple(place)


def explain(faults: Sequence[ErrorDetails], document: JsonObject, schema: dict[str, Any]) -> list[Fault]:
    """Return one fault for each place, in pydantic's order, with what is accepted there."""
    texts: dict[str, list[str]] = {}
    for fault in faults:
        if _counts_sound_ones(fault):
            continue
        place = place_of(fault, document)
        texts.setdefault(pointer_of(place), []).append(_fault_text(fault, place, document, schema))
    return [Fault(pointer, " or ".join(dict.fromkeys(found))) for pointer, found in texts.items()]


def _counts_sound_ones(fault: ErrorDetails) -> bool:
    """Return whether a list is called too short only since pydantic counts its sound entries; these are told."""
    entries: object = fault["input"]
    least: int = fault.get("ctx", {}).get("min_length", 0)
    return fault["type"] == "too_short" and isinstance(entries, list) and len(cast("list[object]", entries)) >= least


def _fault_text(fault: ErrorDetails, place: tuple[str | int, ...], document: JsonObject, schema: dict[str, Any]) -> str:
    context: dict[str, Any] = fault.get("ctx", {})
    match fault["type"]:
        case "missing":
            return "this key is required"
        case "extra_forbidden" | "model_type" as sort:
            is_unknown = sort == "extra_forbidden"
            keys = ", ".join(keys_at(place[:-1] if is_unknown else place, document, schema)) or "none"
            told = "unknown key" if is_unknown else f"found {_echo(fault['input'])}, accepted is an object"
            return f"{told}, accepted keys are {keys}"
        case "union_tag_not_found":
            return "this key is required"
        case "union_tag_invalid":
            return f"found {_echo(context['tag'])}, accepted is one of {context['expected_tags']}"
        case "literal_error" | "enum":
            return f"found {_echo(fault['input'])}, accepted is {context['expected']}"
        case "string_pattern_mismatch" if context["pattern"] != r"\S":
            return f"found {_echo(fault['input'])}, accepted is text that matches {context['pattern']}"
        case "string_pattern_mismatch":
            return "found empty text, accepted is text that says something"
        case "too_short":
            return "the list must not be empty"
        case "too_long":
            return f"the list has more than {context['max_length']} entries"
        case "string_too_long":
            return f"the text is longer than {context['max_length']} characters"
        case "path" | "line" | "rename" | "empty_finding":
            return fault["msg"]
        case _:
            return f"found {_echo(fault['input'])}, {fault['msg'][:1].lower()}{fault['msg'][1:]}"


def _echo(value: object) -> str:
    text = json.dumps(value, default=str)
    return text if len(text) <= _LONGEST_ECHO else text[:_LONGEST_ECHO] + "..."


def keys_at(place: Sequence[str | int], document: JsonObject, schema: dict[str, Any]) -> list[str]:
    """Return the keys that the schema accepts in the object at `place`."""
    definitions: dict[str, Any] = schema.get("$defs", {})
    node, value = _resolve(schema, document, definitions), cast("object", document)
    for part in place:
        value = step(value, part)
        below = node.get("properties", {}).get(part) if isinstance(part, str) else node.get("items")
        node = _resolve(below or {}, value, definitions)
    return list(node.get("properties", {}))


def _resolve(node: dict[str, Any], value: object, definitions: dict[str, Any]) -> dict[str, Any]:
    while True:
        if "$ref" in node:
            node = definitions[node["$ref"].rpartition("/")[2]]
        elif "discriminator" in node:
            tag = step(value, node["discriminator"]["propertyName"])
            node = {"$ref": node["discriminator"]["mapping"][tag]}
        elif "anyOf" in node:
            options: list[dict[str, Any]] = node["anyOf"]
            node = next(option for option in options if option.get("type") != "null")
        else:
            return node
