"""Reads Python sources to judge stub passes (see `sources.stub_pass`)."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING, Final

from pipeline.languages.sources import stub_pass
from pipeline.languages.sources.stub_pass import Content, Definition, Rules

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pipeline.evidence.red_classes import Symbol
    from pipeline.languages.named_definitions import Parts
    from pipeline.languages.sources.stubs import StubFault

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_TYPING: Final = frozenset({"TypeVar", "ParamSpec", "TypeVarTuple", "NewType", "namedtuple", "NamedTuple", "TypedDict"})
_MAKES_FIELDS: Final = frozenset({"field", "Field", "auto", *_TYPING})
"""Calls that only declare a type or a field, without behaviour."""
_COMPUTES: Final = (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.IfExp, ast.Await)
_EXPORTS: Final = "__all__"


def stub_faults(
    before: Mapping[str, str], after: Mapping[str, str], symbols: Sequence[Symbol]
) -> tuple[StubFault, ...]:
    """Return the changes that are no stubs; see `protocol.Toolchain.stub_faults`."""
    return stub_pass.stub_faults(_RULES, before, after, symbols)


def _read(path: str, source: str) -> Content:  # noqa: ARG001  (all languages are asked alike)
    try:
        module = ast.parse(source)
    except SyntaxError as error:
        return Content(error=f"cannot be parsed: {error.msg}", error_line=error.lineno or 0)
    except ValueError as error:
        return Content(error=f"cannot be parsed: {error}")
    return Content([*_definitions(module.body, ())], [*_others(module.body)])


_RAISED: Final = r"Name\(id='NotImplementedError'(?:, ctx=Load\(\))?\)"
_EMPTY: Final = r"(?:, args=\[\], keywords=\[\])?"
_RULES: Final = Rules(
    _read,
    "raise NotImplementedError",
    re.compile(rf"Raise\(exc=(?:{_RAISED}|Call\(func={_RAISED}{_EMPTY}\))\)"),
)


def _definitions(body: Sequence[ast.stmt], above: Parts) -> Iterator[Definition]:
    for node in body:
        for name in _names(node):
            place = (*above, name)
            if isinstance(node, _Function):
                yield Definition(place, node.lineno, _signature(node), _body(node))
            elif isinstance(node, ast.ClassDef):
                parts = (*node.bases, *node.keywords, *node.decorator_list)
                yield Definition(place, node.lineno, " ".join(map(ast.dump, parts)))
                yield from _definitions(node.body, place)
            elif isinstance(node, ast.Assign | ast.AnnAssign) and name != _EXPORTS:
                is_computed = node.value is not None and not _is_written_down(node.value)
                fault = "gives {name} a value that is computed" if is_computed else ""
                yield Definition(place, node.lineno, ast.unparse(node), fault=fault)


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
