"""Reads Rust syntax trees of tree-sitter: items with their attributes, names, statements that only fail.

Importing this module, or one that does, loads the parser; `cargo` does so when a Rust project is measured.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from tree_sitter import Language, Parser
from tree_sitter_rust import language

from pipeline.languages.sources.syntax_trees import below, field_text, line_of, names_below, text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tree_sitter import Node

_RUST: Final = Language(language())
_COMMENTS: Final = frozenset({"line_comment", "block_comment"})
_TEST_ATTRIBUTES: Final = frozenset({"test", "rstest", "test_case", "quickcheck", "bench"})
_CFG_TEST: Final = re.compile(r"cfg\((?:test|all\((?:.*,)?test(?:,.*)?\))\)")
_REASON: Final = re.compile(r'ignore\s*=\s*"((?:[^"\\]|\\.)*)"')
_SAYS: Final = frozenset({"panic", "unreachable"})
MENTIONED: Final = frozenset({"identifier", "type_identifier", "field_identifier", "shorthand_field_identifier"})
"""The types of nodes that are names; macro arguments contain them, too."""


def parse(source: bytes) -> Node:
    """Return the syntax tree of a whole file, which may contain errors."""
    return Parser(_RUST).parse(source).root_node


def items_of(body: Node) -> Iterator[Node]:
    """Yield the items of a file or body that are not only compiled for tests."""
    return (item for item, attributes, _ in items(body) if not any(is_for_tests(words) for words in attributes))


def items(body: Node) -> Iterator[tuple[Node, list[str], Node]]:
    """Yield each item with its attributes, without blanks, and the node at which it begins."""
    attributes: list[str] = []
    start: Node | None = None
    for child in body.named_children:
        if child.type == "attribute_item":
            start = start or child
            attributes.append(_squeezed(child).removeprefix("#[").removesuffix("]"))
        elif child.type not in _COMMENTS:
            yield child, attributes, start or child
            attributes, start = [], None


def is_file_for_tests(top: Node) -> bool:
    """Return whether an attribute at a file's top says that it is only compiled for tests."""
    inner = (child for child in top.named_children if child.type == "inner_attribute_item")
    return any(_CFG_TEST.search(_squeezed(child).replace(" ", "")) for child in inner)


def _squeezed(node: Node) -> str:
    return " ".join(text(node).split())


def is_for_tests(attribute: str) -> bool:
    """Return whether an attribute says that its item is only compiled for tests."""
    return is_test(attribute) or _CFG_TEST.fullmatch(attribute.replace(" ", "")) is not None


def is_test(attribute: str) -> bool:
    """Return whether an attribute makes a function a test."""
    last = word(attribute).rpartition("::")[2]
    return last in _TEST_ATTRIBUTES or last.endswith("_test")


def word(attribute: str) -> str:
    """Return the name of an attribute, as a path."""
    return re.split(r"[\s(=\[]", attribute, maxsplit=1)[0]


def ignored(attribute: str) -> str:
    """Return the reason in an `ignore` attribute."""
    found = _REASON.match(attribute)
    return found[1] if found is not None else "ignored"


def bare_lines(function: Node) -> Iterator[int]:
    """Yield the lines of a test that fail unconditionally, without looking at any value."""
    for found in below(function):
        if found.type != "macro_invocation":
            continue
        macro = field_text(found, "macro")
        statement = found.parent if found.parent is not None and found.parent.type == "expression_statement" else found
        body = function.child_by_field_name("body")
        alone = statement.parent is not None and statement.parent == body
        arguments = found.named_children[-1]
        if (macro in _SAYS and alone) or (macro.startswith("assert") and not names_below(arguments, MENTIONED)):
            yield line_of(found)


def owner_of(item: Node) -> str:
    """Return the name of an impl's type, without path and arguments."""
    return _bare(item.child_by_field_name("type"))


def trait_of(item: Node) -> str:
    """Return the name of an impl's trait, without path and arguments; empty if it has none."""
    return _bare(item.child_by_field_name("trait"))


def _bare(kind: Node | None) -> str:
    while kind is not None and kind.type in {"generic_type", "scoped_type_identifier", "reference_type"}:
        kind = kind.child_by_field_name("name" if kind.type == "scoped_type_identifier" else "type")
    return text(kind)


def names_in(item: Node) -> Iterator[str]:
    """Yield the names that an item defines (without variants and fields), and the functions in an impl or trait."""
    name = field_text(item, "name").removeprefix("r#")
    if name:
        yield name
    body = item.child_by_field_name("body")
    if item.type in {"impl_item", "trait_item", "foreign_mod_item"} and body is not None:
        yield from (field_text(child, "name") for child in body.named_children if field_text(child, "name"))
