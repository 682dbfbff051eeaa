"""Orders faults, since only few can be tried: significant ones first, spread over functions and lines."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pipeline.languages.sources.faults.mutant import Mutant


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
