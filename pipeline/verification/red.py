"""Measures RED again: tests of one tree over production of another, judged by the run's own table (matrix 5)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pipeline.evidence.observation import RunState
from pipeline.measure.composed_trees import compose
from pipeline.measure.measuring import UnmeasurableError, measure
from pipeline.measure.probes.revert import measure_over

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from pipeline.evidence.observation import Layout, Observation
    from pipeline.measure.measuring import MeasurementContext
    from pipeline.measure.probes.revert import Red, Wanted


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
