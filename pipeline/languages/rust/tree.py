"""Finds modules in Rust source, and notable content of test modules.

Importing this module loads the parser; `pipeline.languages.rust.test_regions` does so only when a Rust file is judged.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pipeline.languages.rust.sources import is_test, items, word
from pipeline.languages.sources.syntax_trees import below, field_text, text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tree_sitter import Node

_TYPES: Final = frozenset({"struct_item", "enum_item", "union_item", "trait_item", "type_item"})


@dataclass(frozen=True)
class Inside:
    """The content of test modules.

    Args:
        tests: Test functions by their path from the test module on, such as `tests::deep::it`.
        ignored: Those of them that do not run by themselves.
        foreign_impls: Heads of `impl` items in which neither the type nor the trait was declared inside.
    """

    tests: frozenset[str] = frozenset()
    ignored: frozenset[str] = frozenset()
    foreign_impls: frozenset[str] = frozenset()


def modules(top: Node) -> dict[tuple[int, int], Node]:
    """Return the modules with a body, nested ones included, by the first and last byte of their inside."""
    found: dict[tuple[int, int], Node] = {}
    bodies = [top]
    while bodies:
        for child in bodies.pop().named_children:
            body = child.child_by_field_name("body") if child.type == "mod_item" else None
            if body is not None:
                found[body.start_byte + 1, body.end_byte - 1] = child
                bodies.append(body)
    return found


def look_inside(insides: Iterable[Node]) -> Inside:
    """Return the content of some modules, each one of `modules`."""
    tests: dict[str, bool] = {}
    foreign: set[str] = set()
    for module in insides:
        tests.update(_tests(module))
        own = {field_text(node, "name") for node in below(module) if node.type in _TYPES}
        impls = (node for node in below(module) if node.type == "impl_item")
        foreign.update(_head(node) for node in impls if own.isdisjoint({_named(node, "type"), _named(node, "trait")}))
    ignored = frozenset(test for test, is_ignored in tests.items() if is_ignored)
    return Inside(frozenset(tests), ignored, frozenset(foreign))


def _tests(module: Node) -> Iterator[tuple[str, bool]]:
    """Yield the path of each test function, and whether it is ignored."""
    stack = [(field_text(module, "name"), module)]
    while stack:
        path, node = stack.pop()
        body = node.child_by_field_name("body")
        for item, attributes, _ in items(body) if body is not None else ():
            inside = f"{path}::{field_text(item, 'name')}"
            if item.type == "mod_item":
                stack.append((inside, item))
            elif item.type == "function_item" and any(map(is_test, attributes)):
                yield inside, any(word(attribute) == "ignore" for attribute in attributes)


def _head(impl: Node) -> str:
    """Return `impl Trait for Type` of an impl, without its generics."""
    trait, kind = impl.child_by_field_name("trait"), impl.child_by_field_name("type")
    parts = ["impl", *([text(trait), "for"] if trait is not None else []), text(kind) if kind is not None else "?"]
    return " ".join(" ".join(parts).split())


def _named(impl: Node, field: str) -> str:
    """Return the type or trait of an impl, without arguments."""
    kind = impl.child_by_field_name(field)
    return text(kind.child_by_field_name("type") if kind is not None and kind.type == "generic_type" else kind)
