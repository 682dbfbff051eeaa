"""Finds what a change of tests loosens, in words, for @check to judge.

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
    from collections.abc import Iterable, Mapping


MAX_BYTES: Final = 512 * 1024
"""The largest file that is read, in bytes; people write smaller ones."""


class _Reader(Protocol):
    """The protocol of a language's module `weakening`."""

    def read(self, source: bytes, path: str) -> Suite | None: ...


def weakenings(path: str, before: bytes, after: bytes, elsewhere: Iterable[Test] = ()) -> tuple[Weakening, ...]:
    """Return what a test file's new text loosens; tests that only it has loosen nothing.

    Args:
        path: The file; its ending tells the language. Of a language that is not known nothing is said.
        before: Its text as it was.
        after: Its text as it is to be, empty for one that is deleted.
        elsewhere: Tests that the same change adds in other files; see `added`.
    """
    old, new = suite_of(path, before), suite_of(path, after)
    if old is None:
        return ()
    if new is None:
        unread = Weakening("", "it cannot be read any more, so that nothing is known of its tests", 1)
        return (unread,) if old.tests else ()
    return tuple(dict.fromkeys(compare(old, new, elsewhere)))


def added(path: str, before: bytes, after: bytes) -> tuple[Test, ...]:
    """Return the tests that only the new text has; they may have moved there from another file."""
    old, new = suite_of(path, before), suite_of(path, after)
    known: Mapping[str, Test] = old.tests if old is not None else {}
    return tuple(test for name, test in new.tests.items() if name not in known) if new is not None else ()


def suite_of(path: str, source: bytes) -> Suite | None:
    """Return the tests of a file with their checks; None if its language is unknown or it is unreadable."""
    part = part_for(path, "weakening") if len(source) <= MAX_BYTES else None
    return cast("_Reader", part).read(source, path) if part is not None else None


def changed_around(path: str, before: bytes, after: bytes) -> tuple[str, ...]:
    """Return the old tests that are (nearly) unchanged and check less nevertheless.

    A constant, a table or a helper of their file changed. They go by their names within the file.
    """
    old, new = suite_of(path, before), suite_of(path, after)
    if old is None or new is None:
        return ()
    told = {one.test for one in compare(old, new)}
    same = {name for name, test in old.tests.items() if name in new.tests and new.tests[name].body == test.body}
    return tuple(sorted(name for name in told & same if old.tests[name].what == "test"))


def is_read(path: str) -> bool:
    """Return whether the tests of a file's language can be read."""
    return has_part(path, "weakening")
