"""Selects nodes of a Rust syntax tree for small faults. Test regions, types, patterns and macros are left alone.

A statement that is left out stays in the text, behind `if false`: without it a variable would be unused, or not moved,
and the change would say nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tree_sitter import Language
from tree_sitter_rust import language

from pipeline.languages.rust.conditions import CONDITIONS
from pipeline.languages.sources.faults.mutant import Rank
from pipeline.languages.sources.faults.operators import Edit, Grammar, replaced, source_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tree_sitter import Node

_ROLES: Final = r"""
[(attribute_item) (inner_attribute_item) (macro_definition) (use_declaration) (type_arguments) (type_parameters)
 (array_type) (let_condition) (tuple_struct_pattern) (struct_pattern) (or_pattern) (range_pattern)
 (macro_invocation (token_tree))
] @skipped
((attribute_item) @_test . [(attribute_item) (line_comment) (block_comment)]*
 . [(function_item) (mod_item) (impl_item) (trait_item) (const_item) (static_item)] @skipped
 (#match? @_test "^#\\[(cfg\\((all\\((.*,)?)?\\s*test\\b|(\\w+::)*(\\w*test|test_case|quickcheck|bench)\\b)"))

(function_item name: (_) @name)
[(mod_item name: (_) @name) (trait_item name: (_) @name) (impl_item type: (_) @name)]
[(function_item) (closure_expression) (async_block)] @function
((call_expression function: (field_expression field: (_) @_said)) @message (#eq? @_said "expect"))

(if_expression condition: (_expression) @branch)
(match_pattern condition: (_expression) @guard)
(while_expression condition: (_expression) @loop)
(for_expression body: (block (_)) @body)
(binary_expression left: (_) @conjunct operator: "&&" right: (_) @conjunct)
(binary_expression left: (_) @disjunct operator: "||" right: (_) @disjunct)
[(binary_expression operator: _ @token) (compound_assignment_expr operator: _ @token) (boolean_literal) @token]
(unary_expression ["!" "-"] @sign)
[(integer_literal) (float_literal)] @number
(string_literal) @text
(return_expression (_) @value)
(function_item return_type: (_) body: (block (_expression) @value .))
((function_item return_type: (_) body: (block (expression_statement (_) @value) @_last .)) (#not-match? @_last ";$"))
((expression_statement [(return_expression) (macro_invocation macro: (_) @_ends)] ";") @ending
 (#any-of? @_ends "panic" "bail" "unreachable"))
(expression_statement
 [(call_expression) (assignment_expression) (compound_assignment_expr) (await_expression) (try_expression)
  (continue_expression) (break_expression)] ";") @effect
"""
_ZEROS: Final[Mapping[bytes, bytes]] = {b"Result": b"Ok(Default::default())", b"Option": b"None", b"bool": b"false"}
_NO_VALUES: Final = frozenset({b"None", b"false", b"()", b"String::new()", b"Default::default()", b"0"})


def grammar(path: str) -> Grammar:  # noqa: ARG001  (all languages are asked alike)
    """Return the fault grammar of Rust."""
    return _GRAMMAR


def _returned(node: Node, function: Node) -> Iterator[Edit]:
    """Yield the edit that returns the type's default value instead; if there is none, it does not compile."""
    result = function.child_by_field_name("return_type")
    kind = source_of(result) if result is not None and function.type == "function_item" else b""
    if kind and not kind.startswith((b"!", b"impl", b"dyn", b"&mut")) and source_of(node) not in _NO_VALUES:
        name = kind.split(b"<")[0].rsplit(b"::")[-1].strip()
        new = _ZEROS.get(name, b"Default::default()")
        yield replaced(node, new, f"returns `{new.decode()}`", Rank.DECISION)


_GRAMMAR: Final = Grammar(
    language=Language(language()),
    roles=_ROLES,
    words={
        "true": b"true",
        "false": b"false",
        "left out": b"if false { NODE }",
        "not done": b"{ if false NODE }",
    },
    own={"value": _returned},
    conditions=CONDITIONS,
)
