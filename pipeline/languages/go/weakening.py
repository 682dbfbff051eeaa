"""Reads the checks of a Go source: `Test`, `Fuzz` and `Example` functions, and the methods of suites.

Importing this module loads the parser.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Final

from pipeline.languages.go.asserts import NO_ERROR, Go
from pipeline.languages.go.syntax import parse
from pipeline.languages.sources.suite_walk import Helper, Walk, digest, marked, parts_of
from pipeline.languages.sources.suites import EXACT, RELATION, Check, Suite, Test
from pipeline.languages.sources.syntax_trees import below, line_of, text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tree_sitter import Node


_TEST: Final = re.compile(r"(?:Test|Fuzz|Example)(?![a-z])\w*")
_FIXTURES: Final = frozenset(
    {"TestMain", "SetupTest", "TearDownTest", "SetupSuite", "TearDownSuite", "SetupSubTest", "BeforeTest", "AfterTest"}
)
_OUTPUT: Final = re.compile(r"//\s*(?P<kind>[Uu]nordered output|[Oo]utput):(?P<rest>.*)")
_CONSTRAINT: Final = re.compile(rb"^//\s?(?:go:build|\s*\+build)\s+(?P<what>.*)$", re.MULTILINE)
_SKIPS: Final = frozenset({"Skip", "Skipf", "SkipNow", "Short"})
_STANDIN: Final = re.compile(r"gomock|sqlmock|mock|monkey|gock|httpmock|minimock")


def read(source: bytes, path: str) -> Suite:  # noqa: ARG001  (of every language)
    """Return the tests and fixtures of a source; one with errors is read as far as possible."""
    root = parse(source)
    functions = [node for node in root.named_children if node.type in {"function_declaration", "method_declaration"}]
    helpers = {_name(node): Helper(_parameters(node), node) for node in functions if not _is_test(node)}
    walk = Walk(Go(frozenset(filter(None, map(_receiver, functions)))), helpers)
    for node in root.named_children:
        for spec in below(node) if node.type in {"const_declaration", "var_declaration"} else ():
            walk.bind(spec, walk.constants)
    head = source[: source.find(b"\npackage ") + 1]
    built = [found["what"].decode("utf-8", "replace").strip() for found in _CONSTRAINT.finditer(head)]
    tests = {_name(node): _read(node, walk) for node in functions if _is_test(node)}
    return Suite(tests, Counter(f"it is compiled on a condition: {what}" for what in built))


def _name(function: Node) -> str:
    name, receiver = text(function.child_by_field_name("name")), function.child_by_field_name("receiver")
    kind = next((text(node) for node in below(receiver) if node.type == "type_identifier"), "") if receiver else ""
    return f"{kind}.{name}" if kind else name


def _is_test(function: Node) -> bool:
    name = text(function.child_by_field_name("name"))
    return name in _FIXTURES or _TEST.fullmatch(name) is not None


def _receiver(method: Node) -> str:
    receiver = method.child_by_field_name("receiver")
    return next((text(node) for node in below(receiver) if node.type == "identifier"), "") if receiver else ""


def _parameters(function: Node) -> tuple[str, ...]:
    given = function.child_by_field_name("parameters")
    declared = given.named_children if given is not None else []
    return tuple(text(name) for part in declared for name in part.children_by_field_name("name"))


def _read(function: Node, walk: Walk[Node]) -> Test:
    body = function.child_by_field_name("body") or function
    words, found, output = walk.language.words(body), walk.read(body), tuple(_output(body))
    is_fixture = text(function.child_by_field_name("name")) in _FIXTURES
    return Test(
        line=line_of(function),
        body=digest((*words, *(word for check in output for word in check.words))),
        what="fixture" if is_fixture else "test",
        checks=(*_without_set_up(found.checks), *output),
        values=frozenset(found.values),
        marks=Counter(marked(words, _SKIPS, _STANDIN)) + found.marks,
        parts=(*parts_of(words), *("=" for word in words if word == "=")) if is_fixture else (),
    )


def _without_set_up(checks: list[Check]) -> list[Check]:
    """Return the checks without those for no error, unless there are no others: set-up is full of these."""
    others = [check for check in checks if check.kind != NO_ERROR]
    return others or checks


def _output(body: Node) -> Iterator[Check]:
    """Yield the check of an example's output: the last comment of its body."""
    comments = [node for node in below(body) if node.type == "comment"]
    starts = [at for at, node in enumerate(comments) if _OUTPUT.match(text(node))]
    if starts:
        lines = [text(node) for node in comments[starts[-1] :]]
        first = _OUTPUT.match(lines[0])
        expected = " ".join([first["rest"] if first else "", *(line.removeprefix("//") for line in lines[1:])])
        words = ("what it prints", "==", f'"{" ".join(expected.split())}"')
        is_ordered = first is not None and first["kind"].lower() == "output"
        kind, strength = ("output", EXACT) if is_ordered else ("unordered output", RELATION)
        yield Check(words, kind, strength, line=line_of(comments[starts[-1]]))
