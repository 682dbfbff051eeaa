"""What the tests of a Go source check: `Test`, `Fuzz` and `Example` functions, and the methods of suites.

Importing this module loads the parser.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Final

from pipeline.languages.go import asserts as go_asserts
from pipeline.languages.go.rules import Go, named_as
from pipeline.languages.go.tree import root_of
from pipeline.languages.sources.suite_walk import Helper, Walk, below, brief, line_of, text, whole, written
from pipeline.languages.sources.suites import EXACT, Check, Suite, Test

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tree_sitter import Node

_TEST: Final = re.compile(r"(?:Test|Fuzz|Example)(?![a-z])\w*")
_FIXTURES: Final = frozenset(
    {"TestMain", "SetupTest", "TearDownTest", "SetupSuite", "TearDownSuite", "SetupSubTest", "BeforeTest", "AfterTest"}
)
_OUTPUT: Final = re.compile(r"//\s*(?P<kind>[Uu]nordered output|[Oo]utput):(?P<rest>.*)")
_CONSTRAINT: Final = re.compile(rb"^//\s?(?:go:build|\s*\+build)\s+(?P<what>.*)$", re.MULTILINE)
_STANDIN: Final = re.compile(r"gomock|sqlmock|mock|monkey|gock|httpmock|minimock")
_FUNCTIONS: Final = frozenset({"function_declaration", "method_declaration"})


def read(source: bytes, path: str) -> Suite:  # noqa: ARG001  (of every language)
    """Return the tests and fixtures of a source; what has errors in it is read as far as it goes."""
    root = root_of(source)
    functions = [node for node in root.named_children if node.type in _FUNCTIONS]
    helpers = {name: helper for node in functions for name, helper in _helpers(node)}
    constants: dict[str, str] = {}
    rules = Go()
    for node in root.named_children:
        if node.type in {"const_declaration", "var_declaration"}:
            for spec in below(node):
                constants.update(rules.bindings(spec, constants))
    walk = Walk(rules, helpers, constants)
    tests = {_name(node): _read(node, walk) for node in functions if _is_test(node)}
    head = source[: source.find(b"\npackage ") + 1]
    conditions = [found["what"].decode("utf-8", "replace").strip() for found in _CONSTRAINT.finditer(head)]
    return Suite(tests, Counter(f"it is compiled on a condition: {what}" for what in conditions))


def _name(function: Node) -> str:
    name, receiver = text(function.child_by_field_name("name")), function.child_by_field_name("receiver")
    kind = next((text(node) for node in below(receiver) if node.type == "type_identifier"), "") if receiver else ""
    return f"{kind}.{name}" if kind else name


def _is_test(function: Node) -> bool:
    name = text(function.child_by_field_name("name"))
    return name in _FIXTURES or _TEST.fullmatch(name) is not None


def _helpers(function: Node) -> Iterator[tuple[str, Helper]]:
    """Yield a function that is no test, and those that are given names inside of one."""
    body = function.child_by_field_name("body")
    if not _is_test(function) and function.type == "function_declaration" and body is not None:
        yield text(function.child_by_field_name("name")), Helper(_parameters(function), body)
    for node in below(function):
        name = named_as(node) if node.type == "func_literal" else None
        inside = node.child_by_field_name("body")
        if name is not None and inside is not None:
            yield name, Helper(_parameters(node), inside)


def _parameters(function: Node) -> tuple[str, ...]:
    given = function.child_by_field_name("parameters")
    declared = given.named_children if given is not None else []
    return tuple(text(name) for part in declared for name in part.children_by_field_name("name"))


def _read(function: Node, shared: Walk) -> Test:
    body = function.child_by_field_name("body") or function
    receiver = next(
        (text(n) for n in below(function.child_by_field_name("receiver") or body) if n.type == "identifier"), ""
    )
    rules = Go(receiver if function.type == "method_declaration" else "")
    walk = Walk(rules, shared.helpers, shared.constants, shared.steps)
    checks = (*walk.checks(body), *_output(body))
    shared.steps = walk.steps
    if any(check.kind != go_asserts.NO_ERROR for check in checks):  # set-up is full of these
        checks = tuple(check for check in checks if check.kind != go_asserts.NO_ERROR)
    name = text(function.child_by_field_name("name"))
    return Test(
        line=line_of(function),
        body=whole(body, rules) + "".join(check.expected for check in _output(body)),
        what="fixture" if name in _FIXTURES else "test",
        checks=checks,
        cases=max(1, sum(_calls(node, "Add", "f") for node in below(body))),
        marks=Counter(filter(None, map(_mark, below(body)))),
        standins=sum(node.type == "identifier" and _STANDIN.fullmatch(text(node)) is not None for node in below(body)),
        swallowed=tuple(line_of(node) for node in below(body) if _recovers(node)),
        vacuous=tuple(line_of(node) for node in below(body) if _is_vacuous(node, rules)),
        leaves=tuple(_leaves(body)),
        discarded=tuple(_discarded(body, rules, shared.constants)),
        empty=not any(child.is_named and child.type != "comment" for child in body.children),
    )


def _output(body: Node) -> Iterator[Check]:
    """Yield what an example is compared with: the last comment of its body."""
    comments = [node for node in below(body) if node.type == "comment"]
    starts = [at for at, node in enumerate(comments) if _OUTPUT.match(text(node))]
    if starts:
        lines = [text(node) for node in comments[starts[-1] :]]
        first = _OUTPUT.match(lines[0])
        expected = " ".join([first["rest"] if first else "", *(line.removeprefix("//") for line in lines[1:])])
        kind = first["kind"].capitalize() if first else "Output"
        yield Check("what it prints", kind, EXACT, " ".join(expected.split()), line=line_of(comments[starts[-1]]))


def _calls(node: Node, name: str, operand: str) -> bool:
    found = go_asserts.method(node)
    return found is not None and found[1] == name and text(found[0]) == operand


def _mark(node: Node) -> str | None:
    if go_asserts.called_on_test(node, frozenset({"Skip", "Skipf", "SkipNow"})):
        return "t.Skip"
    return "testing.Short" if _calls(node, "Short", "testing") else None


def _recovers(node: Node) -> bool:
    return node.type == "defer_statement" and any(
        part.type == "call_expression" and text(part.child_by_field_name("function")) == "recover"
        for part in below(node)
    )


def _is_vacuous(node: Node, rules: Go) -> bool:
    if node.type == "if_statement":
        condition = node.child_by_field_name("condition")
        same = condition is not None and condition.type == "binary_expression" and _same(condition, rules)
        return same or text(condition) == "false"
    checks = list(go_asserts.testify(node, rules, {}, rules.receiver)) if node.type == "call_expression" else []
    return any(check.subject in {check.expected, "true"} for check in checks)


def _same(condition: Node, rules: Go) -> bool:
    left, right = (written(condition.child_by_field_name(side), rules) for side in ("left", "right"))
    return left == right and text(condition.child_by_field_name("operator")) in {"!=", "<", ">"}


def _leaves(body: Node) -> Iterator[int]:
    """Yield where a test returns from a block that has not failed it or looked at anything."""
    for node in below(body):
        block = node.parent
        if node.type != "return_statement" or node.named_children or block is None:
            continue
        if block.parent is not None and block.parent != body and not _looks(block):
            yield line_of(node)


def _looks(block: Node) -> bool:
    calls = (go_asserts.method(node) for node in below(block))
    handled = go_asserts.FAILS | {"Skip", "Skipf", "SkipNow"}
    return any(call is not None and (call[1] in handled or text(call[0]) in {"assert", "require"}) for call in calls)


def _discarded(body: Node, rules: Go, constants: Mapping[str, str]) -> Iterator[tuple[str, int]]:
    names = dict(constants)
    for node in below(body):
        found = list(rules.bindings(node, names))
        names.update({name: brief(made) for name, made in found})
        if node.type in {"assignment_statement", "short_var_declaration"}:
            yield from ((made, line_of(node)) for name, made in found if name == "_" and "(" in made)
