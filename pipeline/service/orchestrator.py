"""Driving the run of an issue: the engine's loop over the steps of the matrix (architecture 3)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeline.dispatch.escape import EscapeError
from pipeline.engine.loop import drive
from pipeline.routing.state import Event
from pipeline.routing.vocabulary import Signal, Step
from pipeline.runs.run_ref import keep, trees_of

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

    async def step(state: RunState) -> Event:
        if ctx.stopping != "no" and state.trunk.step not in _UNSTOPPABLE:
            return Event(signal=Signal.CANCELLED, note="the user stopped the run")
        return await _event_of(ctx, steps[state.trunk.step])

    def decided(decision: Decision, event: Event) -> None:
        nonlocal kept
        tell(ctx, decision, event)
        if (now := trees_of(ctx.run)) != kept:
            keep(ctx.repository, ctx.run)
            kept = now

    await drive(ctx.run, step, decided)


async def _event_of(ctx: Context, step: StepRunner) -> Event:
    """Return what the step reports: ESCAPE, whatever it did, where what it measured changed the user's repository."""
    try:
        return await step(ctx)
    except EscapeError as error:
        name = ctx.write_json("evidence/escape.json", error.escape.document())
        return Event(signal=Signal.ESCAPE, note=str(error), evidence=(name,))


def tell(ctx: Context, decision: Decision, event: Event) -> None:
    """Say a decision on the progress stream: step, signal, what follows."""
    task = f" task {decision.task}" if decision.task else ""
    paid = "".join(f" ({key.split('@', 1)[0]} {count})" for key, count in decision.counters.items())
    followed = ctx.state.outcome.value if ctx.state.outcome else ctx.lane.step.value
    note = f": {event.note}" if event.note and event.role is None else ""
    ctx.say(f"[{decision.step.phase}] {decision.step.value}{task}: {event.signal.value}{note} -> {followed}{paid}")
