"""JSON documents of foreign APIs: what may be missing is asked for by path, so that nothing needs to be there."""

from __future__ import annotations

import json
from typing import Any, cast

Json = dict[str, Any]


def part(document: Json, *keys: str) -> Json:
    """Return the object below these keys, an empty one where there is none."""
    if not keys:
        return document
    found: object = document.get(keys[0])
    return part(cast("Json", found), *keys[1:]) if isinstance(found, dict) else {}


def parts(document: Json, key: str) -> list[Json]:
    """Return the objects in the list at a key, none where there is no list."""
    found: object = document.get(key)
    if not isinstance(found, list):
        return []
    return [cast("Json", item) for item in cast("list[object]", found) if isinstance(item, dict)]


def texts(document: Json, key: str) -> list[str]:
    """Return the words in the list at a key, none where there is no list."""
    found: object = document.get(key)
    if not isinstance(found, list):
        return []
    return [item for item in cast("list[object]", found) if isinstance(item, str)]


def given_object(arguments: str) -> Json:
    """Return the arguments of a call as an object; what is no JSON cannot be said in a dialect that sends objects."""
    try:
        return json.loads(arguments)
    except ValueError:
        return {"arguments": arguments}


def event(data: Json | str, name: str | None = None) -> bytes:
    """Return one server-sent event."""
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {data if isinstance(data, str) else json.dumps(data)}\n\n".encode()
