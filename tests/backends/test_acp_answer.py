"""A report in the last words of an agent."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.backends.acp import report_in

pytestmark = pytest.mark.slow

PLAIN = st.text(st.characters(exclude_characters="{}`", exclude_categories=["Cs"]))
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)
OBJECTS = st.dictionaries(st.text(), VALUES, max_size=4)


@settings(max_examples=50)
@given(PLAIN, OBJECTS, st.sampled_from([None, 2]), st.sampled_from(["", "\n```", " \n"]))
@pytest.mark.broad
def test_an_object_at_the_end_is_found_whatever_stands_before(
    words: str, report: dict[str, Any], indent: int | None, end: str
) -> None:
    found = report_in(f"{words}{json.dumps(report, indent=indent)}{end}")
    assert found is not None
    assert json.loads(found) == report


@pytest.mark.parametrize("text", ["", "no", "[1]", '[{"a": 1}]', '{"a": 1} and more', "}", "{", '{"a": 1', "x}" * 100])
def test_what_does_not_end_with_an_object_has_none(text: str) -> None:
    assert report_in(text) is None


def test_the_last_of_several_counts() -> None:
    assert report_in('{"a": 1}\n{"b": 2}\n') == b'{"b": 2}'


@pytest.mark.parametrize(
    "text",
    [
        "{" * 2_000_000 + " x}",
        '{"k":' * 400_000 + " x}",
        '{"k":' * 900 + "[" + "1," * 500_000 + "1]" + "}" * 900 + " x}",
    ],
)
@pytest.mark.broad
def test_a_hopeless_text_is_given_up(text: str) -> None:
    assert report_in(text) is None
