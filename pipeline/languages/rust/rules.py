"""Rust for `suite_walk`: what binds a local, what asserts, what decides whether something is reached.

Importing this module loads the parser.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from pipeline.languages.rust import asserts as rust_asserts
from pipeline.languages.sources.suite_walk import Call, below, brief, line_of, text, written
from pipeline.languages.sources.suites import PRESENCE, RELATION, Check

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tree_sitter import Node

    from pipeline.languages.sources.suite_walk import Names

COMMENTS: Final = frozenset({"line_comment", "block_comment"})
TAKES_OUT: Final = {"unwrap": PRESENCE, "expect": PRESENCE, "unwrap_err": RELATION, "expect_err": RELATION}
"""What takes a value out of its wrapping, and fails where there is none."""

_VALUES: Final = re.compile(r"(\d+) values: ")
_FAILS: Final = frozenset({"panic", "unreachable"})


class Rust:
    """Rust, for `suite_walk`."""

    atoms = frozenset({"string_literal", "raw_string_literal", "char_literal", "lifetime"})
    identifiers = frozenset({"identifier"})
    comments = COMMENTS
    branches = frozenset({"if_expression", "for_expression"})

    def bindings(self, node: Node, names: Names) -> Iterable[tuple[str, str]]:
        """Return the names of a `let`, a `for`, an arm, or the parameters of a closure."""
        if node.type == "let_declaration":
            changes = any(child.type == "mutable_specifier" for child in node.children)
            made = self._made(node.child_by_field_name("value"), names)
            yield from _parts(node.child_by_field_name("pattern"), f"mut {made}" if changes else made)
        elif node.type == "let_condition":
            yield from _parts(node.child_by_field_name("pattern"), self._made(node.child_by_field_name("value"), names))
        elif node.type == "for_expression":
            made = self._made(node.child_by_field_name("value"), names)
            each = "each case" if _VALUES.match(made) else f"each of {made}"
            yield from _parts(node.child_by_field_name("pattern"), each)
        elif node.type == "match_arm" and node.parent is not None:
            made = self._made((node.parent.parent or node).child_by_field_name("value"), names)
            yield from _parts(node.child_by_field_name("pattern"), made)
        elif node.type == "closure_parameters":
            yield from _parts(node, "given")

    def _made(self, value: Node | None, names: Names) -> str:
        made = rust_asserts.bare(written(value, self, names))
        count = _listed(value)
        return f"{count} values: {made}" if count is not None else made

    def checks(self, node: Node, names: Names) -> Iterable[Check]:
        """Return what an assertion macro checks, a panic on a condition, or a value that is only taken out."""
        if node.type == "macro_invocation":
            yield from rust_asserts.asserted(node, self, names)
            if rust_asserts.macro_name(node) in _FAILS and (condition := _condition(node)) is not None:
                yield Check(written(condition, self, names), "panic", RELATION, line=line_of(node))
        elif node.type == "expression_statement" and node.named_children:
            yield from self._taken_out(node.named_children[0], names)

    def _taken_out(self, value: Node, names: Names) -> Iterator[Check]:
        if value.type not in {"try_expression", "call_expression"}:
            return
        made = rust_asserts.bare(written(value, self, names))
        if value.type == "try_expression":
            yield Check(made, "unwrap", PRESENCE, line=line_of(value))
        else:
            function = value.child_by_field_name("function")
            name = text(function.child_by_field_name("field")) if function is not None else ""
            if name in TAKES_OUT:
                subject = made.removesuffix(")").removesuffix("(").removesuffix(f".{name}")
                yield Check(subject, name, TAKES_OUT[name], line=line_of(value))

    def call(self, node: Node) -> Call | None:
        """Return a call of a function by its name or by a path to it."""
        function = node.child_by_field_name("function") if node.type == "call_expression" else None
        given = node.child_by_field_name("arguments")
        if function is None or given is None or function.type not in {"identifier", "scoped_identifier"}:
            return None
        return Call(text(function).rpartition("::")[2], tuple(without_comments(given)))

    def guards(self, node: Node, child: Node) -> int:
        """Return 1 below an `if` whose other branch does not fail."""
        if node.type != "if_expression":
            return 0
        consequence, alternative = node.child_by_field_name("consequence"), node.child_by_field_name("alternative")
        if child == consequence:
            return int(alternative is None or not _may_fail(alternative))
        return int(child == alternative and consequence is not None and not _may_fail(consequence))

    def times(self, node: Node, child: Node, names: Names) -> int:
        """Return the number of values of a loop over a list that is written down; 0 below `if false`."""
        if node.type == "if_expression" and child == node.child_by_field_name("consequence"):
            return int(text(node.child_by_field_name("condition")) != "false")
        if node.type == "for_expression" and child == node.child_by_field_name("body"):
            found = _VALUES.match(self._made(node.child_by_field_name("value"), names))
            return int(found[1]) if found is not None else 1
        return 1

    def ends(self, node: Node) -> bool:
        """Return whether the statement is a plain `return`."""
        return node.type == "expression_statement" and [child.type for child in node.named_children] == [
            "return_expression"
        ]

    def is_apart(self, node: Node) -> bool:
        """Return whether it is a function in a function."""
        return node.type == "function_item"


def _parts(pattern: Node | None, made: str) -> Iterator[tuple[str, str]]:
    """Yield the names of a pattern: one alone is the value, several are its parts."""
    if pattern is None:
        return
    named = [node for node in below(pattern) if node.type == "identifier" and _is_local(node)]
    if len(named) == 1 and pattern.type in {"identifier", "mut_pattern", "ref_pattern"}:
        yield text(named[0]), made
    else:
        yield from ((text(node), f"{brief(made)}.{at}") for at, node in enumerate(named))


def _is_local(node: Node) -> bool:
    word = text(node)
    return word[:1].islower() or word[:1] == "_"


def _listed(value: Node | None) -> int | None:
    """Return how many values a list has that is written down, whatever is called on it."""
    while value is not None and value.type in {"call_expression", "field_expression", "reference_expression"}:
        value = value.child_by_field_name("function") or value.child_by_field_name("value")
    if value is not None and value.type == "macro_invocation" and rust_asserts.macro_name(value) == "vec":
        tokens = value.named_children[-1].children[1:-1]
        commas = [token.type == "," for token in tokens]
        return sum(commas) + int(bool(tokens) and not commas[-1])
    return len(without_comments(value)) if value is not None and value.type == "array_expression" else None


def without_comments(node: Node) -> list[Node]:
    """Return what is in a node, comments aside."""
    return [child for child in node.named_children if child.type not in COMMENTS]


def _condition(node: Node) -> Node | None:
    """Return what decides whether a node is reached, up to the function that it is in."""
    above = node.parent
    while above is not None and above.type not in {"function_item", "closure_expression"}:
        if above.type == "if_expression":
            return above.child_by_field_name("condition")
        if above.type == "match_expression":
            return above.child_by_field_name("value")
        above = above.parent
    return None


def is_assertion(node: Node) -> bool:
    """Return whether a node is a macro that fails, or may."""
    name = rust_asserts.macro_name(node) if node.type == "macro_invocation" else ""
    return name in _FAILS or "assert" in name


def _may_fail(branch: Node) -> bool:
    return any(is_assertion(node) for node in below(branch))
