"""The cases of a Python test, where they are written down: in a loop's list, in `parametrize`, in a named table."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Final, TypeVar

from pipeline.languages.python.asserts import name_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

Names = dict[str, ast.expr]
"""What names stand for."""

Node = TypeVar("Node", bound=ast.AST)

MOST: Final = 100
"""So many cases are read of one assertion; of more it is only known how many they are."""

_AS_THEY_ARE: Final = frozenset({"list", "tuple", "set", "sorted", "reversed", "iter", "frozenset", "product"})
_RANGE: Final = 10_000


def elements(value: ast.expr | None, tables: Mapping[str, ast.expr], depth: int = 3) -> list[ast.expr] | None:
    """Return the values of a list, tuple, set, or (its keys) dictionary; None where they are not written down.

    Args:
        value: The expression that is gone through.
        tables: Expressions that have a name.
        depth: How often a name is followed.
    """
    match value:
        case ast.List(elts=found) | ast.Tuple(elts=found) | ast.Set(elts=found):
            return _spread(found, tables, depth)
        case ast.Dict(keys=keys) if all(key is not None for key in keys):
            return [key for key in keys if key is not None]
        case ast.Name(id=name) if depth and name in tables:
            return elements(tables[name], tables, depth - 1)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            one, other = elements(left, tables, depth), elements(right, tables, depth)
            return [*one, *other] if one is not None and other is not None else None
        case ast.Call():
            return _called(value, tables, depth)
        case _:
            return None


def entries(value: ast.expr) -> list[ast.expr] | None:
    """Return the entries of a table, those of a dictionary as pairs; None for what is no table."""
    if isinstance(value, ast.Dict):
        return [_pair(key or ast.Constant(value=...), kept) for key, kept in zip(value.keys, value.values, strict=True)]
    return elements(value, {})


def bound(target: ast.expr, value: ast.expr) -> Names | None:
    """Return what each name of a target is in one case; None if the case does not have that form."""
    match target:
        case ast.Name(id=name):
            return {name: value}
        case ast.Tuple(elts=names) | ast.List(elts=names):
            return _each(names, value)
        case _:
            return None


def parametrized(decorators: Iterable[ast.expr], tables: Mapping[str, ast.expr]) -> list[Names] | None:
    """Return what the parameters are in each case; None where that is not written down, a single {} without any."""
    cases: list[Names] = [{}]
    for decorator in decorators:
        if not isinstance(decorator, ast.Call) or name_of(decorator.func) != "parametrize":
            continue
        given = dict(zip(("argnames", "argvalues"), decorator.args, strict=False))
        given |= {keyword.arg: keyword.value for keyword in decorator.keywords if keyword.arg is not None}
        target = _target(given.get("argnames"))
        values = elements(given.get("argvalues"), tables)
        if target is None or values is None or len(cases) * len(values) > MOST:
            return None
        found = [bound(target, _param(value, target)) for value in values]
        cases = [{**case, **one} for case in cases for one in found if one is not None]
        if any(one is None for one in found):
            return None
    return cases


def with_names(node: Node, names: Mapping[str, ast.expr]) -> Node:
    """Return a copy with names written as what they stand for; what these are is shared, not copied."""

    def visit(part: object) -> object:
        if isinstance(part, list):
            parts: list[object] = part  # pyright: ignore[reportUnknownVariableType]  isinstance cannot narrow type arguments
            return [visit(one) for one in parts]
        if not isinstance(part, ast.AST) or isinstance(part, ast.expr_context | ast.operator | ast.cmpop | ast.unaryop):
            return part
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load) and part.id in names:
            return names[part.id]
        made = type(part).__new__(type(part))
        inside: dict[str, object] = part.__dict__
        for field, value in inside.items():
            setattr(made, field, visit(value))
        return made

    return visit(node)  # pyright: ignore[reportReturnType]  of its own kind, or an expression for a name


def copied(node: Node) -> Node:
    """Return a copy of a syntax tree; `copy.deepcopy` takes ten times as long."""
    return with_names(node, {})


def _spread(found: Sequence[ast.expr], tables: Mapping[str, ast.expr], depth: int) -> list[ast.expr] | None:
    spread: list[ast.expr] = []
    for one in found:
        if isinstance(one, ast.Starred):
            inside = elements(one.value, tables, depth)
            spread += [one] if inside is None else inside
        else:
            spread.append(one)
    return spread


def _called(call: ast.Call, tables: Mapping[str, ast.expr], depth: int) -> list[ast.expr] | None:
    match call:
        case ast.Call(func=ast.Name(id=name), args=[inside]) if name in _AS_THEY_ARE:
            return elements(inside, tables, depth)
        case ast.Call(func=ast.Name(id="enumerate"), args=[inside, *_]):
            found = elements(inside, tables, depth)
            return [_pair(ast.Constant(value=at), one) for at, one in enumerate(found)] if found is not None else None
        case ast.Call(func=ast.Name(id="zip"), args=[_, *_] as lists):
            columns = [elements(inside, tables, depth) for inside in lists]
            known = [column for column in columns if column is not None]
            rows = zip(*known, strict=False)
            return [_pair(*row) for row in rows] if len(known) == len(columns) else None
        case ast.Call(func=ast.Name(id="range"), args=[ast.Constant(value=int() as end)]) if 0 <= end <= _RANGE:
            return [ast.Constant(value=at) for at in range(end)]
        case ast.Call(func=ast.Attribute(value=inside, attr="items" | "values" | "keys" as part), args=[]):
            table = tables.get(inside.id) if isinstance(inside, ast.Name) else inside
            return _part(table, part) if isinstance(table, ast.Dict) else None
        case _:
            return None


def _part(table: ast.Dict, part: str) -> list[ast.expr] | None:
    pairs = [(key, value) for key, value in zip(table.keys, table.values, strict=True) if key is not None]
    if len(pairs) != len(table.keys):
        return None
    if part == "items":
        return [_pair(key, value) for key, value in pairs]
    return [key if part == "keys" else value for key, value in pairs]


def _pair(*parts: ast.expr) -> ast.Tuple:
    return ast.Tuple(elts=list(parts), ctx=ast.Load())


def _each(names: Sequence[ast.expr], value: ast.expr) -> Names | None:
    if not isinstance(value, ast.Tuple | ast.List) or len(value.elts) != len(names):
        return None
    found: Names = {}
    for name, part in zip(names, value.elts, strict=True):
        inside = bound(name, part)
        if inside is None:
            return None
        found |= inside
    return found


def _target(names: ast.expr | None) -> ast.expr | None:
    match names:
        case ast.Constant(value=str() as text):
            words = [word.strip() for word in text.split(",") if word.strip()]
            one = len(words) == 1 and "," not in text
            found: list[ast.expr] = [ast.Name(id=word, ctx=ast.Store()) for word in words]
            return found[0] if one else ast.Tuple(elts=found, ctx=ast.Store())
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            words = [part.value for part in parts if isinstance(part, ast.Constant) and isinstance(part.value, str)]
            listed: list[ast.expr] = [ast.Name(id=word, ctx=ast.Store()) for word in words]
            return ast.Tuple(elts=listed, ctx=ast.Store()) if len(words) == len(parts) else None
        case _:
            return None


def _param(value: ast.expr, target: ast.expr) -> ast.expr:
    """Return the values of `pytest.param`, its marks and its id left out."""
    if not isinstance(value, ast.Call) or name_of(value.func) != "param":
        return value
    return value.args[0] if isinstance(target, ast.Name) and value.args else _pair(*value.args)
