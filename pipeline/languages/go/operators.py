"""Go: what can be changed and still compiles more often than not.

Go refuses a variable that is not used. What is left out therefore stays in the text, behind `if false`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from tree_sitter import Language
from tree_sitter_go import language

from pipeline.languages.sources.faults.mutant import Edit, Rank, quoted
from pipeline.languages.sources.faults.trees import Grammar, left_out, of_field, replaced, source_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from tree_sitter import Node

    from pipeline.languages.sources.faults.mutant import Mutant

_EFFECTS: Final = frozenset(
    {"expression_statement", "inc_statement", "dec_statement", "assignment_statement", "send_statement",
     "defer_statement", "go_statement", "continue_statement", "break_statement"}
)  # fmt: skip
_STEPS: Final = {b"+=": b"-=", b"-=": b"+=", b"*=": b"/=", b"/=": b"*=", b"%=": b"*=", b"|=": b"&=", b"&=": b"|="}
_FUNCTIONS: Final = frozenset({"function_declaration", "method_declaration", "func_literal"})
_NUMBERS: Final = re.compile(rb"u?int(?:8|16|32|64)?|uintptr|float(?:32|64)|byte|rune")
_NILS: Final = (b"*", b"[]", b"map[", b"func(", b"chan ", b"interface{", b"any")
_LOGS: Final = re.compile(rb"(?:log|slog|logger|\w*\.(?:log|logger))\.\w+")
_MESSAGES: Final = frozenset({b"errors.New", b"fmt.Errorf", b"panic"})
_NAMED: Final = frozenset({"function_declaration", "method_declaration"})


def candidates(path: str, source: bytes, lines: Collection[int]) -> Iterator[Mutant]:
    """Yield the changes that may be made on these lines."""
    return _GRAMMAR.candidates(path, source, lines)


def form(path: str, source: bytes) -> bytes | None:  # noqa: ARG001  (all languages are asked alike)
    """Return the words of a source; None where it has an error."""
    return _GRAMMAR.form(source)


def _own(node: Node) -> Iterator[Edit]:
    if node.type in _EFFECTS and node.parent is not None and node.parent.type == "statement_list":
        yield from _statement(node)
    match node.type:
        case "return_statement":
            yield from _returned(node)
        case "for_statement":
            body = node.child_by_field_name("body")
            if body is not None and body.named_children:
                new = b"{ if false " + source_of(body) + b" }"
                first, last = node.start_point.row + 1, body.start_point.row + 1
                yield Edit(body.start_byte, body.end_byte, new, "the loop does nothing", Rank.EFFECT, first, last)
        case _:
            pass


def _statement(node: Node) -> Iterator[Edit]:
    call = node.named_children[0] if node.named_children else None
    if node.type == "expression_statement" and (call is None or call.type != "call_expression"):
        return
    ends = call is not None and of_field(call, "function") == b"panic"
    yield left_out(node, b"if false { " + source_of(node) + b" }", Rank.DECISION if ends else Rank.EFFECT)
    operator = node.child_by_field_name("operator")
    new = _STEPS.get(source_of(operator)) if operator is not None else None
    if operator is not None and new is not None:
        yield replaced(operator, new, f"{quoted(source_of(operator))} becomes {quoted(new)}", Rank.VALUE)


def _returned(node: Node) -> Iterator[Edit]:
    function = node.parent
    while function is not None and function.type not in _FUNCTIONS:
        function = function.parent
    values = [child for child in node.named_children if child.type == "expression_list"]
    if function is None or not values:
        return
    given = [source_of(child) for child in values[0].named_children if "comment" not in child.type]
    types = list(_types(function.child_by_field_name("result")))
    if len(given) != len(types):
        return  # one call that returns all of them
    zeros = [_zero(each) for each in types]
    if given[-1] != zeros[-1] == b"nil" and types[-1] == b"error":
        yield _given(node, values[0], [*given[:-1], b"nil"])
    if given != zeros:
        yield _given(node, values[0], zeros)


def _given(node: Node, values: Node, new: list[bytes]) -> Edit:
    text = b", ".join(new)
    first, last = node.start_point.row + 1, node.end_point.row + 1
    return Edit(values.start_byte, values.end_byte, text, f"returns {quoted(text)}", Rank.DECISION, first, last)


def _types(result: Node | None) -> Iterator[bytes]:
    """Yield the types of what a function returns, one for each value."""
    if result is None:
        return
    if result.type != "parameter_list":
        yield source_of(result)
        return
    for each in result.named_children:
        if each.type == "parameter_declaration":
            names = each.children_by_field_name("name")
            yield from [of_field(each, "type")] * max(1, len(names))


def _zero(kind: bytes) -> bytes:
    if kind == b"error" or kind.startswith(_NILS):
        return b"nil"
    if kind in {b"bool", b"string"}:
        return b"false" if kind == b"bool" else b'""'
    return b"0" if _NUMBERS.fullmatch(kind) else b"*new(" + kind + b")"


def _is_skipped(node: Node) -> bool:
    call = node.named_children[0] if node.type == "expression_statement" and node.named_children else node
    return call.type == "call_expression" and _LOGS.fullmatch(of_field(call, "function")) is not None


def _is_message(node: Node) -> bool:
    return node.type == "call_expression" and of_field(node, "function") in _MESSAGES


_GRAMMAR: Final = Grammar(
    language=Language(language()),
    skipped=frozenset(
        {"import_declaration", "package_clause", "type_declaration", "parameter_list", "array_type", "generic_type",
         "type_arguments", "type_parameter_list", "map_type", "slice_type", "struct_type", "interface_type"}
    ),
    name_of=lambda node: of_field(node, "name") if node.type in _NAMED else b"",
    numbers=frozenset({"int_literal", "float_literal"}),
    texts=frozenset({"interpreted_string_literal"}),
    decided={"if_statement": ("condition", "the branch")},
    looped={},
    own=_own,
    is_skipped=_is_skipped,
    is_message=_is_message,
)  # fmt: skip
