"""Adapts a report's JSON Schema to products and providers, and extracts the report from their answers.

Our schemas are what pydantic writes: unions at the top, `$defs`, defaults. A tool's input must be an object, so a union
is wrapped. OpenAI's strict mode knows fewer words and wants every key; what is left out is then null, which
`pipeline.judge.reports` reads so.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, cast

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

Json = dict[str, Any]

_KEY: Final = "report"
_OURS: Final = frozenset({"$schema", "discriminator", "title", "default"})
_NOT_STRICT: Final = frozenset({"pattern", "minLength", "maxLength", "minItems", "maxItems", "minimum", "maximum"})
_FENCED: Final = re.compile(r"^```(?:json)?[ \t]*\n(.*?)\n```[ \t]*$", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class Form:
    """The schema of a report in the form that a product accepts.

    Args:
        schema: A JSON Schema whose top is an object.
        wrapped: Whether the report is the value of the object's one key.
    """

    schema: Mapping[str, Any]
    wrapped: bool

    def filled(self, answer: object) -> bytes:
        """Return the report in a structured answer, as JSON."""
        if self.wrapped and isinstance(answer, dict) and cast("Json", answer).keys() == {_KEY}:
            answer = cast("Json", answer)[_KEY]
        return json.dumps(answer).encode()

    def said(self, text: str) -> bytes | None:
        """Return the report in a model's last words: the whole text, its last line or its last fence; else None."""
        return next((self.filled(found) for found in _objects(text)), None)


def form(schema: Mapping[str, Any], *, strict: bool) -> Form:
    """Return *schema* in the form that a product accepts.

    Args:
        schema: One of `pipeline.judge.reports.kinds.report_schema`.
        strict: For OpenAI's strict mode: every key is required, and fewer words are known.
    """
    told = _told(dict(schema), strict=strict)
    if told.get("type") == "object":
        return Form(told, wrapped=False)
    shared = {"$defs": told.pop("$defs")} if "$defs" in told else {}
    top = {"type": "object", "properties": {_KEY: told}, "required": [_KEY], "additionalProperties": False}
    return Form({**top, **shared}, wrapped=True)


def _told(schema: Json, *, strict: bool) -> Json:
    if "$ref" in schema:
        return {"$ref": schema["$ref"]}  # strict mode takes no word beside it
    dropped = _OURS | (_NOT_STRICT if strict else frozenset[str]())
    told = {key: value for key, value in schema.items() if key not in dropped}
    if "const" in told:
        told["enum"] = [told.pop("const")]
    if "oneOf" in told:
        told["anyOf"] = told.pop("oneOf")
    for key in told.keys() & {"properties", "$defs"}:
        told[key] = {name: _told(inner, strict=strict) for name, inner in told[key].items()}
    if "items" in told:
        told["items"] = _told(told["items"], strict=strict)
    if "anyOf" in told:
        told["anyOf"] = [_told(inner, strict=strict) for inner in told["anyOf"]]
    return _with_every_key(told) if strict and "properties" in told else told


def _with_every_key(told: Json) -> Json:
    required = set(told.get("required", ()))
    known = {name: inner if name in required else _or_null(inner) for name, inner in told["properties"].items()}
    return {**told, "properties": known, "required": list(known), "additionalProperties": False}


def _or_null(schema: Json) -> Json:
    null = {"type": "null"}
    either: list[Json] = schema.get("anyOf") or [schema]
    return {"anyOf": either if null in either else [*either, null]}


def _objects(text: str) -> Iterator[Json]:
    """Yield JSON objects that could be a report: the whole text, then the last line, then the last fence."""
    for candidate in (text, *text.strip().splitlines()[-1:], *reversed(_FENCED.findall(text))):
        try:
            found = json.loads(candidate)
        except (ValueError, RecursionError):
            continue
        if isinstance(found, dict):
            yield cast("Json", found)
