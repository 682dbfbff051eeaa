"""Finds checks that a change of tests loosens, against the original tests and against @test's own earlier ones.

Tests of each language are read (`sources.weakening`). Of other files that serve tests (snapshots,
data, `conftest.py`, helpers) it is said that they changed and by how much: what that means is for @check to see.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from pipeline.languages.readers import added, weakenings
from pipeline.languages.sources.suites import lines_of
from pipeline.languages.sources.weakening import is_read
from pipeline.measure.composed_trees import both, shares_file
from pipeline.measure.old_tests.changed_helpers import lost_constants, serves
from pipeline.policy.control_files import is_control
from pipeline.policy.test_support import is_data, is_snapshot, lies_among_tests

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from pipeline.evidence.observation import Layout
    from pipeline.languages.sources.suites import Weakening
    from pipeline.measure.composed_trees import HasRepository

MOST_FILES = 200
"""The most changed files that are read; no task changes tests in more."""


def loosened(ctx: HasRepository, layout: Layout, before: str, after: str) -> tuple[str, ...]:
    """Return what tests of the tree *after* no longer check and those of *before* did, one line each, by file.

    A test that moves to another file is not gone. A file that is new loosens nothing by its tests; a hook or a fixture
    in it may have a part in the others.
    """
    if before == after:
        return ()
    paths = [change.path for change in ctx.repository.diff(before, after)]
    texts = both(ctx, before, after, [path for path in paths if _may_matter(path, layout)][:MOST_FILES])
    read = weakenings_by_file(texts)
    lines: list[str] = []
    for path, old, new in texts:
        lines += lines_of(path, read.get(path, ()))
        if old is not None and new is not None and serves(path, layout):
            lines += [f"{path}: {one.what}" for one in lost_constants(ctx, layout, before, (path, old, new))]
        if old is not None:
            lines += [f"{path}: {sentence}" for sentence in _changed_helper(path, layout, old, new)]
    return tuple(lines)


def weakenings_by_file(
    texts: Iterable[tuple[str, bytes | None, bytes | None]],
) -> dict[str, tuple[Weakening, ...]]:
    """Return the weakenings of each test file; a test that moved to another file does not count."""
    tests = [(path, old or b"", new) for path, old, new in texts if is_read(path)]
    moved = {path: added(path, old, new) for path, old, new in tests if new is not None}
    found: dict[str, tuple[Weakening, ...]] = {}
    for path, old, new in tests:
        elsewhere = [test for other, more in moved.items() if other != path for test in more]
        found[path] = weakenings(path, old, new or b"", elsewhere)
    return found


def loosened_in(ctx: HasRepository, before: str, after: str, paths: Collection[str]) -> tuple[str, ...]:
    """Return what support files with fixtures or checks, which are no tests themselves, no longer check."""
    texts = both(ctx, before, after, [path for path in paths if is_read(path)][:MOST_FILES])
    found = ((path, weakenings(path, old, new or b"")) for path, old, new in texts if old is not None)
    return tuple(line for path, ones in found for line in lines_of(path, ones))


def _may_matter(path: str, layout: Layout) -> bool:
    return is_read(path) or _serves(path, layout)


def _serves(path: str, layout: Layout) -> bool:
    """Return whether a file is no test, but is compared with, imported by, or controls tests."""
    if shares_file(path, layout) or layout.is_test(path):
        return False
    return layout.is_test_side(path) or lies_among_tests(path) or is_control(path)


def _changed_helper(path: str, layout: Layout, old: bytes, new: bytes | None) -> Iterator[str]:
    if not _serves(path, layout):
        return
    what = _what(path)
    if new is None:
        yield f"{what} is removed"
    else:
        yield f"{what} is changed: {_how_much(old.splitlines(), new.splitlines())}"


def _what(path: str) -> str:
    if is_snapshot(path):
        return "what tests expect (a snapshot)"
    if is_control(path):
        return "a file that controls how tests run"
    return "data of tests" if is_data(path) else "a file that serves tests"


def _how_much(old: Sequence[bytes], new: Sequence[bytes]) -> str:
    gone, come = Counter(old) - Counter(new), Counter(new) - Counter(old)
    if not gone and not come:
        return "the same lines in another order"
    return f"{gone.total()} of {len(old)} lines are gone, {come.total()} are new"
