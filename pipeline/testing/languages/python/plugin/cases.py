"""Reads the values of a parametrised test, and whether they are written in its file."""

from __future__ import annotations

import ast
import hashlib
from typing import TYPE_CHECKING, Any

from .workspace import SCOPES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .faults import Faults
    from .workspace import Part, Workspace

_CASE_VALUES = 1000
_CASE_LENGTH = 64 * 1024
_NAME_DEPTH = 8
# what makes the same of the same whoever runs it; a set has an order of its own in each process
_STEADY = {
    "abs", "all", "any", "bool", "bytes", "chr", "dict", "divmod", "enumerate", "float", "hex", "int", "len", "list",
    "max", "min", "ord", "pow", "range", "repr", "reversed", "round", "slice", "sorted", "str", "sum", "tuple", "zip",
}  # fmt: skip


class Cases:
    """Hashes the values of parametrised tests: ids need not show them, and other values make another test."""

    def __init__(self, workspace: Workspace, faults: Faults) -> None:
        self._workspace = workspace
        self._portable = faults.portable
        self._written: dict[tuple[int, ...], tuple[Any, set[str]]] = {}
        self._names: dict[str, _Names] = {}

    def of(self, item: Any, parts: list[Part]) -> dict[str, Any] | None:
        """Return the hash of a test's values and whether its file spells them all; None unless they are plain data."""
        callspec = getattr(item, "callspec", None)
        values = {**getattr(callspec, "funcargs", {}), **getattr(callspec, "params", {})}  # pytest 7 had two places
        if not values:
            return None
        budget = [_CASE_VALUES, _CASE_LENGTH]
        try:
            text = "".join(part for name in sorted(values) for part in (name, "=", *self._plain(values[name], budget)))
        except (_NotPlainError, RecursionError):
            return None
        digest = hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()
        return {
            "sha256": digest,
            "written": bool(parts) and self._names_written(parts) >= set(values),
            "around": _around(parts),
        }

    def _plain(self, value: Any, budget: list[int]) -> Iterator[str]:
        """Yield the value as text that is equal only for equal plain data."""
        kind = _kind(value)
        budget[0] -= 1
        inner: list[Any] = []
        if kind is str:
            text = self._portable(value) if len(value) <= _CASE_LENGTH else value
        elif kind is int:
            text = hex(value) if value.bit_length() <= _CASE_LENGTH else "x" * _CASE_LENGTH * 2
        elif kind in (bool, float, bytes, type(None)):
            text = repr(value) if kind is not bytes or len(value) <= _CASE_LENGTH else "x" * _CASE_LENGTH * 2
        elif kind in (tuple, list, dict):
            text = ""
            inner = [part for pair in value.items() for part in pair] if kind is dict else value
        else:
            raise _NotPlainError
        budget[1] -= len(text)
        if min(budget) < 0 or len(inner) > budget[0]:
            raise _NotPlainError
        yield kind.__name__ + ":" + str(len(inner) or len(text)) + ":" + text
        for part in inner:
            yield from self._plain(part, budget)

    def _names_written(self, parts: list[Part]) -> set[str]:
        """Return a test's parameters whose values a decorator gives as literals of its file."""
        key = tuple(id(node) for _, node, _ in parts)
        if key not in self._written:
            for path in {path for path, _, _ in parts} - self._names.keys():
                self._names[path] = _Names(self._workspace.tree(path))
            given = [(path, *_given(each)) for path, node, _ in parts for each in node.decorator_list]
            found = {name for path, names, cases in given if self._names[path].is_written(cases) for name in names}
            self._written[key] = parts, found
        return self._written[key][1]


def _kind(value: object) -> Any:
    """Return the exact class of a value: a derived class may behave differently."""
    return type(value)


class _NotPlainError(Exception):
    """A value is no plain data, or too large."""


def _around(parts: list[Part]) -> str:
    """Return the hash of all that a test is but its table; "" where that may say more than values and ids.

    Its syntax is compared, since the table stands on lines of the test's own.
    """
    if not parts or any(inherits for _, _, inherits in parts):
        return ""
    digest = hashlib.sha256()
    for path, node, _ in parts:
        fixed: list[Any] = [] if node is not parts[-1][1] else [getattr(node, "args", None), *node.body]
        for each in node.decorator_list:
            cases = _given(each)[1]
            if cases is not None and not _is_table(cases):
                return ""
            fixed += [each] if cases is None else _without_cases(each)
        said = (path, type(node).__name__, node.name, *(ast.dump(part) for part in fixed if part is not None))
        digest.update(repr(said).encode("utf-8", "backslashreplace") + b"\0")
    return digest.hexdigest()


def _is_table(cases: ast.expr) -> bool:
    """Return whether an expression is values written out, with ids at the most; a mark changes what a case does."""
    parts = list(ast.walk(cases))
    return (
        all(part.id == "pytest" for part in parts if isinstance(part, ast.Name))
        and all(part.attr == "param" for part in parts if isinstance(part, ast.Attribute))
        and all(part.arg == "id" for part in parts if isinstance(part, ast.keyword))
    )


def _without_cases(decorator: ast.Call) -> list[ast.AST]:
    """Return the parts of a `parametrize` decorator that say what is done with the values."""
    more = [keyword for keyword in decorator.keywords if keyword.arg not in ("argvalues", "ids")]
    return [decorator.func, *decorator.args[:1], *decorator.args[2:], *more]


def _given(decorator: Any) -> tuple[list[str], Any]:
    """Return the names and the expression of the values of a `parametrize` decorator."""
    if not isinstance(decorator, ast.Call) or getattr(decorator.func, "attr", "") != "parametrize":
        return [], None
    given = dict(enumerate(decorator.args))
    named = {keyword.arg: keyword.value for keyword in decorator.keywords}
    names, cases = given.get(0, named.get("argnames")), given.get(1, named.get("argvalues"))
    parts = names.elts if isinstance(names, (ast.Tuple, ast.List)) else [names]
    said = [part.value for part in parts if isinstance(part, ast.Constant) and isinstance(part.value, str)]
    return [name.strip() for text in said for name in text.split(",")], cases


class _Names:
    """Resolves the names of a test file that have constant values. In doubt a value is not constant."""

    def __init__(self, tree: ast.Module | None) -> None:
        self._values: dict[str, ast.expr] = {}
        self._bound: dict[str, int] = {}
        self._touched: set[str] = set()
        for part in ast.walk(tree or ast.Module(body=[], type_ignores=[])):
            for name in _bound(part):
                self._bound[name] = self._bound.get(name, 0) + 1
        for statement in tree.body if tree is not None else ():
            targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
            value = getattr(statement, "value", None)
            if isinstance(statement, (ast.Assign, ast.AnnAssign)) and value is not None and self._is_steady(value):
                self._values.update({each.id: value for each in targets if isinstance(each, ast.Name)})
            elif not isinstance(statement, SCOPES):  # it may change what a name stands for
                self._touched.update(part.id for part in ast.walk(statement) if isinstance(part, ast.Name))

    def is_written(self, value: ast.expr | None, depth: int = _NAME_DEPTH) -> bool:
        """Return whether a value consists of literals, of constant names, and of deterministic functions."""
        if value is None or not depth or not self._is_steady(value):
            return False
        parts = [part for part in ast.walk(value) if isinstance(part, ast.Name)]
        inside = {part.id for part in parts if not isinstance(part.ctx, ast.Load)}
        return all(self._is_known(name, depth) for name in {part.id for part in parts} - inside)

    def _is_known(self, name: str, depth: int) -> bool:
        bound = self._bound.get(name, 0)
        if name == "pytest" or (name in _STEADY and not bound):
            return True
        return bound == 1 and name not in self._touched and self.is_written(self._values.get(name), depth - 1)

    @staticmethod
    def _is_steady(value: ast.expr) -> bool:
        """Return whether an expression calls only deterministic functions; its names are not checked."""
        methods = {id(part.func) for part in ast.walk(value) if isinstance(part, ast.Call)}
        for part in ast.walk(value):
            if isinstance(part, (ast.Set, ast.SetComp, ast.Lambda, ast.Await, ast.Yield, ast.YieldFrom, ast.NamedExpr)):
                return False
            if isinstance(part, ast.Call) and isinstance(part.func, ast.Name) and part.func.id not in _STEADY:
                return False
            if isinstance(part, ast.Call) and not isinstance(part.func, (ast.Name, ast.Attribute)):
                return False
            if isinstance(part, ast.Attribute) and not (_root(part) == "pytest" or _is_method(part, methods)):
                return False
        return True


def _bound(part: ast.AST) -> list[str]:
    """Return the names that a statement or expression binds."""
    if isinstance(part, ast.Name):
        return [] if isinstance(part.ctx, ast.Load) else [part.id]
    if isinstance(part, (ast.Import, ast.ImportFrom)):
        return [alias.asname or alias.name.partition(".")[0] for alias in part.names]
    return [part.name] if isinstance(part, SCOPES) else []


def _root(part: ast.expr) -> str:
    while isinstance(part, ast.Attribute):
        part = part.value
    return part.id if isinstance(part, ast.Name) else ""


def _is_method(part: ast.Attribute, called: set[int]) -> bool:
    """Return whether a method of a literal is called: `'a b'.split()`."""
    return id(part) in called and isinstance(part.value, (ast.Constant, ast.JoinedStr))
