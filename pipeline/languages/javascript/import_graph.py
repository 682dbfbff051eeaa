"""Reads which files of their own project scripts use: imports, re-exports, `require`, mocked modules.

A relative name is resolved as Node and the bundlers do: as it stands, with an ending, as a folder with an index; `.js`
may stand for the `.ts` that it is compiled from. A bare name is a package of the same repository, if one has it.
Aliases of a bundler or of `tsconfig.json` are unknown here.
"""

from __future__ import annotations

import json
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final

from pipeline.languages.javascript.syntax import file_at, literal, parse
from pipeline.languages.sources.syntax_trees import below, text
from pipeline.languages.table import JAVASCRIPT

if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Mapping

    from tree_sitter import Node

_CALLS: Final = frozenset({"require", "import", "mock", "doMock", "unmock", "requireActual", "importActual", "resolve"})
_STATEMENTS: Final = frozenset({"import_statement", "export_statement"})
_ENTRY_KEYS: Final = ("exports", "module", "main", "types", "source")
_ENTRIES: Final = ("index", "src/index", "lib/index", "main", "src/main")


def read(sources: Mapping[str, str]) -> Iterator[tuple[str, frozenset[str]]]:
    """Yield each parsable script with the project's files that it names."""
    packages = dict(_packages(sources))
    for path, source in sources.items():
        if path.endswith(JAVASCRIPT.sources):
            names = _names(path, source)
            if names is not None:
                yield path, frozenset(_resolved(path, names, packages, sources))


def _packages(sources: Mapping[str, str]) -> Iterator[tuple[str, tuple[str, tuple[str, ...]]]]:
    """Yield name, folder and possible entry files of each package.json that has a name."""
    for path, source in sources.items():
        if PurePosixPath(path).name != "package.json":
            continue
        try:
            said: object = json.loads(source)
        except ValueError:
            continue
        name = said.get("name") if isinstance(said, dict) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]  of JSON
        if isinstance(said, dict) and isinstance(name, str):
            entries = (entry for key in _ENTRY_KEYS for entry in _texts(said.get(key)))  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]  of JSON
            yield name, (str(PurePosixPath(path).parent), (*entries, *_ENTRIES))


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():  # pyright: ignore[reportUnknownVariableType]  of JSON
            yield from _texts(inner)  # pyright: ignore[reportUnknownArgumentType]  of JSON


def _resolved(
    path: str, names: list[str], packages: Mapping[str, tuple[str, tuple[str, ...]]], known: Container[str]
) -> Iterator[str]:
    for name in names:
        places = [str(PurePosixPath(path).parent / name)] if name.startswith(".") else _places(name, packages)
        yield from filter(None, (file_at(place, known) for place in places))


def _places(name: str, packages: Mapping[str, tuple[str, tuple[str, ...]]]) -> list[str]:
    """Return the possible files of an import from a package of the same repository."""
    owner = next((package for package in packages if name == package or name.startswith(f"{package}/")), None)
    if owner is None:
        return []
    folder, entries = packages[owner]
    inside = name[len(owner) :].lstrip("/")
    return [f"{folder}/{entry}" for entry in ((inside, f"src/{inside}") if inside else entries)]


def _names(path: str, source: str) -> list[str] | None:
    root = parse(path, source.encode())
    if root.has_error:
        return None
    names: list[str | None] = []
    for node in below(root):
        if node.type in _STATEMENTS:
            names.append(literal(node.child_by_field_name("source")))
        elif node.type == "call_expression":
            names.append(_called(node))
        elif node.type == "import_require_clause":
            names += [literal(child) for child in node.named_children]
    return [name for name in names if name is not None]


def _called(node: Node) -> str | None:
    function, arguments = node.child_by_field_name("function"), node.child_by_field_name("arguments")
    if function is None or arguments is None:
        return None
    is_loading = text(function.child_by_field_name("property") or function) in _CALLS
    return literal(next(iter(arguments.named_children), None)) if is_loading else None
