"""SANITY (phase 1): the preconditions, then the baseline test run, before any agent is paid."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pipeline.errors import UserError
from pipeline.judge.evidence.compare import failing
from pipeline.judge.evidence.freeze import canonical
from pipeline.judge.evidence.observation import Ended
from pipeline.matrix.routing.state import Event
from pipeline.outcomes import Reason
from pipeline.progress import counted
from pipeline.run.ignored import forget_ignored, include_ignored
from pipeline.run.preconditions import examine
from pipeline.run.preflight import closed_to_agents
from pipeline.steps.evidence_records import BASELINE
from pipeline.testing.measure import baseline, kept_runs, project_checks, setup
from pipeline.testing.measure.measuring import UnmeasurableError, measure
from pipeline.testing.measure.outcome_words import in_sum
from pipeline.testing.measure.regression import flaky
from pipeline.vocabulary import Signal

if TYPE_CHECKING:
    from pipeline.steps.context import Context

_WHERE: Final = "Your own configuration counts when you resume the run; a commit counts in a new run"


async def run(ctx: Context) -> Event:
    """Return OK with the baseline as evidence, PRECONDITION, BASELINE_IMPOSSIBLE, or ENV_BROKEN."""
    info = ctx.run.info
    try:
        start = ctx.start or examine(ctx.repository, ctx.issue, info.base_branch, ours=info.run_id)
    except UserError as error:
        return Event(signal=Signal.PRECONDITION, reason=error.reason, note=error.message)
    if start.commit != info.start_commit:
        return Event(
            signal=Signal.PRECONDITION,
            reason=Reason.BRANCH_MOVED,
            note=f"{info.branch} moved before the run began; start again",
        )
    include_ignored(ctx.repository, ctx.checkout.root)
    try:
        await setup.run_once(ctx, ctx.write)
        before = await measure(
            ctx, info.start_tree, warm=True, what="the whole suite before any change, to compare with"
        )
    except UnmeasurableError as error:
        return _impossible(str(error))
    why = baseline.no_baseline(ctx.repository, before)
    if why is not None:
        return _impossible(why)
    varying = await flaky(ctx, info.start_tree, before)
    failed = [entry for entry in failing(before) if entry not in varying and entry in before.records]
    try:
        alone = await baseline.passing_outside(ctx, info.start_tree, [*failed, *baseline.skipped(before)])
    except UnmeasurableError as error:
        return _impossible(f"outside of the box: {error}")
    if alone and len(alone) > ctx.config.toolchains.may_differ:
        return _differing(ctx, f"{baseline.difference(before, alone)}. {baseline.MEND}. {_WHERE}")
    known = await project_checks.measure_checks(ctx, info.start_tree, over="the start, to compare with")
    document = {
        "schema": "redfirst.baseline/1",
        "tree": info.start_tree,
        "command": list(before.command),
        "failing": [entry for entry in failing(before) if entry not in varying],
        "flaky": sorted(varying),
        "outcomes": {entry: str(record.outcome) for entry, record in before.records.items()},
        "failing_checks": known,
    }
    evidence = (ctx.write_json(BASELINE, document), ctx.write("evidence/baseline-full.json", canonical(before)))
    differs = (baseline.difference(before, alone),) if alone else ()
    if alone is None and failed and ctx.box.maps_paths:
        differs = (baseline.untried(before, failed),)
    closed = closed_to_agents(ctx.repository, ctx.checkout.tree, info.start_tree)
    said = (*baseline.not_protected(before, baseline.limit_of(ctx)), *differs, *filter(None, (closed,)))
    ended = [record.outcome for record in before.records.values()]
    all_pass = all(outcome is Ended.PASSED for outcome in ended)
    note = "; ".join((counted(len(ended), "test") if all_pass else in_sum(ended), *said))
    return Event(signal=Signal.OK, note=note, evidence=evidence)


def _differing(ctx: Context, why: str) -> Event:
    """Return ENV_BROKEN, and forget what was measured and brought along: `resume` does it again, as it is mended."""
    kept_runs.forget(ctx.checkout.root, ctx.run.info.start_tree)
    forget_ignored(ctx.checkout.root)
    return Event(signal=Signal.ENV_BROKEN, note=why)


def _impossible(why: str) -> Event:
    return Event(signal=Signal.BASELINE_IMPOSSIBLE, reason=Reason.BASELINE_IMPOSSIBLE, note=why)
