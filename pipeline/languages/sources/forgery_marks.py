"""What the readers of forgery have in common: words that only a test runner says, and answers that never differ."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pipeline.languages.sources.suite_walk import text

if TYPE_CHECKING:
    import re
    from collections.abc import Iterable, Iterator

    from tree_sitter import Node

Means = tuple[str, int]
"""What a source does that test results can be forged with, in words, and the line."""

OURS: Final = r"/proc/|REDFIRST_\w+|redfirst-recorder|redfirst_evidence"


def said(literal: str, words: re.Pattern[str]) -> str | None:
    """Return what a string of the source has of a runner's words, as it is found there; None for nothing."""
    found = words.search(literal)
    return found.group().strip() if found is not None else None


def answers_always_the_same(body: Node | None, functions: Iterable[str], *, last_counts: bool = False) -> bool:
    """Return whether a function returns one literal and nothing else, whatever it is asked.

    Args:
        body: Of the function; None has no answer.
        functions: The kinds of nodes of functions: what these return, inside of it, is not its answer.
        last_counts: The language returns what its last expression is, too.
    """
    if body is None:
        return False
    answers = [_answer(node) for node in _own(body, frozenset(functions)) if node.type in _RETURNS]
    last = body.named_children[-1] if last_counts and body.named_children else None
    if last is not None and last.type not in {"expression_statement", *_RETURNS}:
        answers.append(text(last) if last.type in _LITERALS else "")
    return bool(answers) and all(answers) and len(set(answers)) == 1


_RETURNS: Final = frozenset({"return_statement", "return_expression"})
_LITERALS: Final = frozenset(
    {"true", "false", "boolean_literal", "number", "int_literal", "integer_literal", "scoped_identifier"}
)


def _answer(node: Node) -> str:
    """Return the literal that is returned, empty for anything that may differ."""
    values = node.named_children
    if len(values) == 1 and values[0].type == "expression_list":
        values = values[0].named_children
    return text(values[0]) if len(values) == 1 and values[0].type in _LITERALS else ""


def _own(body: Node, functions: frozenset[str]) -> Iterator[Node]:
    """Yield what is in a function and in none inside of it."""
    stack = [body]
    while stack:
        node = stack.pop()
        yield node
        stack.extend(child for child in node.children if child.type not in functions)


def is_inside(node: Node, kinds: Iterable[str], name: str) -> bool:
    """Return whether a node stands in a definition of one of these kinds that has this name."""
    wanted, around = frozenset(kinds), node.parent
    while around is not None:
        if around.type in wanted and text(around.child_by_field_name("name")) == name:
            return True
        around = around.parent
    return False
