"""Selects nodes of a Go syntax tree for small faults. Types, imports and logging are left alone.

Go refuses a variable that is not used. What is left out therefore stays in the text, behind `if false`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from tree_sitter import Language
from tree_sitter_go import language

from pipeline.languages.go.conditions import CONDITIONS
from pipeline.languages.sources.faults.mutant import Rank, quoted
from pipeline.languages.sources.faults.operators import Edit, Grammar, replaced, source_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tree_sitter import Node

_ROLES: Final = r"""
[(import_declaration) (type_declaration) (array_type) (type_arguments)] @skipped
([(call_expression function: (_) @_log) (expression_statement (call_expression function: (_) @_log))] @skipped
 (#match? @_log "^(log|slog|logger|\\w*[.](log|logger))[.]\\w+$"))

[(function_declaration name: (_) @name) (method_declaration name: (_) @name) (func_literal)] @function
((call_expression function: (_) @_said) @message (#any-of? @_said "errors.New" "fmt.Errorf" "panic"))

(if_statement condition: (_) @branch)
(for_statement body: (block (_)) @body)
(binary_expression left: (_) @conjunct operator: "&&" right: (_) @conjunct)
(binary_expression left: (_) @disjunct operator: "||" right: (_) @disjunct)
[(binary_expression operator: _ @token) (true) @token (false) @token]
(statement_list (assignment_statement operator: _ @token))
(unary_expression ["!" "-"] @sign)
[(int_literal) (float_literal)] @number
(interpreted_string_literal) @text
(return_statement (expression_list) @values)
((statement_list (expression_statement (call_expression function: (_) @_ends)) @ending) (#eq? @_ends "panic"))
((statement_list (expression_statement (call_expression function: (_) @_ends)) @effect) (#not-eq? @_ends "panic"))
(statement_list [(inc_statement) (dec_statement) (assignment_statement) (send_statement) (defer_statement)
 (go_statement) (continue_statement) (break_statement)] @effect)
"""
_NUMBERS: Final = re.compile(rb"u?int(?:8|16|32|64)?|uintptr|float(?:32|64)|byte|rune")
_NILS: Final = (b"error", b"*", b"[]", b"map[", b"func(", b"chan ", b"interface{", b"any")


def grammar(path: str) -> Grammar:  # noqa: ARG001  (all languages are asked alike)
    """Return the fault grammar of Go."""
    return _GRAMMAR


def _returned(node: Node, function: Node) -> Iterator[Edit]:
    """Yield the edits that return zero values instead, and no error instead of one."""
    given = [source_of(child) for child in node.named_children if "comment" not in child.type]
    zeros = [_zero(kind) for kind in _types(function.child_by_field_name("result"))]
    if len(given) == len(zeros):  # else it is one call that returns all of them
        for new in (zeros, [*given[:-1], zeros[-1]] if zeros[-1] == b"nil" else zeros):
            text = b", ".join(new)
            yield replaced(node, text, f"returns {quoted(text)}", Rank.DECISION)


def _types(result: Node | None) -> Iterator[bytes]:
    """Yield the types of a function's results, one for each value."""
    if result is None or result.type != "parameter_list":
        yield source_of(result) if result is not None else b""
        return
    for each in result.named_children:
        kind = each.child_by_field_name("type")
        if kind is not None:
            yield from [source_of(kind)] * max(1, len(each.children_by_field_name("name")))


def _zero(kind: bytes) -> bytes:
    if kind.startswith(_NILS):
        return b"nil"
    if kind in {b"bool", b"string"}:
        return b"false" if kind == b"bool" else b'""'
    return b"0" if _NUMBERS.fullmatch(kind) else b"*new(" + kind + b")"


_GRAMMAR: Final = Grammar(
    language=Language(language()),
    roles=_ROLES,
    words={
        "true": b"true",
        "false": b"false",
        "left out": b"if false { NODE }",
        "not done": b"{ if false NODE }",
    },
    own={"values": _returned},
    conditions=CONDITIONS,
)
