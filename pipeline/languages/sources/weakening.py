"""What a change of tests would loosen, in words (issue "freeze"): shown to @check, who decides.

Nothing here says that a change is wrong: a behaviour may have changed. It says what the tests no longer notice. A test
is known by its name within its file; what it checks is read from its syntax tree, so that reordering, reformatting,
renaming, and moving assertions into a helper are no change. A language is read by a module of its own, which is loaded
only where a file of that language is judged. Nothing here performs I/O.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from pipeline.languages.sources.suite_changes import compare
from pipeline.languages.sources.suites import Suite, Test, Weakening

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pipeline.languages.python.weakening import File

MAX_BYTES: Final = 512 * 1024
"""Above this size no file is read; people write smaller ones."""

SCRIPTS: Final = (".js", ".jsx", ".mjs", ".cjs", ".ts", ".tsx", ".mts", ".cts")
"""The endings of JavaScript and TypeScript."""


class _Reader(Protocol):
    def __call__(self, source: bytes, path: str) -> Suite | None: ...


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
    reader = _reader(path)
    if reader is None or len(source) > MAX_BYTES:
        return None
    return reader(source, path)


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
    """Return the old tests of a Python file that use a constant of which something is gone."""
    found = _python(path, before, after)
    if found is None:
        return ()
    from pipeline.languages.python import weakening as weakening_python  # noqa: PLC0415

    return tuple(test for _, tests in weakening_python.changed_constants(*found) for test in tests)


def _both(path: str, before: bytes, after: bytes) -> tuple[tuple[Weakening, ...], Suite | None, Suite | None]:
    """Return what is told of the file's constants, and what its tests check, before and after."""
    found = _python(path, before, after)
    if found is None:
        return (), suite_of(path, before), suite_of(path, after)
    from pipeline.languages.python import weakening as weakening_python  # noqa: PLC0415

    return (*weakening_python.constants_told(*found),), *weakening_python.read_both(*found)


def _python(path: str, before: bytes, after: bytes) -> tuple[File, File] | None:
    """Return two readable Python sources."""
    if not path.endswith(".py") or max(len(before), len(after)) > MAX_BYTES:
        return None
    from pipeline.languages.python import weakening as weakening_python  # noqa: PLC0415

    old, new = weakening_python.file_of(before), weakening_python.file_of(after)
    return (old, new) if old is not None and new is not None else None


def _as_named(path: str, after: bytes, found: Sequence[Test]) -> tuple[Test, ...]:
    """Return the same tests of a Python file with the names of constants: it may import what the old file has."""
    if not found or not path.endswith(".py"):
        return ()
    from pipeline.languages.python import weakening as weakening_python  # noqa: PLC0415

    plain = weakening_python.read_plain(after)
    lines = {test.line for test in found}
    again = plain.tests.values() if plain is not None else ()
    return tuple(test for test in again if test.line in lines and test not in found)


def is_read(path: str) -> bool:
    """Return whether files of this language are read."""
    return path.endswith((".py", ".rs", ".go", *SCRIPTS))


def _reader(path: str) -> _Reader | None:
    # each parser is a shared library that only projects of its language need
    if path.endswith(".py"):
        from pipeline.languages.python import weakening as weakening_python  # noqa: PLC0415

        return weakening_python.read
    if path.endswith(".rs"):
        from pipeline.languages.rust import weakening as weakening_rust  # noqa: PLC0415

        return weakening_rust.read
    if path.endswith(".go"):
        from pipeline.languages.go import weakening as weakening_go  # noqa: PLC0415

        return weakening_go.read
    if path.endswith(SCRIPTS):
        from pipeline.languages.javascript import weakening as weakening_javascript  # noqa: PLC0415

        return weakening_javascript.read
    return None
