"""Keeps the orders of a repository in an SQLite database in the user's state.

A table has the key of every order that ever was, another one a line for each thing that happened to an order. Writers
hold a lock from their look to their commit. Whoever only reads changes no order; the first look of all, also of a
reader, takes over an `orders.jsonl` of an earlier version.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import sqlite3
from contextlib import closing, contextmanager, nullcontext, suppress
from typing import TYPE_CHECKING, Any, Final

from pipeline.characters import visible
from pipeline.errors import UserError
from pipeline.matrix.engine.journal import Clock, stamp
from pipeline.outcomes import Reason
from pipeline.queue.order_lines import KINDS, Found, OrderPlaced, Row, unreadable
from pipeline.run.files import disk
from pipeline.terminal import echo

if TYPE_CHECKING:
    from collections.abc import Collection, Generator, Iterable
    from pathlib import Path


DATABASE: Final = "orders.sqlite"
EARLIER: Final = "orders.jsonl"
"""Where earlier versions kept orders."""
_WAITS_S: Final = 60.0
_TABLES: Final = (
    "CREATE TABLE orders (name TEXT PRIMARY KEY, key TEXT NOT NULL UNIQUE, what TEXT NOT NULL)",
    "CREATE TABLE lines (seq INTEGER PRIMARY KEY AUTOINCREMENT, at TEXT, kind TEXT, name TEXT, data TEXT)",
)
_Rows = list[tuple[object, ...]]
_DAMAGED: Final = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR}
"""That a table is missing is an `SQLITE_ERROR`."""


class SqliteRows:
    """The rows of one repository in a folder; a damaged database is set aside by who writes next.

    It answers as `PostgresRows` does: no bell rings here, and nothing is worth a connection of its own.
    """

    def __init__(self, folder: Path, clock: Clock) -> None:
        self.folder = folder
        self.path = folder / DATABASE
        self.bell: int | None = None
        self._clock = clock
        self._open: sqlite3.Connection | None = None
        self.listening = nullcontext[None]

    @property
    def where(self) -> str:
        """Return where the database is."""
        return str(self.path)

    @property
    def is_there(self) -> bool:
        """Return whether somebody ever placed an order."""
        return os.path.lexists(self.path) or (self.folder / EARLIER).exists()

    def read(self, made: object, seq: int) -> Found:
        """Return the lines behind a number; all where the file is another one.

        Raises:
            UserError: the database is damaged.
        """
        if self._open is not None:
            return self._read(self._open, made, seq)
        if self.is_there and not os.path.lexists(self.path):  # of an earlier version
            with self.transaction():
                pass
        if not self.is_there:
            return Found(made, [])
        with self._refusals():
            with disk(self.path):
                database = self._connect()
            with closing(database):
                return self._read(database, made, seq)

    def _read(self, database: sqlite3.Connection, made: object, seq: int) -> Found:
        there = self.path.stat()
        now = (there.st_dev, there.st_ino)
        query = "SELECT seq, at, kind, data FROM lines WHERE seq > ? ORDER BY seq"
        found = database.execute(query, (seq if now == made else 0,)).fetchall()
        return Found(now, [Row(*one) for one in found])

    # --- writing ---------------------------------------------------------------------------------------------------

    @contextmanager
    def transaction(self) -> Generator[None]:
        """Hold the lock of writers. A database that is damaged or cannot be written is set aside, and that is said.

        Raises:
            UserError: the disk does not take it.
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
                    yield
        finally:
            self._open = None
            os.close(lock)

    def find(self, key: str) -> tuple[str, str] | None:
        """Return name and issue or run of the order with a key."""
        return self._database.execute("SELECT name, what FROM orders WHERE key = ?", (key,)).fetchone()

    def has(self, name: str) -> bool:
        """Return whether an order ever had this name."""
        return self._database.execute("SELECT 1 FROM orders WHERE name = ?", (name,)).fetchone() is not None

    def insert(self, name: str, key: str, what: str) -> None:
        """Keep name and key of a new order for ever."""
        self._database.execute("INSERT INTO orders VALUES (?, ?, ?)", (name, key, what))

    def add(self, at: str, lines: Iterable[tuple[str, str, str]]) -> None:
        """Add lines, each by its kind, the name of its order, and its data."""
        query = "INSERT INTO lines (at, kind, name, data) VALUES (?, ?, ?, ?)"
        self._database.executemany(query, [(at, *line) for line in lines])

    def remove(self, names: Collection[str]) -> None:
        """Remove the lines of these orders."""
        self._database.executemany("DELETE FROM lines WHERE name = ?", [(name,) for name in names])

    @property
    def _database(self) -> sqlite3.Connection:
        assert self._open is not None, "only in a `transaction`"  # noqa: S101  (an error of ours)
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
            raise unreadable(str(path), number, error) from error
    return orders, found, until
