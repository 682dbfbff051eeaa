"""Selects nodes of a JavaScript syntax tree for small faults. Types, keys and logging are left alone."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from pipeline.testing.languages.javascript.project import SOURCES, TYPED
from pipeline.testing.languages.javascript.syntax import language_of
from pipeline.testing.languages.sources.faults import Rank
from pipeline.testing.languages.sources.faults.operators import Edit, Grammar, replaced, source_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tree_sitter import Node


_CONSTANTS: Final = """
(program [(lexical_declaration (variable_declarator name: (identifier) @name value: (_) @value))
 (export_statement declaration: (lexical_declaration
  (variable_declarator name: (identifier) @name value: (_) @value)))])
[(variable_declarator name: (identifier) @bound) (assignment_expression left: (identifier) @bound)
 (arrow_function parameter: (identifier) @bound)
 (object_pattern (shorthand_property_identifier_pattern) @bound)]
"""
_PLAIN: Final = "(formal_parameters (identifier) @bound)"
_TYPED: Final = "[(required_parameter pattern: (identifier) @bound) (optional_parameter pattern: (identifier) @bound)]"
_SYSTEMS: Final = {"linux": "linux", "darwin": "darwin", "win32": "win32"}


_ROLES: Final = r"""
[(import_statement) (export_clause) (decorator)] @skipped
(export_statement source: (_) @skipped)
(expression_statement (string)) @skipped
(pair key: (string) @skipped)
([(call_expression function: (_) @_log) (expression_statement (call_expression function: (_) @_log))] @skipped
 (#match? @_log "^(require|super|(console|log|logger|this[.]log(ger)?)[.]\\w+)$"))
((if_statement condition: (_) @_test) @skipped (#match? @_test "import[.]meta[.]vitest"))

[(function_declaration name: (_) @name) (generator_function_declaration name: (_) @name)
 (class_declaration name: (_) @name) (method_definition name: (_) @name)]
(variable_declarator name: (_) @name value: [(arrow_function) (function_expression) (generator_function)])
(throw_statement) @message

(if_statement condition: (parenthesized_expression (_) @branch))
(ternary_expression condition: (_) @choice)
(while_statement condition: (parenthesized_expression (_) @loop))
(for_in_statement right: (_) @series)
(binary_expression left: (_) @conjunct operator: "&&" right: (_) @conjunct)
(binary_expression left: (_) @disjunct operator: "||" right: (_) @disjunct)
[(binary_expression operator: _ @token) (augmented_assignment_expression operator: _ @token)
 (true) @token (false) @token]
(unary_expression operator: ["!" "-"] @sign)
(number) @number
(string) @text
((arguments (_) (_) @argument .) (#not-match? @argument "^([.]|/[/*])"))
(catch_clause parameter: (identifier) body: (statement_block) @thrown)
((return_statement (_) @returned) (#not-any-of? @returned "null" "undefined" "void 0"))
(arrow_function body: (expression) @returned)
(throw_statement) @ending
[(continue_statement) (break_statement)
 (expression_statement [(call_expression) (await_expression) (assignment_expression)
  (augmented_assignment_expression) (update_expression)])] @effect
"""
_TYPES: Final = """
[(type_annotation) (type_arguments) (type_parameters) (type_alias_declaration) (interface_declaration)
 (ambient_declaration) (literal_type) (union_type)] @skipped
"""
_MARKUP: Final = "(jsx_attribute (string) @skipped)"


def _grammar(suffix: str) -> Grammar:
    language = language_of(suffix)
    is_typed = suffix in TYPED
    has_markup = language.id_for_node_kind("jsx_attribute", True) is not None
    return Grammar(
        language=language,
        roles=_ROLES + (_TYPES if is_typed else "") + (_MARKUP if has_markup else ""),
        words={
            "true": b"true",
            "false": b"false",
            # `undefined as never` is accepted wherever a value is
            "nothing": b"undefined as never" if is_typed else b"undefined",
            "no items": b"[]",
            "left out": b";",
        },
        own={"thrown": _thrown_again},
        hint=re.compile(rb"\bprocess\.platform\b|\bos\.platform\b"),
        names=dict.fromkeys((b"process.platform", b"os.platform()"), _SYSTEMS),
        constants=_CONSTANTS + (_TYPED if is_typed else _PLAIN),
    )


def _thrown_again(node: Node, function: Node) -> Iterator[Edit]:  # noqa: ARG001  (what is caught is returned nowhere)
    clause = node.parent
    caught = clause.child_by_field_name("parameter") if clause is not None else None
    throws = b"throw " + source_of(caught) + b";" if caught is not None else b""
    if throws not in source_of(node):
        yield replaced(node, b"{ " + throws + b" }", "what is caught is thrown again", Rank.DECISION)


GRAMMARS: Final = {ending: _grammar(ending) for ending in SOURCES}
