"""Reads Go sources to judge stub passes (see `sources.stub_pass`).

What Go reads out of comments (`//go:` lines, build constraints) counts as code. A constant that is counted (`iota`) has
its place in the count. `errors.New` of a literal is a constant, as Go has no constant errors, and so is an empty slice
or map. `var _ Interface = (*Type)(nil)` is a type check that does nothing. `import "C"` is code.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from pipeline.languages.go.stubs import STUB
from pipeline.languages.go.syntax import imports, items, parse
from pipeline.languages.sources import stub_pass
from pipeline.languages.sources.stub_pass import Content, Definition, Rules
from pipeline.languages.sources.syntax_trees import (
    below,
    code_of,
    field_text,
    first_error,
    line_of,
    named_children,
    text,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tree_sitter import Node

    from pipeline.evidence.red_classes import Symbol
    from pipeline.languages.go.syntax import Item
    from pipeline.languages.sources.stubs import StubFault

_DIRECTIVE: Final = re.compile(r"//(?:go:|export |line )|//\s*\+build|/\*line ")
_LITERALS: Final = frozenset(
    {"int_literal", "float_literal", "imaginary_literal", "rune_literal", "interpreted_string_literal",
     "raw_string_literal", "true", "false", "nil", "iota"}
)  # fmt: skip
_ARITHMETIC: Final = frozenset({"unary_expression", "binary_expression", "parenthesized_expression", "identifier"})
_MEMBERS: Final = frozenset({"field_declaration", "method_elem", "type_elem"})


def stub_faults(
    before: Mapping[str, str], after: Mapping[str, str], symbols: Sequence[Symbol]
) -> tuple[StubFault, ...]:
    """Return the changes that are no stubs; see `protocol.Toolchain.stub_faults`."""
    return stub_pass.stub_faults(_RULES, before, after, symbols)


def _read(path: str, source: str) -> Content:
    if not path.endswith(".go") or path.endswith("_test.go"):
        return Content(error="is no Go source of production")
    top = parse(source.encode())
    if (error := first_error(top)) is not None:
        return Content(error="cannot be parsed", error_line=line_of(error))
    package = next((text(node) for node in top.named_children if node.type == "package_clause"), "")
    return Content([*_definitions(top)], [*_others(top)], package=package)


_RULES: Final = Rules(_read, STUB, re.compile(r'\{ panic \( " not implemented " \) \}'))


def _definitions(top: Node) -> Iterator[Definition]:
    for item in items(top):
        place, line = tuple(item.name.split(".")), line_of(item.node)
        if item.kind in {"func", "method"}:
            body = item.node.child_by_field_name("body")
            yield Definition(place, line, _code(item.node, body), _code(body) if body is not None else "nothing")
        elif item.kind == "type":
            members = _members(item.node)
            yield Definition(place, line, "type" if members else _code(item.node))
            for member in members:
                names = [text(name) for name in member.children_by_field_name("name") if name.is_named]
                embedded = field_text(member, "type").lstrip("*").rpartition(".")[2] or text(member)
                for name in names or [embedded]:
                    yield Definition((*place, name), line_of(member), _code(member))
        elif not (item.name == "_" and _is_type_check(item.node)):
            fault = "" if _is_constant(item) else "gives {name} a value that is computed"
            yield Definition(place, line, _position(item) + _code(item.node), fault=fault)


def _others(top: Node) -> Iterator[tuple[str, int]]:
    for node in below(top):
        if node.type == "comment" and _DIRECTIVE.match(text(node)):
            yield text(node).strip(), line_of(node)
    if "C" in imports(top).values():
        yield 'import "C"', 1
    for node in top.named_children:
        if node.type not in {"package_clause", "comment"} and not node.type.endswith("_declaration"):
            yield text(node), line_of(node)


def _members(spec: Node) -> list[Node]:
    """Return the fields or methods that a type lists."""
    kind = spec.child_by_field_name("type")
    parts = [kind, *kind.named_children] if kind is not None else []
    return [child for part in parts for child in part.named_children if child.type in _MEMBERS]


def _code(node: Node, without: Node | None = None) -> str:
    return code_of(node, without=without, ignored=";")


def _position(item: Item) -> str:
    """Return the position of an `iota` constant in its group, empty for others."""
    group = item.node.parent
    is_counted = item.kind == "const" and group is not None and any(node.type == "iota" for node in below(group))
    return f"{group.named_children.index(item.node)} " if is_counted and group is not None else ""


def _is_constant(item: Item) -> bool:
    values = item.node.child_by_field_name("value")
    return values is None or all(_is_literal(value, is_const=item.kind == "const") for value in values.named_children)


def _is_literal(value: Node, *, is_const: bool) -> bool:
    """Return whether a value is a literal, a constant expression in a `const`, or an error with a fixed text."""
    if value.type in _LITERALS or value.type == "comment" or _is_empty(value):
        return True
    if value.type == "func_literal":
        body = value.child_by_field_name("body")
        return body is not None and _RULES.stub_code.fullmatch(_code(body)) is not None
    if value.type == "call_expression" and not is_const:
        arguments = named_children(value.child_by_field_name("arguments"))
        return field_text(value, "function") == "errors.New" and all(node.type in _LITERALS for node in arguments)
    is_signed = value.type == "unary_expression" and field_text(value, "operator") in {"-", "+"}
    if is_signed or (is_const and value.type in _ARITHMETIC):
        return all(_is_literal(node, is_const=is_const) for node in value.named_children)
    return False


def _is_type_check(spec: Node) -> bool:
    """Return whether a nameless variable only checks a type: `(*T)(nil)`, `T{}`."""
    values = named_children(spec.child_by_field_name("value"))
    return spec.child_by_field_name("type") is not None and len(values) == 1 and _is_zero(values[0])


def _is_zero(value: Node) -> bool:
    function, arguments = value.child_by_field_name("function"), value.child_by_field_name("arguments")
    is_conversion = function is not None and function.type == "parenthesized_expression"
    return _is_empty(value) or (is_conversion and [node.type for node in named_children(arguments)] == ["nil"])


def _is_empty(value: Node) -> bool:
    elements = {"keyed_element", "literal_element"}
    return value.type == "composite_literal" and not any(node.type in elements for node in below(value))
