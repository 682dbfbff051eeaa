"""Finds broken old tests: a regression fails in two runs of two, and passes in two of two before (matrix 5)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pipeline.evidence.compare import RepeatResult, confirm_regression
from pipeline.languages.protocol import Selection
from pipeline.measure.measuring import measure

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipeline.evidence.observation import Observation
    from pipeline.measure.measuring import MeasurementContext


@dataclass(frozen=True)
class Suspects:
    """The suspected regressions, sorted into regressions and flaky tests by the 2 of 2 rule."""

    regressions: tuple[str, ...] = ()
    flaky: tuple[str, ...] = ()


async def confirm(
    ctx: MeasurementContext, suspects: Sequence[str], candidate: str, before: str, first: Observation
) -> Suspects:
    """Return which of the *suspects* are regressions of *candidate* against the tree *before*.

    Raises:
        UnmeasurableError: the environment broke meanwhile.
    """
    if not suspects:
        return Suspects()
    alone = Selection(ids=frozenset(suspects))
    verdicts = await _compared(ctx, suspects, candidate, before, first, alone)
    unsure = [test for test, verdict in verdicts.items() if verdict is RepeatResult.FLAKY]
    if unsure:  # what passes alone may still break each time in the company of the other tests
        verdicts |= await _compared(ctx, unsure, candidate, before, first, None)
    return Suspects(
        regressions=tuple(test for test, verdict in verdicts.items() if verdict is RepeatResult.REGRESSION),
        flaky=tuple(test for test, verdict in verdicts.items() if verdict is RepeatResult.FLAKY),
    )


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
    was = "the same tests over the old code, must pass"
    before_runs = [
        await measure(ctx, before, selection, what=was),
        await measure(ctx, before, selection, again=True, what=was),
    ]
    return {test: confirm_regression(test, [first, again], before_runs) for test in tests}
