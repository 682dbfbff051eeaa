"""Words the orders of the queue."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pipeline.cli.text import columned
from pipeline.outcomes import PAUSED, Reason
from pipeline.policy.characters import visible
from pipeline.queue import lines
from pipeline.reset_times import moment_words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipeline.queue.lines import OrderLine
    from pipeline.queue.orders import Order
    from pipeline.service.ordering import OrderRecord

_CLOSED: Final = 10
"""So many orders that are over are listed."""


def line_text(line: OrderLine, order: Order) -> str:
    """Return what a line about orders says, for who watches a worker; empty where it is not for them."""
    what = f"{order.what} ({order.id})"
    match line.data:
        case lines.OrderPlaced(do=do, via=via):
            return f"{what}: in the queue, to be {'run' if do == 'run' else 'gone on with'} (by {via})"
        case lines.OrderStarted(log=log):
            return f"{what}: {'begun' if order.starts == 1 else 'begun again'}, its log is {log}"
        case lines.OrderLeft(why="died", note=note):
            return f"{what}: its driver died ({note})"
        case lines.OrderLeft(why=why, note=note):
            return f"{what}: {why}{f', {note}' if note else ''}; it stays in the queue"
        case lines.OrderEnded():
            return f"{what}: {_ended_text(order)}"
        case lines.OrderDropped(why=why):
            return f"{what}: dropped, {why}. Look at its log: {order.log or 'it has none'}"
        case _:
            return ""


def _ended_text(order: Order) -> str:
    said = _outcome_words(order)
    if order.run is not None:
        said += f", {order.run}"
    if order.outcome == "parked":
        return f"{said}. See what it waits for: redfirst show {order.run}"
    return f"{said}; {order.note}" if order.note and order.outcome != "completed" else said


def _outcome_words(one: Order | OrderRecord) -> str:
    return PAUSED if one.reason == Reason.INTERRUPTED else f"{one.outcome} ({one.reason})"


def orders_text(records: Sequence[OrderRecord]) -> str:
    """Return the queue for a person: open orders, then the last ones that are over."""
    opened = [one for one in records if one.closed_at is None]
    closed = [one for one in records if one.closed_at is not None][-_CLOSED:]
    if not records:
        return "The queue is empty. Order an issue: redfirst queue add ISSUE"
    rows = [(f"{one.order}  {_what(one)}", _standing(one)) for one in (*opened, *closed)]
    return "\n".join(visible(line) for line in columned(rows, None, indent=0))


def _what(one: OrderRecord) -> str:
    return one.issue or (one.run or "").rpartition("/")[2]


def _standing(one: OrderRecord) -> str:
    said = one.state if one.outcome is None else _outcome_words(one)
    more = [f"priority {one.priority}" if one.priority else "", one.run or ""]
    more += [f"not before {moment_words(one.not_before)}" if one.not_before and not one.why else ""]
    more += ["begins" if one.begins else one.why or "", f"log {one.log}" if one.state == "started" else ""]
    more += [one.note if one.outcome != "completed" else ""]
    return ", ".join([said, *filter(None, more)])
