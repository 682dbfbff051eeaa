"""A step of a recipe that asks a role: what it is handed, and what its answer counts for."""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING

import anyio

from pipeline.dispatch.request import Request
from pipeline.process import BoxError
from pipeline.recipes.plan import ATTEMPTS, most_dispatches
from pipeline.recipes.step_table import StepSignal
from pipeline.recipes.steps_state import StepEvent
from pipeline.reports.answers import Answered, Questions, Unanswerable, Unsure
from pipeline.reports.decode import Malformed
from pipeline.reports.parse import parse_report
from pipeline.reports.payloads import form_of, read_payload
from pipeline.reports.quotes import looked_up
from pipeline.routing.vocabulary import Role
from pipeline.runs.info import DispatchRecord
from pipeline.runs.spending import Held, UsedUp, reserve
from pipeline.steps.recipe_context import below
from pipeline.steps.recipe_outcome import answered_md

if TYPE_CHECKING:
    from pathlib import Path

    from pydantic import JsonValue

    from pipeline.config.model import Config
    from pipeline.dispatch.dispatcher import Dispatcher
    from pipeline.reports.fields import Report
    from pipeline.runs.info import DispatchResult, Reserved
    from pipeline.steps.recipe_context import RecipeContext


async def run(ctx: RecipeContext) -> StepEvent:
    """Ask the role of the step, unless it has answered before a crash; return what came of it."""
    result = _finished(ctx)
    if result is None:
        share = await _share(ctx)
        if isinstance(share, StepEvent):
            return share
        request = _request(ctx)
        record = _begun(ctx, request, share)
        try:
            with ctx.progress.doing(f"{ctx.lane_name}: @{request.role.value}"):
                result = await _dispatcher(ctx).dispatch(record, request, phase="-", why="")
        except BoxError as error:
            return StepEvent(signal=StepSignal.ENV_BROKEN, note=f"the sandbox did not work: {error}")
        finally:
            ctx.run.lose_dispatch(record.dispatch)
            ctx.wake()
        ctx.run.finish_dispatch(result)
    return _event(ctx, result)


def _finished(ctx: RecipeContext) -> DispatchResult | None:
    """Return what was answered in this visit."""
    records = [one for one in ctx.run.records.values() if one.visit == ctx.lane.visit and one.lane == ctx.lane_name]
    counts = [one for one in records if one.resumes == ctx.run.state.resumes]
    return next((ctx.run.results[one.dispatch] for one in reversed(counts) if one.dispatch in ctx.run.results), None)


async def _share(ctx: RecipeContext) -> Reserved | StepEvent:
    while True:
        if ctx.stopping != "no":
            return StepEvent(signal=StepSignal.CANCELLED, note=f"{ctx.lane_name} is asked when the run goes on")
        limit = most_dispatches(len(ctx.run.recipe.steps))
        if ctx.run.state.dispatches >= limit:
            note = f"{ctx.run.state.dispatches} of {limit} dispatches are used up"
            return StepEvent(signal=StepSignal.BUDGET, note=note)
        others = len(ctx.run.state.lanes) - 2  # the trunk, and this one
        begin = [(Role(ctx.step.agent or ""), ctx.lane_name)]
        found = reserve(ctx.run, ctx.config.budget, begin, beside=max(0, others))
        if isinstance(found, UsedUp):
            return StepEvent(signal=StepSignal.BUDGET, note=found.why)
        if not isinstance(found, Held):
            return found[0]
        over = anyio.Event()
        ctx.waiting.append(over)
        await over.wait()


def _request(ctx: RecipeContext) -> Request:
    step = ctx.step
    said, inputs = ctx.told(step.prompt or "")
    artifacts: dict[str, list[Path]] = {
        "request": [ctx.path(ctx.write(f"steps/{ctx.lane_name}/request.md", f"{said.rstrip()}\n"))],
        "inputs": inputs,
        "outcomes": [path for id_ in ctx.run.machine.ancestors(step.id) for path in ctx.left_by(id_)],
    }
    if step.payload is not None:
        name = ctx.write_json(f"steps/{ctx.lane_name}/payload_schema.json", form_of(step.payload))
        artifacts["payload_schema"] = [ctx.path(name)]
    is_last = ctx.lane.attempt >= (step.attempts or ATTEMPTS)
    return Request(
        Role(step.agent or ""),
        "answer",
        ctx.base,
        artifacts={name: paths for name, paths in artifacts.items() if paths},
        accept=None if step.payload is None or is_last else lambda report: _refusal(ctx, report),
    )


def _refusal(ctx: RecipeContext, report: Report) -> Malformed | None:
    _, faults = _payload(ctx, report)
    told = f"`payload` is not of the form that is asked for: {'; '.join(faults)}."
    return Malformed(told, "/payload") if faults else None


def _payload(ctx: RecipeContext, report: Report) -> tuple[JsonValue, list[str]]:
    """Return the payload of an answer, and what keeps it from being what the step asks for."""
    wanted = ctx.step.payload
    if wanted is None or not isinstance(report, Answered | Unsure):
        return None, []
    return read_payload(report.payload, wanted)


def _begun(ctx: RecipeContext, request: Request, share: Reserved) -> DispatchRecord:
    mine = [one for one in ctx.run.records.values() if one.lane == ctx.lane_name]
    lost = [one for one in mine if one.visit == ctx.lane.visit and one.dispatch not in ctx.run.results]
    before = [ctx.run.results[one.dispatch] for one in mine if one.dispatch in ctx.run.results]
    failed = before[-1] if before and before[-1].signal is not None else None
    number = lost[-1].number if lost else max(ctx.run.records, default=0) + 1
    record = DispatchRecord(
        dispatch=f"{number:03}-{ctx.lane_name}-{request.role.value}",
        number=number,
        step=ctx.lane_name,
        visit=ctx.lane.visit,
        resumes=ctx.run.state.resumes,
        role=request.role,
        kind=request.kind,
        question=None,
        task=None,
        attempt=ctx.lane.attempt,
        reask=failed.complaint if failed is not None else None,
        base_tree=request.base,
        backend=ctx.config.agent(request.role).backend.value,
        reserved=share,
        lane=ctx.lane_name,
    )
    who = _dispatcher(ctx).who(record)
    service = who.service.name if who.service is not None else None
    record = record.model_copy(update={"model": who.model, "service": service})
    ctx.run.start_dispatch(record)
    ctx.say(f"{record.dispatch}: asking @{request.role.value}, {who}{' (asked again)' if record.reask else ''}")
    return record


def _dispatcher(ctx: RecipeContext) -> Dispatcher:
    """Return the dispatcher of the run, with the model, effort and time of the step."""
    found = copy(ctx.dispatcher)
    found.config = configured(ctx)
    return found


def configured(ctx: RecipeContext) -> Config:
    """Return the configuration as it counts for this step."""
    step, agents = ctx.step, ctx.config.agents
    said = {"model": step.model, "effort": step.effort, "timeout_s": step.timeout_s}
    own = agents.override(Role(step.agent or "")).model_copy(update={k: v for k, v in said.items() if v is not None})
    return ctx.config.model_copy(update={"agents": agents.model_copy(update={step.agent or "": own})})


def _event(ctx: RecipeContext, result: DispatchResult) -> StepEvent:
    evidence = (f"dispatches/{result.dispatch}/result.json",)
    if result.signal is not None:
        return StepEvent(signal=StepSignal(result.signal.value), note=result.complaint or "", evidence=evidence)
    report = parse_report("answer", Role(ctx.step.agent or ""), None, result.report or {})
    if isinstance(report, Malformed):
        raise TypeError(f"{result.dispatch}/result.json holds no answer: {report.sentence}")
    payload, faults = _payload(ctx, report)
    payload, missing = looked_up(payload, lambda path: _content(ctx, path))
    name = ctx.lane_name
    ctx.write(f"steps/{name}/{name}.md", answered_md(report, (*faults, *missing)))
    if faults:
        return StepEvent(signal=StepSignal.PAYLOAD_INVALID, note="; ".join(faults), evidence=evidence)
    if payload is not None:
        ctx.write_json(f"steps/{name}/{name}.json", payload)
    note = report.questions if isinstance(report, Questions) else ""
    note = report.missing if isinstance(report, Unanswerable) else note
    lists = {step: below(payload, keys) for step, keys in ctx.run.machine.lists_of(ctx.step.id)}
    items = {step: len(found) for step, found in lists.items() if isinstance(found, list)}
    return StepEvent(signal=_signal(report), note=note, evidence=evidence, items=items)


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
