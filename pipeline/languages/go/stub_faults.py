"""What a stub pass changed in Go sources that is no stub, read from the syntax trees (ADR-7).

Files are compared by what they declare: names to their tokens, comments aside. What Go reads out of comments (`//go:`
lines, build constraints) counts as code.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pipeline.languages.go.stubs import STUB, names_of
from pipeline.languages.go.syntax import imports, items, parse
from pipeline.languages.protocol import StubFault
from pipeline.languages.sources.syntax_trees import below, field_text, text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tree_sitter import Node

    from pipeline.evidence.red_classes import Symbol
    from pipeline.languages.go.syntax import Item

_DIRECTIVE: Final = re.compile(r"//(?:go:|export |line )|//\s*\+build|/\*line ")
_LITERALS: Final = frozenset(
    {"int_literal", "float_literal", "imaginary_literal", "rune_literal", "interpreted_string_literal",
     "raw_string_literal", "true", "false", "nil", "iota"}
)  # fmt: skip
_ARITHMETIC: Final = frozenset({"unary_expression", "binary_expression", "parenthesized_expression", "identifier"})
_MEMBERS: Final = frozenset({"field_declaration", "method_elem", "type_elem"})
_FUNCTIONS: Final = frozenset({"func", "method"})


@dataclass(frozen=True)
class _File:
    """One Go source; `declared` are its items by name, several for `init` and `_`."""

    path: str
    top: Node

    @property
    def declared(self) -> dict[str, list[Item]]:
        found: dict[str, list[Item]] = {}
        for item in items(self.top):
            found.setdefault(item.name, []).append(item)
        return found


def stub_faults(
    before: Mapping[str, str], after: Mapping[str, str], symbols: Sequence[Symbol]
) -> tuple[StubFault, ...]:
    """Return what is more, or other, than a stub; see `protocol.Toolchain.stub_faults`.

    Of Go's own: a type may come with a named method of it; `errors.New` of a literal is a constant, as Go has no
    constant errors, and so is an empty slice or map; `var _ Interface = (*Type)(nil)` is a type check that does
    nothing; `import "C"` is code.
    """
    found: list[StubFault] = []
    for path in sorted({*before, *after}):
        if before.get(path) != after.get(path):
            found += _file(path, before.get(path), after.get(path), _wanted(path, symbols))
    found += [
        StubFault(symbol.path, 0, f"has no {symbol.name}")
        for symbol in symbols
        if symbol.new and not _has(after, symbol)
    ]
    return tuple(found)


def _wanted(path: str, symbols: Sequence[Symbol]) -> frozenset[str]:
    """Return the names that a file may declare anew or change; of a symbol without its package too."""
    return frozenset(name for symbol in symbols if symbol.path in {"", path} for name in names_of(symbol.name))


def _has(after: Mapping[str, str], symbol: Symbol) -> bool:
    places = [source for path, source in after.items() if symbol.path in {"", path} and path.endswith(".go")]
    names = names_of(symbol.name)
    return any(not known.isdisjoint(names) for known in map(_all_names, places))


def _all_names(source: str) -> set[str]:
    found: set[str] = set()
    for item in items(parse(source.encode())):
        found.add(item.name)
        if item.kind == "type":
            found |= {f"{item.name}.{name}" for name in _members(item.node)}
    return found


def _file(path: str, old: str | None, new: str | None, wanted: frozenset[str]) -> Iterator[StubFault]:
    if not path.endswith(".go") or path.endswith("_test.go"):
        yield StubFault(path, 0, "is no Go source of production")
        return
    if new is None:
        yield StubFault(path, 0, "is gone")
        return
    after = _File(path, parse(new.encode()))
    broken = next((node for node in below(after.top) if node.is_error or node.is_missing), None)
    if broken is not None:
        yield StubFault(path, _line(broken), "cannot be parsed")
        return
    before = _File(path, parse((old or "").encode()))
    yield from _frame(before, after, is_new=old is None)
    yield from _items(before, after, wanted)


def _frame(before: _File, after: _File, *, is_new: bool) -> Iterator[StubFault]:
    """Yield what changed around the declarations: the package, directives, C."""
    clauses = [
        [text(node) for node in one.top.named_children if node.type == "package_clause"] for one in (before, after)
    ]
    if not is_new and clauses[0] != clauses[1]:
        yield StubFault(after.path, 1, "is of another package now")
    known = set(_directives(before.top))
    for said, line in _directives(after.top).items():
        if said not in known:
            yield StubFault(after.path, line, f"has a directive that was not there: {said}")
    for said in known - set(_directives(after.top)):
        yield StubFault(after.path, 0, f"has lost the directive {said}")
    if "C" in imports(after.top).values() and "C" not in imports(before.top).values():
        yield StubFault(after.path, 0, "imports C")
    for node in after.top.named_children:
        if node.type not in {"package_clause", "comment", "import_declaration"} and not node.type.endswith(
            "_declaration"
        ):
            yield StubFault(after.path, _line(node), "has a statement outside of functions")


def _directives(top: Node) -> dict[str, int]:
    comments = (node for node in below(top) if node.type == "comment")
    return {text(node).strip(): _line(node) for node in comments if _DIRECTIVE.match(text(node))}


def _items(before: _File, after: _File, wanted: frozenset[str]) -> Iterator[StubFault]:
    old, new = before.declared, after.declared
    for name, there in new.items():
        known = old.get(name, [])
        told = [_said(item) for item in known]
        for item in there:
            if _said(item) not in told:
                yield from _changed(after.path, item, next(iter(known), None), wanted)
        if len(there) > max(len(known), 1) and name != "_":
            yield StubFault(after.path, _line(there[-1].node), f"declares {name} once more")
    for name, known in old.items():
        if len(new.get(name, ())) < len(known):
            yield StubFault(after.path, 0, f"has lost {name}")


def _changed(path: str, item: Item, known: Item | None, wanted: frozenset[str]) -> Iterator[StubFault]:
    """Yield what is wrong with an item that is new, or not as it was."""
    line, name = _line(item.node), item.name
    if name == "_" and item.kind == "var" and _is_type_check(item.node):
        return
    if not _is_named(item, known, wanted):
        verb = "changes" if known is not None else "declares"
        yield StubFault(path, line, f"{verb} {name}, which is no symbol of the task")
    elif item.kind in _FUNCTIONS:
        body = item.node.child_by_field_name("body")
        kept = known.node.child_by_field_name("body") if known is not None and known.kind in _FUNCTIONS else None
        as_it_was = kept is not None and body is not None and _tokens(kept) == _tokens(body)
        if not as_it_was and not _is_stub(body):
            yield StubFault(path, line, f"gives {name} a body other than `{STUB}`")
    elif item.kind in {"const", "var"} and not _is_constant(item):
        yield StubFault(path, line, f"computes {name}; accepted is a literal")


def _is_named(item: Item, known: Item | None, wanted: frozenset[str]) -> bool:
    owner = item.name.partition(".")[0]
    if item.name in wanted or (item.kind == "method" and owner in wanted):
        return True
    if item.kind != "type":
        return False
    members = {name.partition(".")[2] for name in wanted if name.startswith(f"{item.name}.")}
    if known is None or known.kind != "type":  # a method needs its type
        return bool(members)
    before, after = _members(known.node), _members(item.node)
    added = {name for name in after if after[name] != before.get(name)}
    return bool(added) and added <= members and set(before) <= set(after)


def _members(spec: Node) -> dict[str, str]:
    """Return the fields or methods that a type lists, with their tokens; an embedded one is called as its type is."""
    kind = spec.child_by_field_name("type")
    found: dict[str, str] = {}
    lists = [kind, *(kind.named_children if kind is not None else ())]
    for node in (
        child for each in lists if each is not None for child in each.named_children if child.type in _MEMBERS
    ):
        names = [text(name) for name in node.children_by_field_name("name") if name.is_named]
        embedded = field_text(node, "type").lstrip("*").rpartition(".")[2] or text(node)
        found |= dict.fromkeys(names or [embedded], _tokens(node))
    return found


def _is_stub(body: Node | None) -> bool:
    return body is not None and _tokens(body) == _tokens(_stub_body())


def _stub_body() -> Node:
    function = parse(f"package p\n\nfunc f() {{ {STUB} }}\n".encode()).named_children[-1]
    body = function.child_by_field_name("body")
    assert body is not None  # noqa: S101  (it stands there)
    return body


def _is_constant(item: Item) -> bool:
    values = item.node.child_by_field_name("value")
    return values is None or all(_is_plain(value, is_const=item.kind == "const") for value in values.named_children)


def _is_plain(value: Node, *, is_const: bool) -> bool:
    """Return whether a value is a literal, what the compiler adds up in a `const`, or an error with a fixed text."""
    if value.type in _LITERALS or value.type == "comment" or _is_empty(value):
        return True
    if value.type == "func_literal":
        return _is_stub(value.child_by_field_name("body"))
    if value.type == "call_expression" and not is_const:
        arguments = value.child_by_field_name("arguments")
        given = arguments.named_children if arguments is not None else []
        return field_text(value, "function") == "errors.New" and all(node.type in _LITERALS for node in given)
    signed = value.type == "unary_expression" and field_text(value, "operator") in {"-", "+"}
    if is_const and value.type in _ARITHMETIC:
        return all(_is_plain(node, is_const=True) for node in value.named_children)
    return signed and all(_is_plain(node, is_const=False) for node in value.named_children)


def _is_type_check(spec: Node) -> bool:
    """Return whether a nameless variable only has the compiler look at a type: `(*T)(nil)`, `T{}`."""
    values = spec.child_by_field_name("value")
    given = values.named_children if values is not None else []
    return spec.child_by_field_name("type") is not None and len(given) == 1 and _is_zero(given[0])


def _is_zero(value: Node) -> bool:
    if _is_empty(value):
        return True
    arguments = value.child_by_field_name("arguments") if value.type == "call_expression" else None
    function = value.child_by_field_name("function")
    converts = function is not None and function.type == "parenthesized_expression"
    return converts and arguments is not None and [node.type for node in arguments.named_children] == ["nil"]


def _is_empty(value: Node) -> bool:
    elements = {"keyed_element", "literal_element"}
    return value.type == "composite_literal" and not any(node.type in elements for node in below(value))


def _said(item: Item) -> str:
    """Return the tokens of an item; of a constant that is counted, its place in the count too."""
    group = item.node.parent
    if item.kind != "const" or group is None or not any(node.type == "iota" for node in below(group)):
        return _tokens(item.node)
    return f"{group.named_children.index(item.node)} {_tokens(item.node)}"


def _tokens(node: Node) -> str:
    """Return the code of a node without comments, blanks and semicolons."""
    return "\x1f".join(_leaves(node))


def _leaves(node: Node) -> Iterator[str]:
    if node.type == "comment":
        return
    if not node.children or node.type in {"interpreted_string_literal", "raw_string_literal", "rune_literal"}:
        if text(node).strip() not in {"", ";"}:
            yield text(node)
        return
    for child in node.children:
        yield from _leaves(child)


def _line(node: Node) -> int:
    return node.start_point.row + 1
