"""Replaces the bodies of named symbols by `throw new Error("not implemented")` (see `sources.stubs`).

Names may be exported in any way; an overload is a signature; a constant is a literal, or an object or array of
literals; a class may have fields with literals, and a constructor that is a stub.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from pipeline.languages.javascript.definitions import Definition, definitions, is_declaration
from pipeline.languages.javascript.project import TYPED
from pipeline.languages.javascript.syntax import COMMENTS, field, parse
from pipeline.languages.named_definitions import is_same, parts_of
from pipeline.languages.sources import stubs
from pipeline.languages.sources.stubs import Content, Rules, Target
from pipeline.languages.sources.syntax_trees import below, code_of, first_error, line_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tree_sitter import Node

    from pipeline.evidence.red_classes import Symbol
    from pipeline.languages.named_definitions import Parts
    from pipeline.languages.sources.stubs import Body, Edit, OldBodies, Stubbed, StubFault


STUB: Final = 'throw new Error("not implemented")'
_BODY: Final = f"{{ {STUB}; }}"


def stub_symbols(files: Mapping[str, str], symbols: Sequence[Symbol]) -> Stubbed:
    """Return the files with stubs, and the symbols that no file defines.

    A function loses its body; a class those of all its functions, and gets a constructor that fails if it has none; an
    object or a namespace those of everything in it. A value is replaced by `undefined`.
    """
    known = {path: list(definitions(parse(path, source.encode()))) for path, source in files.items()}
    return stubs.stubbed(files, symbols, lambda symbol: _targets(known, symbol))


def introduced(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[Symbol, ...]:
    """Return the symbols newly defined at the files' top level; members are dotted."""
    return stubs.introduced(before, after, _defined)


def with_old_bodies(before: Mapping[str, str], after: Mapping[str, str], kept: bool) -> OldBodies:
    """Return the files with the bodies that their functions had, or the stub."""

    def stub(_: str, was: str | None) -> str:
        return was if kept and was is not None else _BODY

    return stubs.with_old_bodies(before, after, _functions, _assigned if kept else stubs.no_values, stub)


def _functions(path: str, source: str) -> Iterator[Body]:
    for one in definitions(parse(path, source.encode())):
        if one.body is not None and one.body.type == "statement_block":
            yield ".".join(one.place), one.body.start_byte, one.body.end_byte


def _assigned(path: str, source: str) -> Iterator[Body]:
    for one in definitions(parse(path, source.encode())):
        if one.kind == "value" and one.value is not None and one.node.type not in COMMENTS:
            yield ".".join(one.place), one.value.start_byte, one.value.end_byte


def _defined(path: str, source: str) -> Iterator[str]:
    return (".".join(one.place) for one in definitions(parse(path, source.encode())))


def _targets(known: Mapping[str, Sequence[Definition]], symbol: Symbol) -> Iterator[Target]:
    wanted = parts_of(symbol.name)
    for path, each in known.items():
        for one in each if symbol.path in {"", path} else ():
            if _is_in(one.place, wanted, path):
                yield Target(path, _bodies(one, each, path), _values(one, path))


def _is_in(place: Parts, wanted: Parts, path: str) -> bool:
    """Return whether a name means a definition or an owner of it."""
    return any(is_same(place[:length], wanted, path) for length in range(1, len(place) + 1))


def _bodies(one: Definition, known: Sequence[Definition], path: str) -> Iterator[Edit]:
    if one.body is not None:
        yield one.body.start_byte, one.body.end_byte, _BODY
    elif one.kind == "class" and one.scope is not None:
        members = [other for other in known if other.place[:-1] == one.place and other.kind == "function"]
        if not members:
            arguments = "..._arguments: any[]" if path.endswith(TYPED) else ""
            yield one.scope.start_byte + 1, one.scope.start_byte + 1, f" constructor({arguments}) {_BODY}"


def _values(one: Definition, path: str) -> Iterator[Edit]:
    if one.kind == "value" and one.value is not None and one.node.type not in COMMENTS:
        nothing = "undefined as never" if path.endswith(TYPED) else "undefined"
        yield one.value.start_byte, one.value.end_byte, nothing


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
    return stubs.stub_faults(_RULES, before, after, symbols)


def _read(path: str, source: str) -> Content:
    top = parse(path, source.encode())
    if (error := first_error(top)) is not None:
        return Content(error="cannot be parsed", error_line=line_of(error))
    known = list(definitions(top))
    return Content([_compared(one) for one in known], [*_others(top, known)])


_RULES: Final = Rules(_read, STUB, re.compile(r'\{ throw new Error \( " not implemented " \) (?:; )?\}'))


def _compared(one: Definition) -> stubs.Definition:
    head = code_of(one.node, without=one.scope or one.body)
    body = code_of(one.body) if one.body is not None else None
    return stubs.Definition(one.place, one.line, head, body, fault=_fault(one))


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
