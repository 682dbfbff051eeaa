"""What the tests of a Python source check: test functions, classes of tests, and fixtures."""

from __future__ import annotations

import ast
import warnings
from collections import Counter
from typing import TYPE_CHECKING, Final

from pipeline.policy.checks_of_tests import is_empty, is_vacuous, swallows, tests_in
from pipeline.policy.python_locals import Reader
from pipeline.policy.suites import Suite, Test

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pipeline.policy.checks_of_tests import Definition

_SKIPS: Final = frozenset(
    {"skip", "skipif", "xfail", "importorskip", "skipIf", "skipUnless", "expectedFailure", "skipTest"}
)
_STANDINS: Final = frozenset({"patch", "object", "setattr", "setitem", "delattr", "MagicMock", "Mock", "AsyncMock"})
_WHOLE: Final = "the whole file is skipped, or expected to fail"


def read(source: bytes, path: str) -> Suite | None:  # noqa: ARG001  (of every language)
    """Return the tests and fixtures of a source, None if it cannot be parsed."""
    module = _parse(source)
    if module is None:
        return None
    reader = Reader(module)
    tests = {name: _test(definition, reader) for name, definition in tests_in(module).items()}
    marks = [node for node in module.body if isinstance(node, ast.Assign | ast.Expr)]
    skipped = {_WHOLE: sum(sum(_names(node, _SKIPS).values()) for node in marks)}
    return Suite(tests, {**skipped, **dict.fromkeys(_unasked(module), 1)})


def _unasked(module: ast.Module) -> Iterator[str]:
    """Yield what has a part in tests that do not name it."""
    for node in module.body:
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) if name.startswith("pytest_"):
                yield f"the hook {name} has a say in how tests run"
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) if _is_autouse(node):
                yield f"the fixture {name} serves every test unasked (autouse)"
            case ast.Assign(targets=[ast.Name(id="pytest_plugins")]):
                yield "plugins are loaded by a file of the tests (pytest_plugins)"
            case _:
                pass


def _is_autouse(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    keywords = (word for part in node.decorator_list if isinstance(part, ast.Call) for word in part.keywords)
    return any(
        word.arg == "autouse" and not (isinstance(word.value, ast.Constant) and not word.value.value)
        for word in keywords
    )


def _parse(source: bytes) -> ast.Module | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an invalid escape in somebody's string
            return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _test(definition: Definition, reader: Reader) -> Test:
    node = definition.node
    return Test(
        line=node.lineno,
        body=ast.dump(node),
        what="fixture" if _serves(definition) else "test",
        checks=() if definition.is_fixture else reader.checks(node),
        cases=definition.cases,
        marks=_names(node, _SKIPS),
        standins=sum(_names(node, _STANDINS).values()),
        timeout=definition.timeout,
        swallowed=tuple(part.lineno for part in swallows(node)),
        vacuous=tuple(part.lineno for part in is_vacuous(node)),
        empty=_serves(definition) and is_empty(node),
    )


def _serves(definition: Definition) -> bool:
    return definition.is_fixture or not definition.node.name.startswith("test")


def _names(node: ast.AST, wanted: frozenset[str]) -> Counter[str]:
    found: Counter[str] = Counter()
    for part in ast.walk(node):
        match part:
            case ast.Attribute(attr=name) | ast.Name(id=name) if name in wanted:
                found[name] += 1
            case _:
                pass
    return found
