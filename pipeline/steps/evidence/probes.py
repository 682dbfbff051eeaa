"""Tries the probes of a task on what is GREEN, and keeps them for whoever reviews it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pipeline.evidence.quarantine import standing
from pipeline.measure.probes import Candidate, probes_of
from pipeline.measure.words import in_short, probes_md
from pipeline.steps.evidence.records import baseline_of, day_of

if TYPE_CHECKING:
    from collections.abc import Collection

    from pipeline.measure.task_evidence import ProbeEvidence, TaskEvidence
    from pipeline.reports.tasks import Task
    from pipeline.steps.context import Context


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
    lines = standing(ctx.config.quarantine, tuple(records), day_of(ctx), own).lines()
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


def probe_artifacts(ctx: Context, tasks: Collection[str]) -> tuple[str, ...]:
    """Return the documents on the probes of these tasks, as far as there are any."""
    return tuple(name for name in map(name_of, tasks) if ctx.path(name).exists())
