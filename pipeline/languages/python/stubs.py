"""Replaces the bodies of named symbols by `raise NotImplementedError` (see `sources.stubs`)."""

from __future__ import annotations

import ast
import re
from itertools import accumulate
from typing import TYPE_CHECKING, Final

from pipeline.languages.sources import stubs
from pipeline.languages.sources.stubs import Content, Definition, OldBodies, Rules, Target

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pipeline.evidence.red_classes import Symbol
    from pipeline.languages.named_definitions import Parts
    from pipeline.languages.sources.stubs import Edit, Stubbed, StubFault


_STUB: Final = "raise NotImplementedError"


def stub_symbols(files: Mapping[str, str], symbols: Sequence[Symbol]) -> Stubbed:
    """Return the files with stubs, and the symbols that no file defines.

    A function loses its body; a class those of all its methods, and gets a raising `__init__` if it has none; a module
    variable gets the value `NotImplemented`. A symbol without a path is looked for in every file.
    """
    return stubs.stubbed(files, symbols, lambda symbol: _targets(files, symbol))


def introduced(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[Symbol, ...]:
    """Return the names that the modules newly define at their top level, without dunder names, and in their classes.

    A member is among them where its class was there before; what a new class has comes with it.
    """
    found = stubs.introduced(before, after, lambda _, source: _defined(source))
    new = {(symbol.path, symbol.name) for symbol in found}
    return tuple(one for one in found if (one.path, one.name.rpartition(".")[0]) not in new)


def with_old_bodies(before: Mapping[str, str], after: Mapping[str, str], kept: bool) -> OldBodies:
    """Return nothing: over code that lacks a name the tests of other files can be loaded, and one is told apart."""
    del before, after, kept
    return OldBodies({}, ())


def _parsed(source: str) -> list[ast.stmt]:
    try:
        return ast.parse(source).body
    except (SyntaxError, ValueError):
        return []


def _defined(source: str) -> Iterator[str]:
    for node in _flat(_parsed(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield from () if node.name.startswith("__") else (node.name,)
            yield from _members(node) if isinstance(node, ast.ClassDef) else ()
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            yield from (name for name in _targets_of(node) if not name.startswith("__"))


def _members(node: ast.ClassDef) -> Iterator[str]:
    """Yield what a class has, with its name before it: methods, variables, and what its methods set on the object."""
    for one in _flat(node.body):
        if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef):
            yield f"{node.name}.{one.name}"
            yield from (f"{node.name}.{name}" for name in _set_on_self(one))
        elif isinstance(one, ast.Assign | ast.AnnAssign):
            yield from (f"{node.name}.{name}" for name in _targets_of(one))


def _set_on_self(method: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[str]:
    first = next(iter((*method.args.posonlyargs, *method.args.args)), None)
    for node in ast.walk(method):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and isinstance(node.value, ast.Name):
            yield from (node.attr,) if first is not None and node.value.id == first.arg else ()


def _targets(files: Mapping[str, str], symbol: Symbol) -> Iterator[Target]:
    for path, source in files.items():
        nodes = list(_named(_parsed(source), symbol.name.split("."))) if symbol.path in {"", path} else []
        starts = [0, *accumulate(map(len, source.encode().splitlines(keepends=True)))] if nodes else []
        yield from (Target(path, _stub(node, starts)) for node in nodes)


def _named(body: Sequence[ast.stmt], parts: Sequence[str]) -> Iterator[ast.stmt]:
    for node in _flat(body):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            if node.name == parts[0]:
                yield from [node] if len(parts) == 1 else _named(node.body, parts[1:])
        elif isinstance(node, ast.Assign | ast.AnnAssign) and len(parts) == 1 and parts[0] in _targets_of(node):
            yield node


def _targets_of(node: ast.Assign | ast.AnnAssign) -> tuple[str, ...]:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    return tuple(target.id for target in targets if isinstance(target, ast.Name))


def _flat(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements of a scope, those below if, try and with included."""
    for node in body:
        yield node
        if isinstance(node, ast.If | ast.Try | ast.With):
            inner = [child for child in ast.iter_child_nodes(node) if isinstance(child, ast.stmt)]
            handlers = node.handlers if isinstance(node, ast.Try) else []
            yield from _flat([*inner, *(child for handler in handlers for child in handler.body)])


def _stub(node: ast.stmt, starts: Sequence[int]) -> Iterator[Edit]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        yield _span(node.body[0], node.body[-1], starts, _STUB)
    elif isinstance(node, ast.ClassDef):
        methods = [child for child in node.body if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef)]
        for method in methods:
            yield from _stub(method, starts)
        if not any(method.name == "__init__" for method in methods):
            yield _without_init(node, starts)
    elif isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
        yield _span(node.value, node.value, starts, "NotImplemented")


def _without_init(node: ast.ClassDef, starts: Sequence[int]) -> Edit:
    """Return the edit that inserts a raising `__init__` as the first statement of a class."""
    first = node.body[0]
    at = _start(first, starts)
    if first.lineno == node.lineno:  # `class A: pass`
        return at, at, "__init__ = None; "
    indent = " " * first.col_offset
    return at, at, f"def __init__(self, *_args, **_kwargs):\n{indent}    {_STUB}\n{indent}"


def _span(first: ast.stmt | ast.expr, last: ast.stmt | ast.expr, starts: Sequence[int], text: str) -> Edit:
    return _start(first, starts), starts[(last.end_lineno or last.lineno) - 1] + (last.end_col_offset or 0), text


def _start(node: ast.stmt | ast.expr, starts: Sequence[int]) -> int:
    """Return where a node begins, including its decorators, which `lineno` leaves out."""
    decorators = node.decorator_list if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) else []
    line = min([node.lineno, *(decorator.lineno for decorator in decorators)])
    return starts[line - 1] + node.col_offset


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
    return stubs.stub_faults(_RULES, before, after, symbols)


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
