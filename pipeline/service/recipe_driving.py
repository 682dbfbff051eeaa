"""Drives the steps of a recipe's run, and leaves its files and its ref as it stands then."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeline.boxes.orphans import end_lost
from pipeline.dispatch.caches import remove_caches
from pipeline.dispatch.sandbox_escape import EscapeError
from pipeline.engine.loop import drive
from pipeline.engine.machine import TRUNK
from pipeline.errors import UserError
from pipeline.recipes.machine import held_by
from pipeline.recipes.step_table import At, Checkpoint, StepEvent, StepSignal
from pipeline.runs.run_ref import keep_recipe_run
from pipeline.service.composition import expected_error
from pipeline.service.progress import StepsStanding, shown
from pipeline.steps.recipe_outcome import write_outcome
from pipeline.steps.recipe_table import RUNNERS
from pipeline.steps.recipe_trees import CollisionError

if TYPE_CHECKING:
    from pipeline.recipes.step_table import StepsState
    from pipeline.service.interruption import Interruption
    from pipeline.service.progress import Display
    from pipeline.steps.recipe_context import RecipeContext, Words


async def finish(ctx: RecipeContext, display: Display, interruption: Interruption) -> RecipeContext:
    """Drive the run; afterwards its ref holds everything and, when it has ended, its checkout is gone."""
    end_lost(ctx.run.folder.glob("dispatches/*/process.json"))
    ctx.checkout.open(ctx.run.info.start_tree)
    _write_outcomes(ctx)
    try:
        with interruption.driving(ctx):
            async with shown(StepsStanding(ctx), display):
                await drive(
                    ctx.run,
                    lambda _state, lane: _step(ctx, lane),
                    lambda _decision, event: _tell(ctx, event),
                    ends_all=lambda event: event.signal is StepSignal.ESCAPE,
                )
    except (UserError, OSError, ExceptionGroup) as error:
        told = expected_error(error, ctx.run.folder)
        if told is None:
            raise
        told.actions = (*told.actions, f"redfirst resume {ctx.run.info.run_id}")
        if told is not error:
            raise told from error
        raise
    if ctx.run.state.outcome is None:
        lane = next(name for name in ctx.run.state.lanes if name != TRUNK or len(ctx.run.state.lanes) == 1)
        ctx.run.decide(StepEvent(signal=StepSignal.CANCELLED, lane=lane, note="what had not answered is asked again"))
    return put_away(ctx)


def put_away(ctx: RecipeContext) -> RecipeContext:
    """Let the files and the ref of the run say how it stands; when it is over, remove what it had outside of it."""
    _write_outcomes(ctx)
    if ctx.run.recipe.output is not None:
        ctx.run.write_artifact("output.md", output_of(ctx))
    keep_recipe_run(ctx.repository, ctx.run, whole=True)
    if ctx.run.state.has_ended:
        ctx.checkout.close()
    return ctx


def output_of(ctx: Words) -> str:
    """Return what the recipe gives, as far as it is there."""
    return ctx.with_values(ctx.run.recipe.output or "").strip() + "\n"


async def _step(ctx: RecipeContext, lane: str) -> StepEvent:
    if lane == TRUNK:
        return await RUNNERS[At.BEGIN](ctx)
    here = ctx.seen_from(lane)
    if ctx.stopping != "no":
        return StepEvent(signal=StepSignal.CANCELLED, lane=lane, note=f"{lane} is asked when the run goes on")
    try:
        event = await RUNNERS[here.lane.at](here)
    except EscapeError as error:
        event = StepEvent(signal=StepSignal.ESCAPE, note=str(error))
    except CollisionError as error:
        event = StepEvent(signal=StepSignal.COLLISION, note=str(error))
    return event.model_copy(update={"lane": lane})


def _tell(ctx: RecipeContext, event: StepEvent) -> None:
    if event.tree is not None:
        keep_recipe_run(ctx.repository, ctx.run)
    _write_outcomes(ctx)
    if event.lane not in ctx.run.state.lanes:
        remove_caches(ctx.checkout.root / "caches", event.lane)
    if event.lane == TRUNK or event.signal is StepSignal.CANCELLED:
        return
    note = f": {event.note}" if event.note else ""
    ctx.say(f"{event.lane}: {event.signal.value}{note} -> {_followed(ctx.run.state, event.lane)}")


def _followed(state: StepsState, name: str) -> str:
    """Return what became of a step, in words: how it stands, or where it goes on."""
    how, lane = state.settled.get(name), state.lanes.get(name)
    if how is not None:
        return how.value
    if state.outcome is not None:
        return state.outcome.value
    return "asked again" if lane is None or lane.at is At.ASK else lane.at.value


def _write_outcomes(ctx: RecipeContext) -> None:
    """Write the outcome of each step that is settled, those too that a crash left unwritten."""
    state: StepsState = ctx.run.state
    for name, checkpoint in state.settled.items():
        if ctx.told_of.get(name) is not checkpoint:
            write_outcome(ctx, name, checkpoint)
            ctx.told_of[name] = checkpoint
            if checkpoint is Checkpoint.HELD:
                ctx.say(f"{name}: held by {', '.join(held_by(ctx.run.machine, state, ctx.run.machine.step_of(name)))}")
