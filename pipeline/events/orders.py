"""Maps a line of the journal of orders to its event."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pipeline.events import order_data
from pipeline.events.mapping import shortened
from pipeline.events.model import Event, full
from pipeline.policy.characters import visible
from pipeline.queue import lines

if TYPE_CHECKING:
    from pipeline.events.run_data import Data
    from pipeline.queue.lines import OrderLine


@dataclass(frozen=True)
class OrdersOrigin:
    """The repository that orders are of: what it is called in the user's state, and its folder's name."""

    key: str
    project: str

    def id_of(self, seq: int) -> str:
        """Return the id of the event of a line."""
        return f"{self.key}/orders/{seq}"


def event_of_order(line: OrderLine, origin: OrdersOrigin) -> Event | None:
    """Return the event of a line, None where it is none."""
    data = _data(line)
    if data is None:
        return None
    return Event(
        id=origin.id_of(line.seq),
        source=f"/redfirst/{origin.project}",
        type=full(data.NAME),
        time=line.at,
        subject=line.data.order,
        workflow="",
        workflowversion="",
        data=data.model_dump(mode="json"),
    )


def _data(line: OrderLine) -> Data | None:
    match line.data:
        case lines.OrderPlaced() as said:
            return order_data.OrderPlaced(
                do=said.do,
                issue=said.issue,
                run=said.run,
                via=said.via,
                cause=tuple(shortened(one) for one in said.cause),
                depth=said.depth,
                priority=said.priority,
            )
        case lines.OrderStarted(log=log):
            return order_data.OrderStarted(log=visible(log))
        case lines.OrderEnded(run=run, outcome=outcome, reason=reason, note=note):
            return order_data.OrderEnded(run=run, outcome=outcome, reason=reason, note=shortened(note))
        case lines.OrderDropped(why=why):
            return order_data.OrderDropped(why=shortened(why))
        case _:
            return None
