"""Lets @make change what the area of a recipe's step covers, in a view of what the step sees."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeline.dispatch.request import Request
from pipeline.measure.measuring import UnmeasurableError, changed_paths
from pipeline.recipes.step_table import StepEvent, StepSignal
from pipeline.reports.decode import Malformed
from pipeline.reports.parse import parse_report
from pipeline.reports.work import Complete, Incomplete
from pipeline.routing.vocabulary import Role
from pipeline.steps.recipe_dispatch import asked, came_back, evidence_of, handed, not_counting
from pipeline.steps.recipe_items import area_of
from pipeline.steps.recipe_outcome import changed_md
from pipeline.steps.recipe_project import scope_of, tools_of
from pipeline.steps.recipe_seams import open_seams, unsaid

if TYPE_CHECKING:
    from pipeline.runs.info import DispatchResult
    from pipeline.steps.recipe_context import RecipeContext

KIND = "change"


async def run(ctx: RecipeContext) -> StepEvent:
    """Ask @make for the change, unless it has answered before a crash; return what came of it, with the files."""
    try:
        request = await _request(ctx)
    except UnmeasurableError as error:
        return StepEvent(signal=StepSignal.ENV_BROKEN, note=str(error))
    result = await asked(ctx, request)
    if isinstance(result, StepEvent):
        return result
    event = not_counting(result) or _event(ctx, result)
    return event.model_copy(update={"tree": result.tree})


async def _request(ctx: RecipeContext) -> Request:
    artifacts = handed(ctx)
    artifacts |= {"findings": came_back(ctx, "review"), "measured": came_back(ctx, "measured")}
    is_last = ctx.run.machine.is_last(ctx.run.state, ctx.lane_name)
    return Request(
        Role.MAKE,
        KIND,
        ctx.tree,
        artifacts={name: paths for name, paths in artifacts.items() if paths},
        area=area_of(ctx),
        tests=await scope_of(ctx),
        tools=await tools_of(ctx),
        accept=None if is_last else lambda report: unsaid(ctx.step, report),
    )


def _event(ctx: RecipeContext, result: DispatchResult) -> StepEvent:
    report = parse_report(KIND, Role.MAKE, None, result.report or {})
    if isinstance(report, Malformed):
        raise TypeError(f"{result.dispatch}/result.json holds no answer: {report.sentence}")
    name, tree = ctx.lane_name, result.tree or ctx.tree
    ctx.write(f"steps/{name}/{name}.patch", ctx.repository.patch(ctx.base, tree))
    ctx.write(f"steps/{name}/{name}.md", changed_md(report, changed_paths(ctx, ctx.base, tree)))
    evidence = (evidence_of(result), f"steps/{name}/{name}.patch")
    match report:
        case Complete():
            return StepEvent(signal=StepSignal.ANSWERED, evidence=evidence, open_seams=open_seams(ctx.step, report))
        case Incomplete():
            return StepEvent(signal=StepSignal.INCOMPLETE, note=report.blocking_issue, evidence=evidence)
        case _:
            return StepEvent(signal=StepSignal.CANNOT_PROCEED, note=getattr(report, "missing", ""), evidence=evidence)
