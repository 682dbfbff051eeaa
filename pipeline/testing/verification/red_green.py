"""Measures RED and GREEN of two trees again, judged by the run's own table (matrix 5)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from pipeline.judge.evidence.compare import expectations, judge_green, still_passing
from pipeline.judge.evidence.observation import Layout, Observation, RunState, TestRecord
from pipeline.judge.evidence.quarantine import standing
from pipeline.testing.measure import kept_runs
from pipeline.testing.measure.baseline import limit_of, not_protected
from pipeline.testing.measure.composed_trees import compose
from pipeline.testing.measure.measuring import MeasurementContext, UnmeasurableError, measure
from pipeline.testing.measure.old_tests import AsTheyWere, Sides, as_they_were, written_files
from pipeline.testing.measure.regression import confirm
from pipeline.testing.measure.revert import Red, Wanted, measure_over
from pipeline.testing.verification.results import Problem

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from pipeline.judge.evidence.red_tests import RedTests


async def measure_red(
    ctx: MeasurementContext,
    trees: tuple[str, str],
    test_paths: Iterable[str],
    ids: Collection[str],
    wanted: Wanted,
    layout: Layout,
) -> Red:
    """Return what these tests show over another tree's production.

    Args:
        ctx: Where to measure.
        trees: The one that has the tests, and the one that everything else is taken from.
        test_paths: The files of the tests, all that serves them, and the production files with tests beside the code.
        ids: Which tests to run.
        wanted: What counts as not there yet.
        layout: Tells these apart.

    Raises:
        UnmeasurableError: the environment is broken, or a file cannot be put together for certain.
    """
    composed = composed_for(ctx, trees, test_paths, layout)
    return await measure_over(ctx, composed, trees[1], ids, wanted)


def composed_for(ctx: MeasurementContext, trees: tuple[str, str], test_paths: Iterable[str], layout: Layout) -> str:
    """Return the tree with the tests of the first tree over the production of the second.

    Raises:
        UnmeasurableError: a file cannot be put together for certain, so that what would be measured is not RED.
    """
    composed = compose(ctx, *trees, test_paths, layout)
    if composed.whole:
        raise UnmeasurableError(f"tests and code of one file cannot be told apart: {composed.whole[0]}")
    return composed.tree


@dataclass(frozen=True)
class Runs:
    """Two trees, and what all their tests showed: a commit's parent and the commit, or a base and the worktree."""

    trees: tuple[str, str]
    before: Observation
    after: Observation


async def measure_both(ctx: MeasurementContext, trees: Mapping[str, str], *, warm: bool = False) -> Runs:
    """Return what all tests of two trees show, each named in words; `warm` as in `measure`, for the first.

    Raises:
        UnmeasurableError: a run did not come to its end, or the environment is broken.
    """
    (first, old), (second, new) = trees.items()
    before = await measure_whole(ctx, old, first, warm=warm)
    return Runs((old, new), before, await measure_whole(ctx, new, second))


async def measure_whole(ctx: MeasurementContext, tree: str, what: str, *, warm: bool = False) -> Observation:
    """Return what all tests of *tree* show; `warm` as in `measure`.

    Raises:
        UnmeasurableError: the run did not come to its end, or the environment is broken.
    """
    seen = await measure(ctx, tree, warm=warm, what=f"the whole suite over {what}")
    if seen.state is RunState.TIMED_OUT:
        raise UnmeasurableError(f"the tests of {what} did not end in time")
    return seen


_CHANGED_TO_FIT: Final = (
    "passes as it is now, and not in its old form over the new code, twice each: it was changed to fit"
)
_SOMETIMES: Final = "passed each time before, and fails sometimes in its old form over the new code"


@dataclass(frozen=True)
class Green:
    """What does not hold, and how many other tests passed before and pass now, as they were.

    `hidden` are old tests that pass now and not in their old form: `problems` is empty then, else nobody asked.
    """

    problems: tuple[Problem, ...]
    notes: tuple[str, ...]
    kept: int
    hidden: tuple[Problem, ...] = ()


async def check_green(
    ctx: MeasurementContext,
    ledger: RedTests | None,
    runs: Runs,
    may_change: frozenset[str],
    by_others: frozenset[str] = frozenset(),
    flaky_before: frozenset[str] = frozenset(),
    *,
    sides: Sides | None = None,
    leave: Mapping[str, str] | None = None,
) -> Green:
    """Return whether the second of two trees is GREEN against the first.

    Args:
        ctx: Where suspects are measured once more.
        ledger: The evidence of the tests that are meant; None where only nothing may break.
        runs: The trees, and what all their tests showed.
        may_change: Ids, functions or files of old tests that may change or go.
        by_others: Files of the judged tests that differ by the work of others alone; the tests in them count still.
        flaky_before: Old tests that the run saw failing over the code that it began with: to fail sometimes is no news.
        sides: For the tests of the first tree as they were; None where these are not asked.
        leave: Why an old test may fail so, by id, function or file.

    Raises:
        UnmeasurableError: the environment broke meanwhile.
    """
    before, after = runs.before, runs.after
    own = () if ledger is None else (ledger,)
    excused_now = standing(ctx.config.quarantine, tuple(after.records.values()), datetime.now(UTC).date(), own)
    kept = excused_now.without(expectations(before))
    failed = kept_runs.seen_failing(ctx.checkout.root, runs.trees[1])
    verdict = judge_green(
        ledger, after, kept, tests_to_change=may_change, unread_before=before.unread, seen_failing=failed
    )
    suspects = await confirm(ctx, verdict.regressions, runs.trees[1], runs.trees[0], after)
    told = {entry: _ended(after, entry) for entry in verdict.not_green if _is_ours(entry, ledger, before, after)}
    # Where the commit was put on other commits, the evidence knows tests that its new parent may not have.
    known_ids = before.records.keys() | ({*ledger.red, *ledger.guards} if ledger is not None else set[str]())
    gone = [entry for entry in verdict.missing if entry in known_ids]
    words = {
        "is gone": gone,
        "cannot be collected, and could before": verdict.uncollected,
        "is not the test that was judged": verdict.changed_regions,
        "is not the file that was judged": [path for path in verdict.changed_files if path not in by_others],
        "passed before and fails now, twice each": suspects.regressions,
        "passed each time before, and fails sometimes now": [
            *verdict.unstable,
            *(entry for entry in suspects.unstable if entry not in flaky_before),
        ],
        "is a strict xfail, and passes now": verdict.stale_xfail,
    }
    problems = [Problem(id=entry, why=why) for entry, why in told.items()]
    problems += [Problem(why=line) for line in verdict.cut_short]
    meanwhile = written_files(ctx, before, after, runs.trees[1])
    problems += [Problem(why=line) for line in meanwhile.support]
    problems += [Problem(id=entry, why=why) for why, entries in words.items() for entry in entries]
    known = (entry for entry in suspects.unstable if entry in flaky_before)
    flaky = tuple(f"flaky before, not counted: {entry}" for entry in (*suspects.flaky, *known))
    judged = [entry for entry, record in before.records.items() if ledger is not None and ledger.owns(record)]
    excused = {*excused_now.excused, *judged}
    red = not_protected(before, limit_of(ctx), excused)
    found = AsTheyWere()
    if sides is not None and not problems:
        found = await as_they_were(ctx, sides, kept, leave or {})
    notes = (*flaky, *red, *excused_now.lines(), *meanwhile.controls, *found.lines())
    problems += [Problem(id=entry, why=_SOMETIMES) for entry in found.unstable if entry not in flaky_before]
    hidden = tuple(Problem(id=entry, why=f"{_CHANGED_TO_FIT}: {how}") for entry, how in found.hidden.items())
    return Green(tuple(problems), notes, still_passing(kept, after, ledger), hidden)


def _is_ours(entry: str, ledger: RedTests | None, before: Observation, after: Observation) -> bool:
    """Return whether the test is the commit's own: of its evidence, or not there before."""
    record = after.records.get(entry)
    return record is None or entry not in before.records or (ledger is not None and ledger.owns(record))


def _ended(after: Observation, entry: str) -> str:
    record = after.records.get(entry)
    return "holds no test that is run now" if record is None else said(record)


def said(record: TestRecord) -> str:
    """Return how a test that should pass ended."""
    fault = "" if record.fault is None else f": {record.fault.raised.kind}: {record.fault.raised.message}"
    ended = record.outcome.value if record.outcome is not None else "not run"
    return f"does not pass ({ended}{fault})"
