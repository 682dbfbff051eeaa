"""What the set-up of Python tests does and gives, one thing each: a fixture, a `setUp`."""

from __future__ import annotations

import ast
from itertools import islice
from typing import TYPE_CHECKING, Final

from pipeline.languages.python.asserts import source
from pipeline.languages.python.tables import entries

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pipeline.languages.python.checks_of_tests import Function
    from pipeline.languages.python.locals import Reader

_MOST: Final = 1_000
_DEPTH: Final = 4
_Blocks = (ast.With, ast.AsyncWith, ast.For, ast.AsyncFor, ast.While, ast.If, ast.Try)


def parts_of(function: Function, reader: Reader) -> tuple[str, ...]:
    """Return what a set-up does and what is in what it gives, in order.

    A local is written as what it was made of, and is no part by itself; a helper of the file is what it does.
    """
    return tuple(islice(_of(function, reader, ()), _MOST))


def _of(function: Function, reader: Reader, callers: tuple[str, ...]) -> Iterator[str]:
    made = reader.made(function)
    yield from _within(made.body, _read(function) - _read(made), reader, callers)


def _read(function: Function) -> set[str]:
    """Return the names that are read in a function."""
    return {node.id for node in ast.walk(function) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}


def _within(body: list[ast.stmt], told: set[str], reader: Reader, callers: tuple[str, ...]) -> Iterator[str]:
    for statement in body:
        match statement:
            case ast.Pass() | ast.Expr(value=ast.Constant()):
                pass
            case ast.Return(value=value) | ast.Expr(value=ast.Yield(value=value)):
                yield from _given(value)
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                yield from _given(value) if name not in told else ()  # else it is said where it is used
            case ast.Expr(value=ast.Call(func=ast.Name(id=name))) if name in reader.helpers and name not in callers:
                if len(callers) < _DEPTH:
                    yield from _of(reader.helpers[name], reader, (*callers, name))
            case _ if isinstance(statement, _Blocks):
                yield from _within(statement.body, told, reader, callers)
                yield from _within(getattr(statement, "orelse", []), told, reader, callers)
                yield from _within(getattr(statement, "finalbody", []), told, reader, callers)
            case _:
                yield source(statement)


def _given(value: ast.expr | None) -> Iterator[str]:
    if value is None:
        return
    table = entries(value)
    if table is None:
        yield source(value)
    else:
        yield from (f"{source(one)} in it" for one in table)
