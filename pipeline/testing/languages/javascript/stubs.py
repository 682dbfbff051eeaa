"""Reads what JavaScript and TypeScript sources define, for `sources.stubs`; a stub throws.

Names may be exported in any way; an overload is a signature; a constant is a literal, or an object or array of
literals; a class may have fields with literals, and a constructor that is a stub.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from pipeline.testing.languages.javascript.project import TYPED
from pipeline.testing.languages.javascript.syntax import (
    CLASSES,
    COMMENTS,
    FIELDS,
    FUNCTIONS,
    assigned_name,
    bare,
    field,
    parse,
    required,
)
from pipeline.testing.languages.sources import stubs
from pipeline.testing.languages.sources.stubs import WAS, Content, Edit, Parts, Rules
from pipeline.testing.languages.sources.syntax_trees import below, code_of, field_text, line_of, span_of, text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tree_sitter import Node


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
class Item:
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


def definitions(top: Node) -> Iterator[Item]:
    """Yield the definitions in a file, members after their owners; those inside functions are left out."""
    for statement in top.named_children:
        yield from _of_statement(statement, ())


def _of_statement(statement: Node, above: Parts) -> Iterator[Item]:
    node = _declared(statement)
    if node.type in _DECLARED_FUNCTIONS:
        place = (*above, field_text(node, "name") or "default")
        yield Item(place, "function", statement, body=field(node, "body"))
    elif node.type in CLASSES:
        yield from _of_class(statement, node, (*above, field_text(node, "name") or "default"))
    elif node.type in _TYPES:
        yield Item((*above, field_text(node, "name")), "type", statement)
    elif node.type in _NAMESPACES:
        place, body = (*above, *field_text(node, "name").strip("'\"").split(".")), field(node, "body")
        yield Item(place, "namespace", statement, scope=body)
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


def _of_declarator(declarator: Node, above: Parts) -> Iterator[Item]:
    name = field(declarator, "name")
    if name is None:
        return
    if name.type != "identifier":
        names = [one for one in below(name) if one.type.endswith("identifier_pattern") or one.type == "identifier"]
        yield from (Item((*above, text(one)), "value", declarator, value=field(declarator, "value")) for one in names)
        return
    yield from _of_value(declarator, bare(field(declarator, "value")), (*above, text(name)))


def _of_assignment(statement: Node, node: Node, above: Parts) -> Iterator[Item]:
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


def _of_value(node: Node, value: Node | None, place: Parts) -> Iterator[Item]:
    if value is not None and value.type in FUNCTIONS:
        yield Item(place, "function", node, body=field(value, "body"))
    elif value is not None and value.type in CLASSES:
        yield from _of_class(node, value, place)
    elif value is not None and value.type == "object" and any(_is_code_member(one) for one in value.named_children):
        yield Item(place, "value", node, scope=value)
        yield from _members(value, place)
    else:
        yield Item(place, "value", node, value=value)


def _is_code_member(member: Node) -> bool:
    value = bare(field(member, "value"))
    return member.type == "method_definition" or (value is not None and _is_code(value))


def _members(value: Node, above: Parts) -> Iterator[Item]:
    """Yield the functions and values of an object; a shorthand name only mentions something."""
    for member in value.named_children:
        if member.type == "method_definition":
            yield Item((*above, field_text(member, "name")), "function", member, body=field(member, "body"))
        elif member.type == "spread_element":
            yield Item((*above, "..."), "value", member, value=member)
        elif member.type == "pair":
            inner = bare(field(member, "value"))
            if inner is not None and inner.type != "identifier":
                yield from _of_value(member, inner, (*above, field_text(member, "key").strip("'\"")))


def _of_class(node: Node, declared: Node, place: Parts) -> Iterator[Item]:
    body = field(declared, "body")
    yield Item(place, "class", node, scope=body)
    for member in body.named_children if body is not None else ():
        name = field_text(member, "name") or field_text(member, "property")
        if member.type == "method_definition" or member.type in _SIGNATURES:
            yield Item((*place, _plain(name)), "function", member, body=field(member, "body"))
        elif member.type in FIELDS:
            value = bare(field(member, "value"))
            if value is not None and value.type in FUNCTIONS:
                yield Item((*place, _plain(name)), "function", member, body=field(value, "body"))
            else:
                yield Item((*place, _plain(name)), "value", member, value=value)
        elif member.type == "class_static_block":
            yield Item((*place, "static"), "function", member, body=field(member, "body") or member)


def _plain(name: str) -> str:
    return name.strip("'\"").removeprefix("#")


def is_require(declarator: Node) -> bool:
    """Return whether a variable is an import: `const a = require("a")`, also with a member or an `await`."""
    value = bare(field(declarator, "value"))
    while value is not None and value.type in {"await_expression", "member_expression"}:
        inner = field(value, "object") if value.type == "member_expression" else next(iter(value.named_children), None)
        value = bare(inner)
    return required(value) is not None


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


def _shared(one: Item, known: Sequence[Item], *, is_typed: bool) -> stubs.Definition:
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


def _constructor(one: Item, known: Sequence[Item], *, is_typed: bool) -> Iterator[Edit]:
    """Yield the edit that gives a class without any function a constructor that fails."""
    has_functions = any(other.place[:-1] == one.place and other.kind == "function" for other in known)
    if one.kind == "class" and one.scope is not None and not has_functions:
        arguments = "..._arguments: any[]" if is_typed else ""
        yield one.scope.start_byte + 1, one.scope.start_byte + 1, f" constructor({arguments}) {_BODY}"


def _value(one: Item, *, is_typed: bool) -> Edit | None:
    if one.kind != "value" or one.value is None or one.node.type in COMMENTS:
        return None
    return one.value.start_byte, one.value.end_byte, "undefined as never" if is_typed else "undefined"


def _fault(one: Item) -> str:
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


def _others(top: Node, known: Sequence[Item]) -> Iterator[tuple[str, int]]:
    """Yield the statements that run when the file is loaded."""
    for statement in top.named_children:
        is_definition = any(
            statement.start_byte <= one.node.start_byte and one.node.end_byte <= statement.end_byte for one in known
        )
        if not is_definition and not is_declaration(statement):
            yield code_of(statement), line_of(statement)
