"""The flake guard: measures GREEN again. Tests whose runs disagree are no evidence.

Old tests that the task's files touch are repeated, too: a change that makes one of them pass only sometimes shows in no
single run. What went this way and that before the run is no fault of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import anyio

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
class Repeated:
    """What came of it, and the run of the tests by themselves, which others need not make again.

    Args:
        evidence: Which of them are unstable.
        alone: That run; None where there was none.
        seconds: How long it took.
    """

    evidence: RepeatEvidence
    alone: Observation | None = None
    seconds: float = 0.0


async def repeat(
    ctx: MeasurementContext, tree: str, ids: Collection[str], times: int, *, first: Observation, trace: bool = False
) -> Repeated:
    """Return the tests whose repeated runs on the same tree disagree.

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
    what = "the new tests over the new code again, must pass"
    runs = [first]
    traced: list[Observation] = []
    alone, seconds = None, 0.0

    async def run(chosen: Collection[str], said: str, *, is_traced: bool = False) -> Observation:
        seen = await measure(ctx, tree, Selection(ids=frozenset(chosen)), again=True, trace=is_traced, what=said)
        runs.append(seen)
        if is_traced:
            traced.append(seen)
        return seen

    while ids and len(runs) < times:
        begun = anyio.current_time()
        seen = await run(ids, what, is_traced=trace and alone is None)
        if alone is None:
            alone, seconds = seen, anyio.current_time() - begun
    unsure = [entry for entry in ids if _disagree(entry, runs)]
    if unsure:
        await run(unsure, _DOUBTED)
    failing = [entry for entry in unsure if traced and not passes(traced[0], entry)]
    slowed = [entry for entry in failing if _passes_else(entry, runs, traced)]
    if slowed:
        await run(slowed, _DOUBTED, is_traced=True)
        for _ in range(_SURE - 1):
            await run(slowed, _DOUBTED)
        unsure = [
            entry
            for entry in unsure
            if entry not in slowed or passes(traced[1], entry) or not _passes_else(entry, runs, traced)
        ]
    for seen in traced:  # what is our doing in general is none of ours here: these bytes were seen failing
        failed = {entry: seen.records[entry] for entry in unsure if entry in seen.records}
        kept_runs.keep_failures(ctx.checkout.root, tree, failed)
    unstable = {entry: tuple(_ended(entry, run) for run in runs) for entry in sorted(unsure)}
    return Repeated(RepeatEvidence(runs=len(runs), unstable=unstable), alone, seconds)


async def repeat_old(
    ctx: MeasurementContext, trees: tuple[str, str], ids: Collection[str], times: int, first: Observation
) -> OldEvidence:
    """Return the old tests that pass only sometimes now and were stable before.

    Args:
        ctx: The run, or what measures without one.
        trees: The one that the run began with, and the candidate.
        ids: Tests that passed before and pass in *first*; run by themselves.
        times: How many runs of the candidate are wanted, *first* included.
        first: A run of all tests of the candidate.

    Raises:
        UnmeasurableError: the environment is broken.
    """
    runs = [first]
    while ids and len(runs) < times:
        what = "old tests near the change over the new code again, must pass"
        runs.append(await measure(ctx, trees[1], Selection(ids=frozenset(ids)), again=True, what=what))
    unsure = sorted(entry for entry in ids if _disagree(entry, runs))
    if not unsure:
        return OldEvidence(asked=len(ids))
    some = Selection(ids=frozenset(unsure))
    runs += [await measure(ctx, trees[1], some, again=True, what=_DOUBTED) for _ in range(_SURE)]
    before = await flaky_before(ctx, unsure, trees[0])
    unstable = [entry for entry in unsure if entry not in before]
    return OldEvidence(
        asked=len(ids),
        unstable={entry: tuple(_ended(entry, run) for run in runs) for entry in unstable},
        doubtful=tuple(entry for entry in unsure if entry not in unstable),
    )


def _passes_else(entry: str, runs: Collection[Observation], but: Collection[Observation]) -> bool:
    """Return whether a test passes in each run but some."""
    return all(passes(run, entry) for run in runs if not any(run is each for each in but))


def _disagree(entry: str, runs: Collection[Observation]) -> bool:
    return len({passes(run, entry) for run in runs}) > 1


def _ended(entry: str, run: Observation) -> str:
    record = run.records.get(entry)
    return _NOT_RUN if record is None or record.outcome is None else record.outcome.value
