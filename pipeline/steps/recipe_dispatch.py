"""Asks a role for a step of a recipe: once for each visit, also over a crash; what it may spend is taken before."""

from __future__ import annotations

from copy import copy
from functools import partial
from typing import TYPE_CHECKING, Final

import anyio

from pipeline.config.agents import Backend
from pipeline.dispatch.live_words import LiveWords
from pipeline.dispatch.request import InRun, StoppedError
from pipeline.process import BoxError
from pipeline.recipes.plan import most_dispatches
from pipeline.recipes.step_table import At, StepEvent, StepSignal
from pipeline.routing.vocabulary import Role
from pipeline.runs.info import DispatchRecord
from pipeline.runs.spending import Held, UsedUp, reserve
from pipeline.steps.asking.resting import rest
from pipeline.steps.recipe_seams import seams_told

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.config.model import Config
    from pipeline.dispatch.dispatcher import Dispatcher
    from pipeline.dispatch.request import Request
    from pipeline.recipes.model import Step
    from pipeline.runs.info import DispatchResult, Reserved
    from pipeline.steps.recipe_context import RecipeContext


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
