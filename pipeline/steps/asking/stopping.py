"""Waits for what is out of reach, and decides what stays of a run that the user stops, and what is asked again."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

import anyio

from pipeline.config.agents import Backend
from pipeline.dispatch.request import StoppedError
from pipeline.engine.machine import TRUNK
from pipeline.reset_times import as_text, moment_words
from pipeline.routing.state import Event
from pipeline.routing.vocabulary import Signal
from pipeline.runs.events import DispatchWaits

if TYPE_CHECKING:
    from pipeline.dispatch.request import Rest
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


_LOOKS_S: Final = 1.0
"""How often the clock is asked: that of the machine goes on while it sleeps, and one that only grows may not."""


async def rest(ctx: DriverContext, pause: Rest) -> None:
    """Wait as long as a dispatch must.

    Raises:
        StoppedError: the run is being stopped.
    """
    what = f"waiting to ask {pause.then} again"
    if pause.until is not None:
        said = as_text(pause.until)
        what = f"waiting until {moment_words(said)} to ask {pause.then} again, whose limit ends then"
        ctx.note(DispatchWaits(dispatch=pause.dispatch, not_before=said, why=pause.why))
    ctx.run.resting.add(pause.dispatch)
    end = datetime.now(UTC) + timedelta(seconds=pause.seconds)
    try:
        with ctx.progress.doing(what):
            while ctx.stopping == "no" and (left_s := _left_s(end)) > 0:  # noqa: ASYNC110  (a clock is no event)
                await anyio.sleep(min(left_s, _LOOKS_S))
        if ctx.stopping != "no":
            raise StoppedError
    finally:
        ctx.run.resting.discard(pause.dispatch)


def _left_s(end: datetime) -> float:
    return (end - datetime.now(UTC)).total_seconds()
