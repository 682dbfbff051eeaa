from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from todo.errors import TrackerError
from todo.frontmatter import (
    MAX_DEPTH,
    MAX_FRONT_MATTER,
    Document,
    Node,
    Scalar,
    parse,
    plain_data,
    read_mapping,
    with_scalar,
    written_scalar,
)


def document(front: str) -> Document:
    return parse(f"---\n{front}---\nbody\n", "GAL-1.md")


def data(values: dict[str, Node]) -> dict[str, object]:
    return {key: plain_data(node) for key, node in values.items()}


@given(st.text(st.characters(exclude_categories=("Cs",)), min_size=1))
def test_a_written_scalar_reads_as_the_text_in_both_libraries(text: str) -> None:
    front = f"title: {written_scalar(text)}\nlabels: [{written_scalar(text)}]\n"
    values = read_mapping(front, "GAL-1.md")
    assert data(values) == {"title": text, "labels": [text]}
    title = values["title"]
    assert isinstance(title, Scalar)
    assert not title.is_null


@pytest.mark.parametrize(
    ("front", "expected", "line"),
    [
        ("a: &x [b]\nc: *x\n", "Anchors", 2),
        ("a: *x\n", "Anchors", 2),
        ("a: b\n&x c: d\n", "Anchors", 3),
        ("a: b\nc: d\na: e\n", "twice", 4),
        ("a: {b: c, b: d}\n", "twice", 2),
        ("a: " + "[" * MAX_DEPTH + "]" * MAX_DEPTH + "\n", "nested", 2),
        ("a: " + "[" * 20_000 + "\n", "nested", 2),
        ("- a\n", "`key: value`", 2),
        ("just words\n", "`key: value`", 2),
        ("[a]: b\n", "key of the front matter", 2),
        ("a: b: c\n", "not YAML", 2),
        ("a: 'b\n", "not YAML", None),
        ("a: b\n...\nc: d\n", "not YAML", 4),
        ("a: b\n--- {c: d}\n", "one YAML document", 3),
        ("a: \x07\n", "not YAML", None),
        ("", "`key: value`", 2),
        (f"a: {'b' * MAX_FRONT_MATTER}\n", "longer than", 1),
    ],
    ids=lambda value: str(value)[:24].encode("unicode_escape").decode(),
)
def test_front_matter_that_is_refused_with_the_place(front: str, expected: str, line: int | None) -> None:
    with pytest.raises(TrackerError, match=expected) as caught:
        document(front)
    assert caught.value.path == "GAL-1.md"
    if line is not None:
        assert caught.value.line == line


@pytest.mark.parametrize(
    "text", ["", "no front matter\n", "\n---\nid: a\n---\n", "---\nid: a\n", "----\nid: a\n----\n", "---\r\n\r\n" * 9]
)
def test_a_file_without_closed_front_matter_is_refused(text: str) -> None:
    with pytest.raises(TrackerError):
        parse(text, "GAL-1.md")


def test_a_bomb_of_aliases_is_refused_before_it_grows() -> None:
    levels = "".join(f"l{level + 1}: &l{level + 1} [{', '.join([f'*l{level}'] * 10)}]\n" for level in range(40))
    with pytest.raises(TrackerError, match="Anchors"):
        document("l0: &l0 lol\n" + levels)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("status: !!str Todo # Todo\n", "status: !!str Done # Todo\n"),
        ('status: "\\x54odo" # why\n', "status: Done # why\n"),
        ("status: |- # Todo\n  Todo\n", "status: |- # Todo\n  Done\n"),
        ("status: |2-\r\n  Todo\r\n\r\n", "status: |2-\r\n  Done\r\n\r\n"),
        ("status: >-\n  To\n  do\n", "status: Done\n"),
        ("status: To\r\n  do\r\n", "status: Done\r\n"),
        ("status: 'To\n\n  do'\n", "status: Done\n"),
        ("status: !!str 'Todo'\n", "status: !!str 'Done'\n"),
    ],
)
def test_a_value_written_in_an_odd_way_is_replaced_and_nothing_else(before: str, after: str) -> None:
    rest = "labels:\n- a\n-   b\nx:   y # c\r\n"
    odd = document(f"# first\r\n{before}{rest}")
    changed = parse(with_scalar(odd, "status", "Done"), "GAL-1.md")
    assert changed.front == f"# first\r\n{after}{rest}"
    assert changed.text[changed.body :] == "body\n"


def test_a_value_that_is_no_scalar_is_not_replaced() -> None:
    with pytest.raises(TrackerError, match="one line"):
        with_scalar(document("status: [Todo]\n"), "status", "Done")


def test_a_byte_order_mark_inside_front_matter_is_refused_with_its_line() -> None:
    with pytest.raises(TrackerError, match="byte order mark") as caught:
        read_mapping("a: b\n\ufeffid: GAL-1\n", "GAL-1.md")
    assert caught.value.line == 3
