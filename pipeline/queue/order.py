"""Folds the lines of an order, and defines what somebody wants to be ordered."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, Literal

from pipeline.pids import ProcessId
from pipeline.queue import lines
from pipeline.queue.lines import RunWords

if TYPE_CHECKING:
    from pipeline.queue.lines import OrderFact, OrderPlaced

_PLAIN: Final = RunWords()
MOST_DEATHS: Final = 3
"""An order that so many drivers died of is dropped."""

State = Literal["queued", "held", "started", "ended", "dropped"]


@dataclass(frozen=True)
class Order:
    """An order as its lines say.

    Attributes:
        id: Its name.
        placed: What was ordered.
        number: Of the line that placed it.
        placed_at: When that was.
        state: How it stands. `started` says that a driver was begun for it, `driver` which one.
        worktree: The linked worktree that was made for it, if any.
        run: The run that it came to, by worktree and name, as far as a line says so.
        log: What its last driver said.
        starts: How many drivers it has had.
        deaths: How many of them died by themselves.
        outcome: How it ended, with `reason` and `note`.
        closed_at: When it ended or was dropped.
    """

    id: str
    placed: OrderPlaced
    number: int
    placed_at: str
    state: State = "queued"
    driver: ProcessId | None = None
    worktree: lines.OrderWorktree | None = None
    run: str | None = None
    log: str | None = None
    starts: int = 0
    deaths: int = 0
    outcome: str | None = None
    reason: str | None = None
    note: str = ""
    closed_at: str | None = None

    @property
    def is_open(self) -> bool:
        """Return whether it is still to be done."""
        return self.closed_at is None

    @property
    def is_driven(self) -> bool:
        """Return whether the process that was begun for it lives."""
        return self.driver is not None and self.driver.is_alive()

    @property
    def what(self) -> str:
        """Return what is to be run, as a person says it."""
        return self.placed.issue or (self.placed.run or "").rpartition("/")[2]


@dataclass(frozen=True)
class Wanted:
    """What somebody orders: an issue, or a run that is to go on.

    Args:
        via: Who orders it: `cli`, `console`, `landing`, `sweep`.
        issue: An issue that is to be run.
        run: A run that is to go on, `<worktree>/<run>` as claims have it.
        key: What makes it unique; None: one order at a time for the issue or run.
        options: Words of the command line of `run`.
        cause: What it came of.
        depth: How many orders that came of orders stand above it.
        priority: Higher ones begin first.
        not_before: When it may begin.
        held: Whether it waits until it is released.
    """

    via: str
    issue: str | None = None
    run: str | None = None
    key: str | None = None
    options: RunWords = _PLAIN
    cause: tuple[str, ...] = ()
    depth: int = 0
    priority: int = 0
    not_before: datetime | None = None
    held: bool = False


def folded(order: Order, data: OrderFact, at: str) -> Order:
    """Return an order with what a line written at the time *at* says of it."""
    match data:
        case lines.OrderWorktree():
            return replace(order, worktree=data)
        case lines.OrderStarted(pid=pid, start_time=start_time, boot_id=boot, log=log):
            driver = ProcessId(pid, start_time, boot)
            return replace(order, state="started", driver=driver, log=log, starts=order.starts + 1)
        case lines.OrderLeft(why=why, note=note):
            deaths = order.deaths + (why == "died")
            return replace(order, state="queued", driver=None, deaths=deaths, note=note)
        case lines.OrderEnded(run=run, outcome=outcome, reason=reason, note=note):
            ended = replace(order, state="ended", driver=None, closed_at=at)
            return replace(ended, run=run or order.run, outcome=outcome, reason=reason, note=note)
        case lines.OrderDropped(why=why):
            return replace(order, state="dropped", driver=None, note=why, closed_at=at)
        case lines.OrderHeld() if order.state == "queued":
            return replace(order, state="held")
        case lines.OrderReleased() if order.state == "held":
            return replace(order, state="queued")
        case _:
            return order


def is_due(order: Order, now: datetime) -> bool:
    """Return whether the time has come from which an order may begin."""
    said = order.placed.not_before
    return said is None or datetime.fromisoformat(said).astimezone(UTC) <= now
