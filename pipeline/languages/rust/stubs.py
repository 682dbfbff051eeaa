"""Replaces the bodies of named Rust symbols by `todo!()` and keeps every other byte of a file.

Test regions are no production: nothing in them is stubbed or introduced.

All `impl` blocks of a type are one scope; two traits of it may have functions of one name. Test regions are not
production; that a stub pass leaves them alone is the gate's to see.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from pipeline.languages.rust.sources import is_for_tests, items, items_of, owner_of, parse, trait_of
from pipeline.languages.sources import stubs
from pipeline.languages.sources.stubs import Content, Definition, Rules, Target
from pipeline.languages.sources.syntax_trees import below, code_of, field_text, first_error, line_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from tree_sitter import Node

    from pipeline.evidence.red_classes import Symbol
    from pipeline.languages.named_definitions import Parts
    from pipeline.languages.sources.stubs import Body, Edit, OldBodies, Stubbed, StubFault


_BODY: Final = "{ #![allow(unused)] todo!() }"
"""The stub; it compiles even where the project denies unused parameters."""

_OWNERS: Final = frozenset({"impl_item", "trait_item", "mod_item"})
_VALUES: Final = frozenset({"const_item", "static_item"})


def stub_symbols(files: Mapping[str, str], symbols: Sequence[Symbol]) -> Stubbed:
    """Return the files with stubs, and the symbols that no file defines.

    A function loses its body; a type or trait those of all its functions, wherever they are implemented; a module those
    of everything in it.
    """
    trees = {path: parse(source.encode()) for path, source in files.items()}
    return stubs.stubbed(files, symbols, lambda symbol: _targets(trees, symbol))


def introduced(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[Symbol, ...]:
    """Return the symbols newly defined outside of test regions; methods are dotted."""
    return stubs.introduced(before, after, lambda _, source: _definitions(parse(source.encode())))


def with_old_bodies(before: Mapping[str, str], after: Mapping[str, str], kept: bool) -> OldBodies:
    """Return the files with the bodies that their functions had, or the stub."""

    def stub(_: str, was: str | None) -> str:
        return was if kept and was is not None else _BODY

    def functions(_: str, source: str) -> Iterator[Body]:
        return _named_parts(parse(source.encode()), {"function_item"}, "body")

    def values(_: str, source: str) -> Iterator[Body]:
        return _named_parts(parse(source.encode()), _VALUES, "value")

    return stubs.with_old_bodies(before, after, functions, values if kept else stubs.no_values, stub)


def _named_parts(body: Node, types: AbstractSet[str], field: str, owner: str = "") -> Iterator[Body]:
    """Yield one part of each item of some types, with the item's name behind that of its owner."""
    for item in items_of(body):
        part, inside = item.child_by_field_name(field), item.child_by_field_name("body")
        if item.type in types and part is not None:
            yield f"{owner}{field_text(item, 'name')}", part.start_byte, part.end_byte
        elif item.type == "impl_item" and inside is not None:
            yield from _named_parts(inside, types, field, f"{owner}{owner_of(item)}.")
        elif item.type in _OWNERS and inside is not None:
            more = "" if item.type == "mod_item" else f"{field_text(item, 'name')}."
            yield from _named_parts(inside, types, field, f"{owner}{more}")


def _targets(trees: Mapping[str, Node], symbol: Symbol) -> Iterator[Target]:
    parts = symbol.name.replace("::", ".").split(".")
    for path, tree in trees.items():
        if symbol.path in {"", path}:
            yield from (Target(path, _bodies(node), _value(node)) for node in _named(tree, parts))


def _definitions(body: Node) -> Iterator[str]:
    for item in items_of(body):
        inside = item.child_by_field_name("body")
        if item.type == "mod_item":
            if inside is not None:
                yield from _definitions(inside)
        elif item.type == "impl_item":
            owner = owner_of(item)
            yield from (f"{owner}.{name}" for name in _definitions(inside)) if inside is not None else ()
        elif name := field_text(item, "name"):
            yield name


def _named(body: Node, parts: Sequence[str]) -> Iterator[Node]:
    """Yield the items that a dotted name means; leading names of modules and of the crate may be missing."""
    for item in items_of(body):
        inside = item.child_by_field_name("body")
        names = _all_names(item) | {trait_of(item)}
        if parts[0] in names:
            if len(parts) == 1:
                yield item
            elif inside is not None and item.type in _OWNERS:
                yield from _named(inside, parts[1:])
        elif item.type == "mod_item" and inside is not None:
            yield from _named(inside, parts)
    if (
        body.type == "source_file"
        and len(parts) > 1
        and not any(parts[0] in _all_names(item) for item in items_of(body))
    ):
        yield from _named(body, parts[1:])


def _all_names(item: Node) -> set[str]:
    return {field_text(item, "name"), owner_of(item)} - {""}


def _bodies(item: Node) -> Iterator[Edit]:
    body = item.child_by_field_name("body")
    if item.type == "function_item" and body is not None:
        yield body.start_byte, body.end_byte, _BODY
    elif item.type in _OWNERS and body is not None:
        for inner in items_of(body):
            yield from _bodies(inner)


def _value(item: Node) -> Iterator[Edit]:
    value = item.child_by_field_name("value")
    if item.type in _VALUES and value is not None:
        yield value.start_byte, value.end_byte, "todo!()"


_DECLARES: Final = frozenset({"use_declaration", "extern_crate_declaration", "inner_attribute_item", "empty_statement"})
_SCOPES: Final = frozenset({"trait_item", "mod_item"})
_COMPUTES: Final = frozenset({"call_expression", "macro_invocation", "block", "closure_expression", "if_expression"})


def stub_faults(
    before: Mapping[str, str], after: Mapping[str, str], symbols: Sequence[Symbol]
) -> tuple[StubFault, ...]:
    """Return the changes that are no stubs; see `protocol.Toolchain.stub_faults`."""
    return stubs.stub_faults(_RULES, before, after, symbols)


def _read(path: str, source: str) -> Content:  # noqa: ARG001  (all languages are asked alike)
    top = parse(source.encode())
    if (error := first_error(top)) is not None:
        return Content(error="cannot be parsed", error_line=line_of(error))
    return Content([*_compared(top, (), "")], [*_others(top)])


_RULES: Final = Rules(_read, "todo!()", re.compile(r"\{ (?:# ! \[.*?\] )*todo ! \( \)(?: ;)? \}"), "::")


def _compared(scope: Node, above: Parts, around: str) -> Iterator[Definition]:
    for node, attributes, _ in items(scope):
        if any(map(is_for_tests, attributes)):
            continue
        body = node.child_by_field_name("body")
        head = " ".join((*attributes, code_of(node, without=body)))
        name = field_text(node, "name")
        if node.type == "impl_item" and body is not None:
            yield from _compared(body, tuple(filter(None, (*above, owner_of(node), trait_of(node)))), head)
        elif node.type == "function_item" and body is not None:
            yield Definition((*above, name), line_of(node), head, code_of(body), around=around)
        elif node.type in _SCOPES and body is not None:
            yield Definition((*above, name), line_of(node), head, around=around)
            yield from _compared(body, (*above, name), around)
        elif name:
            fault = "gives {name} a value that is computed" if _is_computed(node) else ""
            whole = " ".join((*attributes, code_of(node)))
            is_module = node.type == "mod_item"
            yield Definition((*above, name), line_of(node), whole, fault=fault, around=around, is_free=is_module)


def _is_computed(item: Node) -> bool:
    value = item.child_by_field_name("value") if item.type in _VALUES else None
    return value is not None and any(node.type in _COMPUTES for node in below(value))


def _others(top: Node) -> Iterator[tuple[str, int]]:
    """Yield the code at a file's top that is no definition and no declaration, mostly macros."""
    for node, attributes, _ in items(top):
        is_known = node.type in _DECLARES or node.type == "impl_item" or field_text(node, "name")
        if not is_known and not any(map(is_for_tests, attributes)):
            yield code_of(node), line_of(node)
