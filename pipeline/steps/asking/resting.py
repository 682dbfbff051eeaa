"""Waits for a model service that is out of reach: written down and shown, and over at once when the run is stopped."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

import anyio

from pipeline.dispatch.request import StoppedError
from pipeline.reset_times import as_text, moment_words
from pipeline.runs.events import DispatchWaits

if TYPE_CHECKING:
    from pipeline.dispatch.request import Rest
    from pipeline.steps.context import DriverContext

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
