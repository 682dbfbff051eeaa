"""Small faults put into source code, one at a time: would the tests notice?

`mutants` reads one file and returns changes of exactly one span each, the most telling first. Which of them a test
run kills is measured elsewhere (`measure.mutating`). Nothing here performs I/O; the parsers of other languages than
Python are loaded when a file of theirs is read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol, cast

from pipeline.languages.sources.faults.mutant import Mutant, Rank
from pipeline.languages.sources.faults.ranking import spread
from pipeline.languages.table import part_for

if TYPE_CHECKING:
    from collections.abc import Collection, Hashable, Iterable

__all__ = ["AT_MOST", "Mutant", "Rank", "mutants", "spread"]

AT_MOST: Final = 200
_LARGEST: Final = 1_000_000


class _Language(Protocol):
    def candidates(self, path: str, source: bytes, lines: Collection[int]) -> Iterable[Mutant]:
        """Return the changes that may be made; none where the file cannot be parsed."""
        ...

    def form(self, path: str, source: bytes) -> Hashable | None:
        """Return what tells two sources apart, blanks and comments left out; None where it does not parse."""
        ...


def mutants(path: str, source: bytes, lines: Collection[int], *, at_most: int = AT_MOST) -> tuple[Mutant, ...]:
    """Return changes of *source* that its tests should notice, the most telling first, spread over what it defines.

    Each can be parsed, differs from the source in more than blanks and comments, and from every other one. The same
    arguments give the same answer.

    Args:
        path: The file's path; its ending says which language it is. Of an unknown one nothing is returned.
        source: Its content. Of what cannot be parsed, or is larger than a megabyte, nothing is returned.
        lines: The lines that may be changed, from 1.
        at_most: How many are wanted.
    """
    part = part_for(path, "operators") if lines and len(source) <= _LARGEST else None
    if part is None:
        return ()
    language = cast("_Language", part)
    seen = {language.form(path, source), None}
    kept: list[Mutant] = []
    for mutant in spread(language.candidates(path, source, frozenset(lines))):
        if len(kept) >= at_most:
            break
        form = language.form(path, mutant.apply(source))
        if form not in seen:
            seen.add(form)
            kept.append(mutant)
    return tuple(kept)
