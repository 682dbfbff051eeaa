"""The flake guard: measures GREEN again. Tests whose runs disagree are no evidence.

Old tests that the task's files touch are repeated, too: a change that makes one of them pass only sometimes shows in no
single run. What went this way and that before the run is no fault of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pipeline.evidence.compare import passes
from pipeline.languages.protocol import Selection
from pipeline.measure import kept_runs
from pipeline.measure.measuring import measure
from pipeline.measure.old_tests.regression import flaky_before
from pipeline.measure.probes.evidence import OldEvidence, RepeatEvidence

if TYPE_CHECKING:
    from collections.abc import Collection

    from pipeline.evidence.observation import Observation
    from pipeline.measure.measuring import MeasurementContext

_NOT_RUN = "not run"
_DOUBTED: Final = "tests in doubt over the new code again, must pass"
_SURE = 3
"""The number of further runs of a suspect over the candidate: how often it fails is told."""


@dataclass(frozen=True)
class Alone:
    """A run of tests by themselves, which others need not make again, and how many seconds it took."""

    seen: Observation
    seconds: float


async def repeat(
    ctx: MeasurementContext, tree: str, ids: Collection[str], times: int, *, first: Observation, trace: bool = False
) -> tuple[RepeatEvidence, Alone | None]:
    """Return the tests whose repeated runs on the same tree disagree, and the first run of all by themselves.

    Where they do, the tests in question are run once more by themselves: that tells a test that needs others
    before it from one that goes this way and that.

    Args:
        ctx: The run, or what measures without one.
        tree: The candidate.
        ids: The tests to run, by themselves.
        times: How many runs are wanted, *first* included.
        first: A run that there is already, of all tests.
        trace: Note in the first further run what each test reaches. A test that fails in each run that is traced, and
            in no other, fails since that takes time: that is our doing, and it is not unstable.

    Raises:
        UnmeasurableError: the environment is broken.
    """
    runs, plain = [first], [first]
    traced: list[Observation] = []
    took: list[float] = []

    async def run(chosen: Collection[str], what: str, *, trace: bool = False) -> None:
        some = Selection(ids=frozenset(chosen))
        seen = await measure(ctx, tree, some, again=True, trace=trace, what=what, timed=took.append)
        runs.append(seen)
        (traced if trace else plain).append(seen)

    while ids and len(runs) < times:
        await run(ids, "the new tests over the new code again, must pass", trace=trace and len(runs) == 1)
    alone = Alone(runs[1], took[0]) if took else None
    unsure = [entry for entry in ids if _disagree(entry, runs)]
    if unsure:
        await run(unsure, _DOUBTED)
    slowed = [entry for entry in unsure if traced and _is_only_slowed(entry, plain, traced)]
    if slowed:
        await run(slowed, _DOUBTED, trace=True)
        for _ in range(_SURE - 1):
            await run(slowed, _DOUBTED)
        unsure = [entry for entry in unsure if entry not in slowed or not _is_only_slowed(entry, plain, traced)]
    for seen in traced:  # what is our doing in general is none of ours here: these bytes were seen failing
        failed = {entry: seen.records[entry] for entry in unsure if entry in seen.records}
        kept_runs.keep_failures(ctx.checkout.root, tree, failed)
    unstable = {entry: tuple(_ended(entry, run) for run in runs) for entry in sorted(unsure)}
    return RepeatEvidence(runs=len(runs), unstable=unstable), alone


async def repeat_old(
    ctx: MeasurementContext,
    trees: tuple[str, str],
    ids: Collection[str],
    times: int,
    first: Observation,
    *more: Observation,
) -> OldEvidence:
    """Return the old tests that pass only sometimes now and were stable before.

    Args:
        ctx: The run, or what measures without one.
        trees: The one that the run began with, and the candidate, or that without its new test files.
        ids: Tests that passed before and pass in *first*; run by themselves.
        times: How many runs of the candidate are wanted, *first* included.
        first: A run of all tests of the candidate.
        more: Runs of old tests over the same code: those that are there as they are now were run once more by these.

    Raises:
        UnmeasurableError: the environment is broken.
    """
    seen = {entry: [first, *(run for run in more if _has_as_it_is(entry, first, run))] for entry in ids}
    while left := {entry for entry in ids if len(seen[entry]) < times}:
        what = "old tests near the change over the new code again, must pass"
        again = await measure(ctx, trees[1], Selection(ids=frozenset(left)), again=True, what=what)
        for entry in left:
            seen[entry].append(again)
    unsure = sorted(entry for entry in ids if _disagree(entry, seen[entry]))
    if not unsure:
        return OldEvidence(asked=len(ids))
    some = Selection(ids=frozenset(unsure))
    for _ in range(_SURE):
        again = await measure(ctx, trees[1], some, again=True, what=_DOUBTED)
        for entry in unsure:
            seen[entry].append(again)
    before = await flaky_before(ctx, unsure, trees[0])
    unstable = [entry for entry in unsure if entry not in before]
    return OldEvidence(
        asked=len(ids),
        unstable={entry: tuple(_ended(entry, run) for run in seen[entry]) for entry in unstable},
        doubtful=tuple(entry for entry in unsure if entry not in unstable),
    )


def _has_as_it_is(entry: str, first: Observation, run: Observation) -> bool:
    now, there = first.records.get(entry), run.records.get(entry)
    return now is not None and there is not None and there.ran and there.region_sha256 == now.region_sha256


def _is_only_slowed(entry: str, plain: Collection[Observation], traced: Collection[Observation]) -> bool:
    """Return whether a test fails in each run that is traced, and passes in each other one."""
    return all(passes(run, entry) for run in plain) and not any(passes(run, entry) for run in traced)


def _disagree(entry: str, runs: Collection[Observation]) -> bool:
    return len({passes(run, entry) for run in runs}) > 1


def _ended(entry: str, run: Observation) -> str:
    record = run.records.get(entry)
    return _NOT_RUN if record is None or record.outcome is None else record.outcome.value
