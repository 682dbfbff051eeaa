"""Defines what `queue` and `work --dry-run` tell of orders."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic import BaseModel, ConfigDict, Field

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pipeline.queue.order import Order
    from pipeline.queue.pick import Verdict


class OrderRecord(BaseModel):
    """One order. `begins` and `why` (it does not) are null where nobody looked whether it could."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    order: str
    do: Literal["run", "resume"]
    issue: str | None
    run: str | None
    state: Literal["queued", "held", "started", "ended", "dropped"]
    via: str
    priority: int
    placed_at: str
    not_before: str | None
    starts: int
    deaths: int
    log: str | None
    outcome: str | None
    reason: str | None
    note: str
    closed_at: str | None
    begins: bool | None = None
    why: str | None = None


class QueueDocument(BaseModel):
    """What these commands print with `--json`."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    schema_: Literal["redfirst.queue/1"] = Field(default="redfirst.queue/1", alias="schema")
    ok: Literal[True] = True
    orders: tuple[OrderRecord, ...]


def record_of(order: Order, verdict: Verdict | None = None) -> OrderRecord:
    """Return an order as documents have it."""
    return OrderRecord(
        order=order.id,
        do=order.placed.do,
        issue=order.placed.issue,
        run=order.run or order.placed.run,
        state=order.state if not order.is_open or order.state == "held" else "started" if order.is_driven else "queued",
        via=order.placed.via,
        priority=order.placed.priority,
        placed_at=order.placed_at,
        not_before=order.placed.not_before,
        starts=order.starts,
        deaths=order.deaths,
        log=order.log,
        outcome=order.outcome,
        reason=order.reason,
        note=order.note,
        closed_at=order.closed_at,
        begins=None if verdict is None else verdict.begins,
        why=None if verdict is None or verdict.begins else verdict.why,
    )


def queue_document(orders: Iterable[Order]) -> QueueDocument:
    """Return the orders as a document."""
    return QueueDocument(orders=tuple(record_of(order) for order in orders))
