"""Replaces the bodies of named symbols by `todo!()`, leaving every other byte of a file alone.

See `pytest.stubs` for what it is good for. Test regions are no production: nothing in them is stubbed or introduced.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pipeline.evidence.red_classes import Symbol
from pipeline.languages.protocol import Stubbed
from pipeline.languages.rust.syntax import items_of, owner_of, parse, trait_of
from pipeline.languages.sources.syntax_trees import field_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tree_sitter import Node

_BODY: Final = "{ #![allow(unused)] todo!() }"
"""The stub may not fail to compile where the project denies unused parameters."""

_OWNERS: Final = frozenset({"impl_item", "trait_item", "mod_item"})
_VALUES: Final = frozenset({"const_item", "static_item"})
_Edit = tuple[int, int, str]


def stub_symbols(files: Mapping[str, str], symbols: Sequence[Symbol]) -> Stubbed:
    """Return the files that change, and the symbols that no file defines.

    A function loses its body; a type or trait those of all its functions, wherever they are implemented; a module those
    of everything in it. A constant has nothing to fail later: its value is replaced only where no function was.
    """
    trees = {path: parse(source.encode()) for path, source in files.items()}
    edits: dict[str, set[_Edit]] = {path: set() for path in files}
    values: dict[str, set[_Edit]] = {path: set() for path in files}
    unknown: list[Symbol] = []
    for symbol in symbols:
        parts = symbol.name.replace("::", ".").split(".")
        found = False
        for path, tree in trees.items():
            if symbol.path not in {"", path}:
                continue
            for node in _named(tree, parts):
                found = True
                edits[path].update(_stubs(node))
                values[path].update(_value(node))
        if not found:
            unknown.append(symbol)
    chosen = edits if any(edits.values()) else values
    return Stubbed({path: _apply(files[path], wanted) for path, wanted in chosen.items() if wanted}, tuple(unknown))


def introduced(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[Symbol, ...]:
    """Return what the files define outside of test regions that they did not define before; methods are dotted."""
    found: list[Symbol] = []
    for path, source in after.items():
        known = set(_defined(before.get(path, "")))
        found += [Symbol(path, name) for name in dict.fromkeys(_defined(source)) if name not in known]
    return tuple(found)


def _defined(source: str) -> Iterator[str]:
    yield from _definitions(parse(source.encode()))


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
    """Yield the items that a dotted name means; the leading names of modules and the crate may be left out."""
    for item in items_of(body):
        inside = item.child_by_field_name("body")
        names = {field_text(item, "name"), *((owner_of(item), trait_of(item)) if item.type == "impl_item" else ())} - {
            ""
        }
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
    return {field_text(item, "name"), owner_of(item)}


def _stubs(item: Node) -> Iterator[_Edit]:
    body = item.child_by_field_name("body")
    if item.type == "function_item" and body is not None:
        yield body.start_byte, body.end_byte, _BODY
    elif item.type in _OWNERS and body is not None:
        for inner in items_of(body):
            yield from _stubs(inner)


def _value(item: Node) -> Iterator[_Edit]:
    value = item.child_by_field_name("value")
    if item.type in _VALUES and value is not None:
        yield value.start_byte, value.end_byte, "todo!()"


def _apply(source: str, edits: set[_Edit]) -> str:
    encoded = source.encode()
    for start, end, replacement in sorted(edits, reverse=True):
        encoded = encoded[:start] + replacement.encode() + encoded[end:]
    return encoded.decode()
