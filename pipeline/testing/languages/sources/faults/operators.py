"""The kinds of small faults: for each role of a syntax node, its possible replacements.

A language says with a query over its syntax tree which nodes have which role: the captures are named as the roles of
`_ROWS` and `_OPERATORS` are. Four captures more say where faults go: `@skipped` is left alone with all that is in it,
texts in a `@message` are for people, `@name` is what its parent is called, and `@function` is what a value is returned
from.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Final

from tree_sitter import Node, Parser, Query, QueryCursor

from pipeline.testing.languages.sources.faults import Mutant, Rank, apart, quoted
from pipeline.testing.languages.sources.faults.platforms import Conditions

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

    from pipeline.testing.languages.sources.faults.platforms import Platform

_ROWS: Final = (
    # role, the word that takes its place, what that is called
    ("branch", "false", "the branch is never taken: {node} is {new}", Rank.DECISION),
    ("branch", "true", "the branch is always taken: {node} is {new}", Rank.EFFECT),
    ("choice", "false", "the first value is never taken: {node} is {new}", Rank.DECISION),
    ("choice", "true", "the first value is always taken: {node} is {new}", Rank.EFFECT),
    ("guard", "false", "the arm is never taken: {node} is {new}", Rank.DECISION),
    ("guard", "true", "the arm is always taken: {node} is {new}", Rank.EFFECT),
    ("filter", "true", "{node} leaves nothing out", Rank.DECISION),
    ("loop", "false", "the loop is never entered", Rank.EFFECT),
    ("series", "no items", "the loop is never entered", Rank.EFFECT),
    ("body", "not done", "the loop does nothing", Rank.EFFECT),
    ("conjunct", "true", "{node} is left out", Rank.EFFECT),
    ("disjunct", "false", "{node} is left out", Rank.EFFECT),
    ("ending", "left out", "{node} is left out", Rank.DECISION),
    ("effect", "left out", "{node} is left out", Rank.EFFECT),
    ("assertion", "left out", "{node} is left out", Rank.VALUE),
    ("caught", "raised again", "what is caught is raised again", Rank.DECISION),
    ("returned", "nothing", "returns `{new}`", Rank.DECISION),
    ("yielded", "nothing", "yields `{new}`", Rank.EFFECT),
    ("list", "no list", "a list is empty", Rank.VALUE),
    ("dictionary", "no dictionary", "a dictionary is empty", Rank.VALUE),
)
_ARITHMETIC: Final = {
    b"+": b"-", b"-": b"+", b"*": b"/", b"/": b"*", b"//": b"/", b"%": b"*", b"**": b"*",
    b"<<": b">>", b">>": b"<<", b"&": b"|", b"|": b"&", b"^": b"&",
}  # fmt: skip
_TOKENS: Final[Mapping[Rank, Mapping[bytes, bytes]]] = {
    # The boundary; the opposite is noticed by whoever looks at all.
    Rank.DECISION: {
        b"<": b"<=", b"<=": b"<", b">": b">=", b">=": b">",
        b"==": b"!=", b"!=": b"==", b"===": b"!==", b"!==": b"===",
        b"is": b"is not", b"is not": b"is", b"in": b"not in", b"not in": b"in",
        b"and": b"or", b"or": b"and", b"&&": b"||", b"||": b"&&",
    },
    Rank.VALUE: {
        b"<": b">=", b"<=": b">", b">": b"<=", b">=": b"<",
        b"true": b"false", b"false": b"true", b"True": b"False", b"False": b"True",
        **_ARITHMETIC, **{old + b"=": new + b"=" for old, new in _ARITHMETIC.items()},
    },
}  # fmt: skip
_CONSTANTS: Final = frozenset({"true", "false", "boolean_literal", "integer", "float", "number", "string", "none"})
_NO_NUMBERS: Final = re.compile(r"string|^list|^tuple")
_INTEGER: Final = re.compile(r"(?P<digits>[0-9][0-9a-fA-FxXoO_]*?)(?P<suffix>(?:[iu](?:8|16|32|64|128|size)|n)?)")
_FLOAT: Final = re.compile(r"[0-9][0-9_]*\.[0-9]+")
_MOST_DIGITS: Final = 18
_COMPILED: Final = frozenset({"block", "declaration_list"})
_STRING: Final = re.compile(rb"(?P<prefix>[A-Za-z]*)(?P<quote>\"\"\"|'''|\"|')")


@dataclass(frozen=True)
class Edit:
    """A replacement of the bytes from `start` to `end`."""

    start: int
    end: int
    new: bytes
    what: str
    rank: Rank


def _in_braces() -> dict[str, bytes]:
    """Return the words of languages whose blocks stand in braces (Go, Rust)."""
    return {"true": b"true", "false": b"false", "left out": b"if false { NODE }", "not done": b"{ if false NODE }"}


@dataclass(frozen=True, kw_only=True)
class Grammar(Conditions):
    """The facts about a language that mutation needs.

    Args:
        roles: The query that gives nodes their roles.
        words: What the words of the table are in it, `NODE` being what was there; without a word there is no fault.
        own: The roles that only this language has: a node, and what returns its value, to what can be changed.
    """

    roles: str
    words: Mapping[str, bytes] = field(default_factory=_in_braces)
    own: Mapping[str, Callable[[Node, Node], Iterable[Edit]]]

    @cached_property
    def _query(self) -> Query:
        return Query(self.language, self.roles)

    def parses(self, source: bytes) -> bool:
        """Return whether a source parses without errors."""
        return not self._parsed(source).has_error

    def stopped(self, source: bytes, place: int) -> bytes | None:
        """Return a source that does not compile if what stands at a place of it is compiled; None: nobody can tell.

        What stops the compiler is put into the innermost block; a single statement of that may still be left out.
        """
        if not self.stop:
            return None
        within = self._parsed(source).descendant_for_byte_range(place, place)
        while within is not None and within.type not in _COMPILED:
            within = within.parent
        if within is None or not self.in_parts:
            return source + b"\n" + self.stop + b"\n"
        inner = [child for child in within.named_children if child.type == "inner_attribute_item"]
        at = inner[-1].end_byte if inner else within.start_byte + 1
        return source[:at] + b" " + self.stop + b" " + source[at:]

    def candidates(self, path: str, source: bytes, lines: Collection[int], on: Platform) -> Iterator[Mutant]:
        """Yield the faults that are possible on some lines; none if the file has a syntax error.

        None is where the platform runs nothing: no test could notice it.
        """
        top = self._parsed(source)
        if top.has_error:
            return
        wanted = sorted(lines)
        for place in self._places(top, self.off(path, top, on)):
            node = place.node
            first = bisect_left(wanted, node.start_point.row + 1)
            if not place.roles or first == len(wanted) or wanted[first] > node.end_point.row + 1:
                continue
            for edit in self._edits(place):
                if place.is_message and edit.rank is Rank.TEXT:
                    continue
                new = apart(source, edit.start, edit.end, edit.new)
                yield Mutant(path, wanted[first], edit.what, edit.start, edit.end, new, place.name, edit.rank)

    def _parsed(self, source: bytes) -> Node:
        return Parser(self.language).parse(source).root_node

    def _places(self, top: Node, off: frozenset[int]) -> Iterator[_Place]:
        roles: dict[int, set[str]] = {}
        names: dict[int, str] = {}
        for role, nodes in QueryCursor(self._query).captures(top).items():
            for node in nodes:
                roles.setdefault(node.id, set()).add(role)
                if role == "name" and node.parent is not None:
                    names[node.parent.id] = source_of(node).decode("utf-8", "replace")
        stack = [_Place(top, frozenset(), "", top)] if top.id not in off else []
        while stack:
            above = stack.pop()
            yield above
            for child in above.node.children:
                own = frozenset(roles.get(child.id, ()))
                if "skipped" not in own and child.id not in off:
                    name = f"{above.name}.{names[child.id]}".strip(".") if child.id in names else above.name
                    function = child if "function" in own else above.function
                    stack.append(_Place(child, own, name, function, above.is_message or "message" in own))

    def _edits(self, place: _Place) -> Iterator[Edit]:
        node = place.node
        for role, word, what, rank in _ROWS:
            new = self.words.get(word) if role in place.roles else None
            if new is not None and not (word in {"true", "false"} and node.type in _CONSTANTS):
                new = new.replace(b"NODE", source_of(node))
                said = what.format(node=quoted(source_of(node)), new=new.decode())
                yield replaced(node, new, said, rank)
        for role in place.roles & _OPERATORS.keys():
            yield from _OPERATORS[role](node)
        for role in place.roles & self.own.keys():
            yield from self.own[role](node, place.function)


@dataclass(frozen=True)
class _Place:
    node: Node
    roles: frozenset[str]
    name: str
    function: Node
    is_message: bool = False


def source_of(node: Node) -> bytes:
    """Return the source bytes of a node."""
    return node.text or b""


def replaced(node: Node, new: bytes, what: str, rank: Rank) -> Edit:
    """Return the edit that replaces a node."""
    return Edit(node.start_byte, node.end_byte, new, what, rank)


def _becomes(node: Node, new: bytes, rank: Rank) -> Edit:
    return replaced(node, new, f"{quoted(source_of(node))} becomes {quoted(new)}", rank)


def _token(node: Node) -> Iterator[Edit]:
    word = b" ".join(source_of(node).split())
    beside = (node.prev_named_sibling, node.next_named_sibling)
    if word.removesuffix(b"=") in _ARITHMETIC and any(
        one is not None and _NO_NUMBERS.search(one.type) for one in beside
    ):
        return  # another operator is an error of types, which every test notices that comes by
    for rank, others in _TOKENS.items():
        if word in others:
            yield _becomes(node, others[word], rank)


def _sign(node: Node) -> Iterator[Edit]:
    operand = node.next_sibling
    if operand is not None:
        what = f"{quoted(source_of(node))} is left out before {quoted(source_of(operand))}"
        rank = Rank.VALUE if source_of(node) == b"-" else Rank.DECISION
        yield Edit(node.start_byte, operand.start_byte, b"", what, rank)


def _number(node: Node) -> Iterator[Edit]:
    said = source_of(node).decode()
    integer = _INTEGER.fullmatch(said)
    if len(said) > _MOST_DIGITS:
        return
    if integer is not None:
        try:
            new = str(int(integer["digits"], 0) + 1) + integer["suffix"]
        except ValueError:  # octal, as C writes it
            return
        yield _becomes(node, new.encode(), Rank.NUMBER)
    elif _FLOAT.fullmatch(said):
        yield _becomes(node, repr(float(said) + 1).encode(), Rank.NUMBER)


def _text(node: Node) -> Iterator[Edit]:
    said = source_of(node)
    begin = _STRING.match(said)
    if begin is not None:
        start, quote = begin[0], begin["quote"]
        is_empty = said == start + quote
        new = start + b"x" + quote if is_empty else start + quote
        yield replaced(node, new, f"the text {quoted(said)} is {'not ' if is_empty else ''}empty", Rank.TEXT)


def _argument(node: Node) -> Iterator[Edit]:
    """Yield the edit that removes an argument with the comma before it, or after it if it is the first."""
    before, after = _beside(node, forward=False), _beside(node, forward=True)
    start = before.end_byte if before is not None else node.start_byte
    end = after.start_byte if before is None and after is not None else node.end_byte
    yield Edit(start, end, b"", f"the argument {quoted(source_of(node))} is left out", Rank.EFFECT)


def _beside(node: Node, *, forward: bool) -> Node | None:
    found: Node | None = node
    while found is not None and (found == node or "comment" in found.type):
        found = found.next_named_sibling if forward else found.prev_named_sibling
    return found


_OPERATORS: Final[Mapping[str, Callable[[Node], Iterator[Edit]]]] = {
    "token": _token,
    "sign": _sign,
    "number": _number,
    "text": _text,
    "argument": _argument,
}
