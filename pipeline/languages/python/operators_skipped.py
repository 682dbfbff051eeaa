"""What of a Python file is left alone: types, decorators, texts for people, code that tests do not run."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

_LOGGER: Final = re.compile(r"(?i)_*(?:log|logger|logging|warnings)_*")
_LOGS: Final = frozenset(
    {"debug", "info", "warning", "warn", "error", "exception", "critical", "fatal", "log", "trace", "success"}
)
_TYPES: Final = frozenset({"TypeVar", "TypeVarTuple", "ParamSpec", "NewType", "TypeAliasType"})
_TYPED: Final = frozenset({"Literal", "Annotated", "Optional", "Union", "Callable", "ClassVar", "Final", "Type"})
_WAITS: Final = frozenset({"sleep"})
_WAITING: Final = frozenset({"timeout", "timeout_s", "interval", "delay"})
_ABSTRACT: Final = frozenset({"overload", "abstractmethod"})


def name_of(node: ast.AST | None) -> str:
    """Return the last word of a dotted name, a call of it, or nothing."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case ast.Call(func=called):
            return name_of(called)
        case _:
            return ""


def is_logging(call: ast.expr) -> bool:
    """Return whether an expression only says something to whoever reads the log."""
    match call:
        case ast.Call(func=ast.Attribute(value=owner, attr=name)) if name in _LOGS:
            return _LOGGER.fullmatch(name_of(owner)) is not None
        case _:
            return False


def is_docstring(statement: ast.stmt) -> bool:
    """Return whether a statement is a bare constant, which does nothing."""
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def is_skipped(node: ast.AST) -> bool:
    """Return whether a node is left alone with all that is in it."""
    match node:
        case ast.If(test=test):
            return _is_for_types(test) or _is_main(test)
        case ast.FunctionDef(decorator_list=decorators) | ast.AsyncFunctionDef(decorator_list=decorators):
            return any(name_of(decorator) in _ABSTRACT for decorator in decorators)
        case ast.Call():
            return is_logging(node) or name_of(node) in _TYPES | _WAITS
        case ast.keyword(arg=name):
            return name in _WAITING
        case ast.Subscript(value=value):
            return name_of(value) in _TYPED
        case ast.Assign(targets=targets):
            return all(_is_dunder(target) for target in targets)
        case ast.JoinedStr() | ast.Import() | ast.ImportFrom() | ast.Global() | ast.Nonlocal():
            return True  # the places of what is in an f-string are only right from Python 3.12 on
        case ast.Raise():
            return name_of(node.exc) == "NotImplementedError"
        case ast.Expr(value=value):
            return is_docstring(node) or is_logging(value)
        case _:
            return type(node).__name__ == "TypeAlias"  # from Python 3.12 on


def parts(node: ast.AST) -> Iterator[ast.AST]:
    """Yield what is in a node and may be changed: no annotation, no decorator, no base class, no cast's type."""
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            yield from (default for default in (*node.args.defaults, *node.args.kw_defaults) if default is not None)
            yield from node.body
        case ast.ClassDef():
            yield from node.body
        case ast.Lambda():
            yield from (default for default in (*node.args.defaults, *node.args.kw_defaults) if default is not None)
            yield node.body
        case ast.AnnAssign():
            yield node.target
            yield from (node.value,) if node.value is not None and name_of(node.annotation) != "TypeAlias" else ()
        case ast.Call() if name_of(node) == "cast":
            yield from node.args[1:]
        case ast.ExceptHandler():
            yield from node.body
        case _:
            yield from ast.iter_child_nodes(node)


def _is_for_types(test: ast.expr) -> bool:
    return name_of(test) == "TYPE_CHECKING"


def _is_main(test: ast.expr) -> bool:
    return isinstance(test, ast.Compare) and name_of(test.left) == "__name__"


def _is_dunder(target: ast.expr) -> bool:
    name = target.id if isinstance(target, ast.Name) else ""
    return name.startswith("__") and name.endswith("__")
