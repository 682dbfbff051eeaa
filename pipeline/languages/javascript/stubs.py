"""Reads what JavaScript and TypeScript sources define, for `sources.stubs`; a stub throws.

Names may be exported in any way; an overload is a signature; a constant is a literal, or an object or array of
literals; a class may have fields with literals, and a constructor that is a stub.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from pipeline.languages.javascript.definitions import definitions, is_declaration
from pipeline.languages.javascript.project import TYPED
from pipeline.languages.javascript.syntax import COMMENTS, field, parse
from pipeline.languages.sources import stubs
from pipeline.languages.sources.stubs import WAS, Content, Rules
from pipeline.languages.sources.syntax_trees import below, code_of, line_of, span_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tree_sitter import Node

    from pipeline.languages.javascript.definitions import Definition
    from pipeline.languages.sources.stubs import Edit

_STUB: Final = 'throw new Error("not implemented")'
_BODY: Final = f"{{ {_STUB}; }}"
_COMPUTES: Final = frozenset(
    {"call_expression", "new_expression", "await_expression", "yield_expression", "assignment_expression",
     "augmented_assignment_expression", "update_expression", "template_substitution", "spread_element",
     "arrow_function", "function_expression", "tagged_template", "member_expression", "subscript_expression",
     "ternary_expression"}
)  # fmt: skip


def _read(path: str, source: str) -> Content:
    top = parse(path, source.encode())
    known = list(definitions(top))
    return Content.of(top, (_shared(one, known, is_typed=path.endswith(TYPED)) for one in known), _others(top, known))


RULES: Final = Rules(
    _read,
    _STUB,
    re.compile(r'\{ throw new Error \( " not implemented " \) (?:; )?\}'),
    body=_BODY,
    old_body=WAS,
)


def _shared(one: Definition, known: Sequence[Definition], *, is_typed: bool) -> stubs.Definition:
    return stubs.Definition(
        one.place,
        one.line,
        code_of(one.node, without=one.scope or one.body),
        code_of(one.body) if one.body is not None else None,
        fault=_fault(one),
        name=".".join(one.place),
        span=span_of(one.body),
        edits=tuple(_constructor(one, known, is_typed=is_typed)),
        value=_value(one, is_typed=is_typed),
    )


def _constructor(one: Definition, known: Sequence[Definition], *, is_typed: bool) -> Iterator[Edit]:
    """Yield the edit that gives a class without any function a constructor that fails."""
    has_functions = any(other.place[:-1] == one.place and other.kind == "function" for other in known)
    if one.kind == "class" and one.scope is not None and not has_functions:
        arguments = "..._arguments: any[]" if is_typed else ""
        yield one.scope.start_byte + 1, one.scope.start_byte + 1, f" constructor({arguments}) {_BODY}"


def _value(one: Definition, *, is_typed: bool) -> Edit | None:
    if one.kind != "value" or one.value is None or one.node.type in COMMENTS:
        return None
    return one.value.start_byte, one.value.end_byte, "undefined as never" if is_typed else "undefined"


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
