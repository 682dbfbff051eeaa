"""Replaces the bodies of named Go symbols by a panic and keeps every other byte of a file.

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

from pipeline.evidence.red_classes import Symbol
from pipeline.languages.go.sources import Item, imports, items, parse
from pipeline.languages.sources import stubs
from pipeline.languages.sources.stubs import Content, Definition, Rules, Target
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
    from collections.abc import Set as AbstractSet

    from tree_sitter import Node

    from pipeline.languages.sources.stubs import Body, Edit, OldBodies, Stubbed, StubFault


STUB: Final = 'panic("not implemented")'

_FUNCTIONS: Final = frozenset({"func", "method"})
_VALUES: Final = frozenset({"const", "var"})
_NAMELESS: Final = frozenset({"_", "init", "main"})


def stub_symbols(files: Mapping[str, str], symbols: Sequence[Symbol]) -> Stubbed:
    """Return the files with stubs, and the symbols that no file defines.

    A function panics first thing; a type's methods all do, in whatever file. What looks at a value that is replaced
    does not compile.
    """
    declared = {path: list(items(parse(source.encode()))) for path, source in files.items() if not _is_test(path)}
    return stubs.stubbed(files, symbols, lambda symbol: _targets(declared, symbol))


def introduced(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[Symbol, ...]:
    """Return the symbols that no file of the same package defined before; methods are dotted."""
    known: dict[str, set[str]] = {}
    for path, source in before.items():
        known.setdefault(posixpath.dirname(path), set()).update(defined(source))
    found: list[Symbol] = []
    for path, source in after.items():
        if not _is_test(path):
            old = known.get(posixpath.dirname(path), set[str]())
            names = dict.fromkeys(name for name in defined(source) if name not in old)
            found += [Symbol(path, name) for name in names]
    return tuple(found)


def with_old_bodies(before: Mapping[str, str], after: Mapping[str, str], kept: bool) -> OldBodies:
    """Return the files with the bodies that their functions had, or the stub, put before what they do now.

    What they do now is never reached, and keeps what the file imports in use.
    """

    def stub(now: str, was: str | None) -> str:
        first = f"if true {was}" if kept and was is not None else STUB
        return f"{{ {first}; {now[1:]}"

    old, new = ({path: text for path, text in files.items() if not _is_test(path)} for files in (before, after))

    def functions(_: str, source: str) -> Iterator[Body]:
        return _named_parts(source, _FUNCTIONS, "body")

    def values(_: str, source: str) -> Iterator[Body]:
        return _named_parts(source, _VALUES, "value")

    return stubs.with_old_bodies(old, new, functions, values if kept else stubs.no_values, stub)


def _named_parts(source: str, kinds: AbstractSet[str], field: str) -> Iterator[Body]:
    for item in items(parse(source.encode())):
        part = item.node.child_by_field_name(field) if item.kind in kinds else None
        if part is not None:
            yield item.name, part.start_byte, part.end_byte


def defined(source: str) -> Iterator[str]:
    """Yield the names that a file declares, without `init`, `main` and `_`, which no test can use."""
    return (item.name for item in items(parse(source.encode())) if item.name not in _NAMELESS)


def names_of(symbol: str) -> tuple[str, ...]:
    """Return the possible names of a symbol in its file: as written, and without its package.

    Packages have small letters, and so have some types: both are tried.
    """
    plain = symbol.replace("(*", "").replace("(", "").replace(")", "")
    first, dot, rest = plain.partition(".")
    return (plain, rest) if dot and first[:1].islower() else (plain,)


def _targets(declared: Mapping[str, Sequence[Item]], symbol: Symbol) -> Iterator[Target]:
    """Yield the items that a symbol means: itself, and a type's methods anywhere in its package."""
    known = [(path, item) for path, each in declared.items() for item in each]
    for name in names_of(symbol.name):
        own = [(path, item) for path, item in known if item.name == name and symbol.path in {"", path}]
        packages = {posixpath.dirname(path) for path, item in own if item.kind == "type"}
        methods = [
            (path, item)
            for path, item in known
            if item.kind == "method" and item.name.startswith(f"{name}.") and posixpath.dirname(path) in packages
        ]
        if own:
            yield from (Target(path, _bodies(item), _value(item)) for path, item in (*own, *methods))
            return


def _bodies(item: Item) -> Iterator[Edit]:
    bodies = [item.node.child_by_field_name("body")] if item.kind in _FUNCTIONS else [*_literals(item)]
    for body in bodies:
        if body is not None:
            at = body.start_byte + 1
            yield at, at, f" {STUB};"


def _literals(item: Item) -> Iterator[Node | None]:
    """Yield the bodies of functions in a variable's value."""
    value = item.node.child_by_field_name("value") if item.kind == "var" else None
    for node in value.named_children if value is not None else ():
        if node.type == "func_literal":
            yield node.child_by_field_name("body")


def _value(item: Item) -> Iterator[Edit]:
    value = item.node.child_by_field_name("value") if item.kind in _VALUES else None
    if value is not None and not any(node.type == "func_literal" for node in below(value)):
        yield value.start_byte, value.end_byte, STUB


def _is_test(path: str) -> bool:
    return path.endswith("_test.go") or not path.endswith(".go")


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
    return stubs.stub_faults(_RULES, before, after, symbols)


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
