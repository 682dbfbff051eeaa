"""The orders of a repository: a journal in the user's state, appended under a lock, read on from an offset (ADR-R210).

`place`, `read` and `change` are the doors for everybody who is no worker.
"""

from __future__ import annotations

import fcntl
import json
import os
import secrets
import socket
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, Literal

from pipeline.config.folders import state_folder
from pipeline.engine.journal import stamp, utc_now
from pipeline.errors import UserError
from pipeline.outcomes import Reason
from pipeline.pids import ProcessId
from pipeline.queue import lines
from pipeline.queue.lines import OrderFact, OrderLine, OrderPlaced, RunWords
from pipeline.runs.files import disk
from pipeline.runs.store import repository_name

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping, Sequence
    from pathlib import Path

    from pipeline.engine.journal import Clock
    from pipeline.git import Repository

JOURNAL: Final = "orders.jsonl"
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


class OrderLog:
    """The journal of orders of one repository, as far as it was read."""

    def __init__(self, folder: Path, *, clock: Clock = utc_now) -> None:
        self.folder = folder
        self.path = folder / JOURNAL
        self.orders: dict[str, Order] = {}
        self._clock = clock
        self._hears: Callable[[OrderLine, Order], None] = _nobody
        self._count = 0
        self._offset = 0

    def hears(self, told: Callable[[OrderLine, Order], None]) -> None:
        """Let somebody be told of each line that is read from now on, with its order as it stands then.

        Raises:
            UserError: the journal is damaged.
        """
        self.read_on()
        self._hears = told

    def read_on(self) -> list[OrderLine]:
        """Take in the lines that are there since the last time, and return them; one that is not whole yet waits.

        Raises:
            UserError: one of them is damaged.
        """
        try:
            handle = os.open(self.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except FileNotFoundError:
            return []
        try:
            content = os.pread(handle, max(os.fstat(handle).st_size - self._offset, 0), self._offset)
        finally:
            os.close(handle)
        whole = content.rfind(b"\n") + 1
        found = [self._line(text) for text in content[:whole].splitlines()]
        self._offset += whole
        for line in found:
            self._hears(line, self.orders[line.data.order])
        return found

    def _line(self, text: bytes) -> OrderLine:
        number = self._count + 1
        try:
            line = OrderLine.model_validate(json.loads(text))
            if line.seq != number:
                raise ValueError(f"seq is {line.seq}")  # noqa: TRY301  (told as any other)
            self._fold(line)
        except (ValueError, KeyError, RecursionError) as error:
            raise UserError(
                f"The orders in {self.path} are damaged at line {number} ({str(error).splitlines()[0]}). Put the file "
                "back, or set it aside: runs and claims are as they are, and the queue is empty then.",
                Reason.USAGE,
                path=str(self.path),
                pointer=f"/{number - 1}",
            ) from error
        self._count = number
        return line

    def _fold(self, line: OrderLine) -> None:
        data = line.data
        if isinstance(data, OrderPlaced):
            self.orders[data.order] = Order(data.order, data, line.seq, line.at)
        else:
            self.orders[data.order] = _folded(self.orders[data.order], data, line.at)

    @contextmanager
    def locked(self) -> Generator[OrderLog]:
        """Hold the lock under which lines are added, with everything read that is there.

        Raises:
            UserError: the journal is damaged, or the disk does not take it.
        """
        with disk(self.path):
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            handle = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            self.read_on()
            yield self
        finally:
            os.close(handle)

    def add(self, *facts: OrderFact) -> None:
        """Add lines, on disk when this returns; only under `locked`. What a dead writer left half said is cut off.

        Raises:
            UserError: the disk does not take it.
        """
        said = [
            OrderLine(seq=number, at=stamp(self._clock()), host=socket.gethostname(), kind=fact.KIND, data=fact)
            for number, fact in enumerate(facts, self._count + 1)
        ]
        texts = [json.dumps(line.model_dump(mode="json", by_alias=True), sort_keys=True) for line in said]
        with disk(self.path), self.path.open("r+b") as file:
            file.truncate(self._offset)
            file.seek(self._offset)
            try:
                file.write("".join(f"{text}\n" for text in texts).encode())
                file.flush()
            except OSError:
                os.ftruncate(file.fileno(), self._offset)  # a half line would look like a crash
                raise
            os.fdatasync(file.fileno())
        self.read_on()

    def place(self, wanted: Wanted) -> tuple[Order, bool]:
        """Place an order, unless one with its key is there; return it, and whether it is new. Only under `locked`."""
        key = wanted.key or self._key(wanted)
        there = next((one for one in self.orders.values() if one.placed.key == key), None)
        if there is not None:
            return there, False
        name = next(name for name in iter(_name, "") if name not in self.orders)
        placed = OrderPlaced(
            order=name,
            do="run" if wanted.run is None else "resume",
            issue=wanted.issue,
            run=wanted.run,
            options=wanted.options,
            via=wanted.via,
            cause=wanted.cause,
            depth=wanted.depth,
            key=key,
            priority=wanted.priority,
            not_before=None if wanted.not_before is None else stamp(wanted.not_before),
        )
        self.add(placed, *((lines.OrderHeld(order=name),) if wanted.held else ()))
        return self.orders[name], True

    def _key(self, wanted: Wanted) -> str:
        """Return a key that no order has if none of this issue or run is open."""
        what = wanted.issue or wanted.run
        closed = sum(what in {one.placed.issue, one.placed.run} for one in self.orders.values() if not one.is_open)
        return f"{what}#{closed + 1}"


def _nobody(_line: OrderLine, _order: Order) -> None:
    """Tell nobody."""


def _name() -> str:
    return f"o-{secrets.token_hex(3)}"


def _folded(order: Order, data: OrderFact, at: str) -> Order:
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


# --- the doors -----------------------------------------------------------------------------------------------------


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


def is_due(order: Order, now: datetime) -> bool:
    """Return whether the time has come from which an order may begin."""
    said = order.placed.not_before
    return said is None or datetime.fromisoformat(said).astimezone(UTC) <= now
