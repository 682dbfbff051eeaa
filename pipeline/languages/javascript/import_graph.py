"""What JavaScript and TypeScript files use of their own project: imports, re-exports, `require`, mocked modules.

A relative name is resolved as Node and the bundlers do: as it stands, with an ending, as a folder with an index; `.js`
may stand for the `.ts` that it is compiled from. A bare name is a package of the same repository, if one has it.
Aliases of a bundler or of `tsconfig.json` are unknown here.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import PurePosixPath
from posixpath import normpath
from typing import TYPE_CHECKING, Final

from pipeline.languages.table import JAVASCRIPT

if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Mapping

    from tree_sitter import Node, Parser

_ENDINGS: Final = ("", ".ts", ".tsx", ".mts", ".cts", ".js", ".jsx", ".mjs", ".cjs", ".json")
_COMPILED: Final = {".js": (".ts", ".tsx"), ".jsx": (".tsx",), ".mjs": (".mts",), ".cjs": (".cts",)}
_CALLS: Final = frozenset({"require", "import", "mock", "doMock", "unmock", "requireActual", "importActual", "resolve"})
_STATEMENTS: Final = frozenset({"import_statement", "export_statement"})
_ENTRY_KEYS: Final = ("exports", "module", "main", "types", "source")
_ENTRIES: Final = ("index", "src/index", "lib/index", "main", "src/main")


def read(sources: Mapping[str, str]) -> Iterator[tuple[str, frozenset[str]]]:
    """Yield each script that can be parsed, with the project's files that it names."""
    packages = dict(_packages(sources))
    for path, text in sources.items():
        if path.endswith(JAVASCRIPT.sources):
            names = _names(path, text)
            if names is not None:
                yield path, frozenset(_resolved(path, names, packages, sources))


def _packages(sources: Mapping[str, str]) -> Iterator[tuple[str, tuple[str, tuple[str, ...]]]]:
    """Yield (name, (folder, what may be its entry)) of each package.json that has a name."""
    for path, text in sources.items():
        if PurePosixPath(path).name != "package.json":
            continue
        try:
            said: object = json.loads(text)
        except ValueError:
            continue
        name = said.get("name") if isinstance(said, dict) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]  of JSON
        if isinstance(said, dict) and isinstance(name, str):
            entries = (text for key in _ENTRY_KEYS for text in _texts(said.get(key)))  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]  of JSON
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
        if name.startswith("."):
            yield from _files(str(PurePosixPath(path).parent / name), known)
            continue
        owner = next((package for package in packages if name == package or name.startswith(f"{package}/")), None)
        if owner is None:
            continue
        folder, entries = packages[owner]
        inside = name[len(owner) :].lstrip("/")
        wanted = (inside, f"src/{inside}") if inside else entries
        yield from (found for entry in wanted for found in _files(f"{folder}/{entry}", known))


def _files(place: str, known: Container[str]) -> Iterator[str]:
    """Yield the files that a path without an ending, or with the compiled one, may mean; the first kind that exists."""
    place = normpath(place)
    stem, dot, ending = place.rpartition(".")
    compiled = [stem + other for other in _COMPILED.get(dot + ending, ())]
    candidates = [*(place + other for other in _ENDINGS), *compiled]
    candidates += [f"{place}/index{other}" for other in _ENDINGS[1:]]
    yield from [candidate for candidate in candidates if candidate in known][:1]


def _names(path: str, text: str) -> list[str] | None:
    root = _parser(PurePosixPath(path).suffix).parse(text.encode()).root_node
    if root.has_error:
        return None
    found: list[str] = []
    waiting: list[Node] = [root]
    while waiting:
        node = waiting.pop()
        source = node.child_by_field_name("source") if node.type in _STATEMENTS else None
        if source is not None:
            found.append(_text(source))
        elif node.type == "call_expression":
            found += _called(node)
        elif node.type == "import_require_clause":
            found += [_text(child) for child in node.named_children if child.type == "string"]
        waiting += node.named_children
    return found


def _called(node: Node) -> list[str]:
    function, arguments = node.child_by_field_name("function"), node.child_by_field_name("arguments")
    if function is None or arguments is None:
        return []
    name = function.child_by_field_name("property") or function
    first = next(iter(arguments.named_children), None)
    if first is None or first.type != "string" or (name.text or b"").decode() not in _CALLS:
        return []
    return [_text(first)]


def _text(node: Node) -> str:
    return (node.text or b"").decode()[1:-1]


@cache
def _parser(ending: str) -> Parser:
    from tree_sitter import Language, Parser  # noqa: PLC0415  (only when such a file is read)

    if ending in {".ts", ".tsx", ".mts", ".cts"}:
        import tree_sitter_typescript as typescript  # noqa: PLC0415

        return Parser(Language(typescript.language_tsx() if ending == ".tsx" else typescript.language_typescript()))
    import tree_sitter_javascript  # noqa: PLC0415

    return Parser(Language(tree_sitter_javascript.language()))
