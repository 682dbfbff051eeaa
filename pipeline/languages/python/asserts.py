"""What one node of a Python test checks: assertions of pytest, unittest, numpy and its kin, and stand-ins' calls.

Nothing here performs I/O.
"""

from __future__ import annotations

import ast
import builtins
from typing import TYPE_CHECKING, Final

from pipeline.languages.python.tolerances import APPROXIMATE, tolerance_of
from pipeline.languages.sources.suite_walk import brief
from pipeline.languages.sources.suites import EXACT, PART, PRESENCE, RELATION, Check

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

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
_STANDINS: Final[dict[str, int]] = {
    **dict.fromkeys(("assert_called_once_with", "assert_not_called"), EXACT),
    **dict.fromkeys(("assert_awaited_once_with", "assert_not_awaited"), EXACT),
    **dict.fromkeys(("assert_called_with", "assert_has_calls", "assert_awaited_with", "assert_has_awaits"), PART),
    **dict.fromkeys(("assert_any_call", "assert_called_once", "assert_any_await", "assert_awaited_once"), RELATION),
    **dict.fromkeys(("assert_called", "assert_awaited"), PRESENCE),
}
"""The methods of `unittest.mock`: how much each looks at."""
_FUNCTIONS: Final[dict[str, int]] = {
    **dict.fromkeys(("assert_allclose", "assert_almost_equal", "assert_approx_equal", "assert_close"), EXACT),
    **dict.fromkeys(("assert_array_almost_equal", "assert_array_almost_equal_nulp", "assert_array_max_ulp"), EXACT),
    **dict.fromkeys(("assert_equal", "assert_array_equal", "assert_string_equal"), EXACT),
    **dict.fromkeys(("assert_frame_equal", "assert_series_equal", "assert_index_equal"), EXACT),
    **dict.fromkeys(("assert_extension_array_equal", "assert_array_less"), EXACT),
}
"""Functions of numpy, pandas, torch and their kin, which take what is looked at first and what it should be next."""
_RAISES: Final = frozenset({"raises", "warns", "deprecated_call"})
_RAISING_METHODS: Final = frozenset({"assertRaises", "assertRaisesRegex", "assertWarns", "assertWarnsRegex"})
_BROAD: Final = frozenset({"Exception", "BaseException"})


def assertions(node: ast.AST) -> Iterator[Check]:
    """Yield what a node checks by itself; guards and times are the caller's."""
    match node:
        case ast.Assert(test=test):
            yield _asserted(test, node.lineno)
        case ast.Call(func=ast.Attribute(attr=method), args=[first, *rest]) if method in _METHODS:
            yield _by_method(node, method, first, rest)
        case ast.Call(func=ast.Attribute(value=standin, attr=method)) if method in _STANDINS:
            yield Check(source(standin), method, _STANDINS[method], _given(node), None, node.lineno)
        case ast.Call(args=[first, second, *_]) if name_of(node.func) in _FUNCTIONS:
            kind = name_of(node.func)
            yield Check(source(first), kind, _FUNCTIONS[kind], source(second), tolerance_of(node), node.lineno)
        case ast.withitem(context_expr=ast.Call() as call) if name_of(call.func) in _RAISES:
            yield _raised(call)
        case ast.Raise(exc=ast.Call(func=ast.Name(id="AssertionError")) | ast.Name(id="AssertionError")):
            yield Check("this point", "is not reached", RELATION, "", None, node.lineno)
        case ast.Call(func=function) if name_of(function) == "fail":
            yield Check("this point", "is not reached", RELATION, "", None, node.lineno)
        case _:
            pass


def is_broad(names: Sequence[str]) -> bool:
    """Return whether one of these exceptions is any exception at all."""
    return not _BROAD.isdisjoint(names)


def name_of(node: ast.AST) -> str:
    """Return the last word of a name, empty for what is none."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case _:
            return ""


def source(node: ast.AST) -> str:
    """Return a piece of source in one layout; a long one is cut, and still told apart from others."""
    try:
        text = ast.unparse(node)
    except ValueError:  # before Python 3.12 not every value can be written in a formatted string
        text = ast.dump(node)
    return brief(text)


def _asserted(test: ast.expr, line: int) -> Check:
    match test:
        case ast.Compare(left=left, ops=[operator], comparators=[right]):
            kind, strength = _OPERATORS[type(operator)]
            return Check(source(left), kind, strength, source(_exactly(right)), tolerance_of(test), line)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return Check(source(operand), "not", RELATION, "", tolerance_of(test), line)
        case ast.Call(func=function, args=[first, *_]) if name_of(function) in {"isinstance", *APPROXIMATE}:
            return Check(source(first), name_of(function), PART, _second(test), tolerance_of(test), line)
        case _:
            return Check(source(test), "truth", PRESENCE, "", tolerance_of(test), line)


def _second(call: ast.Call) -> str:
    """Return what a value is compared with; how exactly is its tolerance."""
    return source(call.args[1]) if len(call.args) > 1 else ""


def _exactly(expected: ast.expr) -> ast.expr:
    """Return the value itself where it is given with a tolerance."""
    match expected:
        case ast.Call(func=function, args=[value, *_]) if name_of(function) == "approx":
            return value
        case _:
            return expected


def _given(call: ast.Call) -> str:
    """Return the arguments of a call."""
    return ", ".join((*map(source, call.args), *map(source, call.keywords)))


def _by_method(call: ast.Call, method: str, first: ast.expr, rest: list[ast.expr]) -> Check:
    if method in _RAISING_METHODS:
        names = _exceptions(first)
        strength = PRESENCE if is_broad(names) else _METHODS[method]
        return Check(
            "raises", f"{method}({source(first)})", strength, "", None, call.lineno, allows=_with_derived(names)
        )
    expected = source(rest[0]) if rest else ""
    return Check(source(first), method, _METHODS[method], expected, tolerance_of(call), call.lineno)


def _raised(call: ast.Call) -> Check:
    named = {keyword.arg: keyword.value for keyword in call.keywords}
    wanted = call.args[0] if call.args else named.get("expected_exception", named.get("expected_warning"))
    matched = named.get("match")
    names = _exceptions(wanted) if wanted is not None else ()
    strength = PRESENCE if wanted is None or is_broad(names) else PART + (matched is not None)
    inside = f"{source(wanted) if wanted is not None else ''}{', match' if matched is not None else ''}"
    expected = source(matched) if matched is not None else ""
    kind = f"{name_of(call.func)}({inside})"
    return Check("raises", kind, strength, expected, None, call.lineno, allows=_with_derived(names))


def _exceptions(wanted: ast.expr) -> tuple[str, ...]:
    if isinstance(wanted, ast.Tuple):
        return tuple(name for element in wanted.elts for name in _exceptions(element))
    return (name_of(wanted) or source(wanted),)


def _with_derived(names: Sequence[str]) -> frozenset[str]:
    """Return exceptions with all that are derived from them, of those that the language brings."""
    found = set(names)
    stack = [kind for name in names if isinstance(kind := getattr(builtins, name, None), type)]
    while stack:
        kind = stack.pop()
        if issubclass(kind, BaseException):
            found.add(kind.__name__)
            stack.extend(kind.__subclasses__() if kind.__module__ == "builtins" else ())
    return frozenset(found & (set(names) | set(dir(builtins))))
