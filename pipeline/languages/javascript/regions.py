"""Finds each test in a JavaScript file: its bytes, and its name without parameters.

The region of a test is its whole statement, the loop or table around it included, and the hooks of the suites around
it: whoever changes one of these changes what the test says.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pipeline.languages.javascript.syntax import FUNCTIONS, around, at, bare, field, literal
from pipeline.languages.sources.syntax_trees import below, field_text, text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tree_sitter import Node

TESTS: Final = frozenset({"test", "it", "fit", "xit", "xtest", "ftest", "specify", "bench"})
SUITES: Final = frozenset({"describe", "suite", "context", "fdescribe", "xdescribe"})
HOOKS: Final = frozenset(
    {"before", "after", "beforeEach", "afterEach", "beforeAll", "afterAll", "onTestFinished", "onTestFailed"}
)
_ASSERTING: Final = frozenset({"assert", "expect", "chai", "t", "strict"})
_SAYS_NOTHING: Final = frozenset({"undefined", "NaN", "Infinity", "Error", "AssertionError", "TypeError", "RangeError"})
_NAMES: Final = frozenset({"identifier", "this", "shorthand_property_identifier"})


@dataclass(frozen=True)
class Region:
    """A test in its file. `function` is the part of the id that all tests of one table or loop share."""

    sha256: str
    function: str


def region_of(top: Node, path: str, line: int, column: int | None) -> Region | None:
    """Return the test that is defined at a place of a file, None if no test function is called there."""
    call = _call_at(top, line, column)
    if call is None:
        return None
    statement, containers = _statement(call)
    digest = hashlib.sha256()
    for part in (statement, *(hook for container in containers for hook in _hooks(container))):
        digest.update((part.text or b"") + b"\0")
    titles = [_title(call)]
    for container in containers:
        suite = _suite_of(container)
        if suite is not None:
            titles.append(_title(suite))
            digest.update((field_text(suite, "function") + titles[-1]).encode() + b"\0")
    return Region(digest.hexdigest(), f"{path}::{' > '.join(reversed(titles))}")


def names_in(top: Node, line: int, column: int | None) -> frozenset[str]:
    """Return the names in the test that is defined at a place of a file."""
    call = _call_at(top, line, column)
    statement = _statement(call)[0] if call is not None else None
    inside = below(statement) if statement is not None else ()
    return frozenset(text(node) for node in inside if node.type == "identifier")


def _call_at(top: Node, line: int, column: int | None) -> Node | None:
    start = at(top, line, column)
    for node in around(start) if start is not None else ():
        if node.type == "call_expression" and root_name(node) in TESTS:
            return _whole_call(node)
    # what a wrapper of the project's own defines: the first call on the way whose first argument is a title
    for node in around(start) if start is not None else ():
        if node.type == "call_expression" and _first(node) is not None and literal(_first(node)) is not None:
            return _whole_call(node)
    return None


def _whole_call(node: Node) -> Node:
    """Return the whole call `test.each(table)("name", body)` for its inner `test.each(table)`."""
    while node.parent is not None and node.parent.type == "call_expression" and field(node.parent, "function") == node:
        node = node.parent
    return node


def root_name(node: Node) -> str:
    """Return the first name of a called expression: `test` of `test.each(table)("name", body)`."""
    root: Node | None = node
    while root is not None and root.type in {"call_expression", "member_expression", "parenthesized_expression"}:
        root = field(root, "function") or field(root, "object") or bare(root)
    return text(root) if root is not None and root.type == "identifier" else ""


def _first(call: Node) -> Node | None:
    arguments = field(call, "arguments")
    return next(iter(arguments.named_children), None) if arguments is not None else None


def _title(call: Node) -> str:
    first = _first(call)
    found = literal(first)
    if found is not None:
        return " ".join(found.split())
    return " ".join(text(first).split())[:200] if first is not None and first.type not in FUNCTIONS else ""


def _statement(call: Node) -> tuple[Node, list[Node]]:
    """Return the statement of a test in its suite, and the bodies of the suites around it, the file's own last."""
    statement = call
    while statement.parent is not None and not _is_container(statement.parent):
        statement = statement.parent
    return statement, [node for node in around(statement) if node != statement and _is_container(node)]


def _is_container(node: Node) -> bool:
    return node.type == "program" or _suite_of(node) is not None


def _suite_of(body: Node) -> Node | None:
    """Return the `describe` call whose function has this body, None if it is none."""
    function = body.parent
    if body.type != "statement_block" or function is None or function.type not in FUNCTIONS:
        return None
    arguments = function.parent
    call = arguments.parent if arguments is not None and arguments.type == "arguments" else None
    return call if call is not None and root_name(call) in SUITES else None


def _hooks(container: Node) -> Iterator[Node]:
    for statement in container.named_children:
        call = next(iter(statement.named_children), None) if statement.type == "expression_statement" else None
        if call is not None and call.type == "call_expression" and root_name(call) in HOOKS:
            yield statement


def is_bare(node: Node) -> bool:
    """Return whether the failing statement fails unconditionally: it looks only at literals."""
    statement = next((one for one in around(node) if one.type in {"expression_statement", "throw_statement"}), None)
    statement = statement or next((one for one in around(node) if one.type == "call_expression"), None)
    if statement is None:
        return False
    if statement.type != "throw_statement" and not _asserts(statement):
        return False
    return not any(_looks(part) for part in below(statement) if part.type in _NAMES)


def _asserts(statement: Node) -> bool:
    calls = (node for node in below(statement) if node.type == "call_expression")
    return any(root_name(call) in _ASSERTING or root_name(call) == "fail" for call in calls)


def _looks(name: Node) -> bool:
    """Return whether a name is more than an assertion's or an error class's."""
    word = text(name)
    if word in _SAYS_NOTHING or word == "fail":
        return False
    if word not in _ASSERTING:
        return True
    # `assert`, `expect.fail`, `t.assert`: what is called, not what is looked at
    holder = name.parent
    return holder is None or holder.type not in {"call_expression", "member_expression"}
