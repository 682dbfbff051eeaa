"""Decides what stays of a run that the user stops, and what is asked or measured again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeline.config.agents import Backend
from pipeline.engine.machine import TRUNK
from pipeline.routing.state import Event
from pipeline.routing.vocabulary import Signal

if TYPE_CHECKING:
    from pipeline.steps.context import Context, DriverContext


def waiting_for(ctx: DriverContext, *, person: bool) -> list[str]:
    """Return the dispatches of this visit that have not answered: those of people, or those of agents at work.

    Seen from the trunk they are those of all lanes.
    """
    lanes = ctx.run.state.lanes.values() if ctx.lane_name == TRUNK else (ctx.lane,)
    visits = {lane.visit for lane in lanes}
    records = [each for each in ctx.run.records.values() if each.visit in visits]
    over = {*ctx.run.results, *ctx.run.resting}
    open_ones = [each for each in records if each.dispatch not in over]
    return [each.dispatch for each in open_ones if (each.backend == Backend.HUMAN.value) == person]


def stopped(ctx: Context) -> Event:
    """Return the event of a run that the user stopped; its note says what stays of what was going on."""
    said = [f"the desk of {name} stays as it is" for name in waiting_for(ctx, person=True)]
    said += [f"{name} had not answered and is asked again" for name in waiting_for(ctx, person=False)]
    if not said and any(record.visit == ctx.lane.visit for record in ctx.run.records.values()):
        said = [f"what was answered is kept, and the step {ctx.lane.step} goes on with it"]
    elif not said:
        said = [f"nobody was being asked, and the step {ctx.lane.step} begins again"]
    return Event(signal=Signal.CANCELLED, note="; ".join(said))
