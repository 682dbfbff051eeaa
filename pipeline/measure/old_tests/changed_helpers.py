"""Finds unchanged old tests that check less because a constant, a table or a helper beside them changed.

The digest of a test is that of its own lines (matrix 5), so that these are no changed tests to it. What is found here
is told with what tests no longer notice, and names the tests whose change @check is asked about. Of files that serve
tests from beside them only Python's are read.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pipeline.languages.readers import changed_around, lost_in, users_in
from pipeline.languages.sources.suites import listed
from pipeline.languages.sources.weakening import MAX_BYTES, is_read
from pipeline.measure.composed_trees import both, shares_file
from pipeline.policy.test_support import lies_among_tests

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pipeline.evidence.observation import Layout, TestRecord
    from pipeline.measure.composed_trees import HasRepository

_MOST_FILES = 200
"""The most changed files that are read; no task changes tests in more."""
_MOST_TESTS = 2_000
"""The most test files that are searched for users of a constant."""


@dataclass(frozen=True)
class LostConstant:
    """A constant in a test support file that lost values.

    Args:
        what: How it differs, in words, with the line where it stands now.
        tests: The old tests that use it, by file and name within it.
    """

    what: str
    tests: tuple[tuple[str, str], ...]


def weakened_indirectly(
    ctx: HasRepository, layout: Layout, records: Mapping[str, TestRecord], before: str, after: str
) -> tuple[str, ...]:
    """Return the ids of old tests that check less though their own lines are unchanged.

    Args:
        ctx: What has the repository.
        layout: Which files are tests.
        records: The tests as they were, by id.
        before: The tree that they were collected from.
        after: The tree with the changed tests.
    """
    paths = [change.path for change in ctx.repository.diff(before, after) if is_read(change.path)]
    own = [path for path in paths if layout.is_test(path) or shares_file(path, layout)][:_MOST_FILES]
    found: set[tuple[str, str]] = set()
    unread: set[str] = set()
    for path, old, new in both(ctx, before, after, own):
        if old is not None and new is not None:
            tests = changed_around(path, old, new)
            found |= {(path, test) for test in tests or ()}
            unread |= {path} if tests is None else set()
    for path, old, new in both(ctx, before, after, [path for path in paths if serves(path, layout)][:_MOST_FILES]):
        if old is not None and new is not None:
            found |= {test for one in lost_constants(ctx, layout, before, (path, old, new)) for test in one.tests}
    return tuple(
        sorted(
            entry
            for entry, record in records.items()
            if record.path.partition("#")[0] in unread or any(_is_of(record, *test) for test in found)
        )
    )


def serves(path: str, layout: Layout) -> bool:
    """Return whether a code file is no test itself but lies beside tests, so that they may import it."""
    return not layout.is_test(path) and (layout.is_test_side(path) or lies_among_tests(path))


def lost_constants(
    ctx: HasRepository, layout: Layout, tree: str, change: tuple[str, bytes, bytes]
) -> tuple[LostConstant, ...]:
    """Return the constants of a changed Python file that lost values and that old tests use.

    Args:
        ctx: What has the repository.
        layout: Which files are tests.
        tree: The tree with the tests as they were.
        change: The file that serves them, its text before and after.
    """
    path, old, new = change
    if not path.endswith(".py") or max(len(old), len(new)) > MAX_BYTES:
        return ()
    lost = lost_in(old, new)
    if lost is None:
        return (LostConstant("it cannot be read; whether old tests use what is gone in it is not known", ()),)
    tests: list[list[tuple[str, str]]] = [[] for _ in lost]
    for file, text in _tests(ctx, layout, tree) if lost else ():
        for mine, users in zip(tests, users_in(file, text, path, lost), strict=True):
            mine.extend((file, test) for test in users)
    found: list[LostConstant] = []
    for one, mine in zip(lost, tests, strict=True):
        if mine:
            shown = listed([f"{file}::{test}" for file, test in mine])
            found.append(LostConstant(f"{one.what} (used by {shown}) (line {one.line})", tuple(mine)))
    return tuple(found)


def _tests(ctx: HasRepository, layout: Layout, tree: str) -> Iterator[tuple[str, bytes]]:
    paths = [entry.path for entry in ctx.repository.entries(tree) if entry.path.endswith(".py")]
    wanted = [path for path in paths if layout.is_test(path)][:_MOST_TESTS]
    for path, text, _ in both(ctx, tree, tree, wanted):
        if text is not None and len(text) <= MAX_BYTES:
            yield path, text


def _is_of(record: TestRecord, path: str, test: str) -> bool:
    """Return whether a collected test has this name; runners join the names of suites in different ways."""
    if record.path.partition("#")[0] != path:
        return False
    words, known = _words(test), _words(record.function.removeprefix(path))
    return known[-len(words) :] == words


def _words(name: str) -> list[str]:
    return [word for word in re.split(r"::| > |\.|/", name.partition("[")[0]) if word]
