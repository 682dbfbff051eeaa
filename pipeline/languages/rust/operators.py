"""Rust: what can be changed and still compiles more often than not. Test regions and macros are left alone.

A statement that is left out stays in the text, behind `if false`: without it a variable would be unused, or not moved,
and the change would say nothing.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from tree_sitter import Language
from tree_sitter_rust import language

from pipeline.languages.sources.faults.mutant import Edit, Rank, quoted
from pipeline.languages.sources.faults.trees import Grammar, left_out, of_field, replaced, source_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from tree_sitter import Node

    from pipeline.languages.sources.faults.mutant import Mutant

_FOR_TESTS: Final = re.compile(
    r"#!?\[(?:cfg\((?:test|all\((?:.*,)?test(?:,.*)?\))\)|(?:\w+::)*(?:\w*test|rstest|test_case|quickcheck|bench)\b)"
)
_EFFECTS: Final = frozenset(
    {"call_expression", "assignment_expression", "compound_assignment_expr", "await_expression", "try_expression",
     "continue_expression", "break_expression", "return_expression"}
)  # fmt: skip
_ENDS: Final = frozenset({"panic", "bail", "unreachable"})
_STEPS: Final = {b"+=": b"-=", b"-=": b"+=", b"*=": b"/=", b"/=": b"*=", b"%=": b"*=", b"|=": b"&=", b"&=": b"|="}
_NO_VALUE: Final = frozenset({b"None", b"false", b"()", b"String::new()", b"Default::default()", b"0"})
_FUNCTIONS: Final = frozenset({"function_item", "closure_expression", "async_block"})
_NAMED: Final = frozenset({"function_item", "mod_item", "trait_item", "impl_item"})
_NOT_VALUES: Final = frozenset(
    {"let_declaration", "expression_statement", "line_comment", "block_comment", "macro_definition", "empty_statement"}
)


def candidates(path: str, source: bytes, lines: Collection[int]) -> Iterator[Mutant]:
    """Yield the changes that may be made on these lines."""
    return _GRAMMAR.candidates(path, source, lines)


def form(path: str, source: bytes) -> bytes | None:  # noqa: ARG001  (all languages are asked alike)
    """Return the words of a source; None where it has an error."""
    return _GRAMMAR.form(source)


def _own(node: Node) -> Iterator[Edit]:
    match node.type:
        case "expression_statement":
            yield from _statement(node)
        case "return_expression" if node.named_children:
            yield from _returned(node, node.named_children[0])
        case "function_item":
            last = _last_value(node)
            if last is not None:
                yield from _returned(last, last)
        case "compound_assignment_expr":
            operator = node.child_by_field_name("operator")
            new = _STEPS.get(source_of(operator)) if operator is not None else None
            if operator is not None and new is not None:
                what = f"{quoted(source_of(operator))} becomes {quoted(new)}"
                yield replaced(operator, new, what, Rank.VALUE)
        case "for_expression":
            body = node.child_by_field_name("body")
            if body is not None and body.named_children:
                yield _empty_loop(node, body)
        case _:
            pass


def _statement(node: Node) -> Iterator[Edit]:
    inner = node.named_children[0] if node.named_children else None
    if inner is None or not source_of(node).endswith(b";"):
        return
    ends = inner.type == "macro_invocation" and of_field(inner, "macro").decode(errors="replace") in _ENDS
    if ends or inner.type in _EFFECTS:
        rank = Rank.DECISION if ends or inner.type == "return_expression" else Rank.EFFECT
        yield left_out(node, b"if false { " + source_of(node) + b" }", rank)


def _empty_loop(node: Node, body: Node) -> Edit:
    new = b"{ if false " + source_of(body) + b" }"
    last = max(node.start_point.row, body.start_point.row) + 1
    what = "the loop does nothing"
    return Edit(body.start_byte, body.end_byte, new, what, Rank.EFFECT, node.start_point.row + 1, last)


def _last_value(function: Node) -> Node | None:
    """Return the expression that a function ends with and returns."""
    body = function.child_by_field_name("body")
    last = body.named_children[-1] if body is not None and body.named_children else None
    if last is not None and last.type == "expression_statement" and not source_of(last).endswith(b";"):
        last = last.named_children[0]
    is_value = last is not None and last.type not in _NOT_VALUES and not last.type.endswith("_item")
    return last if is_value and function.child_by_field_name("return_type") is not None else None


def _returned(at: Node, value: Node) -> Iterator[Edit]:
    function: Node | None = at
    while function is not None and function.type not in _FUNCTIONS:
        function = function.parent
    if function is None or function.type != "function_item":
        return
    result = of_field(function, "return_type")
    new = _zero(result)
    if new is not None and source_of(value) not in {*_NO_VALUE, new}:
        yield replaced(value, new, f"returns {quoted(new)}", Rank.DECISION)


def _zero(result: bytes) -> bytes | None:
    """Return the plainest value of a type; where that is no value of it the change does not compile, and says so."""
    if not result or result.startswith((b"!", b"impl", b"dyn", b"&mut")):
        return None
    name = result.split(b"<")[0].rsplit(b"::")[-1].strip()
    match name:
        case b"Result":
            return b"Ok(Default::default())"
        case b"Option":
            return b"None"
        case b"bool":
            return b"false"
        case _:
            return b"Default::default()"


def _is_skipped(node: Node) -> bool:
    """Return whether a node is compiled for tests only."""
    if not node.type.endswith("_item"):
        return False
    before = node.prev_named_sibling
    while before is not None and (before.type == "attribute_item" or "comment" in before.type):
        if _FOR_TESTS.match("".join(source_of(before).decode("utf-8", "replace").split())):
            return True
        before = before.prev_named_sibling
    return False


def _is_message(node: Node) -> bool:
    return node.type == "call_expression" and of_field(node, "function").rsplit(b".")[-1] == b"expect"


_GRAMMAR: Final = Grammar(
    language=Language(language()),
    skipped=frozenset(
        {"attribute_item", "inner_attribute_item", "macro_invocation", "macro_definition", "use_declaration",
         "type_arguments", "type_parameters", "where_clause", "array_type", "type_item", "trait_bounds",
         "let_condition", "tuple_struct_pattern", "struct_pattern", "or_pattern", "range_pattern",
         "extern_crate_declaration"}
    ),
    name_of=lambda node: of_field(node, "type" if node.type == "impl_item" else "name") if node.type in _NAMED else b"",
    numbers=frozenset({"integer_literal", "float_literal"}),
    texts=frozenset({"string_literal"}),
    decided={"if_expression": ("condition", "the branch"), "match_pattern": ("condition", "the arm")},
    looped={"while_expression": "condition"},
    own=_own,
    is_skipped=_is_skipped,
    is_message=_is_message,
)  # fmt: skip
