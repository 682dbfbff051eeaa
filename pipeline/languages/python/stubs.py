"""Replaces the bodies of named symbols by `raise NotImplementedError`, leaving every other byte of a file alone.

A test in a new file may be RED because its import fails, which says nothing about its assertions. After GREEN the
task's symbols are stubbed with this, and every such test must fail then (matrix 5).
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Final

from pipeline.evidence.red_classes import Symbol
from pipeline.languages.protocol import Stubbed

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_STUB: Final = "raise NotImplementedError"


def stub_symbols(files: Mapping[str, str], symbols: Sequence[Symbol]) -> Stubbed:
    """Return the files that change, and the symbols that no file defines.

    A function loses its body; a class those of all its methods, and gets a raising `__init__` if it has none; a module
    variable gets the value `NotImplemented`. A symbol without a path is looked for in every file.
    """
    changed: dict[str, str] = {}
    unknown: list[Symbol] = []
    for path, source in files.items():
        wanted = [symbol.name for symbol in symbols if symbol.path in ("", path)]
        edited = _stub_file(source, wanted)
        if edited != source:
            changed[path] = edited
    for symbol in symbols:
        places = [files[symbol.path]] if symbol.path in files else [] if symbol.path else list(files.values())
        if not any(True for source in places for _ in _edits(source, symbol.name)):
            unknown.append(symbol)
    return Stubbed(changed, tuple(unknown))


def introduced(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[Symbol, ...]:
    """Return what the modules define at their top level that they did not define before; no dunder names."""
    found: list[Symbol] = []
    for path, source in after.items():
        known = set(_defined(before.get(path, "")))
        names = dict.fromkeys(name for name in _defined(source) if name not in known and not name.startswith("__"))
        found += [Symbol(path, name) for name in names]
    return tuple(found)


def _defined(source: str) -> Iterator[str]:
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return
    for node in _flat(tree.body):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            yield from _targets(node)


def _stub_file(source: str, names: Sequence[str]) -> str:
    encoded = source.encode()
    edits = {edit for name in names for edit in _edits(source, name)}
    outermost = [one for one in edits if not any(_inside(one, other) for other in edits)]
    for start, end, text in sorted(outermost, reverse=True):
        encoded = encoded[:start] + text.encode() + encoded[end:]
    return encoded.decode()


def _inside(one: tuple[int, int, str], other: tuple[int, int, str]) -> bool:
    return one != other and other[0] <= one[0] and one[1] <= other[1]


def _edits(source: str, name: str) -> Iterator[tuple[int, int, str]]:
    """Yield (start, end, replacement) in bytes for a dotted name."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return
    starts = [0]
    for line in source.encode().splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    for node in _named(tree.body, name.split(".")):
        yield from _stub(node, starts)


def _named(body: Sequence[ast.stmt], parts: Sequence[str]) -> Iterator[ast.stmt]:
    for node in _flat(body):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            if node.name == parts[0]:
                yield from [node] if len(parts) == 1 else _named(node.body, parts[1:])
        elif isinstance(node, ast.Assign | ast.AnnAssign) and len(parts) == 1 and parts[0] in _targets(node):
            yield node


def _targets(node: ast.Assign | ast.AnnAssign) -> tuple[str, ...]:
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


def _stub(node: ast.stmt, starts: Sequence[int]) -> Iterator[tuple[int, int, str]]:
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


def _without_init(node: ast.ClassDef, starts: Sequence[int]) -> tuple[int, int, str]:
    """Return the insertion of a raising `__init__` as the first statement of a class."""
    first = node.body[0]
    at = _start(first, starts)
    if first.lineno == node.lineno:  # `class A: pass`
        return at, at, "__init__ = None; "
    indent = " " * first.col_offset
    return at, at, f"def __init__(self, *_args, **_kwargs):\n{indent}    {_STUB}\n{indent}"


def _span(
    first: ast.stmt | ast.expr, last: ast.stmt | ast.expr, starts: Sequence[int], text: str
) -> tuple[int, int, str]:
    return _start(first, starts), starts[(last.end_lineno or last.lineno) - 1] + (last.end_col_offset or 0), text


def _start(node: ast.stmt | ast.expr, starts: Sequence[int]) -> int:
    """Return where the node begins, its decorators included, which `lineno` leaves out."""
    decorators = node.decorator_list if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) else []
    line = min([node.lineno, *(decorator.lineno for decorator in decorators)])
    return starts[line - 1] + node.col_offset
