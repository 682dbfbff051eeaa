"""The flake guard: GREEN measured again. Tests of which two runs disagree are no evidence of anything."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeline.evidence.compare import passed
from pipeline.steps.measuring import measure
from pipeline.steps.probe_evidence import RepeatEvidence
from pipeline.toolchains.protocol import Selection

if TYPE_CHECKING:
    from collections.abc import Collection

    from pipeline.evidence.observation import Observation
    from pipeline.steps.measuring import Apparatus

_NOT_RUN = "not run"


async def repeat(
    ctx: Apparatus, tree: str, ids: Collection[str], times: int, *, first: Observation | None = None
) -> RepeatEvidence:
    """Return whether runs of the same tests on the same tree agree.

    Where they do not, the tests in question are run once more by themselves: that tells a test that needs others
    before it from one that goes this way and that.

    Args:
        ctx: The run, or a laboratory.
        tree: The candidate.
        ids: The tests to run, by themselves.
        times: How many runs are wanted, *first* included.
        first: A run that there is already.

    Raises:
        UnmeasurableError: the environment is broken.
    """
    alone = Selection(ids=frozenset(ids))
    runs = [] if first is None else [first]
    while ids and len(runs) < times:
        runs.append(await measure(ctx, tree, alone, again=True))
    unsure = [entry for entry in ids if _disagree(entry, runs)]
    if unsure:
        runs.append(await measure(ctx, tree, Selection(ids=frozenset(unsure)), again=True))
    return RepeatEvidence(
        runs=len(runs), unstable={entry: tuple(_ended(entry, run) for run in runs) for entry in sorted(unsure)}
    )


def _disagree(entry: str, runs: Collection[Observation]) -> bool:
    return len({_passes(entry, run) for run in runs}) > 1


def _passes(entry: str, run: Observation) -> bool:
    record = run.records.get(entry)
    return record is not None and passed(record)


def _ended(entry: str, run: Observation) -> str:
    record = run.records.get(entry)
    return _NOT_RUN if record is None or record.outcome is None else record.outcome.value
