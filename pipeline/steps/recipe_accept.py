"""Measures what a writer of a recipe left before it counts: tests that must pass, and that nothing else broke."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pipeline.evidence.compare import expectations, judge_green
from pipeline.evidence.observation import PASSING, RunState
from pipeline.evidence.quarantine import standing
from pipeline.measure import kept_runs
from pipeline.measure.measuring import UnmeasurableError, measure
from pipeline.measure.old_tests.regression import confirm
from pipeline.measure.outcome_words import seen
from pipeline.process import BoxError
from pipeline.recipes.step_table import StepEvent, StepSignal
from pipeline.reports.markdown import bullets, sections
from pipeline.reports.untrusted_text import fenced, one_line
from pipeline.runs.info import day_of
from pipeline.steps.recipe_tests import ALL, Shown, meant_by, names_of

if TYPE_CHECKING:
    from pipeline.evidence.observation import Observation
    from pipeline.steps.recipe_context import RecipeContext

_SHOWN: Final = 50
"""What is told in words; with more of it nobody mends more."""


async def run(ctx: RecipeContext) -> StepEvent:
    """Return whether what the step wrote is what its `accept` asks for, with what is not."""
    try:
        return await _measured(ctx)
    except (UnmeasurableError, BoxError) as error:
        return StepEvent(signal=StepSignal.ENV_BROKEN, note=str(error))


async def _measured(ctx: RecipeContext) -> StepEvent:
    name, base, tree = ctx.lane_name, ctx.base, ctx.tree
    found = await measure(ctx, tree, what=f"{name}: the whole suite over what it wrote, must pass")
    broken, flaky = await _broken(ctx, base, tree, found)
    wanted = _wanted(ctx, found)
    lines = [
        *(f"has to pass: `{one_line(entry)}` {_how(found, entry)}" for entry in wanted),
        *(f"passed before: `{one_line(entry)}` {_how(found, entry)}" for entry in broken if entry not in wanted),
        *((f"the tests came to no end: {found.state.value.replace('_', ' ')}",) if not _is_whole(found) else ()),
    ]
    words = sections(
        ("In the way", bullets([*lines[:_SHOWN], *([f"{len(lines) - _SHOWN} more"] if len(lines) > _SHOWN else [])])),
        ("Flaky before, not counted", bullets(flaky)),
        ("Output", fenced(found.tail) if lines and found.tail.strip() else ""),
    )
    met = "It is not what was to be measured of it" if lines else "All that was to be measured of it holds"
    md = ctx.write(f"steps/{name}/measured.md", f"# The work of {name}, attempt {ctx.lane.attempt}\n\n{met}.\n{words}")
    facts = {
        "schema": "redfirst.step-acceptance/1",
        "base_tree": base,
        "tree": tree,
        "command": list(found.command),
        "passing": sum(record.outcome in PASSING for record in found.records.values()),
        "not_passing": list(wanted),
        "broken": list(broken),
        "flaky": list(flaky),
    }
    evidence = (md, ctx.write_json(f"steps/{name}/accept-{ctx.lane.visit}.json", facts))
    signal = StepSignal.NOT_MET if lines else StepSignal.MET
    return StepEvent(signal=signal, note="; ".join(lines[:3]), evidence=evidence)


async def _broken(
    ctx: RecipeContext, base: str, tree: str, found: Observation
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return what passed over the files that the step saw and does not now, and what is flaky."""
    if ctx.step.accept is None or not ctx.step.accept.regression or base == tree:
        return (), ()
    before = await measure(ctx, base, what=f"{ctx.lane_name}: the whole suite over what it saw, to compare with")
    excused = standing(ctx.config.quarantine, tuple(before.records.values()), day_of(ctx.run.info), ())
    failed = kept_runs.seen_failing(ctx.checkout.root, tree)
    kept = excused.without(expectations(before))
    verdict = judge_green(None, found, kept, unread_before=before.unread, seen_failing=failed)
    suspects = await confirm(ctx, verdict.regressions, tree, base, found)
    return (*suspects.broken, *verdict.missing, *verdict.uncollected), suspects.flaky


def _wanted(ctx: RecipeContext, found: Observation) -> tuple[str, ...]:
    """Return the tests that have to pass and do not; names that no test has, too."""
    named = ctx.step.accept.tests if ctx.step.accept is not None else None
    if named is None:
        return ()
    names = names_of(ctx, ctx.run.machine.steps[named])
    if ALL in names:
        return Shown(found, None).not_passing
    meant, unknown = meant_by(names, found)
    return (*Shown(found, meant).not_passing, *unknown)


def _how(found: Observation, entry: str) -> str:
    return "cannot be collected" if entry in found.unread else seen(found.records.get(entry))


def _is_whole(found: Observation) -> bool:
    return found.state is RunState.COMPLETE
