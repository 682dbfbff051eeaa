from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.yaml_text import YamlError, read, text_only

TEXTS = st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\ufeff\u0085\u2028\u2029"))
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)


@given(VALUES)
def test_json_without_escapes_is_read_as_json_is(value: Any) -> None:
    assert read(json.dumps(value, ensure_ascii=False)).value == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("no", "no"),
        ("1", 1),
        ("1_000", "1_000"),
        ("'1'", "1"),
        ("1.5", 1.5),
        ("true", True),
        ("True", "True"),
        ("~", None),
        ("2024-01-01", "2024-01-01"),
        (".inf", ".inf"),
        ("- a\n-", ["a", None]),
    ],
)
def test_scalars_are_those_of_yaml_1_2(text: str, value: object) -> None:
    assert read(text).value == value


def test_each_value_has_its_line_and_column() -> None:
    document = read("a: 1\nb:\n  - x\n  - c/d: y\n", first_line=2)
    assert document.place("/b/1/c~1d") == (5, 5)
    assert document.place("/b/1/c~1d/e/f") == (5, 5), "what is not there is where it would be"
    assert document.place("/nothing") == (1, 1)


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("a: 1\nb: &x [1]", 2, "anchors and aliases are not accepted"),
        ("a: 1\nb: *x", 2, "anchors and aliases are not accepted"),
        ("a: !!int 1", 1, "tags are not accepted"),
        ("a: 1\nb: 2\na: 3", 3, "the key 'a' is given twice"),
        ("? [a]\n: 1", 1, "a key is a word"),
        ("a: 1\n---\nb: 2", 2, "one YAML document only"),
        ("a: [", 2, "this is not YAML"),
        ("[" * 5_000, 1, "this nests deeper than 12 levels"),
        ("- x\n" * 60_000, 50_000, "the text has more than 50000 values"),
        ("a: \ufeff", 1, "byte order mark"),
    ],
)
def test_what_is_not_read_is_refused_with_its_line(text: str, line: int, message: str) -> None:
    with pytest.raises(YamlError) as caught:
        read(text, most=50_000)
    assert message in caught.value.message
    assert abs(caught.value.line - line) <= 3


def test_aliases_stand_for_what_was_named_and_are_counted() -> None:
    assert read("- &x {a: [1]}\n- *x\n- &y z\n- {b: *y}", aliases=True).value == [
        {"a": [1]},
        {"a": [1]},
        "z",
        {"b": "z"},
    ]
    bomb = "\n".join(f"- &a{n + 1} [{', '.join([f'*a{n}'] * 9)}]" for n in range(9))
    for text, message in (
        (f"- &a0 [x]\n{bomb}", "the text has more than 100000 values"),
        ("- &a [*a]", "there is no anchor &a above"),
    ):
        with pytest.raises(YamlError, match=message):
            read(text, aliases=True)


def test_where_texts_are_wanted_nothing_is_typed() -> None:
    assert read("[1, true, ~, x]", scalar=text_only).value == ["1", "true", "~", "x"]
