"""Reads what Python sources define, for `sources.stubs`; a stub is `raise NotImplementedError`."""

from __future__ import annotations

import ast
import re
from dataclasses import replace
from itertools import accumulate
from typing import TYPE_CHECKING, Final

from pipeline.testing.languages.sources.stubs import Content, Definition, Edit, Parts, Rules

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


_STUB: Final = "raise NotImplementedError"
_Function = ast.FunctionDef | ast.AsyncFunctionDef
_TYPING: Final = frozenset({"TypeVar", "ParamSpec", "TypeVarTuple", "NewType", "namedtuple", "NamedTuple", "TypedDict"})
_MAKES_FIELDS: Final = frozenset({"field", "Field", "auto", *_TYPING})
"""Calls that only declare a type or a field, without behaviour."""
_COMPUTES: Final = (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.IfExp, ast.Await)
_EXPORTS: Final = "__all__"


def _read(_: str, source: str) -> Content:
    try:
        module = ast.parse(source)
    except SyntaxError as error:
        return Content(error=f"cannot be parsed: {error.msg}", error_line=error.lineno or 0)
    except ValueError as error:
        return Content(error=f"cannot be parsed: {error}")
    starts = [0, *accumulate(map(len, source.encode().splitlines(keepends=True)))]
    return Content([*_definitions(module.body, (), starts)], [*_others(module.body)])


_RAISED: Final = r"Name\(id='NotImplementedError'(?:, ctx=Load\(\))?\)"
_EMPTY: Final = r"(?:, args=\[\], keywords=\[\])?"
RULES: Final = Rules(
    _read,
    _STUB,
    re.compile(rf"Raise\(exc=(?:{_RAISED}|Call\(func={_RAISED}{_EMPTY}\))\)"),
    body=_STUB,
    with_members=False,
)


def _definitions(body: Sequence[ast.stmt], above: Parts, starts: Sequence[int]) -> Iterator[Definition]:
    """Yield the definitions of a scope, those below `if`, `try` and `with` included: these run when it is loaded."""
    for node in body:
        for name in _names(node):
            place = (*above, name)
            dotted = ".".join(place) if above or not name.startswith("__") else ""
            if isinstance(node, _Function):
                span = _start(node.body[0], starts), _end(node.body[-1], starts)
                yield Definition(place, node.lineno, _signature(node), _body(node), name=dotted, span=span)
                own = (".".join((*above, one)) for one in (_set_on_self(node) if above else ()))
                yield from (Definition(tuple(one.split(".")), node.lineno, None, name=one) for one in own)
            elif isinstance(node, ast.ClassDef):
                parts = (*node.bases, *node.keywords, *node.decorator_list)
                edits = () if any("__init__" in _names(one) for one in node.body) else (_without_init(node, starts),)
                yield Definition(place, node.lineno, " ".join(map(ast.dump, parts)), name=dotted, edits=edits)
                yield from _definitions(node.body, place, starts)
            elif isinstance(node, ast.Assign | ast.AnnAssign) and name != _EXPORTS:
                value = node.value
                fault = "" if value is None or _is_written_down(value) else "gives {name} a value that is computed"
                edits = () if value is None else ((_start(value, starts), _end(value, starts), "NotImplemented"),)
                yield Definition(place, node.lineno, ast.unparse(node), fault=fault, name=dotted, edits=edits)
        if isinstance(node, ast.If | ast.Try | ast.With):
            blocks = [node, *(node.handlers if isinstance(node, ast.Try) else ())]
            inner = [one for block in blocks for one in ast.iter_child_nodes(block) if isinstance(one, ast.stmt)]
            yield from (replace(one, head=None) for one in _definitions(inner, above, starts))


def _others(body: Sequence[ast.stmt]) -> Iterator[tuple[str, int]]:
    """Yield the statements that run when a file is loaded, those in its classes included."""
    for node in body:
        if isinstance(node, ast.ClassDef):
            yield from _others(node.body)
        elif _is_run(node):
            yield ast.unparse(node), node.lineno


def _names(node: ast.stmt) -> tuple[str, ...]:
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return (name,)
        case ast.Assign(targets=targets):
            return tuple(target.id for target in targets if isinstance(target, ast.Name))
        case ast.AnnAssign(target=ast.Name(id=name)):
            return (name,)
        case _:
            return ()


def _is_run(node: ast.stmt) -> bool:
    """Return whether a statement does something at import; definitions, imports, strings and `pass` do not."""
    match node:
        case ast.Import() | ast.ImportFrom() | ast.Pass() | ast.Expr(value=ast.Constant()):
            return False
        case ast.If(test=ast.Name(id="TYPE_CHECKING") | ast.Attribute(attr="TYPE_CHECKING"), body=body, orelse=[]):
            return any(map(_is_run, body))
        case _:
            return not _names(node)


def _signature(node: _Function) -> str:
    parts = (*node.decorator_list, node.args, *([node.returns] if node.returns is not None else []))
    return " ".join((type(node).__name__, *map(ast.dump, parts)))


def _body(node: _Function) -> str:
    """Return the statements of a function without its docstring; `ast.dump` can nest deeper than `ast.unparse`."""
    match node.body:
        case [ast.Expr(value=ast.Constant(value=str())), *rest]:
            return "\n".join(map(ast.dump, rest))
        case statements:
            return "\n".join(map(ast.dump, statements))


def _is_written_down(value: ast.expr) -> bool:
    """Return whether a value is written down and not computed: literals, names, types, declarations."""
    parts = list(ast.walk(value))
    calls = (part.func for part in parts if isinstance(part, ast.Call))
    names = {one.attr if isinstance(one, ast.Attribute) else getattr(one, "id", "") for one in calls}
    return not any(isinstance(part, _COMPUTES) for part in parts) and names <= _MAKES_FIELDS


def _set_on_self(method: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[str]:
    first = next(iter((*method.args.posonlyargs, *method.args.args)), None)
    for node in ast.walk(method):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and isinstance(node.value, ast.Name):
            yield from (node.attr,) if first is not None and node.value.id == first.arg else ()


def _without_init(node: ast.ClassDef, starts: Sequence[int]) -> Edit:
    """Return the edit that inserts a raising `__init__` as the first statement of a class."""
    first = node.body[0]
    at = _start(first, starts)
    if first.lineno == node.lineno:  # `class A: pass`
        return at, at, "__init__ = None; "
    indent = " " * first.col_offset
    return at, at, f"def __init__(self, *_args, **_kwargs):\n{indent}    {_STUB}\n{indent}"


def _start(node: ast.stmt | ast.expr, starts: Sequence[int]) -> int:
    """Return where a node begins, including its decorators, which `lineno` leaves out."""
    decorators = node.decorator_list if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) else []
    line = min([node.lineno, *(decorator.lineno for decorator in decorators)])
    return starts[line - 1] + node.col_offset


def _end(node: ast.stmt | ast.expr, starts: Sequence[int]) -> int:
    return starts[(node.end_lineno or node.lineno) - 1] + (node.end_col_offset or 0)
