"""Finds definitions and imports in syntax trees."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    Part = tuple[str, Any, bool]  # a file, a class or function in it, and whether that class inherits the test

SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def first_line(node: Any) -> int:
    """Return the first line of a definition, decorators included."""
    return min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])


def nested(scope: ast.AST, names: list[str]) -> list[ast.AST]:
    """Return the definitions of nested names, each inside the one before; [] if one is missing."""
    found: list[ast.AST] = []
    for name in names:
        inner = _defined(found[-1] if found else scope, name)
        if inner is None:
            return []
        found.append(inner)
    return found


def _defined(scope: ast.AST, name: str) -> ast.AST | None:
    """Return the last definition of a name directly in a scope, looking into `if`, `try` and `with`."""
    found: ast.AST | None = None
    pending: list[ast.AST] = list(getattr(scope, "body", []))
    while pending:
        node = pending.pop(0)
        if isinstance(node, SCOPES):
            found = node if node.name == name else found
        elif isinstance(node, (ast.If, ast.Try, ast.With)):
            pending[:0] = [child for child in ast.iter_child_nodes(node) if isinstance(child, ast.stmt)]
    return found


_BY_NAME = {"import_module", "find_spec", "__import__", "importorskip", "run_module"}


def imports(node: ast.AST, package: str) -> Iterator[tuple[str, str]]:
    """Yield (local name, module) for an import statement, the imported name also as a possible submodule.

    A call that imports or looks for the module of a name that stands there is one, too: it has no local name.
    """
    if isinstance(node, ast.Call):
        called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        first = getattr(node.args[0], "value", None) if node.args else None
        if called in _BY_NAME and isinstance(first, str):
            yield "", first
    if isinstance(node, ast.Import):
        for alias in node.names:
            yield alias.asname or alias.name.partition(".")[0], alias.name
    elif isinstance(node, ast.ImportFrom):
        base = package.rsplit(".", node.level - 1)[0] if node.level and package else ""
        module = ".".join(filter(None, (base, node.module or "")))
        for alias in node.names:
            yield alias.asname or alias.name, module
            yield alias.asname or alias.name, module + "." + alias.name
