"""Reads Python for `suite_walk`: assertions of pytest, unittest, numpy and the like, and what stops them failing."""

from __future__ import annotations

import ast
import builtins
import re
from typing import TYPE_CHECKING, Final, Literal

from pipeline.languages.sources.claims import conditions, joined, said, size, strengths
from pipeline.languages.sources.suite_walk import Call
from pipeline.languages.sources.suites import EXACT, PART, PRESENCE, RELATION, Check, Words

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

Function = ast.FunctionDef | ast.AsyncFunctionDef
_TOKEN: Final = re.compile(
    r"not in\b|is not\b|[rbfuRBFU]{0,2}(?:\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*')|\d[\d_.]*(?:[eE][+-]?\d+)?\w*|\w+"
    r"|[=!<>]=|\*\*|//|:=|->|\S"
)
_ASSERTIONS: Final = strengths(
    exact="assertEqual assertEquals assertListEqual assertDictEqual assertIs assertSequenceEqual "
    "assertSetEqual assertTupleEqual assertMultiLineEqual assertAlmostEqual assertCountEqual "
    "assertRaisesRegex assertLogs assert_called_once_with assert_not_called assert_awaited_once_with "
    "assert_not_awaited assert_allclose assert_almost_equal assert_approx_equal assert_close "
    "assert_array_almost_equal assert_array_almost_equal_nulp assert_array_max_ulp assert_equal "
    "assert_array_equal assert_string_equal assert_frame_equal assert_series_equal assert_index_equal "
    "assert_extension_array_equal assert_array_less",
    part="assertIn assertRegex assertIsInstance assertRaises assertWarns assert_called_with assert_has_calls "
    "assert_awaited_with assert_has_awaits",
    relation="assertNotEqual assertNotIn assertGreater assertGreaterEqual assertLess assertLessEqual "
    "assertIsNone assertFalse assert_any_call assert_called_once assert_any_await assert_awaited_once",
    presence="assertTrue assertIsNotNone assert_called assert_awaited",
)
"""The assertions of unittest, `unittest.mock`, numpy, pandas and torch, by strength."""
_ASKED: Final[dict[str, int]] = dict.fromkeys(("isinstance", "isclose", "allclose"), PART)
_THIRD: Final[dict[str, Literal["digits", "deviation"]]] = {
    **dict.fromkeys(("assertAlmostEqual", "assert_almost_equal", "assert_approx_equal"), "digits"),
    **dict.fromkeys(("assert_array_almost_equal",), "digits"),
    **dict.fromkeys(("assert_allclose", "assert_array_almost_equal_nulp", "assert_array_max_ulp"), "deviation"),
}
_OF_MOCKS: Final = re.compile(r"_(?:called|calls?|awaited|awaits?)(?:_|$)")
"""The names of assertions on a mock, where the mock is the subject."""
_RAISES: Final = frozenset({"raises", "warns", "deprecated_call", "assertRaises", "assertWarns"})
_BROAD: Final = frozenset({"Exception", "BaseException"})
_CATCHES: Final = _BROAD | {"AssertionError"}
_SWALLOWED: Final = "a failing assertion is swallowed"


class Python:
    """The implementation of Python for `suite_walk`."""

    def words(self, node: ast.AST) -> Words:
        """Return the tokens of a node."""
        try:
            source = ast.unparse(node)
        except ValueError:  # before Python 3.12 not every value can be written in a formatted string
            source = ast.dump(node)
        return tuple(_TOKEN.findall(source))

    def children(self, node: ast.AST) -> Iterable[ast.AST]:
        """Return the child nodes of a node."""
        return ast.iter_child_nodes(node)

    def guarded(self, node: ast.AST) -> Collection[ast.AST]:
        """Return the statements of an `if` that has no `else`."""
        return node.body if isinstance(node, ast.If) and not node.orelse else ()

    def bindings(self, node: ast.AST) -> Iterable[tuple[Sequence[str], Words]]:
        """Yield the names that an assignment binds, with the tokens of their values."""
        match node:
            case ast.Assign(targets=targets, value=value):
                yield from ((names_of(target), self.words(value)) for target in targets)
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                yield (name,), self.words(value)
            case ast.AugAssign(target=ast.Name(id=name), value=value):
                yield (name,), (name, "+", *self.words(value))
            case _:
                pass

    def loop(self, node: ast.AST) -> tuple[Sequence[str], Words] | None:
        """Return the names that a `for` binds, and the tokens of what it iterates over; None for other nodes."""
        if isinstance(node, ast.For | ast.AsyncFor):
            return names_of(node.target), self.words(node.iter)
        return None

    def checks(self, node: ast.AST, made: Callable[[Words], Words]) -> Iterator[Check]:
        """Yield the checks that a node itself makes."""
        match node:
            case ast.Assert(test=test):
                always = isinstance(test, ast.Tuple) and bool(test.elts)  # `assert (x, "why")`
                yield from conditions(("True",) if always else made(self.words(test)), _ASKED, node.lineno)
            case ast.withitem(context_expr=ast.Call(func=function) as call) if name_of(function) in _RAISES:
                yield self._raised(call, name_of(function))
            case ast.Call(func=function) if name_of(function) in _RAISES and len(node.args) > 1:
                yield self._raised(node, name_of(function))
            case ast.Call(func=function) if (name := name_of(function)) in _ASSERTIONS and name not in _RAISES:
                given = [*map(self.words, node.args), *map(self.words, node.keywords)]
                if isinstance(function, ast.Attribute) and _OF_MOCKS.search(name):
                    given = [self.words(function.value), *joined(given)]
                yield said([*map(made, given)], name, _ASSERTIONS[name], node.lineno, _THIRD.get(name))
            case ast.Raise(exc=ast.Call(func=ast.Name(id="AssertionError")) | ast.Name(id="AssertionError")):
                yield Check((), "failure", RELATION, line=node.lineno)
            case ast.Call(func=function) if name_of(function) == "fail":
                yield Check((), "failure", RELATION, line=node.lineno)
            case _:
                pass

    def call(self, node: ast.AST) -> Call | None:
        """Return a call of a function by its name, None for other nodes."""
        match node:
            case ast.Call(func=ast.Name(id=name), args=args, keywords=keywords):
                named = [(one.arg, self.words(one.value)) for one in keywords if one.arg is not None]
                return Call(name, [*(("", self.words(one)) for one in args), *named])
            case _:
                return None

    def ends(self, node: ast.AST) -> bool:
        """Return whether a node is a `return` without a value, or of a constant."""
        return isinstance(node, ast.Return) and (node.value is None or isinstance(node.value, ast.Constant))

    def marks(self, node: ast.AST) -> Iterator[str]:
        """Yield a sentence if a failing assertion below a node would be caught and ignored."""
        match node:
            case ast.Try(body=body, handlers=handlers):
                if self._asserts(body) and any(self._forgets(handler) for handler in handlers):
                    yield _SWALLOWED
            case ast.With(items=items, body=body):
                if self._asserts(body) and any("suppress" in self.words(item) for item in items):
                    yield _SWALLOWED
            case _:
                pass

    def _asserts(self, body: Iterable[ast.AST]) -> bool:
        return any(word.startswith("assert") or word in _RAISES for node in body for word in self.words(node))

    def _forgets(self, handler: ast.ExceptHandler) -> bool:
        caught = self.words(handler.type) if handler.type is not None else ("Exception",)
        inside = {word for node in handler.body for word in self.words(node)}
        return not _CATCHES.isdisjoint(caught) and inside.isdisjoint({"raise", "fail"})

    def _raised(self, call: ast.Call, name: str) -> Check:
        """Return the check that an exception is raised; a derived class counts as its base."""
        named = {keyword.arg: keyword.value for keyword in call.keywords}
        wanted = call.args[0] if call.args else named.get("expected_exception", named.get("expected_warning"))
        kinds = [part.id for part in ast.walk(wanted) if isinstance(part, ast.Name)] if wanted is not None else []
        inside = ", match" if "match" in named else ""
        kind = f"{name}({ast.unparse(wanted) if wanted is not None else ''}{inside})"
        if len(kinds) != 1 or not _BROAD.isdisjoint(kinds):
            strength = PRESENCE if not kinds or not _BROAD.isdisjoint(kinds) else RELATION
        else:
            strength = EXACT if inside else PART
        families = (getattr(builtins, one, None) for one in kinds)
        known = {above.__name__ for one in families if isinstance(one, type) for above in one.__mro__} - {"object"}
        quoted = tuple(f'"{one}"' for one in sorted({*kinds, *(known - _BROAD)}))
        match = self.words(named["match"]) if "match" in named else ()
        return Check((*quoted, *match), kind, strength, line=call.lineno)


def name_of(node: ast.AST) -> str:
    """Return the last part of a dotted name, empty for other nodes."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case _:
            return ""


def names_of(target: ast.expr) -> tuple[str, ...]:
    """Return the names that a target binds."""
    return tuple(node.id for node in ast.walk(target) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))


def cases_of(node: Function, rules: Python, made: Callable[[Words], Words]) -> tuple[int | None, Words]:
    """Return the number of cases that parametrisation gives a test (None if it is computed), and their tokens."""
    product: int | None = 1
    cases: Words = ()
    for decorator in node.decorator_list:
        if isinstance(decorator, ast.Call) and name_of(decorator.func) == "parametrize":
            named = {keyword.arg: keyword.value for keyword in decorator.keywords}
            values = decorator.args[1] if len(decorator.args) > 1 else named.get("argvalues")
            words = made(rules.words(values)) if values is not None else ()
            count = size(words)
            product = product * count if product is not None and count is not None else None
            cases += words
    return product, cases
