"""How far off a value may be in a Python assertion: relative, absolute, by digits, or what holds unasked."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

APPROXIMATE: Final = frozenset({"approx", "isclose", "allclose", "assertAlmostEqual", "assert_allclose"})
"""Functions that compare with a tolerance, and are themselves true or not, or fail."""

_DEVIATIONS: Final = frozenset({"rel", "abs", "rel_tol", "abs_tol", "delta", "rtol", "atol", "nulp", "maxulp"})
_DIGITS: Final = frozenset({"places", "decimal", "significant"})
_ARRAYS: Final = frozenset({"np", "numpy", "jnp", "torch", "xp"})
_LARGEST: Final = 300
"""More digits than a float has; an exponent beyond is no number."""


@dataclass(frozen=True)
class _Way:
    """The names of a function's arguments behind the two values, and what it takes where none is given."""

    arguments: tuple[str, ...]
    unasked: float | None


_WAYS: Final = {
    "assertAlmostEqual": _Way(("places",), 1e-7),
    "isclose": _Way(("rtol", "atol"), 1e-9),
    "allclose": _Way(("rtol", "atol"), 1e-5),
    "assert_allclose": _Way(("rtol", "atol"), 1e-7),
    "assert_close": _Way((), None),
    "assert_almost_equal": _Way(("decimal",), 1e-7),
    "assert_approx_equal": _Way(("significant",), 1e-7),
    "assert_array_almost_equal": _Way(("decimal",), 1e-6),
    "assert_array_almost_equal_nulp": _Way(("nulp",), 1.0),
    "assert_array_max_ulp": _Way(("maxulp",), 1.0),
    "assert_frame_equal": _Way((), None),
    "assert_series_equal": _Way((), None),
}


def tolerance_of(node: ast.AST) -> float | None:
    """Return the largest deviation that an assertion allows, None where none is said; see the functions' manuals.

    The fewer digits are compared, the larger it is.
    """
    calls = (part for part in ast.walk(node) if isinstance(part, ast.Call))
    return max((found for call in calls for found in _of(call)), default=None)


def _of(call: ast.Call) -> Iterator[float]:
    name = _name(call.func)
    given = {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg is not None}
    if name == "round":
        digits = _number(call.args[1]) if len(call.args) > 1 else 0.0
        yield from _by_digits(digits)
    elif name == "approx":
        given |= dict(zip(("rel", "abs"), call.args[1:], strict=False))
        yield from _said(given)
    elif name in _WAYS:
        way = _WAYS[name]
        given |= dict(zip(way.arguments, call.args[2:], strict=False))
        if not given.keys() & (_DEVIATIONS | _DIGITS):
            unasked = 1e-5 if name == "isclose" and _base(call.func) in _ARRAYS else way.unasked
            yield from () if unasked is None else (unasked,)
        yield from _said(given)


def _said(given: dict[str, ast.expr]) -> Iterator[float]:
    for name, value in given.items():
        number = _number(value)
        if name in _DIGITS:
            yield from _by_digits(number)
        elif name in _DEVIATIONS and number is not None:
            yield number


def _by_digits(digits: float | None) -> Iterator[float]:
    if digits is not None and abs(digits) <= _LARGEST:
        yield 10.0**-digits


def _name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _base(node: ast.expr) -> str:
    return _name(node.value) if isinstance(node, ast.Attribute) else ""


def _number(node: ast.expr) -> float | None:
    match node:
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            number = _number(operand)
            return -number if number is not None else None
        case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
            try:
                return float(value)
            except OverflowError:
                return None
        case _:
            return None
