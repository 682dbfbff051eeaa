"""Walks through a test's syntax tree: resolves local names and helper calls, and collects checks.

So that renaming a local, naming a value, or moving assertions into a helper of the same file is no change, a local is
written as what it was made of, and a helper's assertions count where it is called. That is read from the text, in its
order; loops are read once. All work is bounded, whatever the text.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeVar

from pipeline.languages.sources.claims import EMPTY, OPERATORS, called_in, group, is_literal, size, split, values_in
from pipeline.languages.sources.syntax_trees import text

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from tree_sitter import Node

    from pipeline.languages.sources.suites import Check, Words

N = TypeVar("N", contravariant=True)  # noqa: PLC0105  (the node of a syntax tree)
M = TypeVar("M")

Names = dict[str, "Words"]
"""The expressions of local variables, by name."""

_DEPTH: Final = 4
_STEPS: Final = 50_000
"""The most nodes of helpers that are read for one file, over all calls; further calls are not followed."""
_WORDS: Final = 2_000_000
"""The most tokens that values of names may add for one file; after that, names are not replaced by their values."""
_CHECKS: Final = 2_000
_TIMES: Final = 10_000
_MOST: Final = 400
ENDS: Final = "it may end before its assertions"


@dataclass(frozen=True)
class Call:
    """A call by a plain name; named arguments keep their names."""

    name: str
    arguments: Sequence[tuple[str, Words]]


@dataclass(frozen=True)
class Helper(Generic[M]):
    """A function of the same file that is no test: its parameters, and its body."""

    parameters: Sequence[str]
    body: M


class Language(Protocol[N]):
    """The protocol of a language for the walk; every method takes one node."""

    def words(self, node: N) -> Words:
        """Return the tokens of a node, without comments."""
        ...

    def children(self, node: N) -> Iterable[Any]:
        """Return the nodes below a node, in the order of the text."""
        ...

    def guarded(self, node: N) -> Collection[Any]:
        """Return the children that are executed only on a condition."""
        ...

    def bindings(self, node: N) -> Iterable[tuple[Sequence[str], Words]]:
        """Return the names that a node assigns, with the tokens of their values."""
        ...

    def loop(self, node: N) -> tuple[Sequence[str], Words] | None:
        """Return the names that a loop assigns, and the tokens of what it iterates over; None if it is no loop."""
        ...

    def checks(self, node: N, made: Callable[[Words], Words]) -> Iterable[Check]:
        """Return the checks that a node makes; *made* replaces names by their values."""
        ...

    def call(self, node: N) -> Call | None:
        """Return the call that a node is, None if it cannot be one of a helper."""
        ...

    def ends(self, node: N) -> bool:
        """Return whether a test may end at this node without a failure."""
        ...

    def marks(self, node: N) -> Iterable[str]:
        """Return sentences on what keeps assertions below a node from failing."""
        ...


@dataclass
class Read:
    """The checks of a body, and remarks on them; see `suites.Test`."""

    checks: list[Check] = field(default_factory=list["Check"])
    values: set[str] = field(default_factory=set[str])
    marks: Counter[str] = field(default_factory=Counter[str])


@dataclass
class Walk(Generic[M]):
    """A walk through one file's bodies, with one limit on the work for all of them."""

    language: Language[M]
    helpers: Mapping[str, Helper[M]]
    constants: Names = field(default_factory=dict[str, "Words"])
    steps: int = 0
    written: int = 0

    def read(self, body: M, names: Mapping[str, Words] | None = None) -> Read:
        """Return the checks of a body, and what keeps them from failing.

        Args:
            body: Of a test, or of what serves tests.
            names: What names of its own are made of.
        """
        found = Read()
        self._walk(body, {**self.constants, **(names or {})}, (0, 1), (), found)
        return found

    def made(self, words: Words, names: Mapping[str, Words], most: int = _MOST) -> Words:
        """Return tokens with each name replaced by its value; longer results are cut but stay distinct."""
        made = words
        if self.written < _WORDS and not names.keys().isdisjoint(words):
            made = tuple(part for at, word in enumerate(words) for part in _part(words, at, names.get(word)))
            self.written += len(made)
        return made if len(made) <= most else (*made[:most], hashlib.sha256(" ".join(made).encode()).hexdigest()[:12])

    def bind(self, node: M, names: Names) -> None:
        """Add to *names* those that a node assigns, with the tokens of their values."""
        for targets, words in list(self.language.bindings(node)):
            names |= _bound(targets, self.made(words, names, _WORDS))

    def _walk(self, top: M, names: Names, place: tuple[int, int], callers: tuple[str, ...], found: Read) -> None:
        language = self.language
        ends: list[int] = []
        stack: list[tuple[M, tuple[int, int]]] = [(top, place)]

        def made(words: Words) -> Words:
            return self.made(words, names)

        while stack and len(found.checks) < _CHECKS:
            self.steps += bool(callers)
            node, (guards, times) = stack.pop()
            self.bind(node, names)
            if (loop := language.loop(node)) is not None:
                cases = self.made(loop[1], names, _WORDS)
                count = size(cases)
                times = min(times if count is None else times * count, _TIMES)
                found.values |= values_in(cases)
                names |= _bound(loop[0], ("each",))
            found.marks.update(language.marks(node))
            for check in list(language.checks(node, made)):
                found.checks.append(replace(check, guards=guards, times=times))
            ends += [len(found.checks)] if language.ends(node) else []
            self._follow(language.call(node), names, (guards, times), callers, found)
            guarded = language.guarded(node)
            below = [(child, (guards + (child in guarded), times)) for child in language.children(node)]
            stack.extend(reversed(below))
        early = sum(end < len(found.checks) for end in ends)
        found.marks.update({ENDS: early} if early else {})

    def _follow(
        self, call: Call | None, names: Names, place: tuple[int, int], callers: tuple[str, ...], found: Read
    ) -> None:
        helper = self.helpers.get(call.name) if call is not None else None
        if call is None or helper is None or call.name in callers:
            return
        if len(callers) < _DEPTH and self.steps < _STEPS:
            plain = (self.made(words, names) for name, words in call.arguments if not name)
            named = {name: self.made(words, names) for name, words in call.arguments if name}
            inside = {**self.constants, **dict(zip(helper.parameters, plain, strict=False)), **named}
            self._walk(helper.body, inside, place, (*callers, call.name), found)


def parts_of(words: Words) -> tuple[str, ...]:
    """Return the literal values in tokens, and the names of the functions that they call."""
    called = called_in(words)
    return (*(word for word in words if is_literal(word) and word not in EMPTY), *called)


def digest(words: Words) -> str:
    """Return a digest of tokens."""
    return hashlib.sha256(" ".join(words).encode()).hexdigest()[:20]


class Trees:
    """The base of languages that tree-sitter parses."""

    atoms: frozenset[str]
    """The types of nodes that form one token, such as strings."""
    branch: str
    failures: re.Pattern[str] = re.compile(r"(?!)")
    """A pattern for a statement that makes a test fail and may end it."""

    def words(self, node: Node | None) -> Words:
        """Return the tokens of a node, without comments and trailing commas."""
        found: list[str] = []
        stack = [node] if node is not None else []
        while stack:
            part = stack.pop()
            if "comment" in part.type:
                continue
            if part.children and part.type not in self.atoms:
                stack.extend(reversed(part.children))
            elif word := text(part).strip():
                if found and found[-1] == "," and word in {")", "]", "}"}:
                    found.pop()
                found.append(word)
        return tuple(found)

    def arguments(self, call: Node) -> list[Words]:
        """Return the arguments of a call."""
        words = self.words(call.child_by_field_name("arguments"))
        return split(group(words, 0), ",") if words[:1] == ("(",) else []

    def children(self, node: Node) -> Iterable[Node]:
        """Return the nodes below a node."""
        return node.named_children

    def guarded(self, node: Node) -> Collection[Node]:
        """Return the body of an `if` that has no `else`."""
        body = node.child_by_field_name("consequence") if node.type == self.branch else None
        return [body] if body is not None and node.child_by_field_name("alternative") is None else ()

    def call(self, node: Node) -> Call | None:
        """Return a call of a function by its name or by a path to it."""
        function = node.child_by_field_name("function") if node.type == "call_expression" else None
        if function is None or function.type not in {"identifier", "scoped_identifier"}:
            return None
        return Call(text(function).rpartition("::")[2], [("", argument) for argument in self.arguments(node)])

    def ends(self, node: Node) -> bool:
        """Return whether a node is a plain `return` that does not follow a failure."""
        is_plain = node.type in {"return_statement", "return_expression"} and not node.named_children
        return is_plain and self.failures.search(text(node.prev_named_sibling)) is None


def marked(words: Words, skips: Collection[str], standin: re.Pattern[str]) -> Iterator[str]:
    """Yield the marks of a test: what keeps it from running, and what is replaced by stand-ins."""
    yield from (f"{word} is added" for word in words if word in skips)
    yield from ("something more is replaced by a stand-in" for word in words if standin.fullmatch(word))


def _bound(targets: Sequence[str], value: Words) -> Names:
    """Return the value of each assigned name: the whole value for one name, a part of it for several."""
    if len(targets) == 1:
        return {targets[0]: value}
    return {name: (*value, ".", str(at)) for at, name in enumerate(targets)}


def _part(words: Words, at: int, value: Words | None) -> Words:
    is_other = (at and words[at - 1] in {".", "?.", "::"}) or words[at + 1 : at + 2] in (("=",), (":",))
    if value is None or is_other:
        return (words[at],)
    return value if OPERATORS.isdisjoint(value) else ("(", *value, ")")
