"""Reads what Go sources define, for `sources.stubs`; a stub panics.

The stub is put before what the body does, not in its place: the rest is never reached, and the imports and variables
that it uses stay used, which Go insists on. Test files are no production.

What Go reads out of comments (`//go:` lines, build constraints) counts as code. A constant that is counted (`iota`) has
its place in the count. `errors.New` of a literal is a constant, as Go has no constant errors, and so is an empty slice
or map. `var _ Interface = (*Type)(nil)` is a type check that does nothing. `import "C"` is code.
"""

from __future__ import annotations

import posixpath
import re
from typing import TYPE_CHECKING, Final

from pipeline.testing.languages.go.sources import Item, imports, items, parse
from pipeline.testing.languages.sources.stubs import REST, WAS, Content, Definition, Edit, Rules
from pipeline.testing.languages.sources.syntax_trees import (
    below,
    code_of,
    field_text,
    line_of,
    named_children,
    span_of,
    text,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tree_sitter import Node


_STUB: Final = 'panic("not implemented")'
_STUB_CODE: Final = re.compile(r'\{ panic \( " not implemented " \) \}')
_NAMELESS: Final = frozenset({"_", "init", "main"})
"""Names that no test can use."""
_DIRECTIVE: Final = re.compile(r"//(?:go:|export |line )|//\s*\+build|/\*line ")
_LITERALS: Final = frozenset(
    {"int_literal", "float_literal", "imaginary_literal", "rune_literal", "interpreted_string_literal",
     "raw_string_literal", "true", "false", "nil", "iota"}
)  # fmt: skip
_ARITHMETIC: Final = frozenset({"unary_expression", "binary_expression", "parenthesized_expression", "identifier"})
_MEMBERS: Final = frozenset({"field_declaration", "method_elem", "type_elem"})


def _read(path: str, source: str) -> Content:
    if not path.endswith(".go") or path.endswith("_test.go"):
        return Content(error="is no Go source of production")
    top = parse(source.encode())
    package = next((text(node) for node in top.named_children if node.type == "package_clause"), "")
    return Content.of(top, _definitions(top), _others(top), package)


RULES: Final = Rules(
    _read,
    _STUB,
    _STUB_CODE,
    body=f"{{ {_STUB};{REST}",
    old_body=f"{{ if true {WAS};{REST}",
    scope=posixpath.dirname,
    modules="any",
)


def _definitions(top: Node) -> Iterator[Definition]:
    for item in items(top):
        place, line, name = tuple(item.name.split(".")), line_of(item.node), item.name
        name = "" if name in _NAMELESS else name
        if item.kind in {"func", "method"}:
            body = item.node.child_by_field_name("body")
            code = _code(body) if body is not None else "nothing"
            yield Definition(place, line, _code(item.node, body), code, name=name, span=span_of(body))
        elif item.kind == "type":
            members = _members(item.node)
            yield Definition(place, line, "type" if members else _code(item.node), name=name)
            for member in members:
                names = [text(name) for name in member.children_by_field_name("name") if name.is_named]
                embedded = field_text(member, "type").lstrip("*").rpartition(".")[2] or text(member)
                for inner in names or [embedded]:
                    yield Definition((*place, inner), line_of(member), _code(member))
        elif not (item.name == "_" and _is_type_check(item.node)):
            yield Definition(
                place,
                line,
                _position(item) + _code(item.node),
                fault="" if _is_constant(item) else "gives {name} a value that is computed",
                name=name,
                edits=tuple(_literals(item)),
                value=_value(item),
            )


def _literals(item: Item) -> Iterator[Edit]:
    """Yield the edits that stub functions in a variable's value."""
    value = item.node.child_by_field_name("value") if item.kind == "var" else None
    for node in value.named_children if value is not None else ():
        body = node.child_by_field_name("body") if node.type == "func_literal" else None
        if body is not None:
            yield body.start_byte + 1, body.start_byte + 1, f" {_STUB};"


def _value(item: Item) -> Edit | None:
    value = item.node.child_by_field_name("value")
    if value is None or any(node.type == "func_literal" for node in below(value)):
        return None
    return value.start_byte, value.end_byte, _STUB


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
        return body is not None and _STUB_CODE.fullmatch(_code(body)) is not None
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
