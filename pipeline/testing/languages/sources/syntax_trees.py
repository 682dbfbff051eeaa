"""Reads tree-sitter syntax trees: nodes with their texts and places. Imports no parser."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from tree_sitter import Node


def below(top: Node) -> Iterator[Node]:
    """Yield a node and everything in it, in the order of the text."""
    stack = [top]
    while stack:
        node = stack.pop()
        yield node
        stack.extend(reversed(node.children))


def text(node: Node | None) -> str:
    """Return the source text of a node, empty for None."""
    return (node.text or b"").decode("utf-8", "replace") if node is not None else ""


def field_text(node: Node, name: str) -> str:
    """Return the source text of a node's field, empty if there is none."""
    return text(node.child_by_field_name(name))


def named_children(node: Node | None) -> tuple[Node, ...]:
    """Return the direct children of a node without comments."""
    return tuple(child for child in node.named_children if "comment" not in child.type) if node is not None else ()


def line_of(node: Node) -> int:
    """Return the line on which a node begins, counted from 1."""
    return node.start_point.row + 1


def span_of(node: Node | None) -> tuple[int, int] | None:
    """Return where a node begins and ends, in bytes; None for None."""
    return (node.start_byte, node.end_byte) if node is not None else None


def names_below(top: Node, kinds: Collection[str]) -> frozenset[str]:
    """Return the texts of all nodes of some kinds in a node."""
    return frozenset(text(node) for node in below(top) if node.type in kinds)


def with_helpers(names: Collection[str], helpers: Mapping[str, Collection[str]]) -> frozenset[str]:
    """Return the names, and those that the helpers among them mention, and the helpers among these."""
    found, waiting = set(names), list(names)
    while waiting:
        more = set(helpers.get(waiting.pop(), ())) - found
        found |= more
        waiting += more
    return frozenset(found)


def first_error(top: Node) -> Node | None:
    """Return the first node with a syntax error, None if there is none."""
    return next((node for node in below(top) if node.is_error or node.is_missing), None) if top.has_error else None


def code_of(top: Node, *, without: Node | None = None, ignored: str = "") -> str:
    """Return the tokens of a node separated by blanks, without comments and with double quotes only.

    Args:
        top: The node.
        without: A node in it that is left out.
        ignored: A token that is left out.
    """
    words: list[str] = []
    stack = [top]
    while stack:
        node = stack.pop()
        if "comment" in node.type or node == without:
            continue
        if node.children:
            stack.extend(reversed(node.children))
        elif (word := text(node)).strip() not in {"", ignored}:
            words.append('"' if word == "'" else word)
    return " ".join(words)
