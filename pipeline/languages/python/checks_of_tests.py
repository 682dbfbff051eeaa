"""What Python tests check, read from their syntax trees: assertions with their strength, cases, marks, fixtures.

The vocabulary is pytest's and unittest's. Nothing here performs I/O.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pipeline.languages.python.asserts import assertions, is_broad, name_of

if TYPE_CHECKING:
    from collections.abc import Iterator

Function = ast.FunctionDef | ast.AsyncFunctionDef
_FUNCTIONS: Final = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True)
class Definition:
    """One test or fixture of a file."""

    node: Function
    is_fixture: bool

    @property
    def cases(self) -> int | None:
        """Return how many cases parametrisation makes of it; None where that is not written down in place."""
        product = 1
        for decorator in self.node.decorator_list:
            if isinstance(decorator, ast.Call) and name_of(decorator.func) == "parametrize":
                values = decorator.args[1] if len(decorator.args) > 1 else None
                if not isinstance(values, ast.List | ast.Tuple | ast.Set):
                    return None
                product *= len(values.elts)
        return product

    @property
    def timeout(self) -> float | None:
        """Return the seconds of its timeout mark, None if it has none."""
        for decorator in self.node.decorator_list:
            if isinstance(decorator, ast.Call) and name_of(decorator.func) == "timeout":
                values = [*decorator.args, *(keyword.value for keyword in decorator.keywords)]
                numbers = [_number(value) for value in values]
                return next((number for number in numbers if number is not None), None)
        return None


def tests_in(module: ast.Module) -> dict[str, Definition]:
    """Return the tests and fixtures of a file by their names within their classes."""
    return {name: Definition(node, is_fixture(node)) for name, node in _functions(module, "") if _counts(node)}


def is_fixture(node: Function) -> bool:
    """Return whether a function is a fixture of pytest."""
    calls = (decorator.func if isinstance(decorator, ast.Call) else decorator for decorator in node.decorator_list)
    return any(name_of(call) == "fixture" for call in calls)


def is_empty(function: Function) -> bool:
    """Return whether a fixture gives nothing: no statement but a docstring, `pass`, or a bare or empty result."""
    return all(_gives_nothing(statement) for statement in function.body)


def swallows(function: Function) -> list[ast.stmt]:
    """Return where a failing assertion would be caught and forgotten."""
    return [node for node in ast.walk(function) if isinstance(node, ast.stmt) and _swallows(node)]


def is_vacuous(function: Function) -> list[ast.Assert]:
    """Return the assertions that can never fail."""
    return [node for node in ast.walk(function) if isinstance(node, ast.Assert) and _always(node.test)]


def leaves(function: Function) -> list[ast.Return]:
    """Return where a function may end before its last assertion, those inside of it left out."""
    inside = list(_own(function))
    last = max((node.lineno for node in inside if isinstance(node, ast.stmt) and _asserts(node)), default=0)
    return [node for node in inside if isinstance(node, ast.Return) and node.lineno < last]


def _own(function: Function) -> Iterator[ast.AST]:
    stack: list[ast.AST] = list(function.body)
    while stack:
        node = stack.pop()
        yield node
        if not isinstance(node, (*_FUNCTIONS, ast.Lambda, ast.ClassDef)):
            stack.extend(ast.iter_child_nodes(node))


def _asserts(statement: ast.stmt) -> bool:
    items = statement.items if isinstance(statement, ast.With | ast.AsyncWith) else []
    call = [statement.value] if isinstance(statement, ast.Expr) else []
    return any(True for node in (statement, *items, *call) for _ in assertions(node))


def _functions(module: ast.Module | ast.ClassDef, above: str) -> Iterator[tuple[str, Function]]:
    for node in module.body:
        if isinstance(node, Function):
            yield f"{above}{node.name}", node
        elif isinstance(node, ast.ClassDef):
            yield from _functions(node, f"{above}{node.name}.")


def _counts(node: Function) -> bool:
    return node.name.startswith("test") or is_fixture(node) or node.name in {"setUp", "setUpClass", "setup_method"}


def _swallows(node: ast.AST) -> bool:
    match node:
        case ast.Try(body=body, handlers=handlers) if any(_has_assertion(part) for part in body):
            return any(_catches_all(handler) and not _raises(handler) for handler in handlers)
        case ast.With(items=items, body=body) if any(_has_assertion(part) for part in body):
            calls = [item.context_expr for item in items if isinstance(item.context_expr, ast.Call)]
            return any(name_of(call.func) == "suppress" for call in calls)
        case _:
            return False


def _has_assertion(node: ast.AST) -> bool:
    return any(True for part in ast.walk(node) for _ in assertions(part))


def _catches_all(handler: ast.ExceptHandler) -> bool:
    names = {name_of(part) for part in ast.walk(handler.type)} if handler.type is not None else {"Exception"}
    return is_broad(tuple(names)) or "AssertionError" in names


def _raises(handler: ast.ExceptHandler) -> bool:
    return any(isinstance(part, ast.Raise) or _name_of_call(part) == "fail" for part in ast.walk(handler))


def _name_of_call(node: ast.AST) -> str:
    return name_of(node.func) if isinstance(node, ast.Call) else ""


def _always(test: ast.expr) -> bool:
    match test:
        case ast.Constant(value=value):
            return bool(value)
        case ast.Tuple(elts=elements):
            return bool(elements)  # `assert (x, "why")`
        case ast.BoolOp(op=ast.Or(), values=values):
            return any(map(_always, values))
        case ast.Compare(left=left, ops=[ast.Eq() | ast.Is() | ast.GtE() | ast.LtE()], comparators=[right]):
            return ast.dump(left) == ast.dump(right)
        case _:
            return False


def _gives_nothing(statement: ast.stmt) -> bool:
    match statement:
        case ast.Pass() | ast.Expr(value=ast.Constant()):
            return True
        case ast.Return(value=value) | ast.Expr(value=ast.Yield(value=value)):
            empty = isinstance(value, ast.List | ast.Tuple | ast.Set) and not value.elts
            none = value is None or (isinstance(value, ast.Constant) and not value.value)
            return empty or none or (isinstance(value, ast.Dict) and not value.keys)
        case _:
            return False


def _number(node: ast.expr) -> float | None:
    match node:
        case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
            return float(value)
        case _:
            return None
