"""What Python tests check, read from their syntax trees: assertions with their strength, cases, marks, fixtures.

The vocabulary is pytest's and unittest's. Nothing here performs I/O.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pipeline.policy.suites import EXACT, PART, PRESENCE, RELATION, Check

if TYPE_CHECKING:
    from collections.abc import Iterator

Function = ast.FunctionDef | ast.AsyncFunctionDef

_SHOWN: Final = 60
_OPERATORS: Final[dict[type[ast.cmpop], tuple[str, int]]] = {
    ast.Eq: ("==", EXACT),
    ast.Is: ("is", EXACT),
    ast.In: ("in", PART),
    ast.NotIn: ("not in", RELATION),
    ast.NotEq: ("!=", RELATION),
    ast.IsNot: ("is not", PRESENCE),
    ast.Lt: ("<", RELATION),
    ast.LtE: ("<=", RELATION),
    ast.Gt: (">", RELATION),
    ast.GtE: (">=", RELATION),
}
_METHODS: Final[dict[str, int]] = {
    **dict.fromkeys(("assertEqual", "assertEquals", "assertListEqual", "assertDictEqual", "assertIs"), EXACT),
    **dict.fromkeys(("assertSequenceEqual", "assertSetEqual", "assertTupleEqual", "assertMultiLineEqual"), EXACT),
    **dict.fromkeys(("assertAlmostEqual", "assertCountEqual", "assertRaisesRegex", "assertLogs"), EXACT),
    **dict.fromkeys(("assertIn", "assertRegex", "assertIsInstance", "assertRaises", "assertWarns"), PART),
    **dict.fromkeys(("assertNotEqual", "assertNotIn", "assertGreater", "assertGreaterEqual", "assertLess"), RELATION),
    **dict.fromkeys(("assertLessEqual", "assertIsNone", "assertFalse"), RELATION),
    **dict.fromkeys(("assertTrue", "assertIsNotNone"), PRESENCE),
}
_BROAD: Final = frozenset({"Exception", "BaseException"})
_TOLERANCES: Final = frozenset({"rel", "abs", "rel_tol", "abs_tol", "delta", "rtol", "atol"})
_APPROXIMATE: Final = frozenset({"approx", "isclose", "allclose", "assertAlmostEqual", "assert_allclose"})


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
            if isinstance(decorator, ast.Call) and _name(decorator.func) == "parametrize":
                values = decorator.args[1] if len(decorator.args) > 1 else None
                if not isinstance(values, ast.List | ast.Tuple | ast.Set):
                    return None
                product *= len(values.elts)
        return product

    @property
    def timeout(self) -> float | None:
        """Return the seconds of its timeout mark, None if it has none."""
        for decorator in self.node.decorator_list:
            if isinstance(decorator, ast.Call) and _name(decorator.func) == "timeout":
                values = [*decorator.args, *(keyword.value for keyword in decorator.keywords)]
                numbers = [_number(value) for value in values]
                return next((number for number in numbers if number is not None), None)
        return None


def tests_in(module: ast.Module) -> dict[str, Definition]:
    """Return the tests and fixtures of a file by their names within their classes."""
    return {name: Definition(node, _is_fixture(node)) for name, node in _functions(module, "") if _counts(node)}


def checks_in(function: Function) -> list[Check]:
    """Return what a test checks, in order."""
    return [check for node in ast.walk(function) for check in _checks(node)]


def is_empty(function: Function) -> bool:
    """Return whether a fixture gives nothing: no statement but a docstring, `pass`, or a bare or empty result."""
    return all(_gives_nothing(statement) for statement in function.body)


def swallows(function: Function) -> list[ast.stmt]:
    """Return where a failing assertion would be caught and forgotten."""
    return [node for node in ast.walk(function) if isinstance(node, ast.stmt) and _swallows(node)]


def is_vacuous(function: Function) -> list[ast.Assert]:
    """Return the assertions that can never fail."""
    return [node for node in ast.walk(function) if isinstance(node, ast.Assert) and _always(node.test)]


def _functions(module: ast.Module | ast.ClassDef, above: str) -> Iterator[tuple[str, Function]]:
    for node in module.body:
        if isinstance(node, Function):
            yield f"{above}{node.name}", node
        elif isinstance(node, ast.ClassDef):
            yield from _functions(node, f"{above}{node.name}.")


def _counts(node: Function) -> bool:
    return node.name.startswith("test") or _is_fixture(node) or node.name in {"setUp", "setUpClass", "setup_method"}


def _is_fixture(node: Function) -> bool:
    calls = (decorator.func if isinstance(decorator, ast.Call) else decorator for decorator in node.decorator_list)
    return any(_name(call) == "fixture" for call in calls)


def _checks(node: ast.AST) -> Iterator[Check]:
    match node:
        case ast.Assert(test=test):
            yield _asserted(test, node.lineno)
        case ast.Call(func=ast.Attribute(attr=method), args=[first, *rest]) if method in _METHODS:
            yield _by_method(node, method, first, rest)
        case ast.withitem(context_expr=ast.Call() as call) if _name(call.func) in {
            "raises",
            "warns",
            "deprecated_call",
        }:
            yield _raised(call)
        case _:
            pass


def _asserted(test: ast.expr, line: int) -> Check:
    match test:
        case ast.Compare(left=left, ops=[operator], comparators=[right]):
            kind, strength = _OPERATORS[type(operator)]
            return Check(_source(left), kind, strength, _source(_exactly(right)), _tolerance(test), line)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return Check(_source(operand), "not", RELATION, "", _tolerance(test), line)
        case ast.Call(func=function, args=[first, *_]) if _name(function) in {"isinstance", *_APPROXIMATE}:
            return Check(_source(first), _name(function), PART, _source(test), _tolerance(test), line)
        case _:
            return Check(_source(test), "truth", PRESENCE, "", _tolerance(test), line)


def _exactly(expected: ast.expr) -> ast.expr:
    """Return the value itself where it is given with a tolerance."""
    match expected:
        case ast.Call(func=function, args=[value, *_]) if _name(function) == "approx":
            return value
        case _:
            return expected


def _by_method(call: ast.Call, method: str, first: ast.expr, rest: list[ast.expr]) -> Check:
    if method in {"assertRaises", "assertRaisesRegex", "assertWarns"}:
        strength = PRESENCE if _is_broad(first) else _METHODS[method]
        return Check("raises", f"{method}({_source(first)})", strength, "", None, call.lineno)
    expected = _source(rest[0]) if rest else ""
    return Check(_source(first), method, _METHODS[method], expected, _tolerance(call), call.lineno)


def _raised(call: ast.Call) -> Check:
    wanted = call.args[0] if call.args else None
    matched = next((keyword.value for keyword in call.keywords if keyword.arg == "match"), None)
    strength = PRESENCE if wanted is None or _is_broad(wanted) else PART + (matched is not None)
    kind = (
        f"{_name(call.func)}({_source(wanted) if wanted is not None else ''}{', match' if matched is not None else ''})"
    )
    return Check("raises", kind, strength, _source(matched) if matched is not None else "", None, call.lineno)


def _is_broad(wanted: ast.expr) -> bool:
    if isinstance(wanted, ast.Tuple):
        return any(map(_is_broad, wanted.elts))
    return _name(wanted) in _BROAD


def _tolerance(node: ast.AST) -> float | None:
    """Return the largest deviation that is allowed; the fewer places are compared, the larger it is."""
    found: list[float] = []
    for call in (part for part in ast.walk(node) if isinstance(part, ast.Call)):
        name = _name(call.func)
        named = {keyword.arg: _number(keyword.value) for keyword in call.keywords}
        if name in _APPROXIMATE:
            found += [value for key, value in named.items() if key in _TOLERANCES and value is not None]
            places = named.get("places") if "places" in named else None
            found += [10.0**-places] if places is not None else []
        if name == "round":
            digits = _number(call.args[1]) if len(call.args) > 1 else 0.0
            found += [10.0**-digits] if digits is not None else []
    return max(found, default=None)


def _swallows(node: ast.AST) -> bool:
    match node:
        case ast.Try(body=body, handlers=handlers) if any(_has_assertion(part) for part in body):
            return any(_catches_all(handler) and not _raises(handler) for handler in handlers)
        case ast.With(items=items, body=body) if any(_has_assertion(part) for part in body):
            calls = [item.context_expr for item in items if isinstance(item.context_expr, ast.Call)]
            return any(_name(call.func) == "suppress" for call in calls)
        case _:
            return False


def _has_assertion(node: ast.AST) -> bool:
    return any(True for part in ast.walk(node) for _ in _checks(part))


def _catches_all(handler: ast.ExceptHandler) -> bool:
    names = {_name(part) for part in ast.walk(handler.type)} if handler.type is not None else {"Exception"}
    return bool(names & {*_BROAD, "AssertionError"})


def _raises(handler: ast.ExceptHandler) -> bool:
    return any(isinstance(part, ast.Raise) or _name_of_call(part) == "fail" for part in ast.walk(handler))


def _name_of_call(node: ast.AST) -> str:
    return _name(node.func) if isinstance(node, ast.Call) else ""


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


def _name(node: ast.AST) -> str:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case _:
            return ""


def _number(node: ast.expr) -> float | None:
    match node:
        case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
            return float(value)
        case _:
            return None


def _source(node: ast.AST) -> str:
    try:
        text = ast.unparse(node)
    except ValueError:  # before Python 3.12 not every value can be written in a formatted string
        text = ast.dump(node)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]} ..."
