"""Measures tests that pass over the code as it is: faults that they notice stand in the place of their RED."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pipeline.measure.probes.noticing import noticing_probe
from pipeline.steps.asking.drafts import planned
from pipeline.steps.evidence.red import measure_over_head

if TYPE_CHECKING:
    from pipeline.measure.probes.evidence import NoticingEvidence
    from pipeline.reports.tasks import Task
    from pipeline.reports.work import ReadyTests
    from pipeline.steps.context import Context
    from pipeline.steps.evidence.red import MeasuredRed


@dataclass(frozen=True)
class Added:
    """Tests that all pass over the code as it is, as they were measured there, and what they notice."""

    found: MeasuredRed
    noticing: NoticingEvidence


async def measure_added(ctx: Context, task: Task, report: ReadyTests, tree: str, found: MeasuredRed) -> Added | None:
    """Return what tests show that pass over the code as it is; None where they do not, or are RED as they are.

    RED of a fix of tests alone was measured over the start of the run. Where it is none there, since the fix is about
    what was there before, it may be right over what the run has made.

    Args:
        ctx: The run.
        task: The task.
        report: What @test said of its tests.
        tree: The tests, over the code before.
        found: How they stand as RED.

    Raises:
        UnmeasurableError: the environment is broken.
    """
    verdict = found.verdict
    over_start = ctx.state.task.spec.red_base == "start"
    if verdict.env_broken or verdict.legal or not (over_start or verdict.all_new_pass):
        return None
    here = await measure_over_head(ctx, task, report, tree) if over_start else found
    if not here.verdict.all_new_pass:
        return None
    records = here.after.records
    tests = {entry: records[entry].function for entry in here.verdict.new_ids if entry in records}
    about = {change.path for change in (*task.files, *planned(ctx).files)}
    noticing = await noticing_probe(ctx, ctx.config.probes, tree, tests, about, here.after.layout)
    if over_start and not (noticing.notices or verdict.all_new_pass):
        return None  # what is wrong with them over the start tells more
    return Added(here, noticing)
