"""JavaScript and TypeScript."""

from __future__ import annotations

import re
from functools import cache
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final

from tree_sitter import Language

from pipeline.languages.sources.faults.mutant import Edit, Rank, quoted
from pipeline.languages.sources.faults.trees import Grammar, left_out, of_field, replaced, source_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from tree_sitter import Node

    from pipeline.languages.sources.faults.mutant import Mutant

_TYPED: Final = frozenset({".ts", ".mts", ".cts", ".tsx"})
_EFFECTS: Final = frozenset(
    {"call_expression", "await_expression", "assignment_expression", "augmented_assignment_expression",
     "update_expression"}
)  # fmt: skip
_STEPS: Final = {b"+=": b"-=", b"-=": b"+=", b"*=": b"/=", b"/=": b"*=", b"%=": b"*="}
_LOGS: Final = re.compile(rb"(?:console|log|logger|this\.log(?:ger)?)\.\w+")
_NAMED: Final = frozenset(
    {"function_declaration", "generator_function_declaration", "class_declaration", "method_definition"}
)
_FUNCTIONS: Final = frozenset({"arrow_function", "function_expression", "generator_function"})
_NOTHING: Final = frozenset({b"undefined", b"null", b"void 0"})


def candidates(path: str, source: bytes, lines: Collection[int]) -> Iterator[Mutant]:
    """Yield the changes that may be made on these lines."""
    return _grammar(PurePosixPath(path).suffix).candidates(path, source, lines)


def form(path: str, source: bytes) -> bytes | None:
    """Return the words of a source; None where it has an error."""
    return _grammar(PurePosixPath(path).suffix).form(source)


@cache
def _grammar(suffix: str) -> Grammar:
    typed = suffix in _TYPED
    return Grammar(
        language=_language(suffix),
        skipped=_SKIPPED,
        name_of=_name_of,
        numbers=frozenset({"number"}),
        texts=frozenset({"string"}),
        decided={"if_statement": ("condition", "the branch"), "ternary_expression": ("condition", "the first value")},
        looped={"while_statement": "condition"},
        # `undefined as never` is accepted wherever a value is
        own=lambda node: _own(node, b"undefined as never" if typed else b"undefined"),
        is_skipped=_is_skipped,
        is_message=lambda node: node.type == "throw_statement",
    )


def _language(suffix: str) -> Language:
    if suffix in _TYPED:
        import tree_sitter_typescript  # noqa: PLC0415  (only when such a file is read)

        tsx = suffix == ".tsx"
        return Language(tree_sitter_typescript.language_tsx() if tsx else tree_sitter_typescript.language_typescript())
    import tree_sitter_javascript  # noqa: PLC0415  (the same)

    return Language(tree_sitter_javascript.language())


_SKIPPED: Final = frozenset(
    {"import_statement", "export_clause", "type_annotation", "type_arguments", "type_parameters", "decorator",
     "type_alias_declaration", "interface_declaration", "ambient_declaration", "literal_type", "union_type",
     "predefined_type", "property_identifier", "jsx_attribute", "regex", "hash_bang_line"}
)  # fmt: skip


def _name_of(node: Node) -> bytes:
    value = node.child_by_field_name("value") if node.type == "variable_declarator" else None
    is_function = value is not None and value.type in _FUNCTIONS
    return of_field(node, "name") if is_function or node.type in _NAMED else b""


def _own(node: Node, nothing: bytes) -> Iterator[Edit]:
    match node.type:
        case "throw_statement":
            yield left_out(node, b";", Rank.DECISION)
        case "expression_statement":
            inner = node.named_children[0] if node.named_children else None
            if inner is not None and inner.type in _EFFECTS and _is_one_of_many(node):
                yield left_out(node, b";")
        case "continue_statement" | "break_statement" if _is_one_of_many(node):
            yield left_out(node, b";")
        case "return_statement" | "arrow_function":
            yield from _returned(node, nothing)
        case "for_in_statement":
            right = node.child_by_field_name("right")
            if right is not None:
                yield replaced(right, b"[]", "the loop is never entered", Rank.EFFECT)
        case "augmented_assignment_expression":
            yield from _step(node)
        case "catch_clause":
            yield from _thrown_again(node)
        case "arguments":
            yield from _last_argument(node)
        case _:
            pass


def _is_one_of_many(node: Node) -> bool:
    """Return whether a statement is one of a list: in the head of a loop it is none."""
    return node.parent is not None and node.parent.type in {"program", "statement_block", "if_statement", "else_clause"}


def _returned(node: Node, nothing: bytes) -> Iterator[Edit]:
    values = [child for child in node.named_children if "comment" not in child.type]
    value = node.child_by_field_name("body") if node.type == "arrow_function" else next(iter(values), None)
    if value is None or value.type == "statement_block" or source_of(value) in _NOTHING:
        return
    first, last = node.start_point.row + 1, node.end_point.row + 1
    yield Edit(value.start_byte, value.end_byte, nothing, "returns nothing", Rank.DECISION, first, last)


def _step(node: Node) -> Iterator[Edit]:
    operator, right = node.child_by_field_name("operator"), node.child_by_field_name("right")
    new = _STEPS.get(source_of(operator)) if operator is not None else None
    if operator is not None and new is not None and right is not None and "string" not in right.type:
        yield replaced(operator, new, f"{quoted(source_of(operator))} becomes {quoted(new)}", Rank.VALUE)


def _thrown_again(node: Node) -> Iterator[Edit]:
    caught, body = node.child_by_field_name("parameter"), node.child_by_field_name("body")
    if caught is None or body is None or caught.type != "identifier" or not body.named_children:
        return
    if all(child.type == "throw_statement" for child in body.named_children):
        return
    new = b"{ throw " + source_of(caught) + b"; }"
    first, last = node.start_point.row + 1, node.end_point.row + 1
    yield Edit(body.start_byte, body.end_byte, new, "what is caught is thrown again", Rank.DECISION, first, last)


def _last_argument(node: Node) -> Iterator[Edit]:
    given = [child for child in node.named_children if "comment" not in child.type]
    if len(given) < 2 or given[-1].type == "spread_element":  # noqa: PLR2004  (of one, nothing would be left)
        return
    last = given[-1]
    what = f"the argument {quoted(source_of(last))} is left out"
    line = last.start_point.row + 1
    yield Edit(given[-2].end_byte, last.end_byte, b"", what, Rank.EFFECT, line, last.end_point.row + 1)


def _is_skipped(node: Node) -> bool:
    """Return whether a node is for the log, names a module or a key, or is a test beside the code."""
    call = node.named_children[0] if node.type == "expression_statement" and node.named_children else node
    if call.type == "call_expression":
        called = of_field(call, "function")
        return called in {b"require", b"super"} or _LOGS.fullmatch(called) is not None
    if node.type == "if_statement":
        return b"import.meta.vitest" in of_field(node, "condition")
    parent = node.parent
    if node.type == "string" and parent is not None:
        is_key = parent.type == "pair" and parent.child_by_field_name("key") == node
        return is_key or parent.type in {"export_statement", "expression_statement"}
    return False
