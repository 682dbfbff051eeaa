"""Measures tests of a tree that nobody has changed: which of them fail now and then."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeline.evidence.compare import failing
from pipeline.languages.protocol import Selection
from pipeline.measure.measuring import measure

if TYPE_CHECKING:
    from pipeline.evidence.observation import Observation
    from pipeline.measure.measuring import MeasurementContext


async def flaky(ctx: MeasurementContext, tree: str, baseline: Observation) -> frozenset[str]:
    """Return the failing ids that pass when they are run once more; a flaky baseline is recorded, not refused.

    Raises:
        UnmeasurableError: the tests could not be started.
    """
    red = frozenset(entry for entry in failing(baseline) if entry in baseline.records)
    if not red:
        return frozenset()
    what = "the failing tests before any change again, may fail"
    return red - frozenset(failing(await measure(ctx, tree, Selection(ids=red), what=what)))
