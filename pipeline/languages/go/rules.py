"""Go for `suite_walk`: what binds a local, what fails a test, what decides whether something is reached.

Importing this module loads the parser.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from pipeline.languages.go import asserts as go_asserts
from pipeline.languages.sources.suite_walk import Call, below, brief, line_of, text, written
from pipeline.languages.sources.suites import RELATION, Check

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tree_sitter import Node

    from pipeline.languages.sources.suite_walk import Names

_VALUES: Final = re.compile(r"(\d+) values: ")
_BINDS: Final = frozenset({"short_var_declaration", "assignment_statement"})
_SPECS: Final = frozenset({"var_spec", "const_spec"})


class Go:
    """One file of Go; `receiver` is what the methods of a suite call it."""

    atoms = frozenset({"interpreted_string_literal", "raw_string_literal", "rune_literal"})
    identifiers = frozenset({"identifier"})
    comments = frozenset({"comment"})
    branches = frozenset({"if_statement", "for_statement"})

    def __init__(self, receiver: str = "") -> None:
        self.receiver = receiver

    def bindings(self, node: Node, names: Names) -> Iterable[tuple[str, str]]:
        """Return the names of a declaration, an assignment or a range."""
        if node.type in _BINDS:
            left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
            yield from self._bound(_listed(left), _listed(right), names)
        elif node.type in _SPECS:
            left = [child for child in node.children_by_field_name("name") if child.type == "identifier"]
            yield from self._bound(left, _listed(node.child_by_field_name("value")), names)
        elif node.type == "range_clause":
            made = self.made(node.child_by_field_name("right"), names)
            each = "each case" if _VALUES.match(made) else f"each of {made}"
            parts = (f"{each}.key", each)
            yield from zip(map(text, _listed(node.child_by_field_name("left"))), parts, strict=False)

    def _bound(self, left: list[Node], right: list[Node], names: Names) -> Iterator[tuple[str, str]]:
        if len(left) == len(right):
            yield from ((text(name), self.made(value, names)) for name, value in zip(left, right, strict=True))
        elif len(right) == 1:
            made = brief(self.made(right[0], names))
            yield from ((text(name), f"{made}.{at}") for at, name in enumerate(left))

    def made(self, value: Node | None, names: Names) -> str:
        """Return what a value is made of, the number of its elements first if it is a list that is written down."""
        made = written(value, self, names)
        body = value.child_by_field_name("body") if value is not None and value.type == "composite_literal" else None
        kind = value.child_by_field_name("type") if value is not None else None
        if body is None or kind is None or kind.type not in {"slice_type", "map_type", "implicit_length_array_type"}:
            return made
        return f"{len(_plain(body))} values: {made}"

    def checks(self, node: Node, names: Names) -> Iterable[Check]:
        """Return what fails the test, or what testify checks."""
        if node.type == "if_statement":
            yield from self._failing(node, names)
        elif go_asserts.called_on_test(node, go_asserts.FAILS):
            condition = _elsewhere(node)
            if condition is not None:
                yield Check(written(condition, self, names), "fails", RELATION, line=line_of(node))
        elif node.type == "call_expression":
            yield from go_asserts.testify(node, self, names, self.receiver)

    def _failing(self, node: Node, names: Names) -> Iterator[Check]:
        condition, branch = node.child_by_field_name("condition"), node.child_by_field_name("consequence")
        if condition is None or branch is None:
            return
        inside = dict(names)
        initializer = node.child_by_field_name("initializer")
        if initializer is not None:
            inside |= {name: brief(made) for name, made in self.bindings(initializer, names)}
        found = go_asserts.conditions(condition, self, inside, must=False)
        if _directly(branch, go_asserts.FAILS):
            yield from found
        elif _directly(branch, go_asserts.TELLS):
            yield from map(go_asserts.only_told, found)

    def call(self, node: Node) -> Call | None:
        """Return a call of a function by its name."""
        function = node.child_by_field_name("function") if node.type == "call_expression" else None
        given = node.child_by_field_name("arguments")
        if function is None or given is None or function.type != "identifier":
            return None
        return Call(text(function), tuple(_plain(given)))

    def guards(self, node: Node, child: Node) -> int:
        """Return 1 below an `if` that does not itself fail the test, and whose other branch does not either."""
        if node.type != "if_statement":
            return 0
        branch, other = node.child_by_field_name("consequence"), node.child_by_field_name("alternative")
        if branch is None:
            return 0
        if child == branch:
            return int(not _directly(branch, go_asserts.FAILS) and (other is None or not _may_fail(other)))
        is_else = other is not None and child == other and other.type != "if_statement"
        return int(is_else and not _may_fail(branch))

    def times(self, node: Node, child: Node, names: Names) -> int:
        """Return the number of values of a range over a list that is written down; 0 below `if false`."""
        if node.type == "if_statement" and child == node.child_by_field_name("consequence"):
            return int(text(node.child_by_field_name("condition")) != "false")
        if node.type != "for_statement" or child != node.child_by_field_name("body"):
            return 1
        clause = next((part for part in node.named_children if part.type == "range_clause"), None)
        found = _VALUES.match(self.made(clause.child_by_field_name("right"), names)) if clause is not None else None
        return int(found[1]) if found is not None else 1

    def ends(self, node: Node) -> bool:
        """Return whether the statement is a plain `return`."""
        return node.type == "return_statement"

    def is_apart(self, node: Node) -> bool:
        """Return whether it is a function that has a name of its own."""
        return node.type == "func_literal" and named_as(node) is not None


def named_as(function: Node) -> str | None:
    """Return the local that a function literal is given to, None for one that is used where it stands."""
    around = function.parent
    if around is None or around.type != "expression_list" or around.parent is None:
        return None
    above = around.parent
    names = _listed(above.child_by_field_name("left")) if above.type in _BINDS else above.children_by_field_name("name")
    if above.type not in _BINDS | _SPECS or len(names) != len(_plain(around)):
        return None
    return text(names[_plain(around).index(function)])


def _listed(node: Node | None) -> list[Node]:
    return _plain(node) if node is not None else []


def _plain(node: Node) -> list[Node]:
    return [child for child in node.named_children if child.type != "comment"]


def _statements(block: Node) -> list[Node]:
    listed = next((child for child in block.named_children if child.type == "statement_list"), block)
    return _plain(listed)


def _directly(block: Node, names: frozenset[str]) -> bool:
    """Return whether a block calls one of these methods of the test in a statement of its own."""
    statements = [
        child for child in _statements(block) if child.type == "expression_statement" and child.named_children
    ]
    return any(go_asserts.called_on_test(child.named_children[0], names) for child in statements)


def _may_fail(branch: Node) -> bool:
    return any(go_asserts.called_on_test(node, go_asserts.FAILS) for node in below(branch))


def _elsewhere(node: Node) -> Node | None:
    """Return the condition of a failure that does not stand in the first branch of an `if`."""
    child, above = node, node.parent
    while above is not None and above.type not in {"func_literal", "function_declaration", "method_declaration"}:
        if above.type == "if_statement":
            is_first = child == above.child_by_field_name("consequence")
            return None if is_first else above.child_by_field_name("condition")
        if above.type in {"expression_case", "default_case", "type_case", "communication_case"}:
            return above.child_by_field_name("value") or above
        child, above = above, above.parent
    return None
