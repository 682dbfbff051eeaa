"""Drives the run of an issue: the engine's loop over the steps of the matrix."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeline.dispatch.caches import remove_caches
from pipeline.dispatch.sandbox_escape import EscapeError
from pipeline.engine.events import PointPassed
from pipeline.engine.loop import drive
from pipeline.routing.state import Event
from pipeline.routing.vocabulary import Loop, Signal, Step
from pipeline.runs.drafts import put_back, vain_edit
from pipeline.runs.facts import task_words
from pipeline.runs.gates import gate_of, gate_place
from pipeline.runs.run_ref import keep, trees_of
from pipeline.steps.asking.stopping import stopped
from pipeline.steps.publication.bases import start_of
from pipeline.steps.publication.commits import planned_subjects
from pipeline.steps.publication.follow_ups import planned_titles
from pipeline.steps.publication.summary import write_summary

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from pipeline.routing.machine import Decision
    from pipeline.routing.state import RunState
    from pipeline.steps.context import Context

    StepRunner = Callable[[Context], Awaitable[Event]]

_UNSTOPPABLE = frozenset({Step.PUBLISH, Step.FAILURE, Step.GATE})


async def drive_issue(ctx: Context, steps: Mapping[Step, StepRunner]) -> None:
    """Drive the run until it ends or is parked; its ref holds every tree that it comes to.

    Args:
        ctx: The ports, and the run under its lease.
        steps: One runner for each step of the matrix.
    """
    kept = trees_of(ctx.run)

    async def step(state: RunState, lane: str) -> Event:
        here = ctx.seen_from(lane)
        if ctx.stopping != "no" and state.lanes[lane].step not in _UNSTOPPABLE:
            return _of_lane(lane, stopped(here))
        undo_edits(ctx)
        return _of_lane(lane, await _event_of(here, steps[state.lanes[lane].step]))

    def decided(decision: Decision, event: Event) -> None:
        nonlocal kept
        tell(ctx, decision, event)
        for effect in decision.effects:
            if effect.kind == PointPassed.KIND:
                name = ctx.run.info.run_id
                ctx.say(f"    point {effect.data['point']}: {name} goes on; look at it: redfirst show {name}")
        if event.lane not in ctx.run.state.lanes:
            remove_caches(ctx.checkout.root / "caches", event.lane)
        if gate_of(ctx.run) == "commit":
            write_summary(ctx, planned=planned_subjects(ctx, start_of(ctx)), to_file=planned_titles(ctx))
        if (now := trees_of(ctx.run)) != kept:
            keep(ctx.repository, ctx.run)
            kept = now

    await drive(ctx.run, step, decided, ends_all=lambda event: event.signal is Signal.ESCAPE)


def _of_lane(lane: str, event: Event) -> Event:
    return event if event.lane == lane else event.model_copy(update={"lane": lane})


def undo_edits(ctx: Context) -> None:
    """Put back what a person edited when it has no effect, and say so: what is on disk is what counts."""
    for name, kept in put_back(ctx.run).items():
        if kept is None:
            ctx.say(f"{name} was removed, and is put back")
        else:
            says = vain_edit(ctx.run, name).says
            ctx.say(f"{name} was edited, which has no effect now: {says}. It is put back; yours is {ctx.path(kept)}")


async def _event_of(ctx: Context, step: StepRunner) -> Event:
    """Return what the step reports: ESCAPE, whatever it did, where what it measured changed the user's repository."""
    try:
        return await step(ctx)
    except EscapeError as error:
        name = ctx.write_json("evidence/escape.json", error.escape.document())
        return Event(signal=Signal.ESCAPE, note=str(error), evidence=(name,))


def tell(ctx: Context, decision: Decision, event: Event) -> None:
    """Say a decision on the progress stream: step, signal, what follows; of a run that was stopped its end says it."""
    if event.signal is Signal.CANCELLED:
        return
    task = f" {task_words(ctx.state, decision.task)}" if decision.task else ""
    paid = "".join(f" ({key.split('@', 1)[0]} {count})" for key, count in decision.counters.items())
    waits = gate_place(ctx.run)
    after = ctx.run.state.lanes.get(event.lane, ctx.lane)
    followed = ctx.state.outcome.value if ctx.state.outcome else after.step.value
    followed += f" at {waits}" if waits else ""
    last = Loop.UNUSABLE in decision.exhausted
    note = f": {event.note}" if event.note and (event.role is None or last) else ""
    said = event.signal.value + note
    if event.signal is Signal.NOT_ASKED:
        recipe = ctx.run.info.recipe
        said = f"the recipe {recipe.name if recipe is not None else 'issue'} leaves this out"
    ctx.say(f"[{decision.step.phase}] {decision.step.value}{task}: {said} -> {followed}{paid}")
