"""The probes of a task's tests, once they are GREEN: are they always, are they RED without the change, do they look?

In this order, and no further than the first that fails: a test that does not hold still cannot be asked anything else.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pipeline.boxes.nobox import NoBox
from pipeline.evidence.compare import passed
from pipeline.measure.mutating import Allowance, Judges, mutation_probe
from pipeline.measure.probe_evidence import MutationEvidence, ProbeEvidence, RevertEvidence
from pipeline.measure.probe_words import in_short, probes_md
from pipeline.measure.reaching import reach_probe
from pipeline.measure.repeating import repeat, repeat_old
from pipeline.steps.quarantining import day_of, quarantine
from pipeline.steps.reverting import revert_check
from pipeline.steps.sanity import baseline_of

if TYPE_CHECKING:
    from collections.abc import Collection

    from pipeline.config.probes import Probes
    from pipeline.evidence.observation import Layout, Observation
    from pipeline.measure.measuring import Apparatus
    from pipeline.reports.tasks import Task
    from pipeline.steps.context import Context
    from pipeline.steps.evidence_files import TaskEvidence

_UNBOXED: Final = "there is no box here, and faulty code could do damage outside of one"


@dataclass(frozen=True)
class Candidate:
    """A tree that is GREEN.

    Args:
        tree: The tree.
        observation: The run that showed it, of all tests.
        new_ids: Ids that came with it, from parameters in production code.
        impacted: Tests that touch the files of the task; a fault may be noticed by these as well.
        old: Those of them that passed before and pass now, the nearest first, as many as are worth another run.
        before: The tree that the task began with.
    """

    tree: str
    observation: Observation
    new_ids: tuple[str, ...] = ()
    impacted: frozenset[str] = frozenset()
    old: tuple[str, ...] = ()
    before: str = ""


@dataclass(frozen=True)
class Probed:
    """What came of it: the evidence, the name of the document for people and agents, and the facts for the signal.

    Args:
        evidence: For `TaskEvidence.probes`.
        artifact: `evidence/probes-<task>.md`.
        unstable: Tests of which two runs on the candidate disagree: the task's, and old ones that held still before.
        not_red: The task's tests that do not show over the old production what the ledger says.
    """

    evidence: ProbeEvidence
    artifact: str
    unstable: tuple[str, ...]
    not_red: tuple[str, ...]

    @property
    def holds(self) -> bool:
        """Return whether the tests are what they were taken for. Faults that nobody notices are for @check to weigh."""
        return not (self.unstable or self.not_red)


def name_of(task: str) -> str:
    """Return the artifact's name."""
    return f"evidence/probes-{task}.md"


async def probe(ctx: Context, task: Task, evidence: TaskEvidence, candidate: Candidate) -> Probed:
    """Try the tests of a task whose candidate is GREEN; write `evidence/probes-<task>.md`.

    Raises:
        UnmeasurableError: the environment broke meanwhile.
        UserError: the disk does not take it.
    """
    missing = [task, *(ctx.task(done.id) for done in ctx.state.done_tasks if ctx.state.task.spec.red_base == "start")]
    layout = baseline_of(ctx).layout
    found = await probes_of(ctx, ctx.config.probes, missing, evidence, candidate, layout)
    records = candidate.observation.records.values()
    own = () if evidence.ledger is None else (evidence.ledger,)
    lines = quarantine(ctx.config, tuple(records), day_of(ctx), own).lines()
    found = found.model_copy(update={"quarantine": lines})
    if said := in_short(found):
        ctx.say(f"    probes: {said}")
    return Probed(
        evidence=found,
        artifact=ctx.write(name_of(task.id), probes_md(task.id, found)),
        unstable=(
            *(found.repeated.unstable if found.repeated is not None else ()),
            *(found.old.unstable if found.old is not None else ()),
        ),
        not_red=tuple(found.revert.problems) if found.revert is not None else (),
    )


async def probes_of(
    ctx: Apparatus, wanted: Probes, tasks: list[Task], evidence: TaskEvidence, candidate: Candidate, layout: Layout
) -> ProbeEvidence:
    """Return what came of the probes of a task; of one without tests there is nothing to try.

    Args:
        ctx: The run, or a laboratory.
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
    found = ProbeEvidence()
    if wanted.repeat > 1:
        again = await repeat(ctx, candidate.tree, own, wanted.repeat, first=candidate.observation)
        found = found.model_copy(update={"repeated": again})
        if again.unstable:
            return found
        trees = (candidate.before, candidate.tree)
        others = await repeat_old(ctx, trees, candidate.old, wanted.repeat, candidate.observation)
        found = found.model_copy(update={"old": others})
        if others.unstable:
            return found
    if wanted.revert:
        reverted = await revert_check(ctx, tasks, evidence, candidate.tree, candidate.new_ids, layout)
        if reverted is not None:
            told = RevertEvidence(
                production=reverted.production,
                held=reverted.held,
                problems=dict(reverted.problems),
                passing=reverted.passing,
                unsure=reverted.unsure,
            )
            found = found.model_copy(update={"revert": told})
            if told.problems:
                return found
    if wanted.reach:
        ids = own.intersection({*ledger.red, *(r.id for r in records if r.path in ledger.provisional_files)})
        reached = await reach_probe(ctx, evidence.production, candidate.tree, ids, layout)
        found = found.model_copy(update={"reach": reached})
    if wanted.mutants:
        judges = Judges(own, candidate.impacted)
        mutation = await faults(ctx, wanted, evidence.production, candidate.tree, judges, layout)
        found = found.model_copy(update={"mutation": mutation})
    return found


async def faults(
    ctx: Apparatus, wanted: Probes, base: str, tree: str, judges: Judges, layout: Layout
) -> MutationEvidence:
    """Return which faults in the changed lines the tests notice.

    Without a box nothing is tried: code with a fault in it could remove what it should have kept.

    Raises:
        UnmeasurableError: the environment broke meanwhile.
    """
    if ctx.sandbox.name == NoBox.name:
        return MutationEvidence(trouble=_UNBOXED)
    allowance = Allowance(wanted.mutants, wanted.seconds, wanted.jobs)
    return await mutation_probe(ctx, base, tree, judges, layout, allowance)


def probe_artifacts(ctx: Context, tasks: Collection[str]) -> tuple[str, ...]:
    """Return the documents on the probes of these tasks, as far as there are any."""
    return tuple(name for name in map(name_of, tasks) if ctx.path(name).exists())
