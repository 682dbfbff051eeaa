"""Asks a role for a step of a recipe: once for each visit, also over a crash; what it may spend is taken before."""

from __future__ import annotations

from copy import copy
from functools import partial
from typing import TYPE_CHECKING, Final

import anyio

from pipeline.config.agents import Backend
from pipeline.dispatch.redaction import LiveWords
from pipeline.dispatch.request import InRun, StoppedError
from pipeline.process import BoxError
from pipeline.recipes.machine import seams_of
from pipeline.recipes.plan import most_dispatches
from pipeline.recipes.step_table import At, StepEvent, StepSignal
from pipeline.recipes.templates import area_texts, areas_by_item, below
from pipeline.reports.decode import Malformed
from pipeline.reports.fields import HonouredSeam
from pipeline.reports.untrusted_text import one_line
from pipeline.routing.vocabulary import Role
from pipeline.runs.info import DispatchRecord
from pipeline.runs.spending import Held, UsedUp, reserve
from pipeline.scheduling.patterns import fault, parsed
from pipeline.steps.asking.stopping import rest

if TYPE_CHECKING:
    from pathlib import Path

    from pydantic import JsonValue

    from pipeline.config.model import Config
    from pipeline.dispatch.dispatcher import Dispatcher
    from pipeline.dispatch.request import Request
    from pipeline.recipes.model import Step
    from pipeline.reports.fields import Report
    from pipeline.runs.info import DispatchResult, Reserved
    from pipeline.scheduling.patterns import Pattern
    from pipeline.steps.recipe_context import RecipeContext


def seams_told(step: Step) -> str:
    """Return what the request says of the contracts of its step; nothing where it is no side of one."""
    said = [f"* `{one_line(seam)}`: this step provides it." for seam in step.provides]
    said += [f"* `{one_line(seam)}`: this step relies on it." for seam in step.requires if seam not in step.provides]
    if not said:
        return ""
    lines = "\n".join(said)
    return f"\n\n## Contracts between steps\n\n{lines}\n\nSay of each in `seams` whether your work keeps to it."


def seams_said(report: Report) -> dict[str, HonouredSeam]:
    """Return what a role said of each contract, by name; what it said last counts."""
    return {one.name: one for one in getattr(report, "seams", ()) if isinstance(one, HonouredSeam)}


def unsaid(step: Step, report: Report) -> Malformed | None:
    """Return the refusal of a report that leaves out a contract of its step."""
    missing = [seam for seam in seams_of(step) if seam not in seams_said(report)]
    if not missing or not hasattr(report, "seams"):
        return None
    return Malformed(
        f"`seams` says nothing of {', '.join(map(one_line, missing))}: say whether you keep to it.", "/seams"
    )


def open_seams(step: Step, report: Report) -> tuple[str, ...]:
    """Return the contracts of a step that a role does not say it keeps to."""
    said = seams_said(report)
    return tuple(seam for seam in seams_of(step) if seam not in said or not said[seam].honoured)


def counts_of(ctx: RecipeContext, payload: JsonValue) -> dict[str, int]:
    """Return how many steps each `for_each` over the payload of this step becomes."""
    return {step.id: len(items) for step, items in _lists(ctx, payload)}


def areas_of(ctx: RecipeContext, payload: JsonValue) -> dict[str, tuple[tuple[str, ...], ...]]:
    """Return what each of these steps may change, where that depends on its item."""
    found = {step.id: areas_by_item(step, ctx.run.inputs, items) for step, items in _lists(ctx, payload)}
    return {step: areas for step, areas in found.items() if areas}


def area_faults(ctx: RecipeContext, payload: JsonValue) -> list[str]:
    """Return what is wrong with the patterns that the items of a payload make."""
    areas = areas_of(ctx, payload)
    texts = [(step, text) for step, area in areas.items() for one in area for text in one]
    return [f"{text!r}, which {step} may change: {why}" for step, text in texts if (why := fault(text)) is not None]


def area_of(ctx: RecipeContext) -> tuple[Pattern, ...]:
    """Return what the step that is given this may change."""
    return tuple(parsed(text) for text in area_texts(ctx.step, ctx.run.inputs, ctx.item()))


def _lists(ctx: RecipeContext, payload: JsonValue) -> list[tuple[Step, list[JsonValue]]]:
    machine = ctx.run.machine
    found = [(machine.steps[id_], below(payload, keys)) for id_, keys in machine.lists_of(ctx.step.id)]
    return [(step, items) for step, items in found if isinstance(items, list)]


REVIEW: Final = "review-step"
"""What reviewers of a step are asked."""


async def asked(ctx: RecipeContext, request: Request) -> DispatchResult | StepEvent:
    """Return what the role answered in this visit of the step; or the event of a step that could not ask it."""
    result = _finished(ctx, request.role)
    if result is not None:
        return result
    share = await _share(ctx, request.role)
    if isinstance(share, StepEvent):
        return share
    record = _begun(ctx, request, share)
    dispatcher = _dispatcher(ctx, request.role)
    words = LiveWords(dispatcher.secrets)
    try:
        with ctx.progress.doing(f"{ctx.lane_name}: @{request.role.value}", words.said):
            result = await dispatcher.dispatch(record, request, InRun(on_words=words.hear, rest=partial(rest, ctx)))
    except BoxError as error:
        return StepEvent(signal=StepSignal.ENV_BROKEN, note=f"the sandbox did not work: {error}")
    except StoppedError:
        return _stopped(ctx)
    finally:
        ctx.run.lose_dispatch(record.dispatch)
        ctx.wake()
    ctx.run.finish_dispatch(result)
    return result


def handed(ctx: RecipeContext) -> dict[str, list[Path]]:
    """Return what each role is handed that a step asks: the request, the values in it, what came before."""
    said, inputs = ctx.told(ctx.step.prompt or "")
    return {
        "request": [
            ctx.path(ctx.write(f"steps/{ctx.lane_name}/request.md", f"{said.rstrip()}{seams_told(ctx.step)}\n"))
        ],
        "inputs": inputs,
        "feedback": ctx.feedback(),
        "outcomes": [path for id_ in ctx.run.machine.ancestors(ctx.step.id) for path in ctx.left_by(id_)],
    }


def came_back(ctx: RecipeContext, what: str) -> list[Path]:
    """Return what the last measurement, or review, said of the work that is asked for again."""
    path = ctx.path(f"steps/{ctx.lane_name}/{what}.md")
    return [path] if ctx.lane.attempt > 1 and path.is_file() else []


def evidence_of(result: DispatchResult) -> str:
    """Return the path of result.json, relative to the run."""
    return f"dispatches/{result.dispatch}/result.json"


def not_counting(result: DispatchResult) -> StepEvent | None:
    """Return the event of an answer that does not count; None where it does. A tree has what could be kept of it."""
    if result.signal is None:
        return None
    signal = StepSignal(result.signal.value)
    return StepEvent(signal=signal, note=result.complaint or "", evidence=(evidence_of(result),))


def _finished(ctx: RecipeContext, role: Role) -> DispatchResult | None:
    """Return what was answered in this visit: what counts, else what came since the run went on last."""
    mine = [one for one in _of_role(ctx, role) if one.visit == ctx.lane.visit]
    found = [(one, ctx.run.results[one.dispatch]) for one in reversed(mine) if one.dispatch in ctx.run.results]
    counting = [result for _, result in found if result.signal is None]
    recent = [result for one, result in found if one.resumes == ctx.run.state.resumes]
    return next(iter((*counting, *recent)), None)


def _of_role(ctx: RecipeContext, role: Role) -> list[DispatchRecord]:
    return [one for one in ctx.run.records.values() if (one.lane, one.role) == (ctx.lane_name, role)]


async def _share(ctx: RecipeContext, role: Role) -> Reserved | StepEvent:
    while True:
        if ctx.stopping != "no":
            return _stopped(ctx)
        limit = most_dispatches(len(ctx.run.recipe.steps))
        if ctx.run.state.dispatches >= limit and not _is_desk_left(ctx, role):
            note = f"{ctx.run.state.dispatches} of {limit} dispatches are used up"
            return StepEvent(signal=StepSignal.BUDGET, note=note)
        others = len(ctx.run.state.lanes) - 2  # the trunk, and this one
        found = reserve(ctx.run, ctx.config.budget, [(role, ctx.lane_name)], beside=max(0, others))
        if isinstance(found, UsedUp):
            return StepEvent(signal=StepSignal.BUDGET, note=found.why)
        if not isinstance(found, Held):
            return found[0]
        over = anyio.Event()
        ctx.waiting.append(over)
        await over.wait()


def _stopped(ctx: RecipeContext) -> StepEvent:
    return StepEvent(signal=StepSignal.CANCELLED, note=f"{ctx.lane_name} is asked when the run goes on")


def _lost(ctx: RecipeContext, role: Role) -> DispatchRecord | None:
    """Return the dispatch of this visit whose driver was stopped or died before it had an answer."""
    mine = [one for one in _of_role(ctx, role) if one.visit == ctx.lane.visit]
    return next((one for one in reversed(mine) if one.dispatch not in ctx.run.results), None)


def _is_desk_left(ctx: RecipeContext, role: Role) -> bool:
    """Return whether a person has a desk for this already, which they are led to again."""
    lost = _lost(ctx, role)
    return lost is not None and lost.backend == ctx.config.agent(role).backend.value == Backend.HUMAN.value


def _begun(ctx: RecipeContext, request: Request, share: Reserved) -> DispatchRecord:
    mine, lost = _of_role(ctx, request.role), _lost(ctx, request.role)
    before = [ctx.run.results[one.dispatch] for one in mine if one.dispatch in ctx.run.results]
    failed = before[-1] if before and before[-1].signal is not None else None
    number = lost.number if lost is not None else max(ctx.run.records, default=0) + 1
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
        offered_again=_is_desk_left(ctx, request.role),
    )
    who = _dispatcher(ctx, request.role).who(record)
    service = who.service.name if who.service is not None else None
    record = record.model_copy(update={"model": who.model, "service": service})
    ctx.run.start_dispatch(record)
    ctx.say(f"{record.dispatch}: asking @{request.role.value}, {who}{' (asked again)' if record.reask else ''}")
    return record


def _dispatcher(ctx: RecipeContext, role: Role) -> Dispatcher:
    """Return the dispatcher of the run, with the model, effort and time of the step for the role that it asks."""
    if role != ctx.step.agent or ctx.lane.at is At.REVIEW:
        return ctx.dispatcher
    found = copy(ctx.dispatcher)
    found.config = configured(ctx.config, ctx.step)
    return found


def configured(config: Config, step: Step) -> Config:
    """Return the configuration as it counts for a step that asks a role."""
    agents = config.agents
    said = {"model": step.model, "effort": step.effort, "timeout_s": step.timeout_s}
    own = agents.override(Role(step.agent or "")).model_copy(update={k: v for k, v in said.items() if v is not None})
    return config.model_copy(update={"agents": agents.model_copy(update={step.agent or "": own})})
