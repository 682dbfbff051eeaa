"""What the tests of a Python source check: test functions, classes of tests, and fixtures."""

from __future__ import annotations

import ast
import warnings
from collections import Counter
from typing import TYPE_CHECKING, Final

from pipeline.languages.python.checks_of_tests import is_empty, is_vacuous, leaves, swallows, tests_in
from pipeline.languages.python.constants import Changed, changed, constants_in, values_of
from pipeline.languages.python.locals import Reader
from pipeline.languages.python.setup import parts_of
from pipeline.languages.python.uses import Uses
from pipeline.languages.sources.suite_changes import compare
from pipeline.languages.sources.suites import Suite, Test, Weakening, listed

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from pipeline.languages.python.checks_of_tests import Definition, Function

_SKIPS: Final = frozenset(
    {"skip", "skipif", "xfail", "importorskip", "skipIf", "skipUnless", "expectedFailure", "skipTest"}
)
_STANDINS: Final = frozenset({"patch", "object", "setattr", "setitem", "delattr", "MagicMock", "Mock", "AsyncMock"})
_WHOLE: Final = "the whole file is skipped, or expected to fail"


class File:
    """One Python file of tests, None of it where it cannot be parsed."""

    def __init__(self, module: ast.Module) -> None:
        self.module = module
        self.constants = constants_in(module)
        self.values = values_of(self.constants)

    @property
    def bound(self) -> frozenset[str] | None:
        """Return the names that the module binds at its top; None if they cannot be told: it imports all of another."""
        names: set[str] = {name.partition(".")[0] for name in self.constants}
        for node in self.module.body:
            match node:
                case ast.Import(names=found) | ast.ImportFrom(names=found):
                    names |= {(one.asname or one.name).partition(".")[0] for one in found}
                case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                    names.add(name)
                case _:
                    pass
        return None if "*" in names else frozenset(names)

    def suite(self, names: Collection[str], tables: Collection[str]) -> Suite:
        """Return its tests and fixtures.

        Args:
            names: Constants that are written as what they are.
            tables: Constants whose values are the cases of those who go through them.
        """
        inline, listed = ({name: self.values[name] for name in some if name in self.values} for some in (names, tables))
        reader = Reader(self.module, inline, listed)
        tests = {name: _test(definition, reader) for name, definition in tests_in(self.module).items()}
        marks = [node for node in self.module.body if isinstance(node, ast.Assign | ast.Expr)]
        skipped = {_WHOLE: sum(sum(_names(node, _SKIPS).values()) for node in marks)}
        return Suite(tests, {**skipped, **dict.fromkeys(_unasked(self.module), 1)})


def read(source: bytes, path: str) -> Suite | None:  # noqa: ARG001  (of every language)
    """Return the tests and fixtures of a source with its constants as they are; None if it cannot be parsed."""
    found = file_of(source)
    return found.suite(found.values, found.values) if found is not None else None


def read_plain(source: bytes) -> Suite | None:
    """Return the same with the names of constants: in another file the same name may be imported."""
    found = file_of(source)
    return found.suite((), found.values) if found is not None else None


def file_of(source: bytes) -> File | None:
    """Return a source as a file of tests, None if it cannot be parsed."""
    module = _parse(source)
    return File(module) if module is not None else None


def read_both(old: File, new: File) -> tuple[Suite, Suite]:
    """Return the tests of a file before and after, so that they can be compared.

    A constant that only one of them has is written as what it is: it got a name, or lost one. One that both have keeps
    its name: whether it changed is told once, not for each assertion.
    """
    other = {one.name for one in changed(old.constants, new.constants)}
    suites: list[Suite] = []
    for file, beside in ((old, new), (new, old)):
        bound = beside.bound
        names = [name for name in file.values if bound is not None and name not in bound]
        suites.append(file.suite(names, [name for name in file.values if name not in other]))
    return suites[0], suites[1]


def changed_constants(old: File, new: File) -> Iterator[tuple[Changed, tuple[str, ...]]]:
    """Yield each constant of which something is gone, with the tests of the old file that use it, if any does."""
    differing = list(changed(old.constants, new.constants))
    uses = Uses(old.module, old.constants) if differing else None
    kept = set(tests_in(new.module))
    for one in differing:
        tests = [test for test in uses.tests([one.name]) if test in kept] if uses is not None else []
        if tests:
            yield one, tuple(tests)


def constants_told(old: File, new: File) -> Iterator[Weakening]:
    """Yield a sentence for each constant of old tests of which something is gone."""
    for one, tests in changed_constants(old, new):
        yield Weakening("", f"{one.what} (used by {listed(tests)})", one.line)


def helpers_lost(old: File, new: File) -> Iterator[tuple[Changed, frozenset[str], bool]]:
    """Yield each constant of a file of helpers of which something is gone, and each function that checks less.

    Each comes with the names of that file that are made of it, and whether one of them serves every test unasked.
    """
    before, after = _functions(old), _functions(new)
    kept = before.keys() & after.keys()
    was, now = (Suite({name: tests[name] for name in before if name in kept}) for tests in (before, after))
    weaker = compare(was, now)
    differing = [*changed(old.constants, new.constants)]
    differing += [Changed(one.test, f"{one.test}: {one.what}", one.line) for one in weaker]
    uses = Uses(old.module, old.constants) if differing else None
    for one in differing:
        names = uses.reaching([one.name]) if uses is not None else set[str]()
        yield one, frozenset(names), uses is not None and uses.serves_all(names)


def _functions(file: File) -> dict[str, Test]:
    """Return the functions of a file of helpers as tests: what one checks, it checks for the tests that call it."""
    reader = Reader(file.module, {}, {})
    return {
        name: Test(node.lineno, ast.dump(node), checks=reader.checks(node)) for name, node in reader.helpers.items()
    }


def users(file: File, names: Collection[str], is_theirs: Callable[[str], bool]) -> tuple[str, ...]:
    """Return the tests of a file that use one of some names of another file.

    Args:
        file: The file of tests.
        names: Names of the other file.
        is_theirs: Tells whether a module, by its dotted name, is the other file.
    """
    here: set[str] = set()
    for node in ast.walk(file.module):
        match node:
            case ast.Import(names=found):
                here |= {f"{one.asname or one.name}.{name}" for one in found if is_theirs(one.name) for name in names}
            case ast.ImportFrom(module=module, names=found):
                for one in found:
                    if is_theirs(module or ""):
                        here |= set(names) if one.name == "*" else _as_here(one, names)
                    if is_theirs(f"{module}.{one.name}" if module else one.name):
                        here |= {f"{one.asname or one.name}.{name}" for name in names}
            case _:
                pass
    return Uses(file.module, file.constants).tests(here) if here else ()


def tests_with(file: File, names: Collection[str] | None) -> tuple[str, ...]:
    """Return the tests of a file that use one of these names, of fixtures that are not its own; all tests for None."""
    uses = Uses(file.module, file.constants)
    return uses.tests(names) if names is not None else uses.every


def _as_here(one: ast.alias, names: Collection[str]) -> set[str]:
    return {one.asname or one.name} if one.name in names else set()


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
    cases = reader.cases(node) if definition.cases is None else None
    ends = [*leaves(node), *(line for helper in _helpers(node, reader) for line in leaves(helper))]
    return Test(
        line=node.lineno,
        body=ast.dump(node),
        what="fixture" if _serves(definition) else "test",
        checks=() if definition.is_fixture else reader.checks(node),
        cases=len(cases) if cases is not None else definition.cases,
        marks=_names(node, _SKIPS),
        standins=sum(_names(node, _STANDINS).values()),
        timeout=definition.timeout,
        swallowed=tuple(part.lineno for part in swallows(node)),
        vacuous=tuple(part.lineno for part in is_vacuous(node)),
        leaves=tuple(part.lineno for part in ends),
        empty=_serves(definition) and is_empty(node),
        parts=parts_of(node, reader) if _serves(definition) else (),
    )


def _helpers(node: Function, reader: Reader) -> Iterator[Function]:
    """Yield the helpers of the file that a test calls itself."""
    called = {part.func.id for part in ast.walk(node) if isinstance(part, ast.Call) and isinstance(part.func, ast.Name)}
    yield from (helper for name, helper in reader.helpers.items() if name in called)


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
