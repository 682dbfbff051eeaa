"""Asks a role what a step of a recipe says: readers for words and payloads, @make for changes of files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeline.dispatch.request import Request
from pipeline.measure.measuring import UnmeasurableError, changed_paths
from pipeline.recipes.step_table import StepEvent, StepSignal
from pipeline.reports.answers import Answered, Questions, Unanswerable, Unsure
from pipeline.reports.decode import Malformed
from pipeline.reports.parse import parse_report
from pipeline.reports.payloads import form_of, read_payload, with_checked_quotes
from pipeline.reports.work import Complete, Incomplete
from pipeline.routing.vocabulary import Role
from pipeline.steps.recipe_dispatch import (
    area_faults,
    area_of,
    areas_of,
    asked,
    came_back,
    counts_of,
    evidence_of,
    handed,
    not_counting,
    open_seams,
    unsaid,
)
from pipeline.steps.recipe_outcome import answered_md, changed_md
from pipeline.steps.recipe_tests import payload_proved, scope_of, tools_of

if TYPE_CHECKING:
    from pydantic import JsonValue

    from pipeline.reports.fields import Report
    from pipeline.runs.info import DispatchResult
    from pipeline.steps.recipe_context import RecipeContext


async def ask(ctx: RecipeContext) -> StepEvent:
    """Ask the role of the step, unless it has answered before a crash; return what came of it."""
    if ctx.step.agent == Role.MAKE:
        return await change(ctx)
    result = await asked(ctx, _request(ctx))
    return result if isinstance(result, StepEvent) else not_counting(result) or await _event(ctx, result)


def _request(ctx: RecipeContext) -> Request:
    step, artifacts = ctx.step, handed(ctx)
    artifacts["findings"] = came_back(ctx, "review")
    if step.payload is not None:
        name = ctx.write_json(f"steps/{ctx.lane_name}/payload_schema.json", form_of(step.payload))
        artifacts["payload_schema"] = [ctx.path(name)]
    is_last = ctx.run.machine.is_last(ctx.run.state, ctx.lane_name)
    return Request(
        Role(step.agent or ""),
        "answer",
        ctx.base,
        artifacts={name: paths for name, paths in artifacts.items() if paths},
        accept=None if is_last else lambda report: _refusal(ctx, report),
    )


def _refusal(ctx: RecipeContext, report: Report) -> Malformed | None:
    _, faults = _payload(ctx, report)
    told = f"`payload` is not of the form that is asked for: {'; '.join(faults)}."
    return Malformed(told, "/payload") if faults else unsaid(ctx.step, report)


def _payload(ctx: RecipeContext, report: Report) -> tuple[JsonValue, list[str]]:
    """Return the payload of an answer, and what keeps it from being what the step asks for."""
    wanted = ctx.step.payload
    if wanted is None or not isinstance(report, Answered | Unsure):
        return None, []
    payload, faults = read_payload(report.payload, wanted)
    return payload, faults or area_faults(ctx, payload)


async def _event(ctx: RecipeContext, result: DispatchResult) -> StepEvent:
    evidence = (evidence_of(result),)
    report = parse_report("answer", Role(ctx.step.agent or ""), None, result.report or {})
    if isinstance(report, Malformed):
        raise TypeError(f"{result.dispatch}/result.json holds no answer: {report.sentence}")
    payload, faults = _payload(ctx, report)
    payload, missing = with_checked_quotes(payload, lambda path: _content(ctx, path))
    payload, proofs = await payload_proved(ctx, payload) if not faults else (payload, ())
    name = ctx.lane_name
    ctx.write(f"steps/{name}/{name}.md", answered_md(report, (*faults, *missing), proofs))
    if faults:
        return StepEvent(signal=StepSignal.PAYLOAD_INVALID, note="; ".join(faults), evidence=evidence)
    if ctx.step.payload is not None and isinstance(report, Answered | Unsure):
        ctx.write_json(f"steps/{name}/{name}.json", payload)
    note = report.questions if isinstance(report, Questions) else ""
    note = report.missing if isinstance(report, Unanswerable) else note or "; ".join(missing)
    return StepEvent(
        signal=_signal(report),
        note=note,
        evidence=evidence,
        items=counts_of(ctx, payload),
        areas=areas_of(ctx, payload),
        open_seams=open_seams(ctx.step, report),
    )


def _signal(report: Report) -> StepSignal:
    match report:
        case Answered():
            return StepSignal.ANSWERED
        case Unsure():
            return StepSignal.UNSURE
        case Questions():
            return StepSignal.QUESTIONS
        case _:
            return StepSignal.CANNOT_PROCEED


def _content(ctx: RecipeContext, path: str) -> str | None:
    found = ctx.repository.blob(f"{ctx.base}:{path}")
    return None if found is None else found.decode(errors="replace")


KIND = "change"


async def change(ctx: RecipeContext) -> StepEvent:
    """Ask @make for the change, unless it has answered before a crash; return what came of it, with the files."""
    try:
        request = await _change_request(ctx)
    except UnmeasurableError as error:
        return StepEvent(signal=StepSignal.ENV_BROKEN, note=str(error))
    result = await asked(ctx, request)
    if isinstance(result, StepEvent):
        return result
    event = not_counting(result) or _change_event(ctx, result)
    return event.model_copy(update={"tree": result.tree})


async def _change_request(ctx: RecipeContext) -> Request:
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


def _change_event(ctx: RecipeContext, result: DispatchResult) -> StepEvent:
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
