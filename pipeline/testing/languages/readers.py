"""Reads sources within limits, and decides what each reader returns for a source that cannot be read.

Whoever performs I/O asks here: the sources are strangers', and a reader within the driver could be made to crash it, to
block it, or to take its memory. An answer is never that nothing was found: a gate refuses, a reviewer is told.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from pipeline.sandbox.limited import UnreadableError, limited
from pipeline.testing.languages.python import cosmetic
from pipeline.testing.languages.rust import test_regions
from pipeline.testing.languages.sources import Unspliced, examples, faults, forgery, known_answers

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from pipeline.testing.languages.sources.faults import Mutant

_Found = TypeVar("_Found")


def _within_limits(
    unread: Callable[[UnreadableError], _Found], reader: Callable[..., _Found], *about: object
) -> _Found:
    """Return what a reader finds, or what an unreadable source amounts to."""
    try:
        return reader(*about)
    except UnreadableError as error:
        return unread(error)


def region_fault(path: str, old: bytes, new: bytes) -> str | None:
    """Return a sentence on a difference outside of test regions, None if there is none; unreadable files are faults."""
    return _within_limits(lambda error: f"it {error}", limited(test_regions.region_fault), path, old, new)


def interesting(old: bytes, new: bytes) -> tuple[str, ...]:
    """Return notes for @check about an edit of test regions."""
    return _within_limits(lambda error: (f"it {error}",), limited(test_regions.interesting), old, new)


def regions_of(source: bytes) -> dict[str, bytes] | Unspliced:
    """Return the test regions of a Rust source by name."""
    return _within_limits(lambda error: Unspliced(f"it {error}"), limited(test_regions.regions_of), source)


def regions_differ(old: bytes | None, new: bytes | None) -> bool:
    """Return whether two sources have different test regions; if these are uncertain, they count as different.

    A file that is not there (None) has none.
    """
    one, other = (regions_of(text) if text is not None else {} for text in (old, new))
    return isinstance(one, Unspliced) or isinstance(other, Unspliced) or one != other


def splice(tests_from: bytes, production_from: bytes) -> bytes | Unspliced:
    """Return the production code of one Rust source with the test regions of another."""
    return _within_limits(
        lambda error: Unspliced(f"it {error}"), limited(test_regions.splice), tests_from, production_from
    )


def means(path: str, old: bytes | None, new: bytes) -> tuple[str, ...]:
    """Return a sentence for each means of forging test results that a file adds."""
    unread = "{} {}; what it does to its tests was not looked at"
    return _within_limits(lambda error: (unread.format(path, error),), limited(forgery.notes), path, old, new)


def answers_known(
    production: Mapping[str, tuple[tuple[int, str], ...]], tests: Collection[str], known: Collection[str]
) -> tuple[str, ...]:
    """Return a sentence for each place in production that contains values which the new tests expect."""
    paths, unread = ", ".join(sorted(production)), "{} {}; whether it knows what the new tests ask was not looked at"
    given = production, tuple(tests), tuple(known)
    return _within_limits(lambda error: (unread.format(paths, error),), limited(known_answers.notes), *given)


def unused_values(criteria: Mapping[str, str], tests: Collection[str]) -> tuple[str, ...]:
    """Return a sentence for each quoted text of a criterion that is in no new test."""
    # the criteria are read elsewhere, and nothing in them can be forged
    return _within_limits(lambda _: (), limited(known_answers.unused), criteria, tuple(tests))


def examples_lost(changes: Collection[tuple[str, bytes | None, bytes | None]], run: Collection[str]) -> tuple[str, ...]:
    """Return a sentence for each example in documentation that was removed or changed."""
    try:
        return limited(examples.lost)(tuple(changes), frozenset(run))
    except UnreadableError as error:
        paths = ", ".join(path for path, old, _ in changes if old is not None and path in run)
        return (f"{paths} {error}; what the examples in the documentation check was not looked at",) if paths else ()


def edited(content: bytes, old: str, new: str) -> bytes | None:
    """Return a Python file with a cosmetic edit applied; None if it is not surely cosmetic."""
    return _within_limits(lambda _: None, limited(cosmetic.edited), content, old, new)


def mutants(
    path: str, source: bytes, lines: Collection[int], *, at_most: int, within: Collection[str] | None = None
) -> tuple[Mutant, ...]:
    """Return small faults to put into a source; none if it cannot be read."""
    return _within_limits(lambda _: (), limited(faults.mutants), path, source, frozenset(lines), at_most, within)


def stopped(path: str, source: bytes, place: int) -> bytes | None:
    """Return the source with what no compiler takes at a place, None where that says nothing."""
    return _within_limits(lambda _: None, limited(faults.stopped), path, source, place)
