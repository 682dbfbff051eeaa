"""Payloads: what was asked for is held against a form, and what is quoted against the file."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.judge.reports.decode import Malformed
from pipeline.judge.reports.kinds import Answered, Questions, Unsure
from pipeline.judge.reports.parse import parse_report
from pipeline.judge.reports.payloads import MOST, NAMED, form_of, read_payload, schema_faults, with_checked_quotes
from pipeline.matrix.recipes.model import SCHEMAS
from pipeline.vocabulary import Role

if TYPE_CHECKING:
    from pydantic import JsonValue

ANGLES: dict[str, Any] = {"type": "array", "maxItems": 2, "items": {"type": "string"}}
ISSUE: dict[str, Any] = {
    "type": "object",
    "required": ["title"],
    "additionalProperties": False,
    "properties": {"title": {"type": "string", "minLength": 3}, "rank": {"type": ["integer", "null"], "minimum": 1}},
}
GOOD: dict[str, JsonValue] = {
    "findings.v1": {"findings": [{"claim": "c", "path": "a.py", "quote": "x = 1"}], "gaps": ["b"]},
    "diagnosis.v1": {"title": "t", "cause": "c"},
    "issues.v1": {"issues": [{"title": "t", "severity": "HIGH"}]},
    "test_evidence.v1": {"status": "complete", "failed": 1, "tests": [{"id": "t::a", "outcome": "failed"}]},
}
BAD: dict[str, JsonValue] = {
    "findings.v1": {"findings": [{"claim": "", "path": "../a.py"}]},
    "diagnosis.v1": {"title": "two\nlines", "cause": "c"},
    "issues.v1": {"issues": [{"title": "t", "priority": 1}]},
    "test_evidence.v1": [],
}


def test_the_forms_are_those_that_a_recipe_may_name() -> None:
    assert set(NAMED) == set(SCHEMAS) == set(GOOD) == set(BAD)


@pytest.mark.parametrize("name", NAMED)
def test_what_fits_a_form_and_what_does_not(name: str) -> None:
    assert read_payload(GOOD[name], name) == (GOOD[name], [])
    assert read_payload(json.dumps(GOOD[name]), name) == (GOOD[name], []), "as text, for products that know no other"
    assert read_payload(BAD[name], name)[1]
    assert read_payload("no JSON", name) == ("no JSON", ["at /: accepted: an object"])
    assert form_of(name)["type"] == "object"


@pytest.mark.parametrize(
    ("value", "schema", "told"),
    [
        (["a", "b"], ANGLES, []),
        (["a", "b", "c"], ANGLES, ["at /: accepted: at most 2 entries"]),
        (["a", 1], ANGLES, ["at /1: accepted: string; this is integer"]),
        ({"title": "abc", "rank": None}, ISSUE, []),
        ({"rank": 0}, ISSUE, ["at /: the key 'title' is missing", "at /rank: accepted: at least 1"]),
        ({"title": "a"}, ISSUE, ["at /title: accepted: at least 3 characters"]),
        ({"title": "abc", "x": 1}, ISSUE, ["at /x: unknown key; accepted: title, rank"]),
        (True, {"type": "integer"}, ["at /: accepted: integer; this is boolean"]),
        ("c", {"enum": ["a", "b"]}, ['at /: accepted: "a", "b"']),
        (
            1.5,
            {"anyOf": [{"type": "string"}, {"type": "number", "maximum": 1}]},
            ["at /: accepted: string; this is number"],
        ),
        (
            {"a": "x"},
            {"type": "object", "additionalProperties": {"type": "integer"}},
            ["at /a: accepted: integer; this is string"],
        ),
        ("42", {"type": "string"}, []),
    ],
)
def test_a_schema_of_the_file(value: JsonValue, schema: dict[str, Any], told: list[str]) -> None:
    assert read_payload(value, schema)[1] == told


def test_a_number_as_a_text_is_one_where_a_number_is_asked_for() -> None:
    assert read_payload("42", {"type": "integer"}) == (42, [])


def test_not_all_of_a_thousand_faults_are_told() -> None:
    assert len(schema_faults([1] * 1000, {"items": {"type": "string"}})) == MOST


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=10,
)


@given(json_values, st.sampled_from([ANGLES, ISSUE, *NAMED]))
def test_any_value_has_an_answer(value: JsonValue, form: str | dict[str, Any]) -> None:
    read, faults = read_payload(value, form)
    assert (read == value) or isinstance(value, str)
    assert all(one.startswith("at /") for one in faults)


FILES = {"a.py": "x = 1\ndef f():\n    return  x\n"}


@pytest.mark.parametrize(
    ("finding", "why"),
    [
        ({"claim": "c", "path": "a.py", "quote": "def f(): return x"}, None),
        ({"claim": "c", "path": "a.py", "quote": "x = 2"}, "a.py does not say 'x = 2'"),
        ({"claim": "c", "path": "b.py", "quote": "x = 1"}, "b.py is not there, and is quoted"),
        ({"claim": "c", "quote": "x = 1"}, "a quote names no file: 'x = 1'"),
        ({"claim": "c", "path": "a.py", "quote": ""}, None),
        ({"quote": "x = 2", "path": "a.py"}, None),
    ],
)
def test_a_quote_that_is_not_in_its_file_makes_a_finding_uncertain(
    finding: dict[str, JsonValue], why: str | None
) -> None:
    value: JsonValue = {"findings": [{**finding, "confidence": "certain"}]}
    found, missing = with_checked_quotes(value, FILES.get)
    assert missing == (() if why is None else (why,))
    marked = json.dumps(found).count('"uncertain"')
    assert marked == (0 if why is None else 1)


def test_answers_are_told_apart_by_their_word() -> None:
    def parsed(**report: Any) -> object:
        return parse_report("answer", Role.EXPLORE, None, report)

    answer = parsed(result="ANSWERED", output="It does.", payload=["a"])
    assert isinstance(answer, Answered)
    assert answer.payload == ["a"]
    assert isinstance(parsed(result="UNSURE", output="Half.", limitations="x"), Unsure)
    assert isinstance(parsed(result="UNSURE", output="Half.", limitations=" "), Malformed)
    assert isinstance(parsed(result="QUESTIONS", questions="Which?"), Questions)
    assert isinstance(parsed(result="QUESTIONS", questions=""), Malformed)
    assert isinstance(parsed(result="ANSWERED"), Malformed)


def test_a_type_that_is_none_fits_nothing() -> None:
    assert schema_faults(1, {"type": "whole"}) == [("", "accepted: whole; this is integer")]
