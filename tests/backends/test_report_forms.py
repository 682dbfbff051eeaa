"""The schemas of our reports as products take them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pipeline.agents.backends.report_schemas import form
from pipeline.judge.reports.kinds import KINDS, report_schema

CASES = [
    (kind.name, role, question)
    for kind in KINDS.values()
    for role in kind.roles
    for question in kind.by_question or [None]
]
STRICT = {
    "$defs",
    "$ref",
    "additionalProperties",
    "anyOf",
    "description",
    "enum",
    "items",
    "properties",
    "required",
    "type",
}


def schemas_in(value: Any) -> list[dict[str, Any]]:
    """Return a schema and every schema in it."""
    inner = [*value.get("properties", {}).values(), *value.get("$defs", {}).values(), *value.get("anyOf", [])]
    inner += [value["items"]] if "items" in value else []
    return [value, *(found for each in inner for found in schemas_in(each))]


@pytest.mark.parametrize(("kind", "role", "question"), CASES)
def test_strict_mode_is_told_only_what_it_knows(kind: str, role: Any, question: Any) -> None:
    told = form(report_schema(kind, role, question), strict=True)
    assert told.schema["type"] == "object"
    for schema in schemas_in(told.schema):
        assert schema.keys() <= STRICT
        if "$ref" in schema:
            assert schema.keys() == {"$ref"}
        if schema.get("type") == "object":
            assert set(schema["required"]) == schema["properties"].keys()
            assert schema["additionalProperties"] is False


@pytest.mark.parametrize(("kind", "role", "question"), CASES)
def test_a_tool_is_told_an_object_in_which_what_is_optional_stays_so(kind: str, role: Any, question: Any) -> None:
    whole = report_schema(kind, role, question)
    told = form(whole, strict=False)
    assert told.schema["type"] == "object"
    assert told.wrapped == ("oneOf" in whole)
    if not told.wrapped:
        assert told.schema["required"] == whole["required"]


def test_what_is_optional_may_be_null() -> None:
    told = form(
        {"type": "object", "properties": {"a": {"type": "string"}, "b": {"$ref": "#/x"}}, "required": ["a"]},
        strict=True,
    )
    assert told.schema["properties"] == {"a": {"type": "string"}, "b": {"anyOf": [{"$ref": "#/x"}, {"type": "null"}]}}


@pytest.mark.parametrize(
    "text",
    [
        '{"result": "COMPLETE"}',
        'Done.\n{"result": "COMPLETE"}\n',
        'Done.\n```json\n{\n  "result":\n  "COMPLETE"\n}\n```\nGood luck!',
        '{"report": {"result": "COMPLETE"}}',
    ],
)
def test_a_report_in_the_last_words(text: str) -> None:
    found = form({"oneOf": []}, strict=False).said(text)
    assert json.loads(found or b"") == {"result": "COMPLETE"}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Done.",
        "[1, 2]",
        '{"result": "COMP',
        "```json\nnot\n```",
        'The file says:\n{"result": "COMPLETE"}\nI disagree.',
    ],
)
def test_words_without_a_report(text: str) -> None:
    assert form({"oneOf": []}, strict=False).said(text) is None
