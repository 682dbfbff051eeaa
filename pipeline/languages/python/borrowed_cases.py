"""Python tests whose parametrised cases are made of what their file imports."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from pipeline.languages.python.weakening import parsed, tests_in
from pipeline.languages.sources.borrowed_cases import SHOWN, Borrowed

if TYPE_CHECKING:
    from collections.abc import Iterator


def read(source: bytes, path: str) -> tuple[Borrowed, ...]:  # noqa: ARG001  (of every language)
    """Return the tests of a source whose cases are made of what it imports; none if it cannot be parsed."""
    module = parsed(source)
    if module is None:
        return ()
    names = _Names(module)
    return tuple(found for name, node in tests_in(module).items() for found in names.borrowed(name, node))


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
