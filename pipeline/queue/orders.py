"""Keeps the orders of a repository: what is placed once is there once, and what happened to it is read on (ADR-R210).

They are an SQLite database in the user's state. A table has the key of every order that ever was, another one a line
for each thing that happened to an order: what an order is, is folded from these. Writers hold a lock from their look to
their commit. Whoever only reads changes no order; the first look of all, also of a reader, takes over an `orders.jsonl`
of an earlier version.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import secrets
import sqlite3
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import count
from typing import TYPE_CHECKING, Any, Final, Literal

from pipeline.characters import visible
from pipeline.config.user_folders import state_folder
from pipeline.errors import UserError
from pipeline.matrix.engine.journal import stamp, utc_now
from pipeline.outcomes import Reason
from pipeline.pids import ProcessId
from pipeline.queue import lines
from pipeline.queue.lines import KINDS, OrderFact, OrderLine, OrderPlaced, RunWords
from pipeline.run.files import disk
from pipeline.run.store import repository_name
from pipeline.terminal import echo

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Generator, Mapping, Sequence
    from pathlib import Path

    from pipeline.matrix.engine.journal import Clock
    from pipeline.repo import Repository

DATABASE: Final = "orders.sqlite"
EARLIER: Final = "orders.jsonl"
"""Where earlier versions kept orders."""
MOST_DEATHS: Final = 3
"""An order that so many drivers died of is dropped."""
_PLAIN: Final = RunWords()
_LONG_AGO: Final = "1970-01-01T00:00:00.000Z"
_WAITS_S: Final = 60.0
_TABLES: Final = (
    "CREATE TABLE orders (name TEXT PRIMARY KEY, key TEXT NOT NULL UNIQUE, what TEXT NOT NULL)",
    "CREATE TABLE lines (seq INTEGER PRIMARY KEY AUTOINCREMENT, at TEXT, kind TEXT, name TEXT, data TEXT)",
)
_Rows = list[tuple[object, ...]]
_DAMAGED: Final = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR}
"""That a table is missing is an `SQLITE_ERROR`."""

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

    def is_due(self, now: datetime) -> bool:
        """Return whether the time has come from which it may begin."""
        said = self.placed.not_before
        return said is None or datetime.fromisoformat(said).astimezone(UTC) <= now

    def with_line(self, line: OrderLine) -> Order:
        """Return it with what a line says of it."""
        match line.data:
            case lines.OrderWorktree() as worktree:
                return replace(self, worktree=worktree)
            case lines.OrderStarted(pid=pid, start_time=start_time, boot_id=boot, log=log):
                driver = ProcessId(pid, start_time, boot)
                return replace(self, state="started", driver=driver, log=log, starts=self.starts + 1)
            case lines.OrderLeft(why=why, note=note):
                deaths = self.deaths + (why == "died")
                return replace(self, state="queued", driver=None, deaths=deaths, note=note)
            case lines.OrderEnded(run=run, outcome=outcome, reason=reason, note=note):
                ended = replace(self, state="ended", driver=None, closed_at=line.at)
                return replace(ended, run=run or self.run, outcome=outcome, reason=reason, note=note)
            case lines.OrderDropped(why=why):
                return replace(self, state="dropped", driver=None, note=why, closed_at=line.at)
            case lines.OrderHeld() if self.state == "queued":
                return replace(self, state="held")
            case lines.OrderReleased() if self.state == "held":
                return replace(self, state="queued")
            case _:
                return self


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
    """The orders of one repository, as far as they were read."""

    def __init__(self, folder: Path, *, clock: Clock = utc_now) -> None:
        self.folder = folder
        self.path = folder / DATABASE
        self.orders: dict[str, Order] = {}
        self._clock = clock
        self._hears: Callable[[OrderLine, Order], None] = lambda _line, _order: None
        self._seq = 0
        self._file = (0, 0)
        self._open: sqlite3.Connection | None = None

    @property
    def is_there(self) -> bool:
        """Return whether somebody ever placed an order."""
        return os.path.lexists(self.path) or (self.folder / EARLIER).exists()

    def hears(self, told: Callable[[OrderLine, Order], None]) -> None:
        """Let somebody be told of each line that is read from now on, with its order as it stands then.

        Raises:
            UserError: the database is damaged.
        """
        self.read_on()
        self._hears = told

    def read_on(self) -> list[OrderLine]:
        """Take in the lines that are there since the last time, and return them.

        Raises:
            UserError: the database is damaged.
        """
        if self._open is not None:
            return self._read(self._open)
        if self.is_there and not os.path.lexists(self.path):  # of an earlier version
            with self.locked():
                pass
            self._forget()
        if not self.is_there:
            return []
        with self._refusals():
            with disk(self.path):
                database = self._connect()
            with closing(database):
                return self._read(database)

    def _read(self, database: sqlite3.Connection) -> list[OrderLine]:
        there = self.path.stat()
        if self._file != (there.st_dev, there.st_ino):  # it was made anew
            self._forget()
            self._file = (there.st_dev, there.st_ino)
        found: list[OrderLine] = []
        for seq, at, kind, data in database.execute(
            "SELECT seq, at, kind, data FROM lines WHERE seq > ? ORDER BY seq", (self._seq,)
        ).fetchall():
            try:
                line = OrderLine(seq, at, KINDS[kind].model_validate_json(data))
                self.orders[line.data.order] = self._order(line)
            except (ValueError, KeyError) as error:
                raise _unreadable(self.path, seq, error) from error
            self._seq = seq
            found.append(line)
            self._hears(line, self.orders[line.data.order])
        return found

    def _order(self, line: OrderLine) -> Order:
        """Return the order of a line as it stands then."""
        if isinstance(line.data, OrderPlaced):
            return Order(line.data.order, line.data, line.seq, line.at)
        return self.orders[line.data.order].with_line(line)

    def _forget(self) -> None:
        self.orders.clear()
        self._seq = 0

    # --- writing ---------------------------------------------------------------------------------------------------

    @contextmanager
    def locked(self) -> Generator[OrderLog]:
        """Hold the lock under which lines are added, with everything read that is there.

        What was added is on disk when this ends, all of it or nothing. A database that is damaged or cannot be written
        is set aside, and that is said; a worker orders again what claims and runs tell.

        Raises:
            UserError: a line cannot be read, or the disk does not take it.
        """
        with disk(self.path):
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            lock = os.open(self.folder / "orders.writer", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            with self._refusals():
                with disk(self.path):
                    database = self._begin()
                with closing(database) as self._open, self._open:
                    self.read_on()
                    yield self
        except BaseException:
            self._forget()  # what was added is not there
            raise
        finally:
            self._open = None
            os.close(lock)

    def add(self, *facts: OrderFact) -> None:
        """Add lines; only under `locked`."""
        at = stamp(self._clock())
        self._database.executemany(
            "INSERT INTO lines (at, kind, name, data) VALUES (?, ?, ?, ?)",
            [(at, fact.KIND, fact.order, fact.model_dump_json(exclude_unset=True)) for fact in facts],
        )
        self.read_on()

    def remove(self, names: Collection[str]) -> None:
        """Remove closed orders; their keys stay used. Only under `locked`."""
        for name in [one.id for one in self.orders.values() if one.id in names and not one.is_open]:
            self._database.execute("DELETE FROM lines WHERE name = ?", (name,))
            del self.orders[name]

    def place(self, wanted: Wanted) -> tuple[Order, bool]:
        """Place an order, unless one with its key is there; return it, and whether it is new. Only under `locked`."""
        there = self._there(wanted)
        if there is not None:
            return there, False
        known = self._database.execute("SELECT name, key FROM orders").fetchall()
        names, used = {name for name, _ in known}, {key for _, key in known}
        what = wanted.issue or wanted.run or ""
        name = next(name for name in iter(lambda: f"o-{secrets.token_hex(3)}", "") if name not in names)
        placed = OrderPlaced(
            order=name,
            do="run" if wanted.run is None else "resume",
            issue=wanted.issue,
            run=wanted.run,
            options=wanted.options,
            via=wanted.via,
            cause=wanted.cause,
            depth=wanted.depth,
            key=wanted.key or next(key for key in (f"{what}#{number}" for number in count(1)) if key not in used),
            priority=wanted.priority,
            not_before=None if wanted.not_before is None else stamp(wanted.not_before),
        )
        self._database.execute("INSERT INTO orders VALUES (?, ?, ?)", (name, placed.key, what))
        self.add(placed, *((lines.OrderHeld(order=name),) if wanted.held else ()))
        return self.orders[name], True

    def _there(self, wanted: Wanted) -> Order | None:
        """Return the order with the key that is wanted; without one the open order of its issue or run."""
        if wanted.key is None:
            what, each = wanted.issue or wanted.run, self.orders.values()
            return next((one for one in each if one.is_open and what in {one.placed.issue, one.placed.run}), None)
        query = "SELECT name, what FROM orders WHERE key = ?"
        for name, what in self._database.execute(query, (wanted.key,)):
            return self.orders.get(name) or _removed(name, wanted.key, what)
        return None

    @property
    def _database(self) -> sqlite3.Connection:
        assert self._open is not None, "only under `locked`"  # noqa: S101  (an error of ours)
        return self._open

    # --- the file --------------------------------------------------------------------------------------------------

    def _connect(self) -> sqlite3.Connection:
        if self.path.is_symlink():
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(self.path))
        return sqlite3.connect(f"{self.path.absolute().as_uri()}?mode=rw", _WAITS_S, uri=True, isolation_level=None)

    def _begin(self) -> sqlite3.Connection:
        """Return the database with a transaction begun, which is made where it is missing or damaged."""
        if not os.path.lexists(self.path):
            self._make(*_earlier(self.folder / EARLIER))
        with suppress(FileNotFoundError):  # it was taken over
            (self.folder / EARLIER).rename(self.folder / f"{EARLIER}.taken")
        try:
            return self._begun()
        except sqlite3.DatabaseError as error:
            is_readonly = _code(error) == sqlite3.SQLITE_READONLY
            if not is_readonly and _code(error) not in _DAMAGED:
                raise
            kept = _content(self._connect()) if is_readonly else (_Rows(), _Rows())
            aside = self.path.with_name(f"{DATABASE}.{stamp(self._clock()).replace(':', '')}")
            self._make(*kept, aside=aside)
            what = "cannot be written" if is_readonly else "is damaged"
            found = f"its {len(kept[0])} orders were copied" if is_readonly else "the queue begins anew"
            said = (
                f"{self.path} {what} ({error}). It is kept as {aside.name}, and {found}. A worker orders again what "
                "claims and runs tell; order again what had not begun."
            )
            echo(visible(said), err=True)
            return self._begun()

    def _begun(self) -> sqlite3.Connection:
        database = self._connect()
        try:
            database.execute("BEGIN IMMEDIATE")
            (said,) = database.execute("PRAGMA quick_check(1)").fetchone()
            if said != "ok":
                raise sqlite3.DatabaseError(said)  # noqa: TRY301  (told as any other)
            database.execute("SELECT seq FROM lines, orders LIMIT 1")
        except BaseException:
            database.close()
            raise
        return database

    def _make(self, orders: _Rows, found: _Rows, until: int = 0, *, aside: Path | None = None) -> None:
        """Make the database with this content, by one rename; *aside* is where the one goes that is there."""
        new = self.path.with_name(f".{DATABASE}.new")
        with disk(new):
            for suffix in ("", "-wal", "-shm"):
                new.with_name(new.name + suffix).unlink(missing_ok=True)
            os.close(os.open(new, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
            with closing(sqlite3.connect(new, isolation_level=None)) as database:
                database.execute("PRAGMA journal_mode = WAL")
                database.execute("BEGIN")
                for table in _TABLES:
                    database.execute(table)
                database.executemany("INSERT INTO orders VALUES (?, ?, ?)", orders)
                database.execute("INSERT INTO sqlite_sequence VALUES ('lines', ?)", (until,))
                database.executemany("INSERT INTO lines VALUES (?, ?, ?, ?, ?)", found)
                database.execute("COMMIT")
            for suffix in ("-wal", "-shm", ""):  # a log of the old one would be played into the new one
                with suppress(FileNotFoundError):
                    old = self.path.with_name(DATABASE + suffix)
                    old.rename(aside.with_name(aside.name + suffix)) if aside is not None else old.unlink()
            new.rename(self.path)
            folder = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)

    @contextmanager
    def _refusals(self) -> Generator[None]:
        try:
            yield
        except sqlite3.Error as error:
            if _code(error) in _DAMAGED:
                raise UserError(
                    f"The orders in {self.path} are damaged ({error}). Whoever writes next sets the file aside, as "
                    "`redfirst work`. A worker orders again what claims and runs tell.",
                    Reason.USAGE,
                    path=str(self.path),
                ) from error
            raise UserError(
                f"Cannot use {self.path}: {error}. Make room or mend the permissions, then try again.",
                Reason.DISK,
                path=str(self.path),
            ) from error


def _code(error: sqlite3.Error) -> int:
    return getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF


def _content(database: sqlite3.Connection) -> tuple[_Rows, _Rows]:
    with closing(database):
        orders, found = (database.execute(f"SELECT * FROM {table}").fetchall() for table in ("orders", "lines"))  # noqa: S608
    return orders, found


def _removed(name: str, key: str, what: str) -> Order:
    """Return an order that was removed, as far as it is known."""
    issue, run = (None, what) if "/" in what else (what, None)
    placed = OrderPlaced(order=name, do="resume" if run else "run", issue=issue, run=run, via="gc", key=key)
    return Order(name, placed, 0, _LONG_AGO, state="dropped", note="it closed long ago", closed_at=_LONG_AGO)


def _unreadable(path: Path, line: int, error: Exception) -> UserError:
    return UserError(
        f"The orders in {path} are damaged at line {line} ({str(error).splitlines()[0]}). Put the file back, or set it "
        "aside: runs and claims are as they are, and the queue is empty then.",
        Reason.USAGE,
        path=str(path),
        pointer=f"/{line - 1}",
    )


def _earlier(path: Path) -> tuple[_Rows, _Rows, int]:
    """Return what an earlier version kept as lines of JSON: keys and lines of orders, and how far it had counted."""
    orders: _Rows = []
    found: _Rows = []
    until = 0
    texts = path.read_bytes().splitlines(keepends=True) if path.exists() else []
    for number, text in enumerate(texts, 1):
        if not text.endswith(b"\n"):  # its writer died
            break
        try:
            said: dict[str, Any] = json.loads(text)
            if "forgotten" in said:  # the first line, where some were removed
                orders += [(one["order"], one["key"], one["what"]) for one in said["forgotten"]]
                until = said["until"]
                continue
            fact = KINDS[said["kind"]].model_validate(said["data"])
            if isinstance(fact, OrderPlaced):
                orders.append((fact.order, fact.key, fact.issue or fact.run))
            found.append((said["seq"], said["at"], fact.KIND, fact.order, fact.model_dump_json(exclude_unset=True)))
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise _unreadable(path, number, error) from error
    return orders, found, until


# --- doors for everybody who is no worker ----------------------------------------------------------------------------


def log_of(repository: Repository, environ: Mapping[str, str]) -> OrderLog:
    """Return the orders of a repository, as seen from any of its worktrees; nothing is read yet."""
    return OrderLog(state_folder(environ) / "repos" / repository_name(repository))


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
            match what:
                case "drop":
                    log.add(lines.OrderDropped(order=order.id, why="dropped by a person"))
                case "hold":
                    log.add(lines.OrderHeld(order=order.id))
                case "release":
                    log.add(lines.OrderReleased(order=order.id))
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
