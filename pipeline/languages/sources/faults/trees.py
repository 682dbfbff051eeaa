"""What the languages that tree-sitter reads have in common: operators, conditions, numbers, texts."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from tree_sitter import Parser

from pipeline.languages.sources.faults.mutant import Edit, Mutant, Rank, apart, quoted

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    from tree_sitter import Language, Node

_INTEGER: Final = re.compile(rb"(?P<digits>[0-9][0-9_]*)(?P<suffix>(?:[iu](?:8|16|32|64|128|size)|n)?)")
_FLOAT: Final = re.compile(rb"[0-9][0-9_]*\.[0-9]+")
_MOST_DIGITS: Final = 18
_EMPTY: Final = frozenset({b'""', b"''"})

COMPARED: Final[Mapping[bytes, tuple[bytes, ...]]] = {
    b"<": (b"<=", b">="),
    b"<=": (b"<", b">"),
    b">": (b">=", b"<="),
    b">=": (b">", b"<"),
    b"==": (b"!=",),
    b"!=": (b"==",),
    b"===": (b"!==",),
    b"!==": (b"===",),
}
_ARITHMETIC: Final[Mapping[bytes, bytes]] = {
    b"+": b"-",
    b"-": b"+",
    b"*": b"/",
    b"/": b"*",
    b"%": b"*",
    b"**": b"*",
    b"<<": b">>",
    b">>": b"<<",
    b"&": b"|",
    b"|": b"&",
    b"^": b"&",
}
_NEUTRAL: Final[Mapping[bytes, tuple[bytes, bytes]]] = {b"&&": (b"||", b"true"), b"||": (b"&&", b"false")}
_SIGNS: Final[Mapping[bytes, Rank]] = {b"!": Rank.DECISION, b"-": Rank.VALUE}


@dataclass(frozen=True)
class Grammar:
    """What has to be known of a language.

    Args:
        language: What reads it.
        skipped: The kinds of nodes that are left alone with all that is in them: types, patterns, attributes.
        name_of: The name that the inside of a node is told by, empty if it has none.
        numbers: The kinds of numbers.
        texts: The kinds of texts.
        decided: The field of a condition, by the kind of what it decides, and what is said of that.
        looped: The same for loops, which can be left out but not made endless.
        own: What only this language has.
        is_skipped: What else is left alone, by what it says.
        is_message: Whether the texts in a node are for people.
    """

    language: Language
    skipped: frozenset[str]
    name_of: Callable[[Node], bytes]
    numbers: frozenset[str]
    texts: frozenset[str]
    decided: Mapping[str, tuple[str, str]]
    looped: Mapping[str, str]
    own: Callable[[Node], Iterator[Edit]]
    is_skipped: Callable[[Node], bool]
    is_message: Callable[[Node], bool]

    def parse(self, source: bytes) -> Node:
        """Return the syntax tree, which may have errors in it."""
        return Parser(self.language).parse(source).root_node

    def form(self, source: bytes) -> bytes | None:
        """Return the words of a source without what is between them; None where it has an error."""
        top = self.parse(source)
        return None if top.has_error else b"\0".join(_words(top))

    def candidates(self, path: str, source: bytes, lines: Collection[int]) -> Iterator[Mutant]:
        """Yield the changes that may be made on these lines; none where the file has an error."""
        top = self.parse(source)
        if not top.has_error:
            yield from _Walk(self, path, source, lines).all_of(top)


@dataclass(frozen=True)
class _Place:
    node: Node
    function: str = ""
    messages: bool = False


@dataclass(frozen=True)
class _Walk:
    grammar: Grammar
    path: str
    source: bytes
    lines: Collection[int]
    stack: list[_Place] = field(default_factory=list[_Place])

    def all_of(self, top: Node) -> Iterator[Mutant]:
        self.stack.append(_Place(top))
        while self.stack:
            place = self.stack.pop()
            node = place.node
            if node.type in self.grammar.skipped or self.grammar.is_skipped(node):
                continue
            name = self.grammar.name_of(node).decode("utf-8", "replace")
            function = f"{place.function}.{name}".strip(".") if name else place.function
            messages = place.messages or self.grammar.is_message(node)
            yield from self._made(self._edits(node), _Place(node, function, messages))
            self.stack.extend(_Place(child, function, messages) for child in node.named_children)

    def _edits(self, node: Node) -> Iterator[Edit]:
        yield from _operators(node)
        yield from _signs(node)
        yield from _constants(node, self.grammar)
        yield from _decisions(node, self.grammar)
        yield from self.grammar.own(node)

    def _made(self, edits: Iterator[Edit], place: _Place) -> Iterator[Mutant]:
        for edit in edits:
            line = next((line for line in range(edit.first, edit.last + 1) if line in self.lines), None)
            if line is None or (place.messages and edit.rank is Rank.TEXT):
                continue
            replacement = apart(self.source, edit.start, edit.end, edit.replacement)
            yield Mutant(self.path, line, edit.what, edit.start, edit.end, replacement, place.function, edit.rank)


def source_of(node: Node) -> bytes:
    """Return the source of a node."""
    return node.text or b""


def of_field(node: Node, name: str) -> bytes:
    """Return the source of a field of a node, empty if there is none."""
    found = node.child_by_field_name(name)
    return b"" if found is None else source_of(found)


def replaced(node: Node, new: bytes, what: str, rank: Rank) -> Edit:
    """Return the edit that puts something else in a node's place."""
    return Edit(node.start_byte, node.end_byte, new, what, rank, node.start_point.row + 1, node.end_point.row + 1)


def left_out(node: Node, new: bytes, rank: Rank = Rank.EFFECT) -> Edit:
    """Return the edit that leaves a statement out; *new* is what stands for it."""
    return replaced(node, new, f"{quoted(source_of(node))} is left out", rank)


def below(top: Node) -> Iterator[Node]:
    """Yield a node and everything in it."""
    stack = [top]
    while stack:
        node = stack.pop()
        yield node
        stack.extend(node.children)


def _words(top: Node) -> Iterator[bytes]:
    for node in below(top):
        if "comment" in node.type:
            continue
        if not node.children or node.type.endswith(("string", "string_literal")):
            yield source_of(node)


def _operators(node: Node) -> Iterator[Edit]:
    operator = node.child_by_field_name("operator")
    left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
    if node.type != "binary_expression" or operator is None or left is None or right is None:
        return
    word = source_of(operator)
    if word in COMPARED:
        ranks = (Rank.DECISION, Rank.VALUE)
        yield from (_swapped(operator, new, rank) for new, rank in zip(COMPARED[word], ranks, strict=False))
    elif word in _NEUTRAL:
        other, neutral = _NEUTRAL[word]
        yield _swapped(operator, other, Rank.DECISION)
        for operand in (left, right):
            if not _binds(operand):
                yield replaced(operand, neutral, f"{quoted(source_of(operand))} is left out", Rank.EFFECT)
    elif word in _ARITHMETIC and not (_is_text(left) or _is_text(right)):
        yield _swapped(operator, _ARITHMETIC[word], Rank.VALUE)


def _swapped(operator: Node, new: bytes, rank: Rank) -> Edit:
    return replaced(operator, new, f"{quoted(source_of(operator))} becomes {quoted(new)}", rank)


def _is_text(node: Node) -> bool:
    return "string" in node.type


def _binds(node: Node) -> bool:
    """Return whether an expression gives names their values: without it the rest does not compile."""
    return any(part.type == "let_condition" for part in below(node))


def _signs(node: Node) -> Iterator[Edit]:
    sign = node.children[0] if node.type == "unary_expression" and node.children else None
    if sign is None or source_of(sign) not in _SIGNS:
        return
    operand = node.children[-1]
    line = sign.start_point.row + 1
    what = f"{quoted(source_of(sign))} is left out before {quoted(source_of(operand))}"
    yield Edit(sign.start_byte, operand.start_byte, b"", what, _SIGNS[source_of(sign)], line, line)


def _constants(node: Node, grammar: Grammar) -> Iterator[Edit]:
    said = source_of(node)
    if said in {b"true", b"false"} and node.type in {"true", "false", "boolean_literal"}:
        new = b"false" if said == b"true" else b"true"
        yield replaced(node, new, f"{quoted(said)} becomes {quoted(new)}", Rank.VALUE)
    elif node.type in grammar.numbers:
        new = _one_more(said)
        if new is not None:
            yield replaced(node, new, f"{quoted(said)} becomes {quoted(new)}", Rank.NUMBER)
    elif node.type in grammar.texts and said[:1] in {b'"', b"'"}:
        new, what = (said[:1] + b"x" + said[:1], "is not empty") if said in _EMPTY else (said[:1] * 2, "is empty")
        yield replaced(node, new, f"the text {quoted(said)} {what}", Rank.TEXT)


def _one_more(said: bytes) -> bytes | None:
    found = _INTEGER.fullmatch(said)
    if found is not None and len(found["digits"]) <= _MOST_DIGITS:
        digits = found["digits"].replace(b"_", b"")
        octal = digits != b"0" and digits.startswith(b"0")
        return None if octal else str(int(digits) + 1).encode() + found["suffix"]
    if _FLOAT.fullmatch(said) and len(said) <= _MOST_DIGITS:
        value = float(said.replace(b"_", b"")) + 1
        return repr(value).encode() if math.isfinite(value) else None
    return None


def _decisions(node: Node, grammar: Grammar) -> Iterator[Edit]:
    name, what = grammar.decided.get(node.type, ("", ""))
    test = _bare(node.child_by_field_name(name)) if name else None
    if test is not None and not _binds(test):
        said = quoted(source_of(test))
        yield replaced(test, b"false", f"{what} is never taken: {said} is false", Rank.DECISION)
        yield replaced(test, b"true", f"{what} is always taken: {said} is true", Rank.EFFECT)
    name = grammar.looped.get(node.type, "")
    test = _bare(node.child_by_field_name(name)) if name else None
    if test is not None and not _binds(test) and source_of(test) != b"true":
        yield replaced(test, b"false", "the loop is never entered", Rank.EFFECT)


def _bare(node: Node | None) -> Node | None:
    """Return what stands in the brackets of a condition."""
    if node is not None and node.type == "parenthesized_expression" and node.named_child_count == 1:
        return node.named_children[0]
    return node
