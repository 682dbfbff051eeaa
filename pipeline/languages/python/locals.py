"""Python tests with their locals written as what they were made of, and with the helpers of the file that they call.

So that naming a value, renaming a local, or moving assertions into a helper or into a loop is no change of what a test
checks. It is read from the text, in its order; all work is bounded.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Final

from pipeline.languages.python.asserts import assertions
from pipeline.languages.python.checks_of_tests import Function
from pipeline.languages.python.tables import MOST, Names, bound, copied, elements, parametrized, with_names

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pipeline.languages.sources.suites import Check

_DEPTH: Final = 4
_CHECKS: Final = 2_000
_INSTANCES: Final = 2_000
_TIMES: Final = 10_000
_SMALL: Final = 60
"""A local that is made of more parts than this keeps its name."""
_LARGE: Final = 4_000
"""A table of more parts than this is not read."""


@dataclass(frozen=True)
class _Place:
    """How a statement is reached: behind so many conditions, for so many values, in these cases if they are known."""

    guards: int = 0
    times: int = 1
    cases: tuple[Names, ...] | None = ({},)

    def inside(self, loop: ast.For | ast.AsyncFor, values: list[ast.expr] | None) -> _Place:
        """Return the place of a loop's body."""
        if values is None:
            return replace(self, cases=None)
        times = min(self.times * len(values), _TIMES)
        if self.cases is None or len(self.cases) * len(values) > MOST:
            return replace(self, times=times, cases=None)
        found = [bound(loop.target, value) for value in values]
        known = [one for one in found if one is not None]
        cases = tuple({**case, **one} for case in self.cases for one in known)
        return replace(self, times=times, cases=cases if len(known) == len(found) else None)


class Reader:
    """One file: its helpers, and how many checks were read of all its tests together.

    Args:
        module: The file.
        names: Constants that are written as what they are.
        tables: Constants whose values are the cases of those who go through them.
    """

    def __init__(
        self,
        module: ast.Module,
        names: Mapping[str, ast.expr] | None = None,
        tables: Mapping[str, ast.expr] | None = None,
    ) -> None:
        functions = (node for node in module.body if isinstance(node, Function))
        self._helpers = {node.name: node for node in functions if not node.name.startswith("test")}
        self._names = dict(names or {})
        self._tables = dict(tables or {})
        self._left = _CHECKS * 10
        self._instances = _INSTANCES

    @property
    def helpers(self) -> Mapping[str, Function]:
        """Return the functions of the file that are no tests."""
        return self._helpers

    def cases(self, function: Function) -> list[Names] | None:
        """Return the cases of a parametrised test, None where they are not written down."""
        return parametrized(function.decorator_list, self._tables)

    def made(self, function: Function) -> Function:
        """Return a function with its locals written as what they were made of."""
        return _Made({**self._names, **dict.fromkeys(_parameters(function))}).read(function)

    def checks(self, function: Function) -> tuple[Check, ...]:
        """Return what a test checks, in order, helpers included."""
        cases = self.cases(function)
        place = _Place(cases=tuple(cases) if cases is not None else None)
        return tuple(self._of(function, {}, (), place))

    def _of(
        self, function: Function, given: Mapping[str, ast.expr], callers: tuple[str, ...], place: _Place
    ) -> Iterator[Check]:
        known = {**self._names, **dict.fromkeys(_parameters(function)), **given}
        made = _Made(known).read(function)
        found = list(islice(self._below(made, place, callers), _CHECKS))
        self._left -= len(found)
        yield from found

    def _below(self, node: ast.AST, place: _Place, callers: tuple[str, ...]) -> Iterator[Check]:
        yield from self._here(node, place)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            yield from self._called(node, node.func.id, place, callers)
        for child, there in self._children(node, place):
            yield from self._below(child, there, callers)

    def _here(self, node: ast.AST, place: _Place) -> Iterator[Check]:
        for at, check in enumerate(assertions(node)):
            instances: tuple[Check, ...] = ()
            if place.cases is not None and place.cases != ({},) and len(place.cases) <= self._instances:
                self._instances -= len(place.cases)
                written = (list(assertions(with_names(node, case)))[at] for case in place.cases)
                instances = tuple(replace(one, guards=place.guards) for one in written)
            yield replace(check, guards=place.guards, times=place.times, instances=instances)

    def _called(self, call: ast.Call, name: str, place: _Place, callers: tuple[str, ...]) -> Iterator[Check]:
        helper = self._helpers.get(name)
        if helper is not None and name not in callers and len(callers) < _DEPTH and self._left > 0:
            yield from self._of(helper, _given(helper, call), (*callers, name), place)

    def _children(self, node: ast.AST, place: _Place) -> Iterator[tuple[ast.AST, _Place]]:
        if isinstance(node, ast.If | ast.While):
            yield node.test, place
            yield from self._branches(node, place)
        elif isinstance(node, ast.For | ast.AsyncFor):
            yield node.iter, place
            values = elements(node.iter, self._tables)
            inside = place.inside(node, values)
            yield from ((child, inside) for child in node.body if inside.times)
            yield from ((child, place) for child in node.orelse)
        else:
            yield from ((child, place) for child in ast.iter_child_nodes(node))

    def _branches(self, node: ast.If | ast.While, place: _Place) -> Iterator[tuple[ast.AST, _Place]]:
        """Yield what is reached on a condition; where either branch checks something, none does so by chance."""
        sure = bool(node.test.value) if isinstance(node.test, ast.Constant) else None
        either = isinstance(node, ast.If) and all(map(self._looks, (node.body, node.orelse)))
        behind = place if either or sure is not None or isinstance(node, ast.While) else _behind(place)
        if sure is not False:
            yield from ((child, behind) for child in node.body)
        if sure is not True:
            yield from ((child, behind) for child in node.orelse)

    @staticmethod
    def _looks(body: list[ast.stmt]) -> bool:
        return any(True for statement in body for part in ast.walk(statement) for _ in assertions(part))


def _behind(place: _Place) -> _Place:
    return replace(place, guards=place.guards + 1)


def _parameters(function: Function) -> list[str]:
    found = function.args
    return [parameter.arg for parameter in (*found.posonlyargs, *found.args, *found.kwonlyargs)]


def _given(helper: Function, call: ast.Call) -> Names:
    """Return what each parameter of a helper is in a call."""
    names = [parameter.arg for parameter in (*helper.args.posonlyargs, *helper.args.args)]
    found = dict(zip(names, call.args, strict=False))
    return {**found, **{keyword.arg: keyword.value for keyword in call.keywords if keyword.arg is not None}}


class _Made(ast.NodeTransformer):
    """Writes names as what they were made of, as long as nothing else may have changed them."""

    def __init__(self, names: Mapping[str, ast.expr | None]) -> None:
        self._names = {name: value for name, value in names.items() if value is not None and _is_small(value)}
        self._tables: Names = {}

    def read(self, function: Function) -> Function:
        made = copied(function)
        made.body = [self.visit(statement) for statement in made.body]
        return made

    def visit_Assign(self, node: ast.Assign) -> ast.Assign:
        node.value = self.visit(node.value)
        self._forget(*node.targets)
        match node.targets:
            case [ast.Name(id=name)]:
                if _is_small(node.value):
                    self._names[name] = node.value
                elif _is_small(node.value, _LARGE) and elements(node.value, {}) is not None:
                    self._tables[name] = node.value
            case _:
                pass
        return node

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if isinstance(node.ctx, ast.Load):
            return copied(self._names.get(node.id, node))
        self._names.pop(node.id, None)
        self._tables.pop(node.id, None)
        return node

    def visit_For(self, node: ast.For) -> ast.AST:
        node.iter = copied(with_names(node.iter, self._tables))  # tables are shared
        self._forget(node.target)
        return self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.Lambda:
        return node

    def _forget(self, *targets: ast.expr) -> None:
        for target in targets:
            for node in ast.walk(target):
                if isinstance(node, ast.Name):
                    self._names.pop(node.id, None)
                    self._tables.pop(node.id, None)


def _is_small(value: ast.expr, most: int = _SMALL) -> bool:
    return next(islice(ast.walk(value), most, None), None) is None
