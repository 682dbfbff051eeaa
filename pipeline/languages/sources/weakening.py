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
    from collections.abc import Iterable, Mapping


MAX_BYTES: Final = 512 * 1024
"""Above this size no file is read; people write smaller ones."""


class _Reader(Protocol):
    """A language's module `weakening`."""

    def read(self, source: bytes, path: str) -> Suite | None: ...


def weakenings(path: str, before: bytes, after: bytes, elsewhere: Iterable[Test] = ()) -> tuple[Weakening, ...]:
    """Return what the new text of a test file loosens; what is only in the new one loosens nothing.

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
    """Return the tests that only the new text has: tests of another file may have moved there."""
    old, new = suite_of(path, before), suite_of(path, after)
    known: Mapping[str, Test] = old.tests if old is not None else {}
    return tuple(test for name, test in new.tests.items() if name not in known) if new is not None else ()


def suite_of(path: str, source: bytes) -> Suite | None:
    """Return what a file of tests checks; None where its language is not known, or it cannot be read."""
    part = part_for(path, "weakening") if len(source) <= MAX_BYTES else None
    return cast("_Reader", part).read(source, path) if part is not None else None


def changed_around(path: str, before: bytes, after: bytes) -> tuple[str, ...]:
    """Return the old tests that are what they were, byte for byte or nearly, and notice less all the same.

    A constant, a table or a helper of their file changed. They go by their names within the file.
    """
    old, new = suite_of(path, before), suite_of(path, after)
    if old is None or new is None:
        return ()
    told = {one.test for one in compare(old, new)}
    same = {name for name, test in old.tests.items() if name in new.tests and new.tests[name].body == test.body}
    return tuple(sorted(name for name in told & same if old.tests[name].what == "test"))


def is_read(path: str) -> bool:
    """Return whether files of this language are read."""
    return has_part(path, "weakening")
