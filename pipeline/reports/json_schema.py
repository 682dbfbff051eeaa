"""Validates JSON by the part of JSON Schema that payloads use; a schema with other keywords is refused.

A check that is not made is none, so no word is passed over. Patterns are left out: a stranger's can take for ever.
"""

from __future__ import annotations

import json
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, cast

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

MOST: Final = 20
"""The most faults that are reported."""
_TYPES: Final[Mapping[str, tuple[type, ...]]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
}
_SAY_NOTHING: Final = frozenset({"title", "description", "$schema", "default", "examples"})
_KNOWN: Final = _SAY_NOTHING | {
    *("type", "enum", "const", "properties", "required", "additionalProperties", "items", "minItems", "maxItems"),
    *("minLength", "maxLength", "minimum", "maximum", "anyOf"),
}


def unknown_words(schema: object, at: str = "") -> Iterator[str]:
    """Yield JSON pointers to keywords of a schema that are not supported and so would not be checked."""
    if not isinstance(schema, dict):
        yield at
        return
    known = cast("dict[str, object]", schema)
    yield from (f"{at}/{word}" for word in known if word not in _KNOWN)
    if not all(isinstance(one, str) and one in _TYPES for one in _listed(known.get("type", []))):
        yield f"{at}/type"
    properties = known.get("properties", {})
    if isinstance(properties, dict):
        for name, inner in cast("dict[str, object]", properties).items():
            yield from unknown_words(inner, f"{at}/properties/{name}")
    if "items" in known:
        yield from unknown_words(known["items"], f"{at}/items")
    more = known.get("additionalProperties", True)
    if not isinstance(more, bool):
        yield from unknown_words(more, f"{at}/additionalProperties")
    for number, inner in enumerate(cast("list[object]", known.get("anyOf", []))):
        yield from unknown_words(inner, f"{at}/anyOf/{number}")


def schema_faults(value: object, schema: Mapping[str, Any], at: str = "") -> list[tuple[str, str]]:
    """Return the faults of a value by JSON pointer, empty if it fits the schema."""
    return list(islice(_faults(value, schema, at), MOST))


def _faults(value: object, schema: Mapping[str, Any], at: str) -> Iterator[tuple[str, str]]:
    if "anyOf" in schema:
        tries = [schema_faults(value, one, at) for one in schema["anyOf"]]
        if all(tries):
            yield from min(tries, key=len)
            return
    if (types := schema.get("type")) is not None:
        wanted = [str(one) for one in _listed(types)]
        if not any(_is(value, one) for one in wanted):
            yield at, f"accepted: {' or '.join(wanted)}; this is {_name(value)}"
            return
    if "const" in schema and value != schema["const"]:
        yield at, f"accepted: {json.dumps(schema['const'])}"
    if "enum" in schema and value not in schema["enum"]:
        yield at, f"accepted: {', '.join(map(json.dumps, schema['enum']))}"
    yield from _sized(value, schema, at)
    if isinstance(value, dict):
        yield from _of_object(cast("dict[str, object]", value), schema, at)
    if isinstance(value, list) and "items" in schema:
        for number, item in enumerate(cast("list[object]", value)):
            yield from _faults(item, schema["items"], f"{at}/{number}")


def _sized(value: object, schema: Mapping[str, Any], at: str) -> Iterator[tuple[str, str]]:
    size = len(cast("list[object]", value)) if isinstance(value, list | str) else value
    least, most, what = ("minimum", "maximum", "")
    if isinstance(value, str):
        least, most, what = "minLength", "maxLength", " characters"
    elif isinstance(value, list):
        least, most, what = "minItems", "maxItems", " entries"
    elif not _is(value, "number"):
        return
    if least in schema and cast("float", size) < schema[least]:
        yield at, f"accepted: at least {schema[least]}{what}"
    if most in schema and cast("float", size) > schema[most]:
        yield at, f"accepted: at most {schema[most]}{what}"


def _of_object(value: dict[str, object], schema: Mapping[str, Any], at: str) -> Iterator[tuple[str, str]]:
    properties = cast("dict[str, Mapping[str, Any]]", schema.get("properties", {}))
    for name in schema.get("required", ()):
        if name not in value:
            yield at, f"the key {name!r} is missing"
    more = schema.get("additionalProperties", True)
    for name, inner in value.items():
        if name in properties:
            yield from _faults(inner, properties[name], f"{at}/{name}")
        elif more is False:
            yield f"{at}/{name}", f"unknown key; accepted: {', '.join(properties) or 'none'}"
        elif isinstance(more, dict):
            yield from _faults(inner, cast("dict[str, Any]", more), f"{at}/{name}")


def _is(value: object, type_: str) -> bool:
    return isinstance(value, _TYPES[type_]) and (type_ == "boolean" or not isinstance(value, bool))


def _name(value: object) -> str:
    return next(name for name in _TYPES if _is(value, name))


def _listed(value: object) -> list[object]:
    return cast("list[object]", value) if isinstance(value, list) else [value]
