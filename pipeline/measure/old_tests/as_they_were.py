"""Measures the tests of before, as they were, over the production of a candidate: what fails there was changed to fit.

Nothing of the text of tests is read. Whatever was done to them or around them (an assertion that asks less, a fixture
or a table that is another one, a new `conftest.py` that replaces the code), the old ones say of the new code what they
said of the old. One that only checks less, over code that is right, says nothing: no lie about this change.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from pipeline.evidence.compare import passed
from pipeline.evidence.observation import RunState, TestRecord
from pipeline.evidence.red import may_change
from pipeline.languages.table import has_part, language_of
from pipeline.measure import kept_runs
from pipeline.measure.composed_trees import compose, shares_file, with_other_regions
from pipeline.measure.measuring import UnmeasurableError, changed_paths, measure
from pipeline.measure.old_tests.regression import confirm
from pipeline.measure.outcome_words import seen as outcome
from pipeline.policy.test_support import lies_among_tests
from pipeline.reports.untrusted_text import one_line

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from pipeline.evidence.observation import Layout, Observation
    from pipeline.measure.measuring import MeasurementContext
    from pipeline.reports.tasks import Task

_WHAT: Final = "the old tests as they were over the new code, must pass"
_ENDED: Final = frozenset({RunState.COMPLETE, RunState.CRASHED})


@dataclass(frozen=True)
class Sides:
    """What is compared: two trees, and which files of the second belong to the tests.

    Args:
        start: The tree of which the tests are.
        tree: The candidate, of which the production is.
        layout: Which files are tests.
        named: Files that serve tests though they do not look like it.
        made: Files that the implementer may change and no test writer: they are production, whatever their names.
        moved: The new path of each test file that the task renames, by its old one.
    """

    start: str
    tree: str
    layout: Layout
    named: Collection[str] = ()
    made: Collection[str] = ()
    moved: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True)
class AsTheyWere:
    """What the tests of before show, as they were, of a candidate over which those of now pass.

    Args:
        hidden: Tests that fail 2 of 2 and may not, and files that cannot be collected any more, with how.
        planned: The same of what may change, from one run, with why it may.
        unstable: Tests that fail in some of these runs, and in none before.
        failed: How each of these failed.
        trouble: Why nothing is known.
        without_new: The candidate without its new test files, where these are all that differs; else empty. Nothing was
            measured then, and what runs old tests for another reason can run them there.
        seen: The run of them all, where there was one.
    """

    hidden: Mapping[str, str] = field(default_factory=dict[str, str])
    planned: Mapping[str, str] = field(default_factory=dict[str, str])
    unstable: tuple[str, ...] = ()
    failed: Mapping[str, TestRecord] = field(default_factory=dict[str, TestRecord])
    trouble: str = ""
    without_new: str = ""
    seen: Observation | None = None

    def lines(self) -> tuple[str, ...]:
        """Return what a reviewer is told; nothing where nothing was found."""
        planned = (f"{entry} fails in its old form, as planned: {why}" for entry, why in self.planned.items())
        told = (f"what old tests show of the new code, as they were, is not known: {self.trouble}",)
        return (*planned, *(told if self.trouble else ()))


def leave_of(task: Task) -> dict[str, str]:
    """Return why each old test may fail in its old form, by id, function or file: what was planned, and no more.

    Who agrees to another text of a test has not seen the code that it will be held against.
    """
    return {test.id: one_line(test.reason) for test in task.tests_to_change if not test.is_text_only}


async def as_they_were(
    ctx: MeasurementContext,
    sides: Sides,
    kept: Mapping[str, TestRecord],
    leave: Mapping[str, str],
    *,
    run_start: str | None = None,
) -> AsTheyWere:
    """Return which old tests fail as they were over a candidate. Nothing is run where nothing could differ.

    Args:
        ctx: Where to measure.
        sides: The trees, and what of them are tests.
        kept: What must be kept: how the tests ended before.
        leave: Why a test may change, by id, function or file.
        run_start: The tree that the run began with, if that is another one than `sides.start`.

    Raises:
        UnmeasurableError: the environment broke while suspects were measured again.
    """
    paths = tuple(path for path in _test_side(ctx, sides) if sides.layout.is_test(path) or path not in leave)
    while _may_differ(ctx, sides, paths):
        composed = compose(ctx, sides.start, sides.tree, paths, sides.layout)
        if composed.whole:
            return AsTheyWere(trouble=composed.whole[0])
        alone = composed.tree
        try:
            seen = await measure(ctx, alone, what=_WHAT)
        except UnmeasurableError as error:
            return AsTheyWere(trouble=str(error))
        if seen.state not in _ENDED:
            return AsTheyWere(trouble=f"the run did not come to its end ({seen.state}): {seen.detail}")
        excused = _may_be_unreadable(seen, kept, leave, sides.moved).intersection(paths)
        excused |= {new for old, new in sides.moved.items() if old in excused}
        if not excused:
            return await _judged(ctx, sides, alone, seen, kept, leave, run_start)
        # with these as they are now, and what serves them, the others can be asked
        paths = tuple(path for path in paths if path not in excused and sides.layout.is_test(path))
    composed = compose(ctx, sides.start, sides.tree, paths, sides.layout)
    return AsTheyWere(without_new=composed.tree if paths and not composed.whole else "")


def _test_side(ctx: MeasurementContext, sides: Sides) -> tuple[str, ...]:
    """Return the paths that differ and belong to the tests; of a file that holds both, only if its tests differ."""
    changed = changed_paths(ctx, sides.start, sides.tree)
    layout, named = sides.layout, sides.named
    own = (
        path
        for path in changed
        if path not in sides.made
        and not shares_file(path, layout)
        and (path in named or layout.is_test_side(path) or lies_among_tests(path))
    )
    return (*own, *with_other_regions(ctx, sides.start, sides.tree, changed, layout))


def _may_differ(ctx: MeasurementContext, sides: Sides, paths: Collection[str]) -> bool:
    """Return whether a file of the test side that was there is another, or a new one is loaded with others' tests."""
    there = {entry.path for entry in ctx.repository.entries(sides.start, *paths)} if paths else set[str]()
    # Rust builds a program for each of its files of tests
    others = (path for path in paths if not sides.layout.is_test(path) and not has_part(path, "test_regions"))
    return bool(there) or any(language_of(path) is not None for path in others)


def _may_be_unreadable(
    seen: Observation, kept: Mapping[str, TestRecord], leave: Mapping[str, str], moved: Mapping[str, str]
) -> frozenset[str]:
    """Return the files that cannot be collected as they were, and of which a test may change or that have moved."""
    allowed = frozenset(leave)
    listed = {_file(record) for record in kept.values() if may_change(record, allowed)} | allowed | moved.keys()
    return seen.unread.intersection(listed)


async def _judged(
    ctx: MeasurementContext,
    sides: Sides,
    alone: str,
    seen: Observation,
    kept: Mapping[str, TestRecord],
    leave: Mapping[str, str],
    run_start: str | None,
) -> AsTheyWere:
    failed = kept_runs.seen_failing(ctx.checkout.root, alone)
    suspects = {
        entry: before
        for entry, before in kept.items()
        if passed(before)
        and (_file(before) in seen.unread if entry not in seen.records else _fails(seen.records[entry], failed))
    }
    planned = {entry: why for entry, one in suspects.items() if (why := _why(one, leave)) is not None}
    others = sorted(suspects.keys() - planned)
    sure = await confirm(ctx, others, alone, sides.start, seen, start=run_start)
    return AsTheyWere(
        hidden=dict(_told(sure.regressions, suspects, seen)),
        planned=planned,
        unstable=sure.unstable,
        failed=sure.failed,
        seen=seen,
    )


def _fails(record: TestRecord, failed: Mapping[str, TestRecord]) -> bool:
    return not passed(record) or record.id in failed


def _file(record: TestRecord) -> str:
    return record.path.partition("#")[0]


def _why(record: TestRecord, leave: Mapping[str, str]) -> str | None:
    return next((leave[name] for name in (record.id, record.function, record.path) if name in leave), None)


def _told(entries: Collection[str], suspects: Mapping[str, TestRecord], seen: Observation) -> Iterator[tuple[str, str]]:
    """Yield each test with how it failed; of those in a file that cannot be collected, the file with its error."""
    errors = {error.path: error.fault.raised for error in reversed(seen.collection_errors)}
    for entry in entries:
        record = seen.records.get(entry)
        if errors and (record is None or not record.ran):
            own = _file(suspects[entry])
            path = own if own in errors else next(iter(errors))
            kind = errors[path].kind.rpartition(".")[2]
            yield path, f"cannot be collected any more: {kind}: {one_line(errors[path].message)}"
        else:
            yield entry, outcome(record)
