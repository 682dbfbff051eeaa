"""Reads sources within limits, and decides what each reader returns for a source that cannot be read.

Whoever performs I/O asks here: the sources are strangers', and a reader within the driver could be made to crash it, to
block it, or to take its memory. An answer is never that nothing was found: a gate refuses, a reviewer is told.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeline.sandbox.limited import UnreadableError, limited
from pipeline.testing.languages.python import cosmetic
from pipeline.testing.languages.rust import test_regions
from pipeline.testing.languages.sources import Unspliced, examples, faults, forgery, known_answers

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from pipeline.testing.languages.sources.faults import Mutant


def region_fault(path: str, old: bytes, new: bytes) -> str | None:
    """Return a sentence on a difference outside of test regions, None if there is none; unreadable files are faults."""
    try:
        return limited(test_regions.region_fault)(path, old, new)
    except UnreadableError as error:
        return f"it {error}"


def only_test_regions(path: str, old: bytes, new: bytes) -> bool:
    """Return whether two sources surely differ in nothing but Rust test regions."""
    return region_fault(path, old, new) is None


def interesting(old: bytes, new: bytes) -> tuple[str, ...]:
    """Return notes for @check about an edit of test regions."""
    try:
        return limited(test_regions.interesting)(old, new)
    except UnreadableError as error:
        return (f"it {error}",)


def regions_of(source: bytes) -> dict[str, bytes] | Unspliced:
    """Return the test regions of a Rust source by name."""
    try:
        return limited(test_regions.regions_of)(source)
    except UnreadableError as error:
        return Unspliced(f"it {error}")


def regions_differ(old: bytes | None, new: bytes | None) -> bool:
    """Return whether two sources have different test regions; if these are uncertain, they count as different.

    A file that is not there (None) has none.
    """
    one, other = (regions_of(text) if text is not None else {} for text in (old, new))
    return isinstance(one, Unspliced) or isinstance(other, Unspliced) or one != other


def splice(tests_from: bytes, production_from: bytes) -> bytes | Unspliced:
    """Return the production code of one Rust source with the test regions of another."""
    try:
        return limited(test_regions.splice)(tests_from, production_from)
    except UnreadableError as error:
        return Unspliced(f"it {error}")


def means(path: str, old: bytes | None, new: bytes) -> tuple[str, ...]:
    """Return a sentence for each means of forging test results that a file adds."""
    try:
        return limited(forgery.notes)(path, old, new)
    except UnreadableError as error:
        return (f"{path} {error}; what it does to its tests was not looked at",)


def answers_known(
    production: Mapping[str, tuple[tuple[int, str], ...]], tests: Collection[str], known: Collection[str]
) -> tuple[str, ...]:
    """Return a sentence for each place in production that contains values which the new tests expect."""
    try:
        return limited(known_answers.notes)(production, tuple(tests), tuple(known))
    except UnreadableError as error:
        paths = ", ".join(sorted(production))
        return (f"{paths} {error}; whether it knows what the new tests ask was not looked at",)


def unused_values(criteria: Mapping[str, str], tests: Collection[str]) -> tuple[str, ...]:
    """Return a sentence for each quoted text of a criterion that is in no new test."""
    try:
        return limited(known_answers.unused)(criteria, tuple(tests))
    except UnreadableError:
        return ()  # the criteria are read elsewhere, and nothing in them can be forged


def examples_lost(changes: Collection[tuple[str, bytes | None, bytes | None]], run: Collection[str]) -> tuple[str, ...]:
    """Return a sentence for each example in documentation that was removed or changed."""
    try:
        return limited(examples.lost)(tuple(changes), frozenset(run))
    except UnreadableError as error:
        paths = ", ".join(path for path, old, _ in changes if old is not None and path in run)
        return (f"{paths} {error}; what the examples in the documentation check was not looked at",) if paths else ()


def edited(content: bytes, old: str, new: str) -> bytes | None:
    """Return a Python file with a cosmetic edit applied; None if it is not surely cosmetic."""
    try:
        return limited(cosmetic.edited)(content, old, new)
    except UnreadableError:
        return None


def mutants(path: str, source: bytes, lines: Collection[int], *, at_most: int) -> tuple[Mutant, ...]:
    """Return small faults to put into a source; none if it cannot be read."""
    try:
        return limited(faults.mutants)(path, source, frozenset(lines), at_most=at_most)
    except UnreadableError:
        return ()


def stopped(path: str, source: bytes, place: int) -> bytes | None:
    """Return the source with what no compiler takes at a place, None where that says nothing."""
    try:
        return limited(faults.stopped)(path, source, place)
    except UnreadableError:
        return None
