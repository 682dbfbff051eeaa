"""Finds the imports of a file, and the project's files that they mean."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePosixPath
from posixpath import normpath
from typing import TYPE_CHECKING, Final

from pipeline.languages.javascript.syntax import bare, field, literal
from pipeline.languages.sources.syntax_trees import below, field_text, text

if TYPE_CHECKING:
    from collections.abc import Collection, Container, Iterator

    from tree_sitter import Node

ENDINGS: Final = (".ts", ".tsx", ".mts", ".cts", ".js", ".jsx", ".mjs", ".cjs", ".json")
_COMPILED: Final = {".js": (".ts", ".tsx"), ".jsx": (".tsx",), ".mjs": (".mts",), ".cjs": (".cts",)}
_ALIASES: Final = ("@/", "~/", "~~/", "#", "$lib/", "src/")
"""Prefixes that no package can have, and that bundlers and `imports` use for files of the project."""
EVERYTHING: Final = "*"


@dataclass(frozen=True)
class Binding:
    """A name in a file bound to a module's export: `name` is its name there, `*` for the whole module."""

    module: str
    name: str


def bindings(top: Node) -> dict[str, Binding]:
    """Return the imported names of a file, by import, `require` and `await import`."""
    return dict(_bindings(top))


def _bindings(top: Node) -> Iterator[tuple[str, Binding]]:
    for node in below(top):
        if node.type == "import_statement":
            module = literal(field(node, "source"))
            if module is not None:
                yield from _imported(node, module)
        elif node.type == "variable_declarator":
            module = _required(field(node, "value"))
            name = field(node, "name")
            if module is not None and name is not None:
                yield from _destructured(name, module)


def _imported(node: Node, module: str) -> Iterator[tuple[str, Binding]]:
    for clause in below(node):
        if clause.type == "import_specifier":
            name = field_text(clause, "name")
            yield field_text(clause, "alias") or name, Binding(module, name.strip("'\""))
        elif clause.type == "namespace_import":
            yield from ((text(child), Binding(module, EVERYTHING)) for child in clause.named_children)
        elif clause.type == "import_clause":
            defaults = (child for child in clause.named_children if child.type == "identifier")
            yield from ((text(child), Binding(module, "default")) for child in defaults)


def _required(value: Node | None) -> str | None:
    """Return the module in `require("m")` or `await import("m")`, None for other values."""
    value = bare(value)
    if value is not None and value.type == "await_expression":
        value = bare(next(iter(value.named_children), None))
    if value is None or value.type != "call_expression":
        return None
    function, arguments = field(value, "function"), field(value, "arguments")
    if function is None or arguments is None or text(function) not in {"require", "import"}:
        return None
    return literal(next(iter(arguments.named_children), None))


def _destructured(name: Node, module: str) -> Iterator[tuple[str, Binding]]:
    if name.type == "identifier":
        yield text(name), Binding(module, EVERYTHING)
        return
    for part in name.named_children:
        if part.type == "shorthand_property_identifier_pattern":
            yield text(part), Binding(module, text(part))
        elif part.type == "pair_pattern":
            yield field_text(part, "value"), Binding(module, field_text(part, "key"))


def is_own(module: str, packages: Collection[str]) -> bool:
    """Return whether a module belongs to the project: a path, an alias, or one of its packages by name."""
    if module.startswith((".", "/", "file:", *_ALIASES)):
        return True
    return any(module == name or module.startswith(f"{name}/") for name in packages)


def resolved(importer: str, module: str, files: Collection[str]) -> str | None:
    """Return the project's file that a relative import means, by the rules of node and bundlers; else None."""
    return file_at(str(PurePosixPath(importer).parent / module), files) if module.startswith(".") else None


def file_at(place: str, files: Container[str]) -> str | None:
    """Return the file that a path means: itself, its TypeScript source, one with an ending, or its index; else None."""
    place = normpath(place)
    ending = PurePosixPath(place).suffix
    candidates = [place, *(place.removesuffix(ending) + other for other in _COMPILED.get(ending, ()))]
    candidates += [*(place + other for other in ENDINGS), *(f"{place}/index{other}" for other in ENDINGS)]
    return next((path for path in candidates if path in files), None)


def stem(path: str) -> str:
    """Return a module's path without its ending and without `index`."""
    pure = PurePosixPath(path)
    whole = str(pure.with_suffix("")) if pure.suffix in ENDINGS else path
    return whole.removesuffix("/index")


def module_key(importer: str, module: str, files: Collection[str]) -> str:
    """Return a name for a module: the path, without ending, of its existing or future file; other names unchanged."""
    if not module.startswith("."):
        return module
    return stem(resolved(importer, module, files) or normpath(str(PurePosixPath(importer).parent / module)))
