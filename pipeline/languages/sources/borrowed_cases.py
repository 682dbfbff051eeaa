"""Tests whose cases are written in another module: whoever may change that one decides what is tested.

Ids pin a case only as far as they show its values. Where cases are objects, or have names of their own, others could
stand under the same ids at GREEN; so it is told where they come from. Python is read here, each other language by a
module of its own, which is loaded only where a file of that language is judged. Nothing here performs I/O.
"""

from __future__ import annotations

import ast
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pipeline.languages.python.checks_of_tests import tests_in
from pipeline.languages.sources.weakening import MAX_BYTES, SCRIPTS

if TYPE_CHECKING:
    from collections.abc import Iterator

SHOWN: Final = 60


@dataclass(frozen=True)
class Borrowed:
    """A test, the source of its cases, the modules that names in it come from, and the line."""

    test: str
    cases: str
    modules: tuple[str, ...]
    line: int


def borrowed_in(path: str, source: bytes) -> tuple[Borrowed, ...]:
    """Return the same for a file of any language that is read; none where its language is not."""
    if path.endswith(".py"):
        return borrowed_cases(source)
    if len(source) > MAX_BYTES:
        return ()
    if path.endswith(".go"):
        from pipeline.languages.go import borrowed_cases as borrowed_go  # noqa: PLC0415  (a parser is a shared library)

        return tuple(borrowed_go.read(source, path))
    if path.endswith(SCRIPTS):
        from pipeline.languages.javascript import borrowed_cases as borrowed_javascript  # noqa: PLC0415

        return tuple(borrowed_javascript.read(source, path))
    return ()


def borrowed_cases(source: bytes) -> tuple[Borrowed, ...]:
    """Return the tests of a source whose cases are made of what it imports; none if it cannot be parsed."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an invalid escape in somebody's string
            module = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ()
    names = _Names(module)
    return tuple(found for name, test in tests_in(module).items() for found in names.borrowed(name, test.node))


class _Names:
    """What the names of a module stand for: imported ones for modules, assigned ones for their value."""

    def __init__(self, module: ast.Module) -> None:
        self._imported: dict[str, tuple[str, ...]] = {}
        self._made: dict[str, ast.expr] = {}
        for node in ast.walk(module):
            match node:
                case ast.Import(names=names):
                    self._imported |= {(n.asname or n.name.partition(".")[0]): (n.name,) for n in names}
                case ast.ImportFrom(module=str(origin), names=names):
                    self._imported |= {(n.asname or n.name): (origin, f"{origin}.{n.name}") for n in names}
                case ast.Assign(targets=[ast.Name(id=name)], value=value):
                    self._made[name] = value
                case _:
                    pass

    def borrowed(self, name: str, function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[Borrowed]:
        for decorator in function.decorator_list:
            match decorator:
                case ast.Call(func=ast.Attribute(attr="parametrize"), args=[_, cases, *_]):
                    modules = sorted(set(self._modules(cases)))
                    if modules:
                        yield Borrowed(name, ast.unparse(cases)[:SHOWN], tuple(modules), cases.lineno)
                case _:
                    pass

    def _modules(self, value: ast.expr) -> Iterator[str]:
        """Yield the modules that the parts of a value come from; what a case expects of a call is none of its own."""
        pending, seen = [value], set[str]()
        while pending:
            for node in _outside_cases(pending.pop()):
                if isinstance(node, ast.Name) and node.id in self._imported:
                    yield from self._imported[node.id]
                elif isinstance(node, ast.Name) and node.id in self._made and node.id not in seen:
                    seen.add(node.id)  # each name is looked up once
                    pending.append(self._made[node.id])


def _outside_cases(value: ast.expr) -> Iterator[ast.AST]:
    """Yield the parts of a list of cases but those of cases that are written down: there every value can be read."""
    if isinstance(value, ast.List | ast.Tuple | ast.Set):
        starred = (node.value for node in value.elts if isinstance(node, ast.Starred))
        yield from (part for node in starred for part in ast.walk(node))
    else:
        yield from ast.walk(value)
