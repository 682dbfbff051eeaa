"""Rust source as tree-sitter reads it: where modules end, and what stands inside them that deserves a note.

Importing this module loads the parser; `pipeline.languages.rust.test_regions` does so only when a Rust file is judged.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tree_sitter import Language, Parser
from tree_sitter_rust import language

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tree_sitter import Node, Tree

_RUST: Final = Language(language())
_TYPES: Final = frozenset({"struct_item", "enum_item", "union_item", "trait_item", "type_item"})
_COMMENTS: Final = frozenset({"line_comment", "block_comment"})


@dataclass(frozen=True)
class Inside:
    """What stands inside test modules.

    Args:
        tests: Test functions by their path from the test module on, such as `tests::deep::it`.
        ignored: Those of them that do not run by themselves.
        foreign_impls: Heads of `impl` items in which neither the type nor the trait was declared inside.
    """

    tests: frozenset[str] = frozenset()
    ignored: frozenset[str] = frozenset()
    foreign_impls: frozenset[str] = frozenset()


def parse(source: bytes) -> Tree:
    """Return the syntax tree of a Rust source, which may have errors in it."""
    return Parser(_RUST).parse(source)


def first_error(tree: Tree) -> int | None:
    """Return the offset in bytes of the first piece that is no Rust, or that had to be made up, or None."""
    if not tree.root_node.has_error:
        return None
    wrong = [node.start_byte for node in _below(tree.root_node) if node.is_error or node.is_missing]
    return min(wrong, default=0)


def modules(tree: Tree) -> dict[tuple[int, int], Node]:
    """Return the modules with a body, at the top level and in each other, by the first and last byte of the inside."""
    found: dict[tuple[int, int], Node] = {}
    bodies = [tree.root_node]
    while bodies:
        for child in bodies.pop().named_children:
            body = child.child_by_field_name("body") if child.type == "mod_item" else None
            if body is not None:
                found[body.start_byte + 1, body.end_byte - 1] = child
                bodies.append(body)
    return found


def look_inside(insides: Iterable[Node]) -> Inside:
    """Return what stands inside some modules, each one of `modules`."""
    tests: dict[str, bool] = {}
    foreign: set[str] = set()
    for module in insides:
        tests.update(_tests(module))
        own = {_field(node, "name") for node in _below(module) if node.type in _TYPES}
        impls = (node for node in _below(module) if node.type == "impl_item")
        foreign.update(_head(node) for node in impls if own.isdisjoint({_field(node, "type"), _field(node, "trait")}))
    ignored = frozenset(test for test, is_ignored in tests.items() if is_ignored)
    return Inside(frozenset(tests), ignored, frozenset(foreign))


def _below(top: Node) -> Iterator[Node]:
    stack = [top]
    while stack:
        node = stack.pop()
        yield node
        stack.extend(node.children)


def _tests(module: Node) -> Iterator[tuple[str, bool]]:
    """Yield the path of each test function, and whether it is ignored."""
    stack = [(_field(module, "name"), module)]
    while stack:
        path, node = stack.pop()
        body = node.child_by_field_name("body")
        attributes: list[str] = []
        for child in body.named_children if body is not None else ():
            if child.type == "attribute_item":
                attributes.append(_attribute(child))
            elif child.type == "mod_item":
                stack.append((f"{path}::{_field(child, 'name')}", child))
                attributes = []
            elif child.type not in _COMMENTS:
                if child.type == "function_item" and any(name.endswith("test") for name in attributes):
                    yield f"{path}::{_field(child, 'name')}", "ignore" in attributes
                attributes = []


def _attribute(item: Node) -> str:
    """Return the name in `#[name(...)]`, a path with `::` in it as it is written."""
    attribute = item.named_children[0]
    return _text(attribute.named_children[0]) if attribute.named_children else ""


def _head(impl: Node) -> str:
    """Return `impl Trait for Type` of an impl, generics of the impl itself left out."""
    trait, kind = impl.child_by_field_name("trait"), impl.child_by_field_name("type")
    parts = ["impl", *([_text(trait), "for"] if trait is not None else []), _text(kind) if kind is not None else "?"]
    return " ".join(parts)


def _field(node: Node, name: str) -> str:
    """Return the text of a field, of a generic type the type without its arguments; empty if there is none."""
    found = node.child_by_field_name(name)
    if found is not None and found.type == "generic_type":
        found = found.child_by_field_name("type")
    return _text(found) if found is not None else ""


def _text(node: Node) -> str:
    return " ".join((node.text or b"").decode("utf-8", "replace").split())
