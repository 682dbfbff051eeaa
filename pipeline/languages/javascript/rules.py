"""JavaScript and TypeScript for `suite_walk`: what binds a local, what asserts, what decides what is reached."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from pipeline.languages.javascript import asserts as javascript_asserts
from pipeline.languages.javascript.asserts import plain
from pipeline.languages.sources.suite_walk import Call, below, brief, line_of, text, written

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tree_sitter import Node

    from pipeline.languages.sources.suite_walk import Names
    from pipeline.languages.sources.suites import Check

FUNCTIONS: Final = frozenset({"arrow_function", "function_expression", "function_declaration", "generator_function"})
_VALUES: Final = re.compile(r"(\d+) values: ")
_EACH: Final = frozenset({"forEach", "map", "flatMap"})


class JavaScript:
    """One file; `imported` are the functions of node's `assert` that it calls by their own names."""

    atoms = frozenset({"string", "template_string", "regex"})
    identifiers = frozenset({"identifier"})
    comments = frozenset({"comment"})
    branches = frozenset({"if_statement", "for_in_statement", "call_expression"})

    def __init__(self, imported: frozenset[str] = frozenset()) -> None:
        self.imported = imported

    def bindings(self, node: Node, names: Names) -> Iterable[tuple[str, str]]:
        """Return the names of a declaration, an assignment, a loop, a function's parameters or a `catch`."""
        if node.type == "variable_declarator":
            made = self.made(node.child_by_field_name("value"), names)
            declared = node.parent.children[0] if node.parent is not None and node.parent.children else None
            fixed = text(declared) == "const"
            yield from _parts(node.child_by_field_name("name"), made if fixed else f"mut {made}")
        elif node.type == "assignment_expression" and (left := node.child_by_field_name("left")) is not None:
            if left.type == "identifier":
                yield text(left), f"mut {self.made(node.child_by_field_name('right'), names)}"
        elif node.type == "for_in_statement":
            made = self.made(node.child_by_field_name("right"), names)
            yield from _parts(
                node.child_by_field_name("left"), "each case" if _VALUES.match(made) else f"each of {made}"
            )
        elif node.type in FUNCTIONS:
            for at, (name, _) in enumerate(parameters(node)):
                yield name, f"given {at}"
        elif node.type == "catch_clause":
            yield from _parts(node.child_by_field_name("parameter"), "what is caught")

    def made(self, value: Node | None, names: Names) -> str:
        """Return what a value is made of, the number of its elements first if it is a list that is written down."""
        made = re.sub(r"\bawait ", "", written(value, self, names))
        return f"{len(plain(value))} values: {made}" if value is not None and value.type == "array" else made

    def checks(self, node: Node, names: Names) -> Iterable[Check]:
        """Return what an expectation, an assertion, or an error on a condition checks."""
        if node.type in {"call_expression", "member_expression"}:
            found = javascript_asserts.expectation(node)
            if found is not None:
                yield from javascript_asserts.expected(found, line_of(node), self, names)
            elif node.type == "call_expression":
                yield from javascript_asserts.asserted(node, self, names, self.imported)
        elif node.type == "if_statement":
            branch, condition = node.child_by_field_name("consequence"), node.child_by_field_name("condition")
            if branch is not None and condition is not None and _throws(branch):
                yield from javascript_asserts.conditions(condition, self, names, must=False)

    def call(self, node: Node) -> Call | None:
        """Return a call of a function by its name."""
        function = node.child_by_field_name("function") if node.type == "call_expression" else None
        if function is None or function.type != "identifier":
            return None
        return Call(text(function), plain(node.child_by_field_name("arguments")))

    def guards(self, node: Node, child: Node) -> int:
        """Return 1 below an `if` whose other branch does not fail."""
        if node.type != "if_statement":
            return 0
        branch, other = node.child_by_field_name("consequence"), node.child_by_field_name("alternative")
        if child == branch:
            return int(other is None or not may_fail(other))
        return int(child == other and branch is not None and not may_fail(branch))

    def times(self, node: Node, child: Node, names: Names) -> int:
        """Return the number of values of a loop over a list that is written down; 0 below `if (false)`."""
        if node.type == "if_statement" and child == node.child_by_field_name("consequence"):
            return int(text(node.child_by_field_name("condition")).strip("() ") not in {"false", "0"})
        listed: Node | None = None
        if node.type == "for_in_statement" and child == node.child_by_field_name("body"):
            listed = node.child_by_field_name("right")
        elif node.type == "call_expression" and child == node.child_by_field_name("arguments"):
            function = node.child_by_field_name("function")
            if function is not None and text(function.child_by_field_name("property")) in _EACH:
                listed = function.child_by_field_name("object")
        found = _VALUES.match(self.made(listed, names)) if listed is not None else None
        return int(found[1]) if found is not None else 1

    def ends(self, node: Node) -> bool:
        """Return whether the statement is a plain `return`."""
        return node.type == "return_statement" and not node.named_children

    def is_apart(self, node: Node) -> bool:
        """Return whether it is a function that has a name of its own."""
        return node.type in FUNCTIONS and named_as(node) is not None


def named_as(function: Node) -> str | None:
    """Return the name of a function, None for one that is used where it stands."""
    if function.type == "function_declaration":
        return text(function.child_by_field_name("name"))
    around = function.parent
    if around is None or around.type != "variable_declarator":
        return None
    return text(around.child_by_field_name("name"))


def parameters(function: Node) -> Iterator[tuple[str, int]]:
    """Yield the names of a function's parameters, with the number of the parameter."""
    alone = function.child_by_field_name("parameter")
    given = plain(function.child_by_field_name("parameters")) if alone is None else (alone,)
    for at, parameter in enumerate(given):
        pattern = parameter.child_by_field_name("pattern") or parameter
        yield from ((name, at) for name, _ in _parts(pattern, ""))


def may_fail(branch: Node) -> bool:
    """Return whether anything in a node asserts or throws."""
    return any(is_assertion(node) or node.type == "throw_statement" for node in below(branch))


def is_assertion(node: Node) -> bool:
    """Return whether a node is a call of `expect`, `assert` or `fail`."""
    if node.type != "call_expression":
        return False
    function = text(node.child_by_field_name("function"))
    return re.match(r"(?:\w+\.)?(?:expect|assert|strict|fail)\b", function) is not None


def _throws(branch: Node) -> bool:
    statements = plain(branch) if branch.type == "statement_block" else (branch,)
    return any(statement.type == "throw_statement" for statement in statements)


def _parts(pattern: Node | None, made: str) -> Iterator[tuple[str, str]]:
    """Yield the names of a pattern: one alone is the value, several are its parts."""
    if pattern is None:
        return
    if pattern.type == "identifier":
        yield text(pattern), made
        return
    for at, node in enumerate(node for node in below(pattern) if _is_bound(node)):
        key = text(node) if node.type == "shorthand_property_identifier_pattern" else str(at)
        yield text(node), f"{brief(made)}.{key}"


def _is_bound(node: Node) -> bool:
    return node.type in {"identifier", "shorthand_property_identifier_pattern"}


def called(node: Node, pattern: re.Pattern[str]) -> bool:
    """Return whether a node calls a function of that name."""
    return node.type == "call_expression" and pattern.fullmatch(text(node.child_by_field_name("function"))) is not None


def skips(node: Node) -> bool:
    """Return whether a node skips the test that it stands in."""
    return called(node, re.compile(r"(?:\w+\.)?(?:skip|todo|fixme)|(?:test|it)\.(?:skip|todo|only)"))


def swallows(node: Node) -> bool:
    """Return whether a failing assertion below a node would be caught and forgotten."""
    if node.type == "try_statement":
        tried, handler = node.child_by_field_name("body"), node.child_by_field_name("handler")
        asserts = tried is not None and any(map(is_assertion, below(tried)))
        return asserts and handler is not None and not may_fail(handler) and "done(" not in text(handler)
    function = node.child_by_field_name("function") if node.type == "call_expression" else None
    if function is None or text(function.child_by_field_name("property")) != "catch":
        return False
    handlers = [part for part in plain(node.child_by_field_name("arguments")) if part.type in FUNCTIONS]
    tried = function.child_by_field_name("object")
    asserts = tried is not None and any(map(is_assertion, below(tried)))
    return asserts and any(not may_fail(handler) for handler in handlers)


def is_awaited(node: Node) -> bool:
    """Return whether somebody waits for a promise, or is given it."""
    above = node.parent
    while above is not None and above.type in {"member_expression", "call_expression", "arguments", "array"}:
        above = above.parent
    return above is not None and above.type != "expression_statement"


def leaves(node: Node, body: Node) -> bool:
    """Return whether a test returns here, from a block that has not asserted anything."""
    if node.type != "return_statement" or node.named_children or node.parent is None:
        return False
    block, above = node.parent, node.parent
    while above is not None and above != body:
        if above.type in FUNCTIONS:
            return False
        above = above.parent
    return block.parent != body and not may_fail(block)
