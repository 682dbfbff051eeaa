"""Which small faults can be put into a source, one at a time, to see whether the tests detect them?

`mutants` reads one file and returns changes of exactly one span each, the most telling first. Which of them a test
run kills is measured elsewhere (`measure.mutation`). Nothing here performs I/O; a parser is loaded when a file
of its language is read.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict, deque
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Final

from pipeline.testing.languages.sources.faults.platforms import Platform, here
from pipeline.testing.languages.table import part_for

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from pipeline.testing.languages.sources.faults.operators import Grammar

AT_MOST: Final = 200
_LARGEST: Final = 1_000_000


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


def mutants(
    path: str,
    source: bytes,
    lines: Collection[int],
    at_most: int = AT_MOST,
    within: Collection[str] | None = None,
    *,
    platform: Platform | None = None,
) -> tuple[Mutant, ...]:
    """Return faults of *source* that its tests should detect, the most significant first, spread over its definitions.

    Each can be parsed, differs from the source and from every other one in more than blanks. The same
    arguments give the same answer.

    Args:
        path: The file's path; its ending says which language it is. Of an unknown one nothing is returned.
        source: Its content. Of what cannot be parsed, or is larger than a megabyte, nothing is returned.
        lines: The lines that may be changed, from 1.
        at_most: How many are wanted.
        within: The functions that they may lie in, "" for the top of the file; None for any.
        platform: What the tests run on; by default this machine. Where it runs nothing, there is no fault.
    """
    grammar = _grammar(path) if lines and len(source) <= _LARGEST else None
    if grammar is None:
        return ()
    seen = {_form(source)}
    kept: list[Mutant] = []
    for mutant in spread(grammar.candidates(path, source, lines, platform or here())):
        if within is not None and not any(_is_of(mutant.function, name) for name in within):
            continue
        if len(kept) >= at_most:
            break
        changed = mutant.apply(source)
        if _form(changed) not in seen and grammar.parses(changed):
            seen.add(_form(changed))
            kept.append(mutant)
    return tuple(kept)


def _is_of(one: str, other: str) -> bool:
    """Return whether two dotted names may be those of one function: not each language says what it is defined in."""
    return f".{one}".endswith(f".{other}") or f".{other}".endswith(f".{one}")


def stopped(path: str, source: bytes, place: int) -> bytes | None:
    """Return the source with what no compiler takes where a fault is put, None where nothing is compiled first.

    Tests that pass over it show that their build leaves that code out: a feature, a module of another platform.
    """
    grammar = _grammar(path)
    return grammar.stopped(source, place) if grammar is not None else None


def _grammar(path: str) -> Grammar | None:
    """Return the fault grammar of a file's language, by its ending: `GRAMMARS` of its module `fault_sites`."""
    part = part_for(path, "fault_sites")
    grammars: dict[str, Grammar] = part.GRAMMARS if part is not None else {}
    return next((grammar for ending, grammar in grammars.items() if path.endswith(ending)), None)


def _form(source: bytes) -> bytes:
    return b" ".join(source.split())
