"""What the tests of a JavaScript or TypeScript source check: `test` and `it` in their suites, and hooks.

Importing this module loads the parsers.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from pipeline.languages.javascript.asserts import expectation, is_literal, plain
from pipeline.languages.javascript.rules import (
    FUNCTIONS,
    JavaScript,
    called,
    is_awaited,
    leaves,
    named_as,
    parameters,
    skips,
    swallows,
)
from pipeline.languages.javascript.tree import root_of
from pipeline.languages.sources.suite_walk import Helper, Walk, below, line_of, number, text, whole, written
from pipeline.languages.sources.suites import EXACT, Check, Suite, Test

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tree_sitter import Node


_TESTS: Final = {"test": (), "it": (), "specify": (), "xit": ("skip",), "xtest": ("skip",), "fit": ("only",)}
_SUITES: Final = {"describe": (), "suite": (), "context": (), "xdescribe": ("skip",), "fdescribe": ("only",)}
_HOOKS: Final = frozenset({"before", "after", "beforeEach", "afterEach", "beforeAll", "afterAll"})
_MARKS: Final = frozenset({"skip", "only", "todo", "failing", "fails", "fixme", "skipIf", "runIf"})
_OPTIONS: Final = frozenset({"skip", "only", "todo", "retry", "fails"})
_STANDIN: Final = re.compile(
    r"(?:jest|vi|mock|sinon|\w+\.mock)\.(?:mock|doMock|unstable_mockModule|fn|spyOn|stub|fake|replace|method|module"
    r"|getter|setter|stubGlobal|replaceProperty|useFakeTimers)|nock|td\.replace"
)
_MODULES: Final = re.compile(r"(?:jest|vi|mock|\w+\.mock)\.(?:mock|doMock|unstable_mockModule|module)")
_SETTINGS: Final = re.compile(r"(?:jest|vi)\.(?:setTimeout|retryTimes|setConfig)")
_FROM_ASSERT: Final = re.compile(r"['\"](?:node:)?assert(?:/strict)?['\"]")
_LIMIT_S: Final = 5.0
"""The time limit of a test in jest and vitest where nobody says otherwise."""


def read(source: bytes, path: str) -> Suite:
    """Return the tests and hooks of a source; what has errors in it is read as far as it goes."""
    root = root_of(source, path)
    reader = _Reader(root)
    reader.collect()
    return Suite(reader.tests, reader.whole)


@dataclass(frozen=True)
class _Place:
    """Where a test stands: the titles around it, what is said of all in there, how often it is made."""

    above: str = ""
    marks: tuple[str, ...] = ()
    cases: int | None = 1


@dataclass(frozen=True)
class _Registered:
    """A call that makes a test, a suite or a hook: the words of its callee, its table, its arguments."""

    words: tuple[str, ...]
    table: Node | None
    arguments: tuple[Node, ...]

    @property
    def body(self) -> Node | None:
        return next((node for node in self.arguments if node.type in FUNCTIONS), None)

    @property
    def options(self) -> Node | None:
        return next((node for node in self.arguments if node.type == "object"), None)


@dataclass
class _Reader:
    root: Node
    tests: dict[str, Test] = field(default_factory=dict[str, Test])
    whole: Counter[str] = field(default_factory=Counter[str])

    def __post_init__(self) -> None:
        self.rules = JavaScript(frozenset(_imported(self.root)))
        functions = [node for node in below(self.root) if node.type in FUNCTIONS]
        helpers = {name: _helper(node) for node in functions if (name := named_as(node)) is not None}
        constants: dict[str, str] = {}
        for node in plain(self.root):
            if node.type in {"lexical_declaration", "variable_declaration"}:
                for part in plain(node):
                    constants.update(self.rules.bindings(part, constants))
        self.walk = Walk(self.rules, helpers, constants)
        uses_node = any(
            text(node) in {"'node:test'", '"node:test"'} for node in below(self.root) if node.type == "string"
        )
        self.limit = None if uses_node else _LIMIT_S

    def collect(self) -> None:
        """Take in all that the file registers."""
        stack = [(self.root, _Place())]
        while stack:
            node, place = stack.pop()
            found = _registered(node)
            body = found.body if found is not None else None
            if found is None or found.words[0] not in {*_TESTS, *_SUITES, *_HOOKS}:
                self._of_the_file(node, place)
                times = (self.rules.times(node, child, self.walk.constants) for child in node.children)
                inside = [(child, _many(place, count)) for child, count in zip(node.children, times, strict=True)]
                stack.extend(reversed([(c, p) for c, p in inside if c.type not in FUNCTIONS or named_as(c) is None]))
            elif found.words[0] in _SUITES:
                if body is not None:
                    stack.append((body, self._inside(found, place, _SUITES[found.words[0]])))
            elif found.words[0] in _TESTS:
                self._add(self._title(found, place), self._test(node, found, place))
            elif body is not None:
                empty = not plain(body.child_by_field_name("body"))
                hook = Test(line_of(node), whole(body, self.rules), "fixture", empty=empty)
                self._add(f"{place.above}{found.words[0]}", hook)

    def _add(self, name: str, test: Test) -> None:
        number_ = 1 + sum(other == name or other.startswith(f"{name} (") for other in self.tests)
        self.tests[name if number_ == 1 else f"{name} ({number_})"] = test

    def _title(self, found: _Registered, place: _Place) -> str:
        title = found.arguments[0] if found.arguments and found.arguments[0].type not in FUNCTIONS else None
        return place.above + (written(title, self.rules).strip("'\"`") if title is not None else "a test")

    def _inside(self, found: _Registered, place: _Place, marks: tuple[str, ...]) -> _Place:
        more = (*marks, *(word for word in found.words if word in _MARKS), *_options(found.options))
        cases = self._cases(found)
        product = None if cases is None or place.cases is None else cases * place.cases
        return _Place(f"{self._title(found, place)} > ", (*place.marks, *more), product)

    def _test(self, node: Node, found: _Registered, place: _Place) -> Test:
        inside = self._inside(found, place, _TESTS[found.words[0]])
        body = found.body
        if body is None:
            return Test(line_of(node), whole(node, self.rules), cases=inside.cases, marks=Counter(inside.marks))
        given = {name: f"given {at}" for name, at in parameters(body)}
        walk = replace(self.walk, constants={**self.walk.constants, **given})
        checks = (*walk.checks(body), *_counted(body))
        self.walk.steps = walk.steps
        parts = list(below(body))
        return Test(
            line=line_of(node),
            body=whole(body, self.rules),
            checks=checks,
            cases=inside.cases,
            marks=Counter([*inside.marks, *("skip" for part in parts if skips(part))]),
            standins=sum(called(part, _STANDIN) for part in parts),
            timeout=self._limit(found, parts),
            swallowed=tuple(line_of(part) for part in parts if swallows(part)),
            vacuous=tuple(line_of(part) for part in parts if self._is_vacuous(part)),
            leaves=tuple(line_of(part) for part in parts if leaves(part, body)),
            empty=not plain(body.child_by_field_name("body")),
        )

    def _cases(self, found: _Registered) -> int | None:
        if found.table is None:
            return 1
        if found.table.type == "template_string":
            columns = text(found.table).lstrip("`").strip().split("\n", 1)[0].count("|") + 1
            return sum(child.type == "template_substitution" for child in found.table.named_children) // columns
        rows = plain(found.table)
        listed = re.match(r"(\d+) values: ", self.rules.made(rows[0], self.walk.constants)) if rows else None
        known = re.match(r"(?:mut )?(\d+) values: ", self.walk.constants.get(text(rows[0]), "")) if rows else None
        return int(listed[1]) if listed is not None else int(known[1]) if known is not None else None

    def _limit(self, found: _Registered, parts: list[Node]) -> float | None:
        own = [part for part in found.arguments if part.type == "number"]
        own += [value for name, value in _pairs(found.options) if name == "timeout"]
        calls = [part for part in parts if part.type == "call_expression"]
        own += [
            given[0]
            for part in calls
            if text(part.child_by_field_name("function")) == "this.timeout"
            and (given := plain(part.child_by_field_name("arguments")))
        ]
        limits = [limit for value in own if (limit := number(text(value))) is not None]
        return limits[-1] / 1000 if limits else self.limit

    def _of_the_file(self, node: Node, place: _Place) -> None:
        """Note what holds for all tests: stand-ins for modules, settings."""
        if node.type != "call_expression":
            return
        function, given = text(node.child_by_field_name("function")), plain(node.child_by_field_name("arguments"))
        if _MODULES.fullmatch(function) and given:
            self.whole[f"{place.above}{text(given[0])} is replaced by a stand-in"] += 1
        elif _SETTINGS.fullmatch(function):
            self.whole[f"{written(node, self.rules)} holds for all its tests"] += 1

    def _is_vacuous(self, node: Node) -> bool:
        """Return whether a node asserts of a value itself, or of a promise that nobody waits for."""
        found = expectation(node)
        if found is not None and {"resolves", "rejects"} & set(found.words):
            return not is_awaited(node)
        checks = [check for check in self.rules.checks(node, {}) if check.strength == EXACT or check.kind == "truth"]
        return any(
            check.subject == check.expected
            or (is_literal(check.subject) and (is_literal(check.expected) or check.kind == "truth"))
            for check in checks
            if check.subject != "what is caught"
        )


def _registered(node: Node) -> _Registered | None:
    """Return what a call registers: `describe.only.each(table)(title, body)` and the like."""
    if node.type != "call_expression":
        return None
    words: list[str] = []
    table: Node | None = None
    place = node.child_by_field_name("function")
    while place is not None and place.type in {"member_expression", "call_expression"}:
        if place.type == "member_expression":
            words.append(text(place.child_by_field_name("property")))
            place = place.child_by_field_name("object")
        else:
            function = place.child_by_field_name("function")
            if function is not None and text(function.child_by_field_name("property")) in {"each", "for"}:
                table = place.child_by_field_name("arguments")
            place = function
    if place is None or place.type != "identifier":
        return None
    return _Registered((text(place), *reversed(words)), table, plain(node.child_by_field_name("arguments")))


def _helper(function: Node) -> Helper:
    body = function.child_by_field_name("body") or function
    return Helper(tuple(name for name, _ in parameters(function)), body)


def _imported(root: Node) -> Iterator[str]:
    for node in root.named_children:
        if node.type in {"import_statement", "lexical_declaration"} and _FROM_ASSERT.search(text(node)):
            kinds = {"identifier", "shorthand_property_identifier_pattern"}
            yield from (text(part) for part in below(node) if part.type in kinds)


def _many(place: _Place, count: int) -> _Place:
    return place if count == 1 or place.cases is None else replace(place, cases=place.cases * count)


def _pairs(options: Node | None) -> Iterator[tuple[str, Node]]:
    for pair in plain(options):
        value = pair.child_by_field_name("value")
        if value is not None:
            yield text(pair.child_by_field_name("key")), value


def _options(options: Node | None) -> Iterator[str]:
    yield from (name for name, value in _pairs(options) if name in _OPTIONS and text(value) not in {"false", "0"})


def _counted(body: Node) -> Iterator[Check]:
    """Yield how many assertions a test says that it makes."""
    for node in below(body):
        function = text(node.child_by_field_name("function")) if node.type == "call_expression" else ""
        if function in {"expect.assertions", "expect.hasAssertions"} or re.fullmatch(r"\w+\.plan", function):
            given = text(node.child_by_field_name("arguments")).strip("()")
            yield Check("the number of assertions", function, EXACT, given, line=line_of(node))
