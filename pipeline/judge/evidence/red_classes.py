"""The classes of RED, and the facts of a task by which a failing test is classified (matrix 5)."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Final, Literal, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pipeline.judge.evidence.observation import Frame, Layout, TestRecord

Expected = Literal["RED", "GUARD"]
Symptom = Literal["hang", "crash"]


class RedClass(StrEnum):
    """The class of a test that should be RED."""

    ASSERTION_MISMATCH = "ASSERTION_MISMATCH"
    MISSING_BEHAVIOR = "MISSING_BEHAVIOR"
    IMPORT_HIDES_TESTS = "IMPORT_HIDES_TESTS"
    STRUCTURAL = "STRUCTURAL"
    TEST_TIMEOUT = "TEST_TIMEOUT"
    CRASHED = "CRASHED"
    TEST_BROKEN = "TEST_BROKEN"
    ENV_BROKEN = "ENV_BROKEN"
    GUARD = "GUARD"
    GUARD_FAILS = "GUARD_FAILS"
    PASSED_UNMARKED = "PASSED_UNMARKED"
    SKIPPED = "SKIPPED"
    XFAILED = "XFAILED"
    NOT_RUN = "NOT_RUN"


def red_words(cls: str) -> str:
    """Return a class for people: what is called after an assertion is any wrong answer of code that was there."""
    return "wrong result or exception" if cls == RedClass.ASSERTION_MISMATCH else cls


MISSING_FILE: Final = "AbsentFile"  # what "was raised" for tests beside code that production does not have

EXAMPLE: Final = "<doctest>"  # the function of a frame that is an example in documentation, whatever file it is in

PASSED: Final = frozenset({RedClass.GUARD, RedClass.PASSED_UNMARKED})


@dataclass(frozen=True)
class Symbol:
    """A name that the task introduces or changes, dotted for methods; `path` is empty when the task does not say."""

    path: str
    name: str
    new: bool = True


class ModuleNames(Protocol):
    """The mapping from names of modules and packages to files, for all languages."""

    def is_module(self, path: str, module: str) -> bool:
        """Return whether a file is the module of a name."""
        ...

    def is_part_of(self, path: str, module: str) -> bool:
        """Return whether a file is the module of a name, or lies in the package of that name."""
        ...


@dataclass(frozen=True)
class Context:
    """The facts about a task and its trees that classification needs.

    `existing` are the files of the tree before the tests were written; `task_files` the production files of the task,
    `removed` those that it takes away: a test that finds one of them there fails for the right reason;
    `layout` tells tests from production; `names` are those of modules. `expected` is what the test writer announced,
    by id or by function, which means all its cases: it may only mark a GUARD. With `stubbed` the production has the
    task's new symbols as stubs, and every RED must reach one (ADR-7). With `scaffolds` it would have, if the task
    named them: what is missing then was forgotten, and an import error is no RED.
    """

    symbols: tuple[Symbol, ...]
    existing: frozenset[str]
    layout: Layout
    names: ModuleNames
    task_files: frozenset[str] = frozenset()
    removed: frozenset[str] = frozenset()
    symptom: Symptom | None = None
    expected: Mapping[str, Expected] = field(default_factory=dict[str, Expected])
    stubbed: bool = False
    scaffolds: bool = False

    def introduces(self, name: str, owner: str = "") -> bool:
        """Return whether the task introduces a missing name: one of its symbols, or a module among its files.

        A name of a module that the task changes without naming any symbol there counts too.
        """
        last = _parts(name)[-1]
        if any(last in _parts(symbol.name) or _ends(owner) == _ends(symbol.name) for symbol in self.symbols):
            return True
        if any(self._creates_module(candidate) for candidate in (name, f"{owner}.{name}")):
            return True
        silent = self.task_files - {symbol.path for symbol in self.symbols}
        return bool(owner) and any(self.names.is_module(path, owner) for path in silent)

    def names_method(self, name: str, owner: str) -> bool:
        """Return whether a symbol of the task is just this method of this class, and the class is none of the tests'.

        Stricter than `introduces`: the error that lacks a special method names no object, and a word is soon the same.
        """
        return any(self._is_method(symbol, name, _parts(owner)) for symbol in self.symbols)

    def _is_method(self, symbol: Symbol, name: str, owner: list[str]) -> bool:
        *cls, method = _parts(symbol.name)
        if method != name or not cls or owner[-len(cls) :] != cls:
            return False
        module = ".".join(owner[: -len(cls)])
        if any(self._is_of_tests(".".join(owner[:end])) for end in range(1, len(owner))):
            return False
        return not (symbol.path and module) or self.names.is_part_of(symbol.path, module)

    def _is_of_tests(self, module: str) -> bool:
        return any(self.names.is_module(path, module) for path in self.layout.collected if self.layout.is_test(path))

    def _creates_module(self, module: str) -> bool:
        """Return whether the task creates a module or package; one that exists and fails to import is broken."""
        places = {symbol.path for symbol in self.symbols if symbol.path} | self.task_files
        created = any(self.names.is_part_of(path, module) for path in places - self.existing)
        return created and not any(self.names.is_part_of(path, module) for path in self.existing)

    def announced(self, record: TestRecord) -> bool:
        """Return whether the test, or its function with all cases, was announced as a guard."""
        return "GUARD" in {self.expected.get(record.id), self.expected.get(record.function)}

    def is_production(self, frame: Frame) -> bool:
        """Return whether a frame is in code under test; an example in its documentation is not."""
        return frame.function != EXAMPLE and not self.layout.is_test_side(frame.path)


@dataclass(frozen=True)
class Classified:
    """The class of one test id or file; the message is for the agent who wrote the test."""

    cls: RedClass
    legal: bool
    message: str


def _parts(name: str) -> list[str]:
    """Return the parts of a dotted name, with `.` or `::` between them."""
    return name.replace("::", ".").split(".")


def _ends(name: str) -> str:
    return _parts(name)[-1] or "\0"
