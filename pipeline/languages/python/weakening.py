"""Reads the checks of a Python test file: test functions and classes, fixtures, and helpers."""

from __future__ import annotations

import ast
import re
import warnings
from collections import Counter
from typing import TYPE_CHECKING, Final

from pipeline.languages.python.asserts import Function, Python, cases_of, name_of, names_of
from pipeline.languages.sources.claims import is_name, values_in
from pipeline.languages.sources.suite_walk import Helper, Walk, digest, marked, parts_of
from pipeline.languages.sources.suites import Suite, Test

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pipeline.languages.sources.suites import Words

_SKIPS: Final = frozenset(
    {"skip", "skipif", "xfail", "importorskip", "skipIf", "skipUnless", "expectedFailure", "skipTest"}
)
_STANDIN: Final = re.compile(r"patch|object|setattr|setitem|delattr|\w*Mock")
_SETUPS: Final = frozenset({"setUp", "setUpClass", "asyncSetUp", "setup_method", "setup_class"})
_MOST: Final = 20_000
_RULES: Final = Python()


def read(source: bytes, path: str) -> Suite | None:  # noqa: ARG001  (of every language)
    """Return the tests and fixtures of a source; None if it cannot be parsed."""
    module = parsed(source)
    return File(module).suite() if module is not None else None


def parsed(source: bytes) -> ast.Module | None:
    """Return the syntax tree of a source, None if it cannot be parsed."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an invalid escape in somebody's string
            return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def tests_in(module: ast.Module) -> dict[str, Function]:
    """Return the tests and fixtures of a file by name, qualified by class."""
    return {name: node for name, node in _functions(module, "") if node.name.startswith("test") or _serves(node)}


class File:
    """A Python file of tests, or of helpers."""

    def __init__(self, module: ast.Module) -> None:
        self.module = module
        self.tests = tests_in(module)
        helpers = {node.name: node for node in module.body if isinstance(node, Function)}
        self.helpers = {name: node for name, node in helpers.items() if name not in self.tests}
        self._walk = Walk[ast.AST](_RULES, {name: Helper(_parameters(one), one) for name, one in self.helpers.items()})
        for node in _outside(module.body):
            self._walk.bind(node, self._walk.constants)

    def suite(self) -> Suite:
        """Return the file's tests and fixtures with their checks."""
        marks = [node for node in self.module.body if isinstance(node, ast.Assign | ast.Expr)]
        skipped = sum(word in _SKIPS for node in marks for word in _RULES.words(node))
        whole = {"the whole file is skipped, or expected to fail": skipped} if skipped else {}
        tests = {name: self._test(node) for name, node in self.tests.items()}
        return Suite(tests, {**whole, **dict.fromkeys(self._unasked(), 1)})

    def helper_suite(self) -> Suite:
        """Return the file's fixtures, other functions and constants, as helpers for tests."""
        fixtures = {name: self._test(node) for name, node in self.tests.items() if _serves(node)}
        others = {name: self._test(node) for name, node in self.helpers.items()}
        constants = {
            name: Test(1, digest(words), "constant", parts=tuple(sorted(parts_of(words))))
            for name, words in self._walk.constants.items()
        }
        return Suite({**constants, **others, **fixtures})

    def for_all(self) -> frozenset[str]:
        """Return the names of autouse fixtures."""
        return frozenset(node.name for node in self.tests.values() if _is_autouse(node))

    def uses(self) -> dict[str, frozenset[str]]:
        """Return the names that each function, constant or imported name of the file refers to."""
        found = {name: _names(node) for name, node in _functions(self.module, "")}
        for node in ast.walk(self.module):
            match node:
                case ast.ImportFrom(names=names):
                    found |= {one.asname: frozenset({one.name}) for one in names if one.asname is not None}
                case ast.Assign(targets=targets, value=value):
                    found |= {name: _names(value) for target in targets for name in names_of(target)}
                case _:
                    pass
        return found

    def _test(self, node: Function) -> Test:
        serves = _serves(node)
        body = [statement for statement in node.body if not _is_text(statement)]
        words = tuple(word for statement in body for word in _RULES.words(statement))
        around = tuple(word for decorator in node.decorator_list for word in _RULES.words(decorator))
        parameters = {name: (name,) for name in _parameters(node)}
        found = self._walk.read(node, parameters)
        count, cases = cases_of(node, _RULES, lambda words: self._walk.made(words, self._walk.constants, _MOST))
        marks = Counter(marked((*around, *words), _SKIPS, _STANDIN)) + found.marks
        return Test(
            line=node.lineno,
            body=digest((*around, *_parameters(node), *words)),
            what="fixture" if serves else "test" if node.name.startswith("test") else "helper",
            checks=tuple(found.checks),
            cases=count,
            values=frozenset(found.values) | values_in(cases),
            marks=marks if not serves else {},
            parts=self._parts(words) if serves else (),
        )

    def _parts(self, words: Words) -> tuple[str, ...]:
        """Return the parts of a set-up, with the file's helpers replaced by their code."""
        helped = (_RULES.words(one) for name, one in self.helpers.items() if name in words)
        made = self._walk.made(words, self._walk.constants, _MOST)
        return tuple(part for some in (made, *helped) for part in parts_of(some))

    def _unasked(self) -> Iterator[str]:
        """Yield sentences on code that takes part in tests without being named by them."""
        for node in self.module.body:
            match node:
                case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) if name.startswith("pytest_"):
                    yield f"the hook {name} has a say in how tests run"
                case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) if _is_autouse(node):
                    yield f"the fixture {name} serves every test unasked (autouse)"
                case ast.Assign(targets=[ast.Name(id="pytest_plugins")]):
                    yield "plugins are loaded by a file of the tests (pytest_plugins)"
                case _:
                    pass


def _functions(module: ast.Module | ast.ClassDef, above: str) -> Iterator[tuple[str, Function]]:
    for node in module.body:
        if isinstance(node, Function):
            yield f"{above}{node.name}", node
        elif isinstance(node, ast.ClassDef):
            yield from _functions(node, f"{above}{node.name}.")


def _outside(body: Iterable[ast.stmt]) -> Iterator[ast.AST]:
    """Yield the nodes outside of functions and classes, in the order of the text."""
    for node in body:
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield from ast.walk(node)


def _serves(node: Function) -> bool:
    calls = (decorator.func if isinstance(decorator, ast.Call) else decorator for decorator in node.decorator_list)
    return node.name in _SETUPS or any(name_of(call) == "fixture" for call in calls)


def _is_autouse(node: Function) -> bool:
    words = [word for decorator in node.decorator_list for word in _RULES.words(decorator)]
    return "autouse" in words and words[words.index("autouse") + 2] != "False"


def _is_text(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _parameters(function: Function) -> list[str]:
    given = function.args
    return [parameter.arg for parameter in (*given.posonlyargs, *given.args, *given.kwonlyargs)]


def _names(node: ast.AST) -> frozenset[str]:
    """Return the names in a node; also in strings, by which a fixture can be requested."""
    return frozenset(word.strip("'\"") for word in _RULES.words(node) if is_name(word) or word[0] in "'\"")
