"""A final report in the form that a request asks for."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, cast

from model_service.asked import Call
from model_service.documents import part, parts, texts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from model_service.asked import Asked, Tool
    from model_service.documents import Json

_TOOLS: Final = ("StructuredOutput", "final_result", "structured_output")
_LEAST: Final[Json] = {"array": [], "boolean": False, "integer": 1, "number": 1, "null": None}


def report_of(report: Any, text: str, asked: Asked) -> tuple[str, tuple[Call, ...]]:
    """Return text and calls that give the report: by a tool for it, by a schema for the text, else as the last line."""
    tools = [tool for tool in asked.tools if tool.name.startswith(_TOOLS)]
    if tools:
        tool = _fitting(tools, report)
        return "", (Call(tool.name, json.dumps(shaped(report, tool.parameters))),)
    if asked.schema is not None:
        return json.dumps(shaped(report, asked.schema)), ()
    return f"{text}\n{json.dumps(report)}", ()


def _fitting(tools: Sequence[Tool], report: Any) -> Tool:
    """Return the tool for a report of this shape, where there is one for each shape that a report may have."""
    return next((tool for tool in tools if _fits(report, tool.parameters)), tools[0])


def _fits(report: Any, schema: Json) -> bool:
    known = part(schema, "properties")
    if not isinstance(report, dict):
        return False
    said = cast("Json", report)
    words = {name: texts(part(known, name), "enum") or part(known, name).get("const") for name in known}
    return said.keys() <= known.keys() and all(not words[name] or said[name] in words[name] for name in said)


def shaped(report: Any, schema: Json) -> Any:
    """Return the report as a schema wants it.

    A provider accepts fewer schemas than we have, so an adapter may wrap ours in an object with one key, and may want
    null for what is left out.
    """
    known = part(schema, "properties")
    if not isinstance(report, dict) or not known:
        return cast("Any", report)
    said = cast("Json", report)
    if len(known) == 1 and not known.keys() & said.keys():
        key = next(iter(known))
        return {key: json.dumps(said) if known[key].get("type") == "string" else said}
    missing = [name for name in texts(schema, "required") if name not in said and _nullable(part(known, name))]
    return {**said, **dict.fromkeys(missing)}


def _nullable(schema: Json) -> bool:
    return (
        schema.get("type") == "null" or "null" in texts(schema, "type") or any(map(_nullable, parts(schema, "anyOf")))
    )


def example(schema: Json) -> Any:
    """Return the least value that a schema accepts, for requests beside the work (a title, a topic)."""
    if "const" in schema:
        return schema["const"]
    if words := texts(schema, "enum"):
        return words[0]
    kind = str(schema.get("type") or "object").lower()
    if kind == "object":
        return {name: example(part(schema, "properties", name)) for name in texts(schema, "required")}
    return _LEAST.get(kind, "work")
