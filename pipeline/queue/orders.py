"""Keeps the orders of a repository: what is placed once is there once, and what happened to it is read on (ADR-R210).

The key of every order that ever was is kept, and a line for each thing that happened to an order: what an order is, is
folded from these. Writers hold a lock from their look to their commit. They lie in the user's state, or with `[fleet]`
on a server, where the orders of a hub are the same for all machines.
"""

from __future__ import annotations

import secrets
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Final, Literal

from pydantic import ValidationError

from pipeline.config.sources import parse_user
from pipeline.config.tables import Fleet, Table
from pipeline.config.user_folders import config_folder, state_folder
from pipeline.errors import UserError
from pipeline.matrix.engine.journal import Clock, stamp, utc_now
from pipeline.outcomes import Reason
from pipeline.pids import ProcessId
from pipeline.queue import order_lines
from pipeline.queue.order_lines import KINDS, OrderFact, OrderLine, OrderPlaced, RunWords, unreadable
from pipeline.queue.postgres import PostgresRows
from pipeline.queue.sqlite import SqliteRows
from pipeline.run.store import repository_name

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Generator, Mapping, Sequence
    from pathlib import Path

    from pipeline.repo import Repository

MOST_DEATHS: Final = 3
"""An order that so many drivers died of is dropped."""
_PLAIN: Final = RunWords()
_LONG_AGO: Final = "1970-01-01T00:00:00.000Z"
_CHANGES: Final = {
    "drop": partial(order_lines.OrderDropped, why="dropped by a person"),
    "hold": order_lines.OrderHeld,
    "release": order_lines.OrderReleased,
}

State = Literal["queued", "held", "started", "ended", "dropped"]


@dataclass(frozen=True)
class Order:
    """An order as its lines say.

    Attributes:
        id: Its name.
        placed: What was ordered.
        number: Of the line that placed it.
        placed_at: When that was.
        state: How it stands. `started` says that a driver was begun for it.
        drivers: All that were begun for it.
        worktree: The linked worktree that was made for it, if any.
        run: The run that it came to, by worktree and name, as far as a line says so.
        log: What its last driver said.
        deaths: How many of them died by themselves.
        left: Why its last driver left it, as its line says; None where one is at work, or none was.
        outcome: How it ended, with `reason` and `note`.
        closed_at: When it ended or was dropped.
        is_held_elsewhere: Whether a worker that lives, of any machine, holds it; nothing but a server knows that.
    """

    id: str
    placed: OrderPlaced
    number: int
    placed_at: str
    state: State = "queued"
    drivers: tuple[ProcessId, ...] = ()
    worktree: order_lines.OrderWorktree | None = None
    run: str | None = None
    log: str | None = None
    deaths: int = 0
    left: str | None = None
    outcome: str | None = None
    reason: str | None = None
    note: str = ""
    closed_at: str | None = None
    is_held_elsewhere: bool = False

    @property
    def driver(self) -> ProcessId | None:
        """Return the process that was begun for it last; None where it has left it."""
        return self.drivers[-1] if self.state == "started" else None

    @property
    def is_open(self) -> bool:
        """Return whether it is still to be done."""
        return self.closed_at is None

    @property
    def is_driven(self) -> bool:
        """Return whether the process that was begun for it lives."""
        return self.is_held_elsewhere or (self.driver is not None and self.driver.is_alive())

    @property
    def what(self) -> str:
        """Return what is to be run, as a person says it."""
        return self.placed.issue or (self.placed.run or "").rpartition("/")[2]

    def is_due(self, now: datetime) -> bool:
        """Return whether the time has come from which it may begin."""
        said = self.placed.not_before
        return said is None or datetime.fromisoformat(said).astimezone(UTC) <= now

    def with_line(self, line: OrderLine) -> Order:
        """Return it with what a line says of it."""
        match line.data:
            case order_lines.OrderWorktree() as worktree:
                return replace(self, worktree=worktree)
            case order_lines.OrderStarted(pid=pid, start_time=start_time, boot_id=boot, log=log):
                drivers = (*self.drivers, ProcessId(pid, start_time, boot))
                return replace(self, state="started", drivers=drivers, left=None, log=log)
            case order_lines.OrderLeft(why=why, note=note):
                deaths = self.deaths + (why == "died")
                state = "held" if self.state == "held" else "queued"  # its dead driver may be told of after that
                return replace(self, state=state, deaths=deaths, left=why, note=note)
            case order_lines.OrderEnded(run=run, outcome=outcome, reason=reason, note=note):
                ended = replace(self, state="ended", closed_at=line.at)
                return replace(ended, run=run or self.run, outcome=outcome, reason=reason, note=note)
            case order_lines.OrderDropped(why=why):
                return replace(self, state="dropped", note=why, closed_at=line.at)
            case order_lines.OrderHeld() if self.is_open:  # nobody holds one whose driver lives
                return replace(self, state="held")
            case order_lines.OrderReleased() if self.state == "held":
                return replace(self, state="queued")
            case _:
                return self


@dataclass(frozen=True)
class Wanted:
    """What somebody orders: an issue, or a run that is to go on.

    Args:
        via: Who orders it: `cli`, `console`, `landing`, `sweep`, or a trigger by its name.
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


class OrderLog:
    """The orders of one repository, as far as they were read.

    Args:
        folder: Where drivers of this machine leave their logs, and where orders are that no server keeps.
        server: What keeps the orders; None: a database in the folder.
        clock: Tells the time.

    Attributes:
        rows: What keeps the orders.
    """

    def __init__(self, folder: Path, server: PostgresRows | None = None, *, clock: Clock = utc_now) -> None:
        self.folder = folder
        self.orders: dict[str, Order] = {}
        self.rows: SqliteRows | PostgresRows = server or SqliteRows(folder, clock)
        self._clock = clock
        self._hears: Callable[[OrderLine, Order], None] = lambda _line, _order: None
        self._untold: list[tuple[OrderLine, Order]] = []
        self._made: object = None
        self._seq = self._told = 0
        self._writes = False

    def hears(self, told: Callable[[OrderLine, Order], None]) -> None:
        """Let somebody be told of each line that is read from now on, with its order as it stands then.

        Raises:
            UserError: the orders cannot be read.
        """
        self.read_on()
        self._hears = told

    def read_on(self) -> list[OrderLine]:
        """Take in the lines that are there since the last time, and return them.

        Raises:
            UserError: the orders cannot be read.
        """
        made, rows, held = self.rows.read(self._made, self._seq)
        if made != self._made:  # it was made anew
            self._forget()
            self._made, self._told = made, 0
        found: list[OrderLine] = []
        for seq, at, kind, data in rows:
            try:
                line = OrderLine(seq, at, KINDS[kind].model_validate_json(data))
                self.orders[line.data.order] = self._order(line)
            except (ValueError, KeyError) as error:
                raise unreadable(self.rows.where, seq, error) from error
            self._seq = seq
            found.append(line)
            self._untold.append((line, self.orders[line.data.order]))
        for order in [one for one in self.orders.values() if one.is_held_elsewhere != (one.id in held)]:
            self.orders[order.id] = replace(order, is_held_elsewhere=order.id in held)
        if not self._writes:
            self._tell()
        return found

    def _tell(self) -> None:
        told, self._untold = self._untold, []
        for line, order in told:
            if line.seq > self._told:  # after a write that failed all are read again
                self._told = line.seq
                self._hears(line, order)

    def _order(self, line: OrderLine) -> Order:
        """Return the order of a line as it stands then."""
        if isinstance(line.data, OrderPlaced):
            return Order(line.data.order, line.data, line.seq, line.at)
        return self.orders[line.data.order].with_line(line)

    def _forget(self) -> None:
        self.orders.clear()
        self._untold.clear()
        self._seq = 0

    # --- writing ---------------------------------------------------------------------------------------------------

    @contextmanager
    def locked(self) -> Generator[OrderLog]:
        """Hold the lock under which lines are added, with everything read that is there.

        What was added is kept when this ends, all of it or nothing.

        Raises:
            UserError: a line cannot be read, or what keeps the orders does not take it.
        """
        self._writes = True
        try:
            with self.rows.transaction():
                self.read_on()
                yield self
        except BaseException:
            self._forget()  # what was added is not there
            raise
        finally:
            self._writes = False
        self._tell()

    def add(self, *facts: OrderFact) -> None:
        """Add lines; only under `locked`."""
        lines = [(fact.KIND, fact.order, fact.model_dump_json(exclude_unset=True)) for fact in facts]
        self.rows.add(stamp(self._clock()), lines)
        self.read_on()

    def remove(self, names: Collection[str]) -> None:
        """Remove closed orders; their keys stay used. Only under `locked`."""
        gone = [one.id for one in self.orders.values() if one.id in names and not one.is_open]
        self.rows.remove(gone)
        for name in gone:
            del self.orders[name]

    def place(self, wanted: Wanted) -> tuple[Order, bool]:
        """Place an order, unless one with its key is there; return it, and whether it is new. Only under `locked`."""
        there = self.there(wanted)
        if there is not None:
            return there, False
        what = wanted.issue or wanted.run or ""
        name = next(name for name in iter(lambda: f"o-{secrets.token_hex(3)}", "") if not self.rows.has(name))
        keys = (f"{what}#{number}" for number in count(1))
        placed = OrderPlaced(
            order=name,
            do="run" if wanted.run is None else "resume",
            issue=wanted.issue,
            run=wanted.run,
            options=wanted.options,
            via=wanted.via,
            cause=wanted.cause,
            depth=wanted.depth,
            key=wanted.key or next(key for key in keys if self.rows.find(key) is None),
            priority=wanted.priority,
            not_before=None if wanted.not_before is None else stamp(wanted.not_before),
        )
        self.rows.insert(name, placed.key, what)
        self.add(placed, *((order_lines.OrderHeld(order=name),) if wanted.held else ()))
        return self.orders[name], True

    def there(self, wanted: Wanted) -> Order | None:
        """Return the order with the key that is wanted; without one the open order of its issue or run."""
        if wanted.key is None:
            what, each = wanted.issue or wanted.run, self.orders.values()
            return next((one for one in each if one.is_open and what in {one.placed.issue, one.placed.run}), None)
        found = self.rows.find(wanted.key)
        if found is None:
            return None
        name, what = found
        return self.orders.get(name) or _removed(name, wanted.key, what)


def _removed(name: str, key: str, what: str) -> Order:
    """Return an order that was removed, as far as it is known."""
    issue, run = (None, what) if "/" in what else (what, None)
    placed = OrderPlaced(order=name, do="resume" if run else "run", issue=issue, run=run, via="gc", key=key)
    return Order(name, placed, 0, _LONG_AGO, state="dropped", note="it closed long ago", closed_at=_LONG_AGO)


# --- doors for everybody who is no worker ----------------------------------------------------------------------------


class _Part(Table):
    fleet: Fleet = Fleet()


def fleet_of(environ: Mapping[str, str]) -> Fleet:
    """Return `[fleet]` of the user's file alone: every list of orders asks for it, and no other layer may set it.

    Raises:
        UserError: the file cannot be read, or a value is not accepted.
    """
    user = parse_user(config_folder(environ) / "config.toml")
    if user is None or "fleet" not in user.table:
        return Fleet()
    try:
        return _Part.model_validate({"fleet": user.table["fleet"]}, strict=True).fleet
    except ValidationError as error:
        from pipeline.config.problems import refusal  # noqa: PLC0415  (it knows every key, which nobody else needs)

        raise refusal(error, user.origin) from error


def fleet_for(repository: Repository, environ: Mapping[str, str]) -> Fleet:
    """Return the fleet that a repository is of: none where no remote of it is the hub.

    Raises:
        UserError: the user's configuration cannot be read.
    """
    fleet = fleet_of(environ)
    return fleet if fleet.hub is not None and repository.has_remote(fleet.hub) else Fleet()


def alone(repository: Repository, environ: Mapping[str, str]) -> str:
    """Return in a sentence why the fleet of the user's configuration does not have a repository's orders; "" if it has.

    Raises:
        UserError: the user's configuration cannot be read.
    """
    fleet = fleet_of(environ)
    if not fleet.postgres or repository.has_remote(fleet.hub or ""):
        return ""
    return f"No remote of this repository is the hub {fleet.hub}, so its orders lie on this machine alone."


def log_of(repository: Repository, environ: Mapping[str, str]) -> OrderLog:
    """Return the orders of a repository, as seen from any of its worktrees; nothing is read yet.

    Raises:
        UserError: the user's configuration cannot be read.
    """
    folder, fleet = state_folder(environ) / "repos" / repository_name(repository), fleet_for(repository, environ)
    return OrderLog(folder, PostgresRows(fleet.postgres, fleet.name) if fleet.postgres else None)


def place(repository: Repository, environ: Mapping[str, str], wanted: Wanted) -> tuple[Order, bool]:
    """Place an order, unless one with its key is there; return it, and whether it is new.

    Raises:
        UserError: the orders cannot be read, or the disk does not take it.
    """
    with log_of(repository, environ).locked() as log:
        return log.place(wanted)


def read(repository: Repository, environ: Mapping[str, str]) -> list[Order]:
    """Return every order of a repository, in the order in which they were placed.

    Raises:
        UserError: the orders cannot be read.
    """
    log = log_of(repository, environ)
    log.read_on()
    return list(log.orders.values())


def change(
    repository: Repository, environ: Mapping[str, str], names: Sequence[str], what: Literal["drop", "hold", "release"]
) -> list[Order]:
    """Drop, hold or release open orders that are named by themselves, their issue or their run; return them.

    Raises:
        UserError: a name fits no open order, or a driver is at work for it; then nothing is changed.
    """
    with log_of(repository, environ).locked() as log:
        found = [_named(log, name, what) for name in names]
        for order in found:
            log.add(_CHANGES[what](order=order.id))
        return [log.orders[order.id] for order in found]


def _named(log: OrderLog, name: str, what: str) -> Order:
    known = [one for one in log.orders.values() if name.casefold() in _names(one)]
    fits = [one for one in known if one.is_open]
    if not fits:
        over = f"The order {name!r} of the queue is over: there is nothing to {what}."
        none = f"No order of the queue is called {name!r}: an order's name, an issue or a run is meant."
        there = [one.id for one in log.orders.values() if one.is_open]
        raise UserError(
            over if known else none, Reason.USAGE, details={"orders": there}, actions=("redfirst queue list",)
        )
    order = fits[-1]
    if order.is_driven and what != "release":
        raise UserError(
            f"{order.id} is driven now: {what} it when that has ended. Its log says what it does.",
            Reason.LOCKED,
            path=order.log,
            actions=("redfirst queue list",),
        )
    return order


def _names(order: Order) -> set[str]:
    run = order.placed.run or order.what
    return {name.casefold() for name in (order.id, order.what, run, run.rpartition("/")[2])}
