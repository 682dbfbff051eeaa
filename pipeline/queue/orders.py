"""Places, reads and changes the orders of a repository: the doors for everybody who is no worker.

Their journal is in the user's state (ADR-R210).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pipeline.config.folders import state_folder
from pipeline.errors import UserError
from pipeline.outcomes import Reason
from pipeline.queue import lines
from pipeline.queue.log import OrderLog
from pipeline.runs.store import repository_name

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pipeline.git import Repository
    from pipeline.queue.lines import OrderFact
    from pipeline.queue.order import Order, Wanted


def log_of(repository: Repository, environ: Mapping[str, str]) -> OrderLog:
    """Return the journal of orders of a repository, as seen from any of its worktrees; nothing is read yet."""
    return OrderLog(state_folder(environ) / "repos" / repository_name(repository))


def place(repository: Repository, environ: Mapping[str, str], wanted: Wanted) -> tuple[Order, bool]:
    """Place an order, unless one with its key is there; return it, and whether it is new.

    Raises:
        UserError: the journal of orders is damaged, or the disk does not take it.
    """
    with log_of(repository, environ).locked() as log:
        return log.place(wanted)


def read(repository: Repository, environ: Mapping[str, str]) -> list[Order]:
    """Return every order of a repository, in the order in which they were placed.

    Raises:
        UserError: the journal of orders is damaged.
    """
    log = log_of(repository, environ)
    log.read_on()
    return list(log.orders.values())


def change(
    repository: Repository,
    environ: Mapping[str, str],
    names: Sequence[str],
    what: Literal["drop", "hold", "release"],
) -> list[Order]:
    """Drop, hold or release open orders that are named by themselves, their issue or their run; return them.

    Raises:
        UserError: a name fits no open order, or a driver is at work for it; then nothing is changed.
    """
    with log_of(repository, environ).locked() as log:
        found = [_named(log, name, what) for name in names]
        facts: list[OrderFact] = []
        for order in found:
            match what:
                case "drop":
                    facts.append(lines.OrderDropped(order=order.id, why="dropped by a person"))
                case "hold":
                    facts.append(lines.OrderHeld(order=order.id))
                case "release":
                    facts.append(lines.OrderReleased(order=order.id))
        log.add(*facts)
        return [log.orders[order.id] for order in found]


def _named(log: OrderLog, name: str, what: str) -> Order:
    fits = [one for one in log.orders.values() if one.is_open and name.casefold() in _names(one)]
    if not fits:
        raise UserError(
            f"No order of the queue is called {name!r}: an order's name, an issue or a run is meant.",
            Reason.USAGE,
            details={"orders": [one.id for one in log.orders.values() if one.is_open]},
            actions=("redfirst queue list",),
        )
    order = fits[-1]
    if order.is_driven and what != "release":
        raise UserError(
            f"{order.id} is driven now, by process {order.driver.pid if order.driver else 0}: {what} it when that has "
            "ended. Its log says what it does.",
            Reason.LOCKED,
            path=order.log,
            actions=("redfirst queue list",),
        )
    return order


def _names(order: Order) -> set[str]:
    return {name.casefold() for name in (order.id, order.what, order.placed.run or order.what)}
