"""Runs all probes of a task's GREEN tests: repetition, reverted change, reach, small faults.

In this order, and no further than the first that fails: a test that does not hold still cannot be asked anything else.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pipeline.boxes.nobox import NoBox
from pipeline.evidence.compare import passed
from pipeline.measure import kept_runs
from pipeline.measure.probes.evidence import MutationEvidence, ProbeEvidence
from pipeline.measure.probes.mutation import FaultLimits, Judges, mutation_probe
from pipeline.measure.probes.reach import reach_probe
from pipeline.measure.probes.repeat import repeat, repeat_old
from pipeline.measure.probes.revert import revert_check
from pipeline.measure.side_by_side import usable_cores

if TYPE_CHECKING:
    from pipeline.config.tables import Probes
    from pipeline.evidence.observation import Layout, Observation
    from pipeline.measure.measuring import MeasurementContext
    from pipeline.measure.task_evidence import TaskEvidence
    from pipeline.reports.tasks import Task

_UNBOXED: Final = "there is no box here, and faulty code could do damage outside of one"


@dataclass(frozen=True)
class Candidate:
    """A GREEN tree with its measurement.

    Args:
        tree: The tree.
        observation: The run that showed it, of all tests.
        new_ids: Ids that came with it, from parameters in production code.
        impacted: Tests that touch the files of the task; a fault may be noticed by these as well.
        old: Those of them that passed before and pass now, the nearest first, as many as are worth another run.
        start: The tree that the run began with.
        without_new: The tree without new test files, to run `old` over: one may change what others see. Empty: the tree
            is as good.
        as_they_were: The run of all old tests as they were over this code, where there was one.
        known: What was measured of the same work already, where nothing that its tests stand on is different here.
    """

    tree: str
    observation: Observation
    new_ids: tuple[str, ...] = ()
    impacted: frozenset[str] = frozenset()
    old: tuple[str, ...] = ()
    start: str = ""
    without_new: str = ""
    as_they_were: Observation | None = None
    known: ProbeEvidence | None = None


async def probes_of(
    ctx: MeasurementContext,
    wanted: Probes,
    tasks: list[Task],
    evidence: TaskEvidence,
    candidate: Candidate,
    layout: Layout,
) -> ProbeEvidence:
    """Return the results of a task's probes; empty for a task without tests.

    Args:
        ctx: The run, or what measures without one.
        wanted: `[probes]`.
        tasks: The task, and those whose symbols were missing when RED was measured too.
        evidence: The task's evidence.
        candidate: The tree that is GREEN.
        layout: Which files are tests.

    Raises:
        UnmeasurableError: the environment broke meanwhile.
    """
    ledger = evidence.ledger
    if ledger is None:
        return ProbeEvidence()
    records = candidate.observation.records.values()
    own = frozenset(r.id for r in records if passed(r) and (ledger.owns(r) or r.id in candidate.new_ids))
    reaching = own.intersection({*ledger.red, *(r.id for r in records if r.path in ledger.whole_files)})
    if candidate.known is not None:
        found = candidate.known.model_copy(update={"revert": None})
        wanted = wanted.model_copy(update={"repeat": 1, "reach": False, "mutants": 0})
    else:
        found = ProbeEvidence()
    alone = None
    if wanted.repeat > 1:
        first, trace = candidate.observation, wanted.reach and bool(reaching)
        again, alone = await repeat(ctx, candidate.tree, own, wanted.repeat, first=first, trace=trace)
        found = found.model_copy(update={"repeated": again})
        if again.unstable:
            return found
        trees = (candidate.start, candidate.without_new or candidate.tree)
        before = (candidate.as_they_were,) if candidate.as_they_were is not None else ()
        others = await repeat_old(ctx, trees, candidate.old, wanted.repeat, candidate.observation, *before)
        found = found.model_copy(update={"old": others})
        if others.unstable:
            # without the new files it was the same code: who hands in these bytes again is asked the same
            failed = kept_runs.seen_failing(ctx.checkout.root, trees[1])
            known = {entry: failed[entry] for entry in others.unstable if entry in failed}
            kept_runs.keep_failures(ctx.checkout.root, candidate.tree, known)
            return found
    if wanted.revert:
        reverted = await revert_check(ctx, tasks, evidence, candidate.tree, candidate.new_ids, layout)
        found = found.model_copy(update={"revert": reverted})
        if reverted is not None and reverted.problems:
            return found
    if wanted.reach:
        traced = alone.seen if alone is not None else None
        reached = await reach_probe(ctx, evidence.production, candidate.tree, reaching, layout, traced)
        found = found.model_copy(update={"reach": reached})
    if wanted.mutants:
        judges = Judges(own, candidate.impacted, alone.seconds if alone is not None else 0.0)
        mutation = await faults(ctx, wanted, evidence.production, candidate.tree, judges, layout)
        found = found.model_copy(update={"mutation": mutation})
    return found


async def faults(
    ctx: MeasurementContext, wanted: Probes, base: str, tree: str, judges: Judges, layout: Layout
) -> MutationEvidence:
    """Return which faults in the changed lines the tests detect.

    Without a box nothing is tried: code with a fault in it could remove what it should have kept.

    Raises:
        UnmeasurableError: the environment broke meanwhile.
    """
    if ctx.box.name == NoBox.name:
        return MutationEvidence(trouble=_UNBOXED)
    limits = FaultLimits(wanted.mutants, wanted.seconds, wanted.jobs or usable_cores())
    return await mutation_probe(ctx, base, tree, judges, layout, limits)
