"""Python: the changes that its syntax tree allows, made in the bytes of the file."""

from __future__ import annotations

import ast
import warnings
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pipeline.languages.python.operators_expressions import expression
from pipeline.languages.python.operators_skipped import is_skipped, parts
from pipeline.languages.python.operators_statements import arguments, is_text_for_people, statement, stored
from pipeline.languages.python.operators_text import Text, readable
from pipeline.languages.sources.faults.mutant import Mutant, Rank, apart

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from pipeline.languages.sources.faults.mutant import Edit


def candidates(path: str, source: bytes, lines: Collection[int]) -> Iterator[Mutant]:
    """Yield the changes that may be made on these lines."""
    module = _parsed(source)
    if module is None or not readable(source):
        return
    walk = _Walk(path, Text(source), lines)
    for node in module.body:
        yield from walk.below(node, _Scope())


def form(path: str, source: bytes) -> str | None:  # noqa: ARG001  (all languages are asked alike)
    """Return the syntax tree as text; None where there is none."""
    module = _parsed(source)
    return ast.dump(module) if module is not None else None


def _parsed(source: bytes) -> ast.Module | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about the code of somebody else
        try:
            return ast.parse(source)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None


@dataclass
class _Scope:
    """What a node lies in: the dotted name, the names that have a value, whether texts are messages."""

    name: str = ""
    known: set[str] = field(default_factory=set[str])
    messages: bool = False


@dataclass(frozen=True)
class _Walk:
    path: str
    text: Text
    lines: Collection[int]

    def below(self, node: ast.AST, scope: _Scope) -> Iterator[Mutant]:
        """Yield the changes of a node and of all that is in it."""
        if is_skipped(node):
            return
        match node:
            case ast.stmt():
                yield from self._made(statement(node, self.text, scope.known), scope)
                scope.known.update(stored(node))
            case ast.expr():
                yield from self._made(expression(node, self.text), scope)
            case _:
                pass
        inner = _inside(node, scope)
        for part in parts(node):
            yield from self.below(part, inner)

    def _made(self, edits: Iterator[Edit], scope: _Scope) -> Iterator[Mutant]:
        for edit in edits:
            line = next((line for line in range(edit.first, edit.last + 1) if line in self.lines), None)
            if line is None or (scope.messages and edit.rank is Rank.TEXT):
                continue
            replacement = apart(self.text.source, edit.start, edit.end, edit.replacement)
            yield Mutant(self.path, line, edit.what, edit.start, edit.end, replacement, scope.name, edit.rank)


def _inside(node: ast.AST, scope: _Scope) -> _Scope:
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            return _Scope(_dotted(scope.name, name), set(arguments(node)))
        case ast.ClassDef(name=name):
            return _Scope(_dotted(scope.name, name))
        case ast.stmt() if is_text_for_people(node):
            return _Scope(scope.name, scope.known, messages=True)
        case _:
            return scope


def _dotted(above: str, name: str) -> str:
    return f"{above}.{name}" if above else name
