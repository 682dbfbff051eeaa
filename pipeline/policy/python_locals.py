"""Python tests with their locals written as what they were made of, and with the helpers of the file that they call.

So that naming a value, renaming a local, or moving assertions into a helper is no change of what a test checks. It is
read from the text, in its order; all work is bounded.
"""

from __future__ import annotations

import ast
import copy
from itertools import islice
from typing import TYPE_CHECKING, Final

from pipeline.policy.checks_of_tests import Function, checks_in

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pipeline.policy.suites import Check

_DEPTH: Final = 4
_CHECKS: Final = 2_000
_SMALL: Final = 60
"""A local that is made of more parts than this keeps its name."""


class Reader:
    """One file: its helpers, and how many checks were read of all its tests together."""

    def __init__(self, module: ast.Module) -> None:
        functions = (node for node in module.body if isinstance(node, Function))
        self._helpers = {node.name: node for node in functions if not node.name.startswith("test")}
        self._left = _CHECKS * 10

    def checks(self, function: Function) -> tuple[Check, ...]:
        """Return what a test checks, in order, helpers included."""
        return tuple(self._of(function, {}, ()))

    def _of(self, function: Function, names: Mapping[str, ast.expr], callers: tuple[str, ...]) -> Iterator[Check]:
        made = _Made(names).read(function)
        found = checks_in(made)
        self._left -= len(found)
        yield from found[:_CHECKS]
        for node in ast.walk(made):
            name = node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""
            helper = self._helpers.get(name)
            if helper is None or not isinstance(node, ast.Call) or name in callers:
                continue
            if len(callers) < _DEPTH and self._left > 0:
                yield from self._of(helper, _given(helper, node), (*callers, name))


def _given(helper: Function, call: ast.Call) -> dict[str, ast.expr]:
    """Return what each parameter of a helper is in a call."""
    names = [parameter.arg for parameter in (*helper.args.posonlyargs, *helper.args.args)]
    found = dict(zip(names, call.args, strict=False))
    return {**found, **{keyword.arg: keyword.value for keyword in call.keywords if keyword.arg is not None}}


class _Made(ast.NodeTransformer):
    """Writes names as what they were made of, as long as nothing else may have changed them."""

    def __init__(self, names: Mapping[str, ast.expr]) -> None:
        self._names = {name: value for name, value in names.items() if _is_small(value)}

    def read(self, function: Function) -> Function:
        made = copy.deepcopy(function)
        made.body = [self.visit(statement) for statement in made.body]
        return made

    def visit_Assign(self, node: ast.Assign) -> ast.Assign:
        node.value = self.visit(node.value)
        match node.targets:
            case [ast.Name(id=name)] if _is_small(node.value):
                self._names[name] = node.value
            case _:
                self._forget(*node.targets)
        return node

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if isinstance(node.ctx, ast.Load):
            return copy.deepcopy(self._names.get(node.id, node))
        self._names.pop(node.id, None)
        return node

    def visit_For(self, node: ast.For) -> ast.AST:
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


def _is_small(value: ast.expr) -> bool:
    return next(islice(ast.walk(value), _SMALL, None), None) is None
