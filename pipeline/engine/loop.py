"""The only loop: ask the step for an event, let the machine decide, journal, repeat.

It owns no state. Everything that it knows is folded from the journal, so that any process may take over at any time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from pipeline.engine.machine import DecisionT, EventT, StateT
    from pipeline.engine.run import MachineRun


async def drive(
    run: MachineRun[StateT, EventT, DecisionT],
    step: Callable[[StateT], Awaitable[EventT]],
    tell: Callable[[DecisionT, EventT], Any],
) -> None:
    """Drive the run until it ends or is parked.

    Args:
        run: The run, under its lease.
        step: Does what the state asks for, and reports one event.
        tell: Hears of each decision once it is in the journal.
    """
    while run.state.outcome is None:
        event = await step(run.state)
        tell(run.decide(event), event)
