"""Walks through the syntax tree of a test: what its locals are made of, which helpers it calls, what it checks.

So that renaming a local, naming a value, or moving assertions into a helper of the same file is no change, a local is
written as what it was made of, and a helper's assertions count where it is called. That is read from the text, in its
order; loops are read once. All work is bounded, whatever the text.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from tree_sitter import Node

    from pipeline.languages.sources.suites import Check

Names = dict[str, str]
"""What locals are made of, by name."""

_DEPTH: Final = 4
_STEPS: Final = 50_000
"""So many nodes of helpers are read for one file, again for each call; further calls are not followed."""
_CHECKS: Final = 2_000
_TIMES: Final = 10_000
_MOST: Final = 400
MAX_TOKENS: Final = 1_000_000
_LONG: Final = 240


@dataclass(frozen=True)
class Helper:
    """A function of the same file that is no test: its parameters, and its body."""

    parameters: tuple[str, ...]
    body: Node


@dataclass(frozen=True)
class Call:
    """A call by a plain name."""

    name: str
    arguments: tuple[Node, ...]


class Language(Protocol):
    """What has to be known of a language; every method is asked about one node."""

    atoms: frozenset[str]
    """Nodes that are taken as they are written: strings, and whatever has meaning in its blanks."""

    identifiers: frozenset[str]
    comments: frozenset[str]

    branches: frozenset[str]
    """Nodes that may decide whether, or how often, what is in them is reached."""

    def bindings(self, node: Node, names: Names) -> Iterable[tuple[str, str]]:
        """Return the names that a node binds, with what each is made of."""
        ...

    def checks(self, node: Node, names: Names) -> Iterable[Check]:
        """Return the assertions that a node is; guards and times are the walk's."""
        ...

    def call(self, node: Node) -> Call | None:
        """Return the call that a node is, if it may be one of a helper."""
        ...

    def guards(self, node: Node, child: Node) -> int:
        """Return how many conditions decide whether *child* of *node* is reached."""
        ...

    def times(self, node: Node, child: Node, names: Names) -> int:
        """Return for how many values that are written down *node* reaches *child*; 0 where it never does."""
        ...

    def ends(self, node: Node) -> bool:
        """Return whether nothing behind this statement is reached."""
        ...

    def is_apart(self, node: Node) -> bool:
        """Return whether a node is a function that runs only where it is called by name."""
        ...


@dataclass
class Walk:
    """One file's bodies, walked with a bound on the steps of all of them together."""

    language: Language
    helpers: Mapping[str, Helper]
    constants: Names = field(default_factory=dict[str, str])
    steps: int = 0

    def checks(self, body: Node) -> tuple[Check, ...]:
        """Return what a body checks, in order."""
        return tuple(islice(self._walk(body, dict(self.constants), (0, 1), ()), _CHECKS))

    def _walk(self, top: Node, names: Names, place: tuple[int, int], callers: tuple[str, ...]) -> Iterator[Check]:
        language = self.language
        stack = [(top, place)]
        while stack:
            self.steps += bool(callers)
            node, (guards, times) = stack.pop()
            for name, made in list(language.bindings(node, names)):
                names[name] = brief(made)
            for check in language.checks(node, names):
                yield replace(check, guards=guards, times=times)
            call = language.call(node)
            helper = self.helpers.get(call.name) if call is not None else None
            if call is not None and helper is not None and call.name not in callers and self._may_follow(callers):
                given = [brief(written(argument, language, names)) for argument in call.arguments]
                inside = {**names, **dict(zip(helper.parameters, given, strict=False))}
                yield from self._walk(helper.body, inside, (guards, times), (*callers, call.name))
            stack.extend(reversed([*self._below(node, names, guards, times)]))

    def _may_follow(self, callers: tuple[str, ...]) -> bool:
        return len(callers) < _DEPTH and self.steps < _STEPS

    def _below(self, node: Node, names: Names, guards: int, times: int) -> Iterator[tuple[Node, tuple[int, int]]]:
        language = self.language
        branches = node.type in language.branches
        for child in node.children:
            if language.is_apart(child):
                continue
            if not branches:
                yield child, (guards, times)
                if language.ends(child):
                    return
                continue
            count = min(times * language.times(node, child, names), _TIMES)
            if count:
                yield child, (guards + language.guards(node, child), count)
            if language.ends(child):
                return


def below(top: Node) -> Iterator[Node]:
    """Yield a node and everything in it, in the order of the text."""
    stack = [top]
    while stack:
        node = stack.pop()
        yield node
        stack.extend(reversed(node.children))


def text(node: Node | None) -> str:
    """Return the source of a node, empty for none."""
    return (node.text or b"").decode("utf-8", "replace") if node is not None else ""


def line_of(node: Node) -> int:
    """Return the line on which a node begins, counted from 1."""
    return node.start_point.row + 1


def written(node: Node | None, language: Language, names: Mapping[str, str] | None = None, most: int = _MOST) -> str:
    """Return a piece of source without comments and layout, its locals written as what they were made of.

    A trailing comma is no part of it. Behind *most* tokens it ends: nobody reads on.
    """
    if node is None:
        return ""
    pieces: list[str] = []
    stack = [node]
    while stack and len(pieces) < most:
        part = stack.pop()
        if part.type in language.comments:
            continue
        if part.type in language.atoms or not part.children:
            word = text(part)
            if part.type in language.identifiers and names is not None:
                word = names.get(word, word)
            if pieces and pieces[-1] == "," and word in {")", "]", "}", ">"}:
                pieces.pop()
            pieces.append(word)
        else:
            stack.extend(reversed(part.children))
    return spaced(pieces)


def whole(node: Node, language: Language) -> str:
    """Return all of a piece of source without comments and layout."""
    return written(node, language, most=MAX_TOKENS)


def spaced(pieces: Sequence[str]) -> str:
    """Return tokens as one readable line that is the same for every layout."""
    found: list[str] = []
    for piece in pieces:
        if not piece.strip():
            continue
        last = found[-1] if found else ""
        if last and (last == "," or last in _SPACED or piece in _SPACED or (_is_word(last[-1]) and _is_word(piece[0]))):
            found.append(" ")
        found.append(piece)
    return "".join(found)


_SPACED: Final = frozenset(
    {"==", "===", "!=", "!==", "<=", ">=", "&&", "||", "=>", "->", "+", "=", ":=", "instanceof", "in", "is", "matches"}
)


def _is_word(char: str) -> bool:
    return char.isalnum() or char in "_$\"'`"


def brief(made: str) -> str:
    """Return what a local is made of, long ones cut but still told apart: names may be made of names."""
    if len(made) <= _LONG:
        return made
    return f"{made[: _LONG - 20]}~{hashlib.sha256(made.encode()).hexdigest()[:12]}"


def number(source: str) -> float | None:
    """Return the number that a literal is, without underscores and suffixes of its type; None for anything else."""
    plain = source.strip().replace("_", "").removeprefix("+")
    if not plain.lstrip("-.")[:1].isdigit():
        return None
    for end in range(len(plain), 0, -1):
        head, tail = plain[:end], plain[end:]
        if tail and not tail.isalnum():
            return None
        try:
            return float(head) if tail == "" or tail[0] in "fiun" else None
        except ValueError:
            continue
    return None
