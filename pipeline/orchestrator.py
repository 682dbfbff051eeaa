"""The only loop: ask the step for an event, let the machine decide, journal, repeat (architecture 3).

It owns no state. Everything that it knows it folded from the journal, so that any process may take over at any time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeline.dispatch.escape import EscapeError
from pipeline.outcomes import FINAL, Outcome, Reason
from pipeline.routing.state import Event
from pipeline.routing.vocabulary import Signal, Step
from pipeline.runs.keeping import keep, trees_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from pipeline.routing.machine import Decision
    from pipeline.steps.context import Context

    StepRunner = Callable[[Context], Awaitable[Event]]

_UNSTOPPABLE = frozenset({Step.PUBLISH, Step.FAILURE, Step.GATE})


async def drive(ctx: Context, steps: Mapping[Step, StepRunner]) -> tuple[Outcome, Reason]:
    """Drive the run until it ends or is parked; return how it stands.

    Args:
        ctx: The ports, and the run under its lease.
        steps: One runner for each step of the matrix.
    """
    kept = trees_of(ctx.run)
    while ctx.state.outcome is None:
        step = ctx.state.step
        if ctx.stopping != "no" and step not in _UNSTOPPABLE:
            event = Event(signal=Signal.CANCELLED, note="the user stopped the run")
        else:
            event = await _event_of(ctx, steps[step])
        tell(ctx, ctx.run.decide(event), event)
        if (now := trees_of(ctx.run)) != kept:
            keep(ctx.repository, ctx.run)
            kept = now
    return ctx.state.outcome, ctx.state.reason or Reason.DONE


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
    followed = ctx.state.outcome.value if ctx.state.outcome else ctx.state.step.value
    note = f": {event.note}" if event.note and event.role is None else ""
    ctx.say(f"[{decision.step.phase}] {decision.step.value}{task}: {event.signal.value}{note} -> {followed}{paid}")


def has_ended(outcome: Outcome | None) -> bool:
    """Return whether a run that stands so can never go on."""
    return outcome in FINAL
