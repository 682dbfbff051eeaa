"""Reads Rust for `suite_walk`: macros of the standard library, of approx, insta and the like."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from pipeline.languages.sources.claims import compared, conditions, group, said, split, strengths
from pipeline.languages.sources.suite_walk import Trees
from pipeline.languages.sources.suites import EXACT, PART, PRESENCE, RELATION, Check, Words
from pipeline.languages.sources.syntax_trees import below, line_of, text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from tree_sitter import Node

_BINDS: Final = {"let_declaration": "pattern", "let_condition": "pattern", "const_item": "name", "static_item": "name"}
_ASKED: Final = strengths(
    exact="eq approx_eq abs_diff_eq relative_eq ulps_eq",
    part="is_none is_empty contains starts_with ends_with contains_key matches",
    relation="is_ok is_err is_some",
)
_EQUAL: Final = re.compile(r"(?:debug_|prop_)?assert_eq")
_APPROXIMATE: Final = re.compile(r"assert_(?:abs_diff|relative|ulps|approx|float(?:_absolute)?)_eq")
_UNEQUAL: Final = re.compile(r"(?:debug_|prop_)?assert_ne")
_TRUE: Final = re.compile(r"(?:debug_|prop_)?assert")
_FAILS: Final = frozenset({"panic", "unreachable"})
TAKES_OUT: Final = {"unwrap": PRESENCE, "expect": PRESENCE, "unwrap_err": RELATION, "expect_err": RELATION}
"""The strength of methods that unwrap a value and fail if there is none."""


class Rust(Trees):
    """The implementation of Rust for `suite_walk`."""

    atoms = frozenset({"string_literal", "raw_string_literal", "char_literal", "lifetime"})
    branch = "if_expression"

    def children(self, node: Node) -> Iterable[Node]:
        """Return the child nodes of a node, without nested functions."""
        return [child for child in node.named_children if child.type != "function_item"]

    def bindings(self, node: Node) -> Iterator[tuple[Sequence[str], Words]]:
        """Yield the names that a `let` or a constant binds, with the tokens of their values."""
        value = node.child_by_field_name("value") if node.type in _BINDS else None
        if value is not None:
            yield _names(node.child_by_field_name(_BINDS[node.type])), self.words(value)

    def loop(self, node: Node) -> tuple[Sequence[str], Words] | None:
        """Return the names that a `for` binds, and the tokens of what it iterates over; None for other nodes."""
        if node.type != "for_expression":
            return None
        return _names(node.child_by_field_name("pattern")), self.words(node.child_by_field_name("value"))

    def checks(self, node: Node, made: Callable[[Words], Words]) -> Iterator[Check]:
        """Yield the checks of an assertion macro, of a statement that fails, or of an unwrapped value."""
        if node.type == "macro_invocation":
            words = self.words(node)
            at = words.index("!") if "!" in words else 0
            given = [made(bare(argument)) for argument in split(group(words, at + 1), ",")] if words[at + 1 :] else []
            yield from _asserted(words[at - 1], given, line_of(node))
        elif node.type == "expression_statement" and node.named_children:
            words = self.words(node.named_children[0])
            name = next(
                (words[end - 1] for end in (len(words) - 2, len(words) - 3) if words[end : end + 1] == ("(",)), ""
            )
            if words[-1:] == ("?",) or name in TAKES_OUT:
                yield Check(bare(made(words)), name or "?", TAKES_OUT.get(name, PRESENCE), line=line_of(node))

    def marks(self, node: Node) -> Iterator[str]:
        """Yield a sentence if a panic below a node would be caught."""
        if node.type == "call_expression" and text(node.child_by_field_name("function")).endswith("catch_unwind"):
            yield "a failing assertion is swallowed"


def bare(words: Words) -> Words:
    """Return tokens without calls that only unwrap a value, and without references."""
    kept: list[str] = []
    at = 0
    while at < len(words):
        if words[at] == "." and words[at + 1 : at + 2] in (("unwrap",), ("expect",)):
            at += len((".", "unwrap", "(", *group(words, at + 2), ")"))
        elif words[at] == "?" or (words[at] in {"&", "mut"} and not kept):
            at += 1
        else:
            kept.append(words[at])
            at += 1
    return tuple(kept)


def _asserted(name: str, given: list[Words], line: int) -> Iterator[Check]:
    if name in _FAILS:
        yield Check((), "failure", RELATION, line=line)
    elif not given:
        return
    elif _TRUE.fullmatch(name):
        yield from conditions(given[0], _ASKED, line)
    elif _UNEQUAL.fullmatch(name) and len(given) > 1:
        yield compared(given[0], "!=", given[1], RELATION, line)
    elif _EQUAL.fullmatch(name) and len(given) > 1:
        yield compared(given[0], "==", given[1], EXACT, line)
    elif _APPROXIMATE.fullmatch(name):
        yield said(given, "==", EXACT, line, "deviation")
    elif name.startswith("assert_"):
        yield said(given, name, PART, line)


def _names(pattern: Node | None) -> list[str]:
    """Return the names that a pattern binds."""
    found = [text(node) for node in below(pattern) if node.type == "identifier"] if pattern is not None else []
    return [name for name in found if name[:1].islower() or len(found) == 1]
