"""Questions about one file, as functions of its path, its text and a place in it, with plain values as answers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from pipeline.languages.javascript import regions
from pipeline.languages.javascript.imports import bindings
from pipeline.languages.javascript.syntax import at, bare, field, functions, parse, qualname
from pipeline.languages.sources.syntax_trees import below, field_text, first_error, line_of, text

if TYPE_CHECKING:
    from tree_sitter import Node

    from pipeline.languages.javascript.imports import Binding
    from pipeline.languages.javascript.regions import Region

_parsed = lru_cache(maxsize=8)(parse)  # many places of one file are asked about in a row


@dataclass(frozen=True)
class Looked:
    """An expression that was undefined: its kind, its last name, and its root.

    `root` and `root_kind` are what its members are read from, empty where that is nothing.
    """

    kind: str
    name: str
    root: str = ""
    root_kind: str = ""


def bindings_of(path: str, source: bytes) -> dict[str, Binding]:
    """Return the imported names of a file."""
    return bindings(_parsed(path, source))


def functions_of(path: str, source: bytes) -> tuple[str, ...]:
    """Return the dotted names of a file's functions."""
    return tuple(dict.fromkeys(functions(_parsed(path, source))))


def function_at(path: str, source: bytes, line: int, column: int | None) -> str:
    """Return the dotted name of the definition around a place, empty if there is none."""
    node = at(_parsed(path, source), line, column)
    return qualname(node) if node is not None else ""


def region_at(path: str, source: bytes, line: int, column: int | None) -> Region | None:
    """Return the test that is defined at a place, None if there is none."""
    return regions.region_of(_parsed(path, source), path, line, column)


def names_at(path: str, source: bytes, line: int, column: int | None) -> frozenset[str]:
    """Return the names in the test that is defined at a place."""
    return regions.names_in(_parsed(path, source), line, column)


def is_bare_at(path: str, source: bytes, line: int, column: int | None) -> bool:
    """Return whether the statement at a place fails unconditionally."""
    node = at(_parsed(path, source), line, column)
    return node is not None and regions.is_bare(node)


def has_markup(path: str, source: bytes) -> bool:
    """Return whether a file contains JSX."""
    return any(node.type.startswith("jsx_") for node in below(_parsed(path, source)))


def error_in(path: str, source: bytes) -> int | None:
    """Return the line of the first syntax error, None if there is none."""
    error = first_error(_parsed(path, source))
    return line_of(error) if error is not None else None


def looked_at(path: str, source: bytes, line: int, name: str, called: bool) -> Looked | None:
    """Return the undefined expression near a line (what is called, or read a property of), None if it is not found."""
    best: Node | None = None
    for node in below(_parsed(path, source)):
        start, end = node.start_point.row + 1, node.end_point.row + 1
        if not start <= line <= end:
            continue
        if called and node.type in {"call_expression", "new_expression"}:
            function = bare(field(node, "function") or field(node, "constructor"))
            if function is not None and _last_name(function) == name:
                best = function
        elif not called and node.type == "member_expression" and field_text(node, "property") == name:
            best = bare(field(node, "object"))
    return _looked(best) if best is not None else None


def _last_name(expression: Node) -> str:
    return field_text(expression, "property") if expression.type == "member_expression" else text(expression)


def _looked(expression: Node) -> Looked:
    if expression.type == "identifier":
        return Looked(expression.type, text(expression))
    if expression.type != "member_expression":
        return Looked(expression.type, "")
    root = bare(field(expression, "object"))
    while root is not None and root.type in {"member_expression", "subscript_expression", "call_expression"}:
        root = bare(field(root, "object") or field(root, "function"))
    wanted = field_text(expression, "property")
    if root is None:
        return Looked(expression.type, wanted)
    return Looked(expression.type, wanted, text(root) if root.type == "identifier" else "", root.type)
