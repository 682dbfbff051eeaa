"""What a change of tests would loosen, in words (issue "freeze"): shown to @check, who decides.

Nothing here says that a change is wrong: a behaviour may have changed. It says what the tests no longer notice. A test
is known by its name within its file; what it checks is read from its syntax tree, so that reordering, reformatting,
renaming, and moving assertions into a helper are no change. A language is read by a module of its own, which is loaded
only where a file of that language is judged. Nothing here performs I/O.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol, cast

from pipeline.languages.sources.suite_changes import compare
from pipeline.languages.sources.suites import Suite, Test, Weakening
from pipeline.languages.table import has_part, part_for

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


MAX_BYTES: Final = 512 * 1024
"""Above this size no file is read; people write smaller ones."""


class _Reader(Protocol):
    """A language's module `weakening`."""

    def read(self, source: bytes, path: str) -> Suite | None: ...


class _Versions(Protocol):
    """A language's module `versions`: what only two versions of a file together show."""

    def compared(self, before: bytes, after: bytes) -> tuple[tuple[Weakening, ...], Suite, Suite] | None:
        """Return what is told of constants, and what the tests check before and after; None: cannot be read."""
        ...

    def using_constants(self, before: bytes, after: bytes) -> tuple[str, ...]:
        """Return the old tests that use a constant of which something is gone."""
        ...

    def as_named(self, after: bytes) -> Iterable[Test]:
        """Return the tests with the names of constants in the place of their values."""
        ...


def weakenings(path: str, before: bytes, after: bytes, elsewhere: Iterable[Test] = ()) -> tuple[Weakening, ...]:
    """Return what the new text of a test file loosens; what is only in the new one loosens nothing.

    Args:
        path: The file; its ending tells the language. Of a language that is not known nothing is said.
        before: Its text as it was.
        after: Its text as it is to be, empty for one that is deleted.
        elsewhere: Tests that the same change adds in other files; see `added`.
    """
    told, old, new = _both(path, before, after)
    if old is None:
        return ()
    if new is None:
        return (
            (Weakening("", "it cannot be read any more, so that nothing is known of its tests", 1),)
            if old.tests
            else ()
        )
    return tuple(dict.fromkeys((*told, *compare(old, new, elsewhere))))


def added(path: str, before: bytes, after: bytes) -> tuple[Test, ...]:
    """Return the tests that only the new text has: tests of another file may have moved there."""
    old, new = suite_of(path, before), suite_of(path, after)
    if new is None:
        return ()
    known: Mapping[str, Test] = old.tests if old is not None else {}
    found = [test for name, test in new.tests.items() if name not in known]
    return (*found, *_as_named(path, after, found))


def suite_of(path: str, source: bytes) -> Suite | None:
    """Return what a file of tests checks; None where its language is not known, or it cannot be read."""
    part = part_for(path, "weakening") if len(source) <= MAX_BYTES else None
    return cast("_Reader", part).read(source, path) if part is not None else None


def changed_around(path: str, before: bytes, after: bytes) -> tuple[str, ...]:
    """Return the old tests that are what they were, byte for byte or nearly, and notice less all the same.

    A constant, a table or a helper of their file changed. They go by their names within the file.
    """
    _, old, new = _both(path, before, after)
    if old is None or new is None:
        return ()
    told = {one.test for one in compare(old, new)}
    same = {name for name, test in old.tests.items() if name in new.tests and new.tests[name].body == test.body}
    tests = [name for name in told & same if old.tests[name].what == "test"]
    return tuple(sorted({*tests, *(name for name in _using_constants(path, before, after) if name in same)}))


def _using_constants(path: str, before: bytes, after: bytes) -> tuple[str, ...]:
    """Return the old tests that use a constant of their file of which something is gone, where that can be read."""
    versions = _versions(path, before, after)
    return versions.using_constants(before, after) if versions is not None else ()


def _both(path: str, before: bytes, after: bytes) -> tuple[tuple[Weakening, ...], Suite | None, Suite | None]:
    """Return what is told of the file's constants, and what its tests check, before and after."""
    versions = _versions(path, before, after)
    read = versions.compared(before, after) if versions is not None else None
    return read if read is not None else ((), suite_of(path, before), suite_of(path, after))


def _as_named(path: str, after: bytes, found: Sequence[Test]) -> tuple[Test, ...]:
    """Return the same tests with the names of constants: the file may import what the old one has."""
    versions = _versions(path, after) if found else None
    lines = {test.line for test in found}
    again = versions.as_named(after) if versions is not None else ()
    return tuple(test for test in again if test.line in lines and test not in found)


def is_read(path: str) -> bool:
    """Return whether files of this language are read."""
    return has_part(path, "weakening")


def _versions(path: str, *texts: bytes) -> _Versions | None:
    """Return what reads two versions of a file together, None where its language has nothing of the kind."""
    return cast("_Versions | None", part_for(path, "versions") if max(map(len, texts)) <= MAX_BYTES else None)
