"""Two versions of a Python file of tests: constants and tables that lost something, and the tests that use them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeline.languages.python.weakening import changed_constants, constants_told, file_of, read_both, read_plain

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pipeline.languages.python.weakening import File
    from pipeline.languages.sources.suites import Suite, Test, Weakening


def compared(before: bytes, after: bytes) -> tuple[tuple[Weakening, ...], Suite, Suite] | None:
    """Return what is told of constants, and what the tests check before and after; None where one cannot be read."""
    files = _both(before, after)
    return (tuple(constants_told(*files)), *read_both(*files)) if files is not None else None


def using_constants(before: bytes, after: bytes) -> tuple[str, ...]:
    """Return the old tests that use a constant of which something is gone."""
    files = _both(before, after)
    return tuple(test for _, tests in changed_constants(*files) for test in tests) if files is not None else ()


def as_named(after: bytes) -> Iterable[Test]:
    """Return the tests with the names of constants in the place of their values."""
    plain = read_plain(after)
    return plain.tests.values() if plain is not None else ()


def _both(before: bytes, after: bytes) -> tuple[File, File] | None:
    old, new = file_of(before), file_of(after)
    return (old, new) if old is not None and new is not None else None
