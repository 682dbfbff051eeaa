"""Asks a role for a step of a recipe: what it is handed, and what its answer counts for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeline.dispatch.request import Request
from pipeline.recipes.step_table import StepEvent, StepSignal
from pipeline.reports.answers import Answered, Questions, Unanswerable, Unsure
from pipeline.reports.decode import Malformed
from pipeline.reports.parse import parse_report
from pipeline.reports.payloads import form_of, read_payload, with_checked_quotes
from pipeline.routing.vocabulary import Role
from pipeline.steps import recipe_change
from pipeline.steps.recipe_dispatch import asked, came_back, evidence_of, handed, not_counting
from pipeline.steps.recipe_items import area_faults, areas_of, counts_of
from pipeline.steps.recipe_outcome import answered_md
from pipeline.steps.recipe_proofs import payload_proved
from pipeline.steps.recipe_seams import open_seams, unsaid

if TYPE_CHECKING:
    from pydantic import JsonValue

    from pipeline.reports.fields import Report
    from pipeline.runs.info import DispatchResult
    from pipeline.steps.recipe_context import RecipeContext


async def run(ctx: RecipeContext) -> StepEvent:
    """Ask the role of the step, unless it has answered before a crash; return what came of it."""
    if ctx.step.agent == Role.MAKE:
        return await recipe_change.run(ctx)
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
