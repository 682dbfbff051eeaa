"""Reads JavaScript and TypeScript syntax trees of tree-sitter: names, definitions, places.

Importing this module, or one that does, loads the parsers; `node` does so when such a project is measured.
"""

from __future__ import annotations

from functools import cache
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final

import tree_sitter_javascript
import tree_sitter_typescript
from tree_sitter import Language, Parser

from pipeline.languages.sources.syntax_trees import below, field_text, text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tree_sitter import Node

FUNCTIONS: Final = frozenset(
    {
        "function_declaration", "generator_function_declaration", "function_expression", "generator_function",
        "arrow_function", "method_definition",
    }
)  # fmt: skip
CLASSES: Final = frozenset({"class_declaration", "abstract_class_declaration", "class"})
FIELDS: Final = frozenset({"field_definition", "public_field_definition"})
COMMENTS: Final = frozenset({"comment", "html_comment", "hash_bang_line"})
_TYPED: Final = frozenset({".ts", ".mts", ".cts"})
_NAMED: Final = frozenset(
    {"internal_module", "module", "enum_declaration", "interface_declaration", "type_alias_declaration"}
)
_WRAPPERS: Final = frozenset(
    {"parenthesized_expression", "as_expression", "satisfies_expression", "non_null_expression", "type_assertion"}
)


@cache
def language_of(ending: str) -> Language:
    """Return the grammar for a file ending."""
    if ending in _TYPED:
        return Language(tree_sitter_typescript.language_typescript())
    return Language(tree_sitter_typescript.language_tsx() if ending == ".tsx" else tree_sitter_javascript.language())


def parse(path: str, source: bytes) -> Node:
    """Return the syntax tree of a whole file by its ending; it may contain errors."""
    return Parser(language_of(PurePosixPath(path).suffix)).parse(source).root_node


def around(node: Node) -> Iterator[Node]:
    """Yield a node and all nodes that contain it, the innermost first."""
    at: Node | None = node
    while at is not None:
        yield at
        at = at.parent


def field(node: Node, *names: str) -> Node | None:
    """Return the node at a path of fields, None if one of them is missing."""
    at: Node | None = node
    for name in names:
        at = at.child_by_field_name(name) if at is not None else None
    return at


def bare(node: Node | None) -> Node | None:
    """Return an expression without parentheses and type assertions around it."""
    while node is not None and node.type in _WRAPPERS:
        node = next(iter(node.named_children), None)
    return node


def literal(node: Node | None) -> str | None:
    """Return the text of a string or template literal, None for other nodes."""
    if node is None or node.type not in {"string", "template_string"}:
        return None
    return text(node)[1:-1]


def at(top: Node, line: int, column: int | None) -> Node | None:
    """Return the innermost node at a place, None if there is none.

    Args:
        top: The file.
        line: From 1.
        column: From 1, in UTF-16 units as engines count; None for the first code of the line.
    """
    lines = (top.text or b"").split(b"\n")
    if not 1 <= line <= len(lines):
        return None
    content = lines[line - 1]
    if column is None:
        byte = len(content) - len(content.lstrip())
    else:
        byte = _bytes(content.decode("utf-8", "replace"), column - 1)
    point = (line - 1, min(byte, max(len(content) - 1, 0)))
    return top.named_descendant_for_point_range(point, point)


def _bytes(content: str, units: int) -> int:
    if content.isascii():
        return units
    return len(content.encode("utf-16-le")[: 2 * units].decode("utf-16-le", "ignore").encode())


def name_of(node: Node) -> str:
    """Return the name of a definition, which a function can get from its place; empty for other nodes."""
    if node.type in CLASSES or node.type in _NAMED or node.type in FUNCTIONS or node.type in FIELDS:
        own = field_text(node, "name") or (field_text(node, "property") if node.type in FIELDS else "")
        if own:
            return own.strip("'\"")
    if node.type not in FUNCTIONS | CLASSES:
        return ""
    return _name_by_place(node)


def _name_by_place(node: Node) -> str:
    holder = node.parent
    while holder is not None and holder.type in _WRAPPERS:
        holder = holder.parent
    if holder is None:
        return ""
    match holder.type:
        case "variable_declarator":
            return field_text(holder, "name")
        case "pair":
            return field_text(holder, "key").strip("'\"")
        case "assignment_expression":
            return assigned_name(field_text(holder, "left"))
        case "export_statement":
            return "default"
        case _:
            return ""


def assigned_name(target: str) -> str:
    """Return the name of an assignment's target: `exports.a` is `a`, `A.prototype.b` is `A.b`."""
    name = "".join(target.split())
    for prefix in ("module.exports.", "exports."):
        name = name.removeprefix(prefix)
    return name.replace(".prototype.", ".")


def qualname(node: Node) -> str:
    """Return the dotted name of the innermost definition around a node, `<module>` at the top of a file."""
    names = [name_of(one) for one in around(node)]
    return ".".join(name for name in reversed(names) if name) or "<module>"


def functions(top: Node) -> Iterator[str]:
    """Yield the dotted names of all named functions of a file, methods and constructors among them."""
    for node in below(top):
        if node.type in FUNCTIONS and name_of(node):
            yield qualname(node)
