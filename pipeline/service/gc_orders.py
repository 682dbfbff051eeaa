"""Finds orders that closed long ago and that nobody needs, and removes them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Final

from pipeline.errors import UserError
from pipeline.progress import counted
from pipeline.service.gc_things import Thing

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pipeline.queue.orders import Order, OrderLog
    from pipeline.service.gc_runs import Known

_CLOSED_FOR: Final = timedelta(days=90)


def orders_left(log: OrderLog, runs: Mapping[str, Known], now: datetime) -> Iterator[Thing]:
    """Yield the orders that closed 90 days ago, as one thing; those of a run that can go on are none.

    A journal that cannot be read stays, as one thing.

    Args:
        log: The orders.
        runs: The runs that are there, by worktree and name.
        now: The time.
    """
    try:
        log.read_on()
    except (UserError, OSError) as error:
        yield Thing("orders", str(log.path), str(error))
        return
    found = _left(log, runs, now)
    if found:
        why = f"{counted(len(found), 'order')} closed 90 days ago or more"
        yield Thing("orders", str(log.path), why, partial(_remove, log, runs, now))


def _remove(log: OrderLog, runs: Mapping[str, Known], now: datetime) -> str:
    with log.locked():
        log.remove({one.id for one in _left(log, runs, now)})
    return ""


def _left(log: OrderLog, runs: Mapping[str, Known], now: datetime) -> list[Order]:
    return [
        one
        for one in log.orders.values()
        if one.closed_at is not None
        and datetime.fromisoformat(one.closed_at).astimezone(UTC) <= now - _CLOSED_FOR
        and all(runs[key].has_ended for key in (one.run, one.placed.run) if key is not None and key in runs)
    ]
