"""Finds the definitions in a script: functions, classes with members, values, types, namespaces."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from pipeline.languages.javascript.syntax import (
    CLASSES,
    COMMENTS,
    FIELDS,
    FUNCTIONS,
    assigned_name,
    bare,
    field,
    literal,
)
from pipeline.languages.sources.syntax_trees import below, field_text, text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tree_sitter import Node

    from pipeline.languages.sources.stubs import Parts

Kind = Literal["function", "class", "value", "type", "namespace"]

EXPORTS: Final = "module.exports"
_EXPORTED: Final = ("exports.", f"{EXPORTS}.")
_TYPES: Final = frozenset({"interface_declaration", "type_alias_declaration", "enum_declaration"})
_SIGNATURES: Final = frozenset({"function_signature", "method_signature", "abstract_method_signature"})
_DECLARED_FUNCTIONS: Final = frozenset({"function_declaration", "generator_function_declaration", "function_signature"})
_DECLARED_VALUES: Final = frozenset({"lexical_declaration", "variable_declaration"})
_NAMESPACES: Final = frozenset({"internal_module", "module"})
_IMPORTS: Final = frozenset({"import_statement", "import_alias", "empty_statement"})


@dataclass(frozen=True)
class Definition:
    """A definition: `node` is all of it, `body` the code that a call runs, None for a mere signature.

    `value` is what a variable or field holds, where that is no function. `scope` is the part with definitions of its
    own: a class, a namespace, an object.
    """

    place: Parts
    kind: Kind
    node: Node
    body: Node | None = None
    value: Node | None = None
    scope: Node | None = None

    @property
    def line(self) -> int:
        """Return the line on which the definition begins, from 1."""
        return self.node.start_point.row + 1


def definitions(top: Node) -> Iterator[Definition]:
    """Yield the definitions in a file, members after their owners; those inside functions are left out."""
    for statement in top.named_children:
        yield from _of_statement(statement, ())


def _of_statement(statement: Node, above: Parts) -> Iterator[Definition]:
    node = _declared(statement)
    if node.type in _DECLARED_FUNCTIONS:
        place = (*above, field_text(node, "name") or "default")
        yield Definition(place, "function", statement, body=field(node, "body"))
    elif node.type in CLASSES:
        yield from _of_class(statement, node, (*above, field_text(node, "name") or "default"))
    elif node.type in _TYPES:
        yield Definition((*above, field_text(node, "name")), "type", statement)
    elif node.type in _NAMESPACES:
        place, body = (*above, *field_text(node, "name").strip("'\"").split(".")), field(node, "body")
        yield Definition(place, "namespace", statement, scope=body)
        for inner in body.named_children if body is not None else ():
            yield from _of_statement(inner, place)
    elif node.type in _DECLARED_VALUES:
        for declarator in node.named_children:
            if declarator.type == "variable_declarator" and not is_require(declarator):
                yield from _of_declarator(declarator, above)
    elif node.type == "assignment_expression":
        yield from _of_assignment(statement, node, above)
    elif statement.type == "export_statement" and (value := bare(field(statement, "value"))) is not None:
        yield from _of_value(statement, value, (*above, field_text(value, "name") or "default"))


def _declared(statement: Node) -> Node:
    """Return the declaration in a statement, without `export`, `export default` and `declare`."""
    node = statement
    while node.type in {"export_statement", "ambient_declaration", "expression_statement"}:
        inner = field(node, "declaration")
        if inner is None and node.type != "export_statement":
            inner = next((child for child in node.named_children if child.type not in COMMENTS), None)
        if inner is None:
            return node
        node = inner
    return node


def _of_declarator(declarator: Node, above: Parts) -> Iterator[Definition]:
    name = field(declarator, "name")
    if name is None:
        return
    if name.type != "identifier":
        names = [one for one in below(name) if one.type.endswith("identifier_pattern") or one.type == "identifier"]
        yield from (
            Definition((*above, text(one)), "value", declarator, value=field(declarator, "value")) for one in names
        )
        return
    yield from _of_value(declarator, bare(field(declarator, "value")), (*above, text(name)))


def _of_assignment(statement: Node, node: Node, above: Parts) -> Iterator[Definition]:
    """Yield the exports of CommonJS: `exports.a = ...`, `module.exports = ...`, and methods set one by one."""
    left, value = field(node, "left"), bare(field(node, "right"))
    if left is None or left.type != "member_expression" or value is None:
        return
    target = "".join(text(left).split())
    if target == EXPORTS:
        if value.type == "object":
            yield from _members(value, above)
        elif value.type in FUNCTIONS | CLASSES:
            yield from _of_value(statement, value, (*above, field_text(value, "name") or EXPORTS))
    elif value.type != "identifier" and (_is_code(value) or target.startswith(_EXPORTED) or ".prototype." in target):
        yield from _of_value(statement, value, (*above, *assigned_name(target).split(".")))


def _is_code(value: Node) -> bool:
    return value.type in FUNCTIONS | CLASSES


def _of_value(node: Node, value: Node | None, place: Parts) -> Iterator[Definition]:
    if value is not None and value.type in FUNCTIONS:
        yield Definition(place, "function", node, body=field(value, "body"))
    elif value is not None and value.type in CLASSES:
        yield from _of_class(node, value, place)
    elif value is not None and value.type == "object" and any(_is_code_member(one) for one in value.named_children):
        yield Definition(place, "value", node, scope=value)
        yield from _members(value, place)
    else:
        yield Definition(place, "value", node, value=value)


def _is_code_member(member: Node) -> bool:
    value = bare(field(member, "value"))
    return member.type == "method_definition" or (value is not None and _is_code(value))


def _members(value: Node, above: Parts) -> Iterator[Definition]:
    """Yield the functions and values of an object; a shorthand name only mentions something."""
    for member in value.named_children:
        if member.type == "method_definition":
            yield Definition((*above, field_text(member, "name")), "function", member, body=field(member, "body"))
        elif member.type == "spread_element":
            yield Definition((*above, "..."), "value", member, value=member)
        elif member.type == "pair":
            inner = bare(field(member, "value"))
            if inner is not None and inner.type != "identifier":
                yield from _of_value(member, inner, (*above, field_text(member, "key").strip("'\"")))


def _of_class(node: Node, declared: Node, place: Parts) -> Iterator[Definition]:
    body = field(declared, "body")
    yield Definition(place, "class", node, scope=body)
    for member in body.named_children if body is not None else ():
        name = field_text(member, "name") or field_text(member, "property")
        if member.type == "method_definition" or member.type in _SIGNATURES:
            yield Definition((*place, _plain(name)), "function", member, body=field(member, "body"))
        elif member.type in FIELDS:
            value = bare(field(member, "value"))
            if value is not None and value.type in FUNCTIONS:
                yield Definition((*place, _plain(name)), "function", member, body=field(value, "body"))
            else:
                yield Definition((*place, _plain(name)), "value", member, value=value)
        elif member.type == "class_static_block":
            yield Definition((*place, "static"), "function", member, body=field(member, "body") or member)


def _plain(name: str) -> str:
    return name.strip("'\"").removeprefix("#")


def is_require(declarator: Node) -> bool:
    """Return whether a variable is an import: `const a = require("a")`, also with a member or an `await`."""
    value = bare(field(declarator, "value"))
    while value is not None and value.type in {"await_expression", "member_expression"}:
        inner = field(value, "object") if value.type == "member_expression" else next(iter(value.named_children), None)
        value = bare(inner)
    if value is None or value.type != "call_expression":
        return False
    function, arguments = field(value, "function"), field(value, "arguments")
    first = next(iter(arguments.named_children), None) if arguments is not None else None
    return function is not None and text(function) in {"require", "import"} and literal(first) is not None


def is_declaration(statement: Node) -> bool:
    """Return whether a statement at a file's top only imports or exports names."""
    if statement.type in COMMENTS | _IMPORTS or _is_directive(statement):
        return True
    node = _declared(statement)
    if node.type in _DECLARED_VALUES:
        return all(is_require(one) for one in node.named_children if one.type == "variable_declarator")
    if statement.type == "export_statement":
        value = bare(field(statement, "value"))
        return field(statement, "declaration") is None and (value is None or value.type == "identifier")
    if node.type != "assignment_expression":
        return False
    left, value = field(node, "left"), bare(field(node, "right"))
    target = "".join(text(left).split()) if left is not None else ""
    return target.startswith(("exports.", EXPORTS)) and value is not None and _only_names(value)


def _only_names(value: Node) -> bool:
    if value.type == "object":
        return all(
            one.type in COMMENTS | {"shorthand_property_identifier"} or _is_name(bare(field(one, "value")))
            for one in value.named_children
        )
    return _is_name(value)


def _is_name(value: Node | None) -> bool:
    return value is not None and value.type == "identifier"


def _is_directive(statement: Node) -> bool:
    inner = next(iter(statement.named_children), None)
    return statement.type == "expression_statement" and inner is not None and inner.type == "string"
