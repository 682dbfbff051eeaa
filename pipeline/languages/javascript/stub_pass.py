"""Reads JavaScript and TypeScript sources to judge stub passes (see `sources.stub_pass`).

Names may be exported in any way; an overload is a signature; a constant is a literal, or an object or array of
literals; a class may have fields with literals, and a constructor that is a stub.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from pipeline.languages.javascript.definitions import definitions, is_declaration
from pipeline.languages.javascript.stubs import STUB
from pipeline.languages.javascript.syntax import field, parse
from pipeline.languages.sources import stub_pass
from pipeline.languages.sources.stub_pass import Content, Rules
from pipeline.languages.sources.syntax_trees import below, code_of, first_error, line_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tree_sitter import Node

    from pipeline.evidence.red_classes import Symbol
    from pipeline.languages.javascript.definitions import Definition
    from pipeline.languages.sources.stubs import StubFault

_COMPUTES: Final = frozenset(
    {"call_expression", "new_expression", "await_expression", "yield_expression", "assignment_expression",
     "augmented_assignment_expression", "update_expression", "template_substitution", "spread_element",
     "arrow_function", "function_expression", "tagged_template", "member_expression", "subscript_expression",
     "ternary_expression"}
)  # fmt: skip


def stub_faults(
    before: Mapping[str, str], after: Mapping[str, str], symbols: Sequence[Symbol]
) -> tuple[StubFault, ...]:
    """Return the changes that are no stubs; see `protocol.Toolchain.stub_faults`."""
    return stub_pass.stub_faults(_RULES, before, after, symbols)


def _read(path: str, source: str) -> Content:
    top = parse(path, source.encode())
    if (error := first_error(top)) is not None:
        return Content(error="cannot be parsed", error_line=line_of(error))
    known = list(definitions(top))
    return Content([_compared(one) for one in known], [*_others(top, known)])


_RULES: Final = Rules(_read, STUB, re.compile(r'\{ throw new Error \( " not implemented " \) (?:; )?\}'))


def _compared(one: Definition) -> stub_pass.Definition:
    head = code_of(one.node, without=one.scope or one.body)
    body = code_of(one.body) if one.body is not None else None
    return stub_pass.Definition(one.place, one.line, head, body, fault=_fault(one))


def _fault(one: Definition) -> str:
    """Return the fault by which a definition, apart from its body, is more than a stub; empty if there is none."""
    before = one.node.prev_named_sibling
    if any(node is not None and node.type == "decorator" for node in (*one.node.children, before)):
        return "decorates {name}"
    if one.kind == "function":
        owner = one.body.parent if one.body is not None else one.node
        parameters = field(owner, "parameters") if owner is not None else None
        values = [field(part, "right") or field(part, "value") for part in below(parameters)] if parameters else []
        return "gives a parameter of {name} a value that is computed" if any(map(_is_computed, values)) else ""
    if one.kind == "class":
        return "computes what {name} extends" if _has_computed_base(one.node) else ""
    if one.kind == "type":
        is_computed = any(_is_computed(field(part, "value")) for part in below(one.node))
    else:
        is_computed = one.kind == "value" and one.scope is None and _is_computed(one.value)
    return "gives {name} a value that is computed" if is_computed else ""


def _is_computed(value: Node | None) -> bool:
    return value is not None and any(part.type in _COMPUTES for part in below(value))


def _has_computed_base(node: Node) -> bool:
    heritage = (part for part in below(node) if part.type in {"class_heritage", "extends_clause"})
    return any(part.type in {"call_expression", "new_expression"} for one in heritage for part in below(one))


def _others(top: Node, known: Sequence[Definition]) -> Iterator[tuple[str, int]]:
    """Yield the statements that run when the file is loaded."""
    for statement in top.named_children:
        is_definition = any(
            statement.start_byte <= one.node.start_byte and one.node.end_byte <= statement.end_byte for one in known
        )
        if not is_definition and not is_declaration(statement):
            yield code_of(statement), line_of(statement)
