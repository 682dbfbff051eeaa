"""Makes the events of the orders of a repository."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeline.events.orders import OrdersOrigin, event_of_order
from pipeline.runs.store import repository_name

if TYPE_CHECKING:
    from pipeline.git import Repository
    from pipeline.queue.lines import OrderLine


def orders_origin(repository: Repository) -> OrdersOrigin:
    """Return what the events of orders say of where they come from."""
    return OrdersOrigin(repository_name(repository), repository.main_checkout.name)


def told_event(repository: Repository, line: OrderLine) -> str:
    """Return the event of a line as one line of JSON; empty where it is none."""
    event = event_of_order(line, orders_origin(repository))
    return "" if event is None else str(event)
