"""What a stub pass over Rust changed that is no stub, read from the syntax trees (ADR-7 of the founding document).

Two texts are compared scope by scope: a file, an inline module, all `impl` blocks of a type together. Test regions are
not production; that a stub pass leaves them alone is the gate's to see.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pipeline.languages.named_definitions import Wanted
from pipeline.languages.protocol import StubFault
from pipeline.languages.rust.syntax import is_for_tests, items, owner_of, parse, trait_of
from pipeline.languages.sources.syntax_trees import below, field_text, text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from tree_sitter import Node

    from pipeline.evidence.red_classes import Symbol

Parts = tuple[str, ...]

_COMMENTS: Final = frozenset({"line_comment", "block_comment"})
_DECLARES: Final = frozenset({"use_declaration", "extern_crate_declaration", "inner_attribute_item", "empty_statement"})
_VALUES: Final = frozenset({"const_item", "static_item"})
_TYPES: Final = frozenset({"struct_item", "enum_item", "union_item", "type_item", "associated_type"})
_SCOPES: Final = frozenset({"impl_item", "trait_item", "mod_item"})
_COMPUTES: Final = frozenset({"call_expression", "macro_invocation", "block", "closure_expression", "if_expression"})


@dataclass(frozen=True)
class _Item:
    """A definition: its name within the file, and its code with attributes and without comments.

    `head` is all but the body of a function; `around` is the head of the `impl` that it stands in.
    """

    place: Parts
    around: str
    node: Node
    whole: str
    head: str
    body: str


def stub_faults(
    before: Mapping[str, str], after: Mapping[str, str], symbols: Sequence[Symbol]
) -> tuple[StubFault, ...]:
    """Return what is more or other than a stub; see `protocol.Toolchain.stub_faults`."""
    faults = [StubFault(path, 0, "is gone") for path in before if path not in after]
    known: dict[str, frozenset[Parts]] = {}
    for path, source in after.items():
        old, new = parse(before.get(path, "").encode()), parse(source.encode())
        if new.has_error:
            faults.append(StubFault(path, _error_line(new), "cannot be parsed"))
            continue
        found = _read(new)
        known[path] = frozenset(item.place for item in found)
        faults += _compared(path, Wanted.of(path, symbols), _read(old), found)
        faults += _statements(path, old, new)
    faults += [StubFault(path, 0, f"does not define {name}") for path, name in Wanted.missing(known, symbols)]
    return tuple(faults)


def _error_line(top: Node) -> int:
    return next((node.start_point.row + 1 for node in below(top) if node.is_error or node.is_missing), 0)


def _read(top: Node) -> list[_Item]:
    return list(_items(top, (), ""))


def _items(scope: Node, above: Parts, around: str) -> Iterator[_Item]:
    for node, attributes, _ in items(scope):
        if any(map(is_for_tests, attributes)):
            continue
        body = node.child_by_field_name("body")
        if node.type == "impl_item":
            owner = (*above, owner_of(node))
            trait = trait_of(node)
            # two traits of a type may have functions of one name
            head = " ".join((*attributes, *_words(node, leave_out=body)))
            yield from _items(body, (*owner, trait) if trait else owner, head) if body is not None else ()
        elif name := field_text(node, "name"):
            place = (*above, name)
            is_scope = node.type in _SCOPES and body is not None
            yield _item(node, attributes, place, around, whole=not is_scope)
            if is_scope and body is not None:
                yield from _items(body, place, around)


def _item(node: Node, attributes: Sequence[str], place: Parts, around: str, *, whole: bool) -> _Item:
    body = node.child_by_field_name("body") if node.type not in _TYPES else None
    head = " ".join((*attributes, *_words(node, leave_out=body)))
    inside = " ".join(_words(body)) if body is not None and whole else ""
    return _Item(place, around, node, f"{head} {inside}", head, inside)


def _words(node: Node, *, leave_out: Node | None = None) -> Iterator[str]:
    """Yield the tokens of a node, comments left out."""
    if node.type in _COMMENTS or (leave_out is not None and node.id == leave_out.id):
        return
    if not node.children:
        yield text(node)
    for child in node.children:
        yield from _words(child, leave_out=leave_out)


def _compared(path: str, wanted: Wanted, old: Sequence[_Item], new: Sequence[_Item]) -> Iterator[StubFault]:
    """Yield what differs; items of one name, as two conversions into a type are, are each held against its own."""
    left: dict[Parts, list[_Item]] = {}
    for item in old:
        left.setdefault(item.place, []).append(item)
    others = [item for item in new if not _take_same(left.get(item.place, []), item)]
    for item in others:
        were = left.get(item.place, [])
        if not were:
            yield from _added(path, wanted, item)
            continue
        was = max(were, key=lambda one: (one.whole == item.whole, one.around == item.around, one.head == item.head))
        were.remove(was)
        if was.whole != item.whole:
            yield from _changed(path, wanted, was, item)
    yield from (StubFault(path, 0, f"{'::'.join(place)} is gone") for place, were in left.items() for _ in were)


def _take_same(were: list[_Item], item: _Item) -> bool:
    """Take out of *were* the one that is as *item* is, if there is one."""
    same = next((one for one in were if (one.around, one.whole) == (item.around, item.whole)), None)
    if same is not None:
        were.remove(same)
    return same is not None


def _added(path: str, wanted: Wanted, item: _Item) -> Iterator[StubFault]:
    name, line = "::".join(item.place), item.node.start_point.row + 1
    if item.node.type == "mod_item" and not _is_inline(item.node):
        return
    if not wanted.names(item.place):
        yield StubFault(path, line, f"adds {name}, which the task does not name")
    elif item.node.type == "function_item" and not _is_stub(item.node):
        yield StubFault(path, line, f"gives {name} a body that is more than `todo!()`")
    elif item.node.type in _VALUES and _is_computed(item.node):
        yield StubFault(path, line, f"gives {name} a value that is computed")


def _changed(path: str, wanted: Wanted, was: _Item, item: _Item) -> Iterator[StubFault]:
    name, line = "::".join(item.place), item.node.start_point.row + 1
    named = wanted.names(item.place)
    if not named:
        yield StubFault(path, line, f"changes {name}, which the task does not name")
    elif item.node.type == "function_item":
        if was.body != item.body and not _is_stub(item.node):
            yield StubFault(path, line, f"changes the body of {name}")
    else:
        yield from _added(path, wanted, item)


def _is_inline(node: Node) -> bool:
    return node.child_by_field_name("body") is not None


def _is_stub(function: Node) -> bool:
    body = function.child_by_field_name("body")
    statements = [child for child in _named(body) if child.type not in {*_COMMENTS, "inner_attribute_item"}]
    if len(statements) != 1:
        return False
    only = statements[0]
    if only.type == "expression_statement":
        only = only.named_children[0]
    return only.type == "macro_invocation" and "".join(text(only).split()) == "todo!()"


def _named(node: Node | None) -> Iterable[Node]:
    return node.named_children if node is not None else ()


def _is_computed(item: Node) -> bool:
    value = item.child_by_field_name("value")
    return value is not None and any(node.type in _COMPUTES for node in below(value))


def _statements(path: str, old: Node, new: Node) -> Iterator[StubFault]:
    """Yield what stands at the top of a file and is neither a definition nor a declaration: macros, mostly."""
    left = Counter(" ".join(_words(node)) for node in _others(old))
    for node in _others(new):
        words = " ".join(_words(node))
        if not left[words]:
            yield StubFault(path, node.start_point.row + 1, "adds a macro or statement")
        left[words] -= 1
    yield from (StubFault(path, 0, "a macro or statement is gone") for _ in (+left).elements())


def _others(top: Node) -> Iterator[Node]:
    for node, attributes, _ in items(top):
        if any(map(is_for_tests, attributes)) or node.type in _DECLARES or node.type == "impl_item":
            continue
        if not field_text(node, "name"):
            yield node
