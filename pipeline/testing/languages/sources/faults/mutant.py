"""A small fault in a file: the bytes to replace, the replacement, and a description."""

from __future__ import annotations

import re
from collections import Counter, defaultdict, deque
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


_WORD: Final = re.compile(rb"\w")
_QUOTED: Final = 48


class Rank(IntEnum):
    """The significance of an undetected fault; a lower rank is more significant.

    A decision that nobody checks is a missing test. A number or a text may well be of no consequence.
    """

    DECISION = 0
    EFFECT = 1
    VALUE = 2
    NUMBER = 3
    TEXT = 4


@dataclass(frozen=True)
class Mutant:
    """A fault that replaces one span of bytes.

    `line`, from 1, is where the change is told to be; `what` says it in words, with pieces of the source in it, so it
    is a foreign text. `function` is the dotted name of what it lies in, empty at the top of a file.
    """

    path: str
    line: int
    what: str
    start: int
    end: int
    replacement: bytes
    function: str = ""
    rank: Rank = Rank.VALUE

    def apply(self, source: bytes) -> bytes:
        """Return *source* with the fault applied; every other byte stays."""
        return source[: self.start] + self.replacement + source[self.end :]


def apart(source: bytes, start: int, end: int, replacement: bytes) -> bytes:
    """Return the replacement with blanks that separate it from adjoining words."""
    before = b" " if _touches(source[start - 1 : start] if start else b"", replacement[:1]) else b""
    after = b" " if _touches(replacement[-1:], source[end : end + 1]) else b""
    return before + replacement + after


def quoted(source: bytes) -> str:
    """Return a piece of source on one shortened line, as Markdown code."""
    text = " ".join(source.decode("utf-8", "replace").split()).replace("`", "'")
    return f"`{text if len(text) <= _QUOTED else f'{text[: _QUOTED - 3]}...'}`"


def _touches(left: bytes, right: bytes) -> bool:
    return _WORD.match(left) is not None and _WORD.match(right) is not None


def spread(found: Iterable[Mutant]) -> Iterator[Mutant]:
    """Yield all faults: one from each function in turn, within it one from each line, the most significant first.

    The order depends on nothing but the changes themselves.
    """
    by_function: dict[tuple[str, str], list[Mutant]] = defaultdict(list)
    for mutant in sorted(found, key=_place):
        by_function[mutant.path, mutant.function].append(mutant)
    waiting = deque(deque(_by_line(group)) for group in by_function.values())
    while waiting:
        group = waiting.popleft()
        yield group.popleft()
        if group:
            waiting.append(group)


def _place(mutant: Mutant) -> tuple[str, int, int, bytes, int]:
    return mutant.path, mutant.start, mutant.end, mutant.replacement, mutant.line


def _by_line(group: Iterable[Mutant]) -> list[Mutant]:
    """Return the first fault of each line, then the second of each line, and so on; each round by rank."""
    taken: Counter[int] = Counter()
    turns: dict[tuple[str, int, int, bytes, int], int] = {}
    ordered = sorted(group, key=lambda mutant: (mutant.rank, _place(mutant)))
    for mutant in ordered:
        turns[_place(mutant)] = taken[mutant.line]
        taken[mutant.line] += 1
    return sorted(ordered, key=lambda mutant: (turns[_place(mutant)], mutant.rank, _place(mutant)))
