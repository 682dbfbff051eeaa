"""Reads the checks of a JavaScript or TypeScript source: `test` and `it` in their suites, and hooks.

Importing this module loads the parsers.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from pipeline.languages.javascript.asserts import FUNCTIONS, JavaScript, parameters, without_comments
from pipeline.languages.javascript.syntax import parse
from pipeline.languages.sources.claims import size, values_in
from pipeline.languages.sources.suite_walk import Helper, Walk, digest, marked, parts_of
from pipeline.languages.sources.suites import Suite, Test
from pipeline.languages.sources.syntax_trees import line_of, text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tree_sitter import Node


_TESTS: Final = {"test": "", "it": "", "specify": "", "xit": "skip", "xtest": "skip", "fit": "only"}
_SUITES: Final = {"describe": "", "suite": "", "context": "", "xdescribe": "skip", "fdescribe": "only"}
_HOOKS: Final = frozenset({"before", "after", "beforeEach", "afterEach", "beforeAll", "afterAll"})
_MARKS: Final = frozenset({"skip", "only", "todo", "failing", "fails", "fixme", "skipIf", "runIf", "retry"})
_STANDIN: Final = re.compile(r"(?:do)?[mM]ock(?:Module)?|fn|spyOn|stub|stubGlobal|nock|replaceProperty|useFakeTimers")
_MODULES: Final = re.compile(r"(?:jest|vi|mock|\w+\.mock)\.(?:mock|doMock|unstable_mockModule|module)")
_IMPORTED: Final = re.compile(r"\{([^}]*)\}\s*(?:from|=\s*require\()\s*['\"](?:node:)?assert(?:/strict)?['\"]")


def read(source: bytes, path: str) -> Suite:
    """Return the tests and hooks of a source; one with errors is read as far as possible."""
    reader = _Reader(parse(path, source))
    reader.collect()
    return Suite(reader.tests, reader.whole)


@dataclass(frozen=True)
class _Place:
    """The place of a test: the titles around it, marks on these, and how often it is repeated."""

    above: str = ""
    marks: tuple[str, ...] = ()
    cases: int | None = 1
    values: frozenset[str] = frozenset()


@dataclass(frozen=True)
class _Registered:
    """A call that defines a test, a suite or a hook: the words of its callee, its table, its arguments."""

    words: tuple[str, ...]
    table: Node | None
    arguments: tuple[Node, ...]

    @property
    def body(self) -> Node | None:
        return next((node for node in self.arguments if node.type in FUNCTIONS), None)


@dataclass
class _Reader:
    root: Node
    tests: dict[str, Test] = field(default_factory=dict[str, Test])
    whole: Counter[str] = field(default_factory=Counter[str])

    def __post_init__(self) -> None:
        named = _IMPORTED.findall(text(self.root))
        self.rules = JavaScript(frozenset(name.split(":")[-1].strip() for names in named for name in names.split(",")))
        helpers = {name: Helper(parameters(one), _body(one)) for name, one in _functions(self.root)}
        self.walk = Walk(self.rules, helpers)
        for declaration in without_comments(self.root):
            for part in without_comments(declaration) if declaration.type.endswith("_declaration") else ():
                self.walk.bind(part, self.walk.constants)

    def collect(self) -> None:
        """Collect the tests, suites and hooks of the file."""
        stack = [(self.root, _Place())]
        while stack:
            node, place = stack.pop()
            found = _registered(node)
            body = found.body if found is not None else None
            if found is None or found.words[0] not in {*_TESTS, *_SUITES, *_HOOKS}:
                self._of_the_file(node, place)
                place = self._repeated(node, place)
                stack.extend((child, place) for child in reversed(node.named_children) if not _is_helper(child))
            elif found.words[0] in _SUITES:
                stack += [(body, self._inside(found, place, _SUITES[found.words[0]]))] if body is not None else []
            elif found.words[0] in _TESTS:
                self._add(self._title(found, place), self._test(node, found, place))
            elif body is not None:
                words = self.rules.words(body.child_by_field_name("body"))
                self._add(
                    place.above + found.words[0], Test(line_of(node), digest(words), "fixture", parts=parts_of(words))
                )

    def _add(self, name: str, test: Test) -> None:
        number = 1 + sum(other == name or other.startswith(f"{name} (") for other in self.tests)
        self.tests[name if number == 1 else f"{name} ({number})"] = test

    def _title(self, found: _Registered, place: _Place) -> str:
        title = found.arguments[0] if found.arguments and found.arguments[0].type not in FUNCTIONS else None
        return place.above + ("".join(self.rules.words(title)).strip("'\"`") if title is not None else "a test")

    def _inside(self, found: _Registered, place: _Place, mark: str) -> _Place:
        options = next((self.rules.words(node) for node in found.arguments if node.type == "object"), ())
        marks = [word for word in (mark, *found.words, *options) if word in _MARKS]
        cases, values = self._cases(found.table)
        product = None if cases is None or place.cases is None else cases * place.cases
        return _Place(f"{self._title(found, place)} > ", (*place.marks, *marks), product, place.values | values)

    def _repeated(self, node: Node, place: _Place) -> _Place:
        """Return the place inside a loop around tests."""
        loop = self.rules.loop(node)
        count = size(self.walk.made(loop[1], self.walk.constants)) if loop is not None else None
        return replace(place, cases=place.cases * count) if count is not None and place.cases is not None else place

    def _test(self, node: Node, found: _Registered, place: _Place) -> Test:
        inside = self._inside(found, place, _TESTS[found.words[0]])
        body = found.body
        words = self.rules.words(_body(body)) if body is not None else ()
        read = self.walk.read(_body(body) if body is not None else node)
        said = marked(words, _MARKS, _STANDIN)
        return Test(
            line=line_of(node),
            body=digest(words or self.rules.words(node)),
            checks=tuple(read.checks),
            cases=inside.cases,
            values=inside.values | read.values,
            marks=Counter([*(f"{mark} is added" for mark in inside.marks), *said]) + read.marks,
        )

    def _cases(self, table: Node | None) -> tuple[int | None, frozenset[str]]:
        """Return the number of cases in a table, and its values."""
        words = self.walk.made(self.rules.words(table), self.walk.constants, 20_000)
        if table is None:
            return 1, frozenset()
        if table.type != "template_string":
            return size(words[1:-1]), values_in(words)
        columns = text(table).lstrip("`").strip().split("\n", 1)[0].count("|") + 1
        parts = [child for child in table.named_children if child.type == "template_substitution"]
        return len(parts) // columns, values_in(tuple(word for part in parts for word in self.rules.words(part)))

    def _of_the_file(self, node: Node, place: _Place) -> None:
        """Record what applies to all tests: mocked modules, settings."""
        if node.type != "call_expression":
            return
        function, given = (
            text(node.child_by_field_name("function")),
            without_comments(node.child_by_field_name("arguments")),
        )
        if _MODULES.fullmatch(function) and given:
            self.whole[f"{place.above}{text(given[0])} is replaced by a stand-in"] += 1


def _registered(node: Node) -> _Registered | None:
    """Return the test, suite or hook that a call defines (`describe.only.each(table)(title, body)`); else None."""
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
    return _Registered((text(place), *reversed(words)), table, without_comments(node.child_by_field_name("arguments")))


def _functions(root: Node) -> Iterator[tuple[str, Node]]:
    """Yield the top-level functions of the file with their names."""
    for node in root.named_children:
        if node.type == "function_declaration":
            yield text(node.child_by_field_name("name")), node
        for part in node.named_children:
            value = part.child_by_field_name("value") if part.type == "variable_declarator" else None
            if value is not None and value.type in FUNCTIONS:
                yield text(part.child_by_field_name("name")), value


def _is_helper(node: Node) -> bool:
    return node.type == "function_declaration"


def _body(function: Node) -> Node:
    return function.child_by_field_name("body") or function
