"""Which small faults can be put into a source, one at a time, to see whether the tests detect them?

`mutants` reads one file and returns changes of exactly one span each, the most telling first. Which of them a test
run kills is measured elsewhere (`measure.mutation`). Nothing here performs I/O; a parser is loaded when a file
of its language is read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol, cast

from pipeline.testing.languages.sources.faults.mutant import Mutant, Rank, spread
from pipeline.testing.languages.sources.faults.platforms import Platform, here
from pipeline.testing.languages.table import part_for

if TYPE_CHECKING:
    from collections.abc import Collection

    from pipeline.testing.languages.sources.faults.operators import Grammar

__all__ = ["AT_MOST", "Mutant", "Rank", "mutants", "spread", "stopped"]

AT_MOST: Final = 200
_LARGEST: Final = 1_000_000


class _Language(Protocol):
    def grammar(self, path: str) -> Grammar:
        """Return the fault grammar for a file's language."""
        ...


def mutants(
    path: str, source: bytes, lines: Collection[int], *, at_most: int = AT_MOST, platform: Platform | None = None
) -> tuple[Mutant, ...]:
    """Return faults of *source* that its tests should detect, the most significant first, spread over its definitions.

    Each can be parsed, differs from the source and from every other one in more than blanks. The same
    arguments give the same answer.

    Args:
        path: The file's path; its ending says which language it is. Of an unknown one nothing is returned.
        source: Its content. Of what cannot be parsed, or is larger than a megabyte, nothing is returned.
        lines: The lines that may be changed, from 1.
        at_most: How many are wanted.
        platform: What the tests run on; by default this machine. Where it runs nothing, there is no fault.
    """
    part = part_for(path, "fault_sites") if lines and len(source) <= _LARGEST else None
    if part is None:
        return ()
    grammar = cast("_Language", part).grammar(path)
    seen = {_form(source)}
    kept: list[Mutant] = []
    for mutant in spread(grammar.candidates(path, source, lines, platform or here())):
        if len(kept) >= at_most:
            break
        changed = mutant.apply(source)
        if _form(changed) not in seen and grammar.parses(changed):
            seen.add(_form(changed))
            kept.append(mutant)
    return tuple(kept)


def stopped(path: str, source: bytes, place: int) -> bytes | None:
    """Return the source with what no compiler takes where a fault is put, None where nothing is compiled first.

    Tests that pass over it show that their build leaves that code out: a feature, a module of another platform.
    """
    part = part_for(path, "fault_sites")
    return cast("_Language", part).grammar(path).stopped(source, place) if part is not None else None


def _form(source: bytes) -> bytes:
    return b" ".join(source.split())
