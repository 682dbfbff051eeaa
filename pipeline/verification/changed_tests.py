"""Compares old tests that a change touches: what each notices less than before, and whether anybody allowed that.

What is looked at and in which words is what a run shows to @check (issue "freeze"). There a judge decides; here nobody
does, so that a loosened test counts only where the one who asks names it.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pipeline.evidence.red import may_change
from pipeline.languages.sources.suites import lines_of
from pipeline.languages.sources.weakening import is_read
from pipeline.measure.composed_trees import both, shares_file
from pipeline.measure.measuring import changed_paths
from pipeline.measure.old_tests import loosened
from pipeline.measure.old_tests.unprotected import named
from pipeline.verification.results import Problem

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pipeline.evidence.observation import Layout, Observation, TestRecord
    from pipeline.languages.sources.suites import Weakening
    from pipeline.verification.context import VerificationContext
    from pipeline.verification.red import Runs


@dataclass(frozen=True)
class OldTests:
    """What is to be told of old tests, and which of it is not allowed."""

    problems: tuple[Problem, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True)
class _Loosened:
    """A test, or what is no test of its own (a fixture, a file as a whole; then `entry` is the path)."""

    entry: str
    records: tuple[TestRecord, ...]
    what: tuple[str, ...]


def changed_tests(ctx: VerificationContext, runs: Runs, allowed: frozenset[str]) -> OldTests:
    """Return what became of the tests of the first tree in the second.

    A test that is gone is not told here: GREEN has it among what is lost.

    Args:
        ctx: What has the repository.
        runs: The base and the worktree.
        allowed: Ids, functions or files of old tests that may change or go.
    """
    trees, before, after = runs.trees, runs.before, runs.after
    read = _weakened(ctx, trees, before.layout)
    found = _by_test(read, before, after)
    notes = [f"{one.entry} is loosened: {'; '.join(one.what)}" for one in found]
    entries = {one.entry for one in found}
    changed = {old.function for entry, old in before.records.items() if _differs(old, after.records.get(entry))}
    notes += [f"{entry} is changed; it loosens nothing that can be told" for entry in sorted(changed - entries)]
    said = {line for path, ones in read.items() for line in lines_of(path, ones)}
    notes += [line for line in loosened.loosened(ctx, before.layout, *trees) if line not in said]
    problems = [
        Problem(id=one.entry, why=f"is of the base and notices less now: {named(one.what, 1)}; {_leave(one.entry)}")
        for one in found
        if not _is_allowed(one, allowed)
    ]
    return OldTests(tuple(problems), tuple(notes))


def _weakened(ctx: VerificationContext, trees: tuple[str, str], layout: Layout) -> dict[str, tuple[Weakening, ...]]:
    """Return what each changed file with tests of the first tree no longer notices."""
    paths = [path for path in changed_paths(ctx, *trees) if is_read(path)]
    texts = both(ctx, *trees, paths[: loosened.MOST_FILES])
    there = {path for path, old, _ in texts if old is not None}
    return {
        path: found
        for path, found in loosened.weakenings_by_file(texts).items()
        if path in there and (layout.is_test_side(path) or shares_file(path, layout))
    }


def _by_test(read: Mapping[str, Sequence[Weakening]], before: Observation, after: Observation) -> tuple[_Loosened, ...]:
    found: dict[tuple[str, str], list[str]] = defaultdict(list)
    for path, ones in read.items():
        for one in ones:
            found[path, one.test].append(f"{one.what} (line {one.line})")
    return tuple(
        loosened
        for (path, test), what in found.items()
        if (loosened := _loosened(path, test, what, before, after)) is not None
    )


def _loosened(path: str, test: str, what: Sequence[str], before: Observation, after: Observation) -> _Loosened | None:
    """Return one entry; None for a test that is gone, which is a loss of its own."""
    records = tuple(r for r in before.records.values() if r.path == path and test and is_called(r, test))
    if records and not any(record.id in after.records for record in records):
        return None
    if not records:  # a fixture, a helper, or all of the file
        return _Loosened(path, (), tuple(f"{test}: {each}" if test else each for each in what))
    return _Loosened(records[0].function, records, tuple(what))


def is_called(record: TestRecord, test: str) -> bool:
    """Return whether a name within a file is the test's: `A.test_x` is of `...::A::test_x`, `tests::x` of `...::x`."""
    function, name = (text.replace("::", ".") for text in (record.function, test))
    return function == name or function.endswith((f".{name}", f"/{name}"))


def _leave(entry: str) -> str:
    return f"if it is meant to: --may-change {entry}"


def _differs(old: TestRecord, new: TestRecord | None) -> bool:
    return new is not None and new.region_sha256 != old.region_sha256


def _is_allowed(one: _Loosened, allowed: frozenset[str]) -> bool:
    return one.entry in allowed or (bool(one.records) and all(may_change(record, allowed) for record in one.records))
