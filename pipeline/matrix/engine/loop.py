"""The only loop: asks the steps for events, lets the machine decide, journals each decision, and repeats.

It owns no state. Everything that it knows is folded from the journal, so that any process may take over at any time.
The steps of several lanes run side by side; their events come in one inbox, and are decided one after the other.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import anyio

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from pipeline.matrix.engine.protocols import DecisionT, EventT, StateT
    from pipeline.matrix.engine.run import MachineRun


async def drive(
    run: MachineRun[StateT, EventT, DecisionT],
    step: Callable[[StateT, str], Awaitable[EventT]],
    tell: Callable[[DecisionT, EventT], Any],
    *,
    ends_all: Callable[[EventT], bool] = lambda _: False,
) -> None:
    """Run steps and decide about their events until the run ends or parks.

    Args:
        run: The run, under its lease.
        step: Does what the state asks for in one lane, and reports one event of this lane.
        tell: Hears of each decision once it is in the journal.
        ends_all: Whether an event is one after which what other lanes do is worth nothing, and is stopped at once.
    """
    while run.state.outcome is None:
        due = run.state.due(())
        if not due:
            raise LookupError(f"nothing is to be done in {', '.join(run.state.lanes)}, and the run goes on")
        if len(due) == 1:
            event = await step(run.state, due[0])
            tell(run.decide(event), event)
        else:
            await _side_by_side(run, step, tell, ends_all)


async def _side_by_side(
    run: MachineRun[StateT, EventT, DecisionT],
    step: Callable[[StateT, str], Awaitable[EventT]],
    tell: Callable[[DecisionT, EventT], Any],
    ends_all: Callable[[EventT], bool],
) -> None:
    """Run the steps of several lanes at once, until the run stops or only one lane is due.

    What stops the run, or takes lanes away, is decided when the steps that have begun have reported.
    """
    at_work: set[str] = set()
    waiting: list[EventT] = []
    last: EventT | None = None
    send, inbox = anyio.create_memory_object_stream[Any](math.inf)

    async def work(lane: str) -> None:
        send.send_nowait(await step(run.state, lane))

    with send, inbox:
        async with anyio.create_task_group() as group:
            while last is None:
                due = () if waiting else run.state.due(at_work)
                if not at_work and len(due) < 2:  # noqa: PLR2004  (one is no several)
                    break
                for lane in due:
                    at_work.add(lane)
                    group.start_soon(work, lane)
                event: EventT = await inbox.receive()
                at_work.discard(event.lane)
                if ends_all(event):
                    last = event
                    group.cancel_scope.cancel()
                elif at_work and _stops(run, event, at_work):
                    waiting.append(event)
                else:
                    tell(run.decide(event), event)
                    if run.state.outcome is not None:
                        break
    lanes = list(run.state.lanes)
    for event in [last] if last is not None else sorted(waiting, key=lambda each: lanes.index(each.lane)):
        if run.state.outcome is None and event.lane in run.state.lanes:
            tell(run.decide(event), event)


def _stops(run: MachineRun[StateT, EventT, DecisionT], event: EventT, at_work: set[str]) -> bool:
    """Return whether the decision on *event* would stop the run or remove a lane whose step is running."""
    after, _ = run.machine.advance(run.state, event)
    return after.outcome is not None or not at_work <= after.lanes.keys()
