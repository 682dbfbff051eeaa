"""What a stub pass over JavaScript or TypeScript changed that is no stub, read from the syntax trees (ADR-7)."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from pipeline.languages.javascript.definitions import definitions, is_declaration
from pipeline.languages.javascript.stubs import STUB
from pipeline.languages.javascript.syntax import COMMENTS, field, parse
from pipeline.languages.named_definitions import Wanted
from pipeline.languages.protocol import StubFault
from pipeline.languages.sources.syntax_trees import below, text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from tree_sitter import Node

    from pipeline.evidence.red_classes import Symbol
    from pipeline.languages.javascript.definitions import Definition
    from pipeline.languages.named_definitions import Parts

_COMPUTES: Final = frozenset(
    {"call_expression", "new_expression", "await_expression", "yield_expression", "assignment_expression",
     "augmented_assignment_expression", "update_expression", "template_substitution", "spread_element",
     "arrow_function", "function_expression", "tagged_template", "member_expression", "subscript_expression",
     "ternary_expression"}
)  # fmt: skip
_THROW: Final = "throw new Error ( not implemented )"


def stub_faults(
    before: Mapping[str, str], after: Mapping[str, str], symbols: Sequence[Symbol]
) -> tuple[StubFault, ...]:
    """Return what is more or other than a stub; see `protocol.Toolchain.stub_faults`.

    Of JavaScript's own: names may be exported in any way; an overload is a signature; a constant is a literal, or an
    object or array of literals; a class may have fields with literals, and a constructor that is a stub.
    """
    faults = [StubFault(path, 0, "is gone") for path in before if path not in after]
    known: dict[str, frozenset[Parts]] = {}
    for path, source in after.items():
        old, new = parse(path, before.get(path, "").encode()), parse(path, source.encode())
        if new.has_error:
            faults.append(StubFault(path, _error_line(new), "cannot be parsed"))
            continue
        were, are = list(definitions(old)), list(definitions(new))
        known[path] = frozenset(one.place for one in are)
        faults += _compared(path, Wanted.of(path, symbols), were, are)
        faults += _statements(path, old, new)
    faults += [StubFault(path, 0, f"does not define {name}") for path, name in Wanted.missing(known, symbols)]
    return tuple(faults)


def _error_line(top: Node) -> int:
    return next((node.start_point.row + 1 for node in below(top) if node.is_error or node.is_missing), 0)


def _compared(path: str, wanted: Wanted, old: Sequence[Definition], new: Sequence[Definition]) -> Iterator[StubFault]:
    were, are = _by_place(old), _by_place(new)
    yield from (StubFault(path, 0, f"{'.'.join(place)} is gone") for place in were if place not in are)
    for place, items in are.items():
        left = Counter(_whole(one) for one in were.get(place, ()))
        for one in items:
            if left[_whole(one)]:
                left[_whole(one)] -= 1
            else:
                yield from _changed(path, wanted, were.get(place, ()), one)


def _by_place(items: Iterable[Definition]) -> dict[Parts, list[Definition]]:
    """Return definitions by name: a function may have several signatures, an accessor two halves."""
    found: dict[Parts, list[Definition]] = {}
    for one in items:
        found.setdefault(one.place, []).append(one)
    return found


def _whole(one: Definition) -> str:
    return " ".join(_words(one.node, leave_out=one.scope))


def _body(one: Definition) -> str:
    return " ".join(_words(one.body)) if one.body is not None else ""


def _words(node: Node | None, leave_out: Node | None = None) -> Iterator[str]:
    """Yield the tokens of a node, comments left out; a string is its text, however it is quoted."""
    if node is None or node.type in COMMENTS or (leave_out is not None and node.id == leave_out.id):
        return
    if node.type == "string":
        yield text(node)[1:-1]
    elif not node.children:
        yield text(node)
    else:
        for child in node.children:
            yield from _words(child, leave_out)


def _changed(path: str, wanted: Wanted, were: Sequence[Definition], one: Definition) -> Iterator[StubFault]:
    """Yield what is wrong with a definition that is new, or other than each of that name was."""
    name = ".".join(one.place)
    if not wanted.names(one.place):
        verb = "changes" if were else "adds"
        yield StubFault(path, one.line, f"{verb} {name}, which the task does not name")
    elif _decorates(one):
        yield StubFault(path, one.line, f"decorates {name}")
    elif one.kind == "function":
        known = {_body(other) for other in were}
        if one.body is not None and not _is_stub(one.body) and _body(one) not in known:
            more = f"changes the body of {name}" if were else f"gives {name} a body that is more than `{STUB}`"
            yield StubFault(path, one.line, more)
        elif _has_computed_default(one):
            yield StubFault(path, one.line, f"gives a parameter of {name} a value that is computed")
    elif one.kind == "value" and one.scope is None and _is_computed(one.value):
        yield StubFault(path, one.line, f"gives {name} a value that is computed")
    elif one.kind == "class" and _has_computed_base(one.node):
        yield StubFault(path, one.line, f"computes what {name} extends")
    elif one.kind == "type" and any(_is_computed(field(part, "value")) for part in below(one.node)):
        yield StubFault(path, one.line, f"gives a member of {name} a value that is computed")


def _decorates(one: Definition) -> bool:
    own = (child for child in one.node.children if child.type == "decorator")
    siblings = one.node.prev_named_sibling
    return next(own, None) is not None or (siblings is not None and siblings.type == "decorator")


def _is_stub(body: Node) -> bool:
    """Return whether a body is exactly the stub; comments before it are fine."""
    words = [word for word in _words(body) if word not in {"{", "}", ";"}]
    return " ".join(words) == _THROW


def _has_computed_default(one: Definition) -> bool:
    owner = one.body.parent if one.body is not None else one.node
    parameters = field(owner, "parameters") if owner is not None else None
    return parameters is not None and any(
        _is_computed(field(part, "right") or field(part, "value")) for part in below(parameters)
    )


def _is_computed(value: Node | None) -> bool:
    return value is not None and any(part.type in _COMPUTES for part in below(value))


def _has_computed_base(node: Node) -> bool:
    heritage = (part for part in below(node) if part.type in {"class_heritage", "extends_clause"})
    return any(part.type in {"call_expression", "new_expression"} for one in heritage for part in below(one))


def _statements(path: str, old: Node, new: Node) -> Iterator[StubFault]:
    """Yield statements that run when the file is loaded and that came, or went."""
    left = Counter(_said(node) for node in _running(old))
    for node in _running(new):
        if left[_said(node)]:
            left[_said(node)] -= 1
        else:
            yield StubFault(path, node.start_point.row + 1, "adds a statement that runs")
    if any(left.values()):
        yield StubFault(path, 0, "takes a statement away")


def _running(top: Node) -> Iterator[Node]:
    defined = [one.node for one in definitions(top)]
    for statement in top.named_children:
        inside = any(
            statement.start_byte <= node.start_byte and node.end_byte <= statement.end_byte for node in defined
        )
        if not inside and not is_declaration(statement):
            yield statement


def _said(node: Node) -> str:
    return " ".join(_words(node))
