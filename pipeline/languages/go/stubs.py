"""Replaces the bodies of named Go symbols by a panic and keeps every other byte of a file.

The stub is put before what the body does, not in its place: the rest is
never reached, and the imports and variables that it uses stay used, which Go insists on. Test files are no production.
"""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING, Final

from pipeline.evidence.red_classes import Symbol
from pipeline.languages.go.syntax import Item, items, parse
from pipeline.languages.sources import stubs
from pipeline.languages.sources.stubs import Target
from pipeline.languages.sources.syntax_trees import below

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from tree_sitter import Node

    from pipeline.languages.sources.stubs import Body, Edit, OldBodies, Stubbed

STUB: Final = 'panic("not implemented")'

_FUNCTIONS: Final = frozenset({"func", "method"})
_VALUES: Final = frozenset({"const", "var"})
_NAMELESS: Final = frozenset({"_", "init", "main"})


def stub_symbols(files: Mapping[str, str], symbols: Sequence[Symbol]) -> Stubbed:
    """Return the files with stubs, and the symbols that no file defines.

    A function panics first thing; a type's methods all do, in whatever file. What looks at a value that is replaced
    does not compile.
    """
    declared = {path: list(items(parse(source.encode()))) for path, source in files.items() if not _is_test(path)}
    return stubs.stubbed(files, symbols, lambda symbol: _targets(declared, symbol))


def introduced(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[Symbol, ...]:
    """Return the symbols that no file of the same package defined before; methods are dotted."""
    known: dict[str, set[str]] = {}
    for path, source in before.items():
        known.setdefault(posixpath.dirname(path), set()).update(defined(source))
    found: list[Symbol] = []
    for path, source in after.items():
        if not _is_test(path):
            old = known.get(posixpath.dirname(path), set[str]())
            names = dict.fromkeys(name for name in defined(source) if name not in old)
            found += [Symbol(path, name) for name in names]
    return tuple(found)


def with_old_bodies(before: Mapping[str, str], after: Mapping[str, str], kept: bool) -> OldBodies:
    """Return the files with the bodies that their functions had, or the stub, put before what they do now.

    What they do now is never reached, and keeps what the file imports in use.
    """

    def stub(now: str, was: str | None) -> str:
        first = f"if true {was}" if kept and was is not None else STUB
        return f"{{ {first}; {now[1:]}"

    old, new = ({path: text for path, text in files.items() if not _is_test(path)} for files in (before, after))

    def functions(_: str, source: str) -> Iterator[Body]:
        return _named_parts(source, _FUNCTIONS, "body")

    def values(_: str, source: str) -> Iterator[Body]:
        return _named_parts(source, _VALUES, "value")

    return stubs.with_old_bodies(old, new, functions, values if kept else stubs.no_values, stub)


def _named_parts(source: str, kinds: AbstractSet[str], field: str) -> Iterator[Body]:
    for item in items(parse(source.encode())):
        part = item.node.child_by_field_name(field) if item.kind in kinds else None
        if part is not None:
            yield item.name, part.start_byte, part.end_byte


def defined(source: str) -> Iterator[str]:
    """Yield the names that a file declares, without `init`, `main` and `_`, which no test can use."""
    return (item.name for item in items(parse(source.encode())) if item.name not in _NAMELESS)


def names_of(symbol: str) -> tuple[str, ...]:
    """Return the possible names of a symbol in its file: as written, and without its package.

    Packages have small letters, and so have some types: both are tried.
    """
    plain = symbol.replace("(*", "").replace("(", "").replace(")", "")
    first, dot, rest = plain.partition(".")
    return (plain, rest) if dot and first[:1].islower() else (plain,)


def _targets(declared: Mapping[str, Sequence[Item]], symbol: Symbol) -> Iterator[Target]:
    """Yield the items that a symbol means: itself, and a type's methods anywhere in its package."""
    known = [(path, item) for path, each in declared.items() for item in each]
    for name in names_of(symbol.name):
        own = [(path, item) for path, item in known if item.name == name and symbol.path in {"", path}]
        packages = {posixpath.dirname(path) for path, item in own if item.kind == "type"}
        methods = [
            (path, item)
            for path, item in known
            if item.kind == "method" and item.name.startswith(f"{name}.") and posixpath.dirname(path) in packages
        ]
        if own:
            yield from (Target(path, _bodies(item), _value(item)) for path, item in (*own, *methods))
            return


def _bodies(item: Item) -> Iterator[Edit]:
    bodies = [item.node.child_by_field_name("body")] if item.kind in _FUNCTIONS else [*_literals(item)]
    for body in bodies:
        if body is not None:
            at = body.start_byte + 1
            yield at, at, f" {STUB};"


def _literals(item: Item) -> Iterator[Node | None]:
    """Yield the bodies of functions in a variable's value."""
    value = item.node.child_by_field_name("value") if item.kind == "var" else None
    for node in value.named_children if value is not None else ():
        if node.type == "func_literal":
            yield node.child_by_field_name("body")


def _value(item: Item) -> Iterator[Edit]:
    value = item.node.child_by_field_name("value") if item.kind in _VALUES else None
    if value is not None and not any(node.type == "func_literal" for node in below(value)):
        yield value.start_byte, value.end_byte, STUB


def _is_test(path: str) -> bool:
    return path.endswith("_test.go") or not path.endswith(".go")
