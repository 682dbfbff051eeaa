"""Finds broken and flaky old tests: a regression fails in two runs of two, and passes in two before (matrix 5).

One that fails in a single run and passed in every run before is none, and no flaky test either: it is unstable.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from pipeline.judge.evidence.compare import RepeatResult, confirm_regression, failing, passes
from pipeline.judge.evidence.observation import Observation, TestRecord
from pipeline.testing.languages.protocol import Selection
from pipeline.testing.measure import kept_runs
from pipeline.testing.measure.measuring import MeasurementContext, measure

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence


_WAS: Final = "the same tests over the old code, must pass"
_DOUBTED: Final = "tests in doubt over the old code, must pass"
_SURE: Final = 3
"""The number of further runs over the code before, of what fails sometimes: these tell what was flaky then."""


@dataclass(frozen=True)
class Suspects:
    """The suspected regressions: those that fail two of two times, those that fail sometimes, those that did before.

    `unstable` passed over the code before each time, and fail in some runs of the candidate: whether that is the code's
    or the test's fault is for @check to say. `flaky` were seen failing over the code before, and do not count.
    """

    regressions: tuple[str, ...] = ()
    unstable: tuple[str, ...] = ()
    flaky: tuple[str, ...] = ()
    failed: Mapping[str, TestRecord] = field(default_factory=dict[str, TestRecord])
    """How each of the unstable ones failed."""

    @property
    def broken(self) -> tuple[str, ...]:
        """Return all that the candidate may have broken."""
        return (*self.regressions, *self.unstable)


async def confirm(
    ctx: MeasurementContext,
    suspects: Sequence[str],
    candidate: str,
    before: str,
    first: Observation,
    *,
    start: str | None = None,
    within: Selection | None = None,
) -> Suspects:
    """Return which of the *suspects* are regressions of *candidate* against the tree *before*.

    A suspect that passes in *first* was seen failing on the same bytes: no further run is asked about it.

    Args:
        ctx: The run, or what measures without one.
        suspects: The tests in question.
        candidate: The tree in which they fail, or failed.
        before: The tree in which they passed.
        first: The run of *candidate* that made them suspects.
        start: The tree that the run began with, if that is another one: only what failed there was flaky before.
        within: What *first* ran, if that was not all: a test may need others before it.

    Raises:
        UnmeasurableError: the environment broke meanwhile.
    """
    if not suspects:
        return Suspects()
    failed_first = [test for test in suspects if not passes(first, test)]
    verdicts: dict[str, RepeatResult] = {}
    if failed_first:
        verdicts |= await _compared(ctx, failed_first, candidate, before, first, Selection(ids=frozenset(failed_first)))
    unsure = [test for test in failed_first if verdicts[test] is RepeatResult.FLAKY]
    if unsure:  # what passes alone may still break each time in the company of the other tests
        verdicts |= await _compared(ctx, unsure, candidate, before, first, None)
        unsure = [test for test in unsure if verdicts[test] is RepeatResult.FLAKY]
    if unsure and within is not None:
        await measure(ctx, before, within, again=True, what=_WAS)
    regressions = tuple(test for test, verdict in verdicts.items() if verdict is RepeatResult.REGRESSION)
    doubtful = [test for test in suspects if test not in regressions]
    runs = _SURE if unsure and start not in {None, before} else 0
    flaky = await flaky_before(ctx, doubtful, start or before, runs=runs)
    failed = kept_runs.seen_failing(ctx.checkout.root, candidate)
    unstable = tuple(test for test in doubtful if test not in flaky)
    return Suspects(
        regressions=regressions,
        unstable=unstable,
        flaky=tuple(test for test in doubtful if test in flaky),
        failed={test: failed[test] for test in unstable if test in failed},
    )


async def flaky(ctx: MeasurementContext, tree: str, baseline: Observation) -> frozenset[str]:
    """Return the failing ids of a baseline that pass when they are run once more: they are recorded, not refused.

    Raises:
        UnmeasurableError: the tests could not be started.
    """
    red = frozenset(entry for entry in failing(baseline) if entry in baseline.records)
    if not red:
        return frozenset()
    what = "the failing tests before any change again, may fail"
    return red - frozenset(failing(await measure(ctx, tree, Selection(ids=red), what=what)))


async def flaky_before(
    ctx: MeasurementContext, tests: Collection[str], start: str, *, runs: int = _SURE
) -> frozenset[str]:
    """Return those of *tests* that fail sometimes over the tree that the run began with, in any measurement of it.

    Args:
        ctx: The run, or what measures without one.
        tests: Tests that fail sometimes over another tree.
        start: The tree.
        runs: How many further runs are asked.

    Raises:
        UnmeasurableError: the environment broke meanwhile.
    """
    for _ in range(runs if tests else 0):
        await measure(ctx, start, Selection(ids=frozenset(tests)), again=True, what=_DOUBTED)
    return frozenset(tests).intersection(kept_runs.seen_failing(ctx.checkout.root, start))


async def _compared(
    ctx: MeasurementContext,
    tests: Sequence[str],
    candidate: str,
    before: str,
    first: Observation,
    selection: Selection | None,
) -> dict[str, RepeatResult]:
    """Return the result for each of *tests* from two runs of both trees; *first* is one of the candidate's."""
    again = await measure(ctx, candidate, selection, again=True, what="old tests that failed, over the new code again")
    before_runs = [
        await measure(ctx, before, selection, what=_WAS),
        await measure(ctx, before, selection, again=True, what="the same tests over the old code again, must pass"),
    ]
    return {test: confirm_regression(test, [first, again], before_runs) for test in tests}
