"""Keeps what was delivered to triggers, and what became of each: what comes twice is known, also after a crash.

It is an SQLite database beside the orders. A time of a schedule is a delivery, too: the newest one says from where on
times are still to be looked at. Whoever holds it and the orders takes this one first.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing, contextmanager
from dataclasses import astuple, dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, Literal

from pipeline.config.user_folders import state_folder
from pipeline.errors import UserError
from pipeline.matrix.engine.journal import stamp
from pipeline.outcomes import Outcome, Reason
from pipeline.queue.orders import MOST_DEATHS, Order
from pipeline.run.files import disk
from pipeline.run.store import repository_name

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Mapping
    from pathlib import Path

    from pipeline.repo import Repository

DATABASE: Final = "deliveries.sqlite"
MOST_FAILURES: Final = 3
"""So many failures in a row pause a trigger."""
_KEPT: Final = timedelta(days=90)
_WAITS_S: Final = 60.0
_COLUMNS: Final = "name, id, digest, at, result, why, issue, placed"
_TABLES: Final = (
    f"CREATE TABLE IF NOT EXISTS deliveries ({_COLUMNS}, PRIMARY KEY (name, id)) WITHOUT ROWID",
    "CREATE INDEX IF NOT EXISTS by_digest ON deliveries (name, digest)",
    "CREATE TABLE IF NOT EXISTS resumed (name TEXT PRIMARY KEY, at TEXT NOT NULL) WITHOUT ROWID",
)
_FAILED: Final = frozenset({Outcome.FAILED.value, Outcome.REJECTED.value})

Result = Literal["ordered", "held", "ignored"]
Why = Literal[
    "", "off", "paused", "event", "label", "sender", "own", "issue", "depth", "open", "attempts", "rate", "nothing",
    "missed",
]  # fmt: skip
"""Why nothing was ordered."""


@dataclass(frozen=True)
class Delivered:
    """A delivery, and what became of it.

    Args:
        trigger: Its name.
        id: The name of the delivery, or the time of a schedule.
        digest: What it is also known by.
        at: When it came.
        result: What became of it.
        why: Why nothing was ordered.
        issue: The issue that it is about.
        order: The order that was placed.
    """

    trigger: str
    id: str
    digest: str
    at: str
    result: Result
    why: Why = ""
    issue: str | None = None
    order: str | None = None


class Deliveries:
    """The deliveries of one repository."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / DATABASE
        self._open: sqlite3.Connection | None = None

    @contextmanager
    def hold(self) -> Generator[Deliveries]:
        """Hold the lock under which deliveries are looked at and added; all of it is on disk then, or nothing.

        Raises:
            UserError: the database cannot be read or written.
        """
        try:
            with disk(self.path):
                self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                os.close(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))
            with closing(sqlite3.connect(self.path, _WAITS_S, isolation_level=None)) as self._open:
                self._open.execute("BEGIN IMMEDIATE")
                for table in _TABLES:
                    self._open.execute(table)
                yield self
                self._open.execute("COMMIT")
        except sqlite3.Error as error:
            raise UserError(
                f"Cannot use {self.path}: {error}. Make room or mend its permissions. If it is damaged, set it aside: "
                "then deliveries of the past are not known as such.",
                Reason.DISK,
                path=str(self.path),
            ) from error
        finally:
            self._open = None

    def find(self, trigger: str, name: str, digest: str) -> Delivered | None:
        """Return the delivery that is there already under its name, or as what it is also known by."""
        rows = self._ask("SELECT * FROM deliveries WHERE name = ? AND (id = ? OR digest = ?)", trigger, name, digest)
        return next((Delivered(*row) for row in rows), None)

    def add(self, one: Delivered, now: datetime) -> None:
        """Add a delivery, and forget what is older than 90 days, but for the newest of each trigger."""
        self._ask("INSERT OR REPLACE INTO deliveries VALUES (?, ?, ?, ?, ?, ?, ?, ?)", *astuple(one))
        newest = "SELECT 1 FROM deliveries AS newer WHERE newer.name = deliveries.name AND newer.at > deliveries.at"
        self._ask(f"DELETE FROM deliveries WHERE at < ? AND EXISTS ({newest})", stamp(now - _KEPT))  # noqa: S608

    def newest(self, trigger: str) -> Delivered | None:
        """Return the delivery whose name comes last, as times do."""
        rows = self._ask("SELECT * FROM deliveries WHERE name = ? ORDER BY id DESC LIMIT 1", trigger)
        return next((Delivered(*row) for row in rows), None)

    def orders_since(self, trigger: str, since: datetime) -> int:
        """Return how many orders a trigger has placed since then."""
        query = "SELECT count(*) FROM deliveries WHERE name = ? AND placed IS NOT NULL AND at > ?"
        return self._ask(query, trigger, stamp(since))[0][0]

    def resume(self, trigger: str, now: datetime) -> None:
        """Let failures until now not count any more."""
        self._ask("INSERT OR REPLACE INTO resumed VALUES (?, ?)", trigger, stamp(now))

    def is_paused(self, trigger: str, orders: Iterable[Order]) -> bool:
        """Return whether the last orders of a trigger have all failed, since it was resumed if it ever was."""
        rows = self._ask("SELECT at FROM resumed WHERE name = ?", trigger)
        since = next((at for (at,) in rows), "")
        closed = sorted(
            (one.closed_at, _has_failed(one)) for one in orders if one.placed.via == trigger and one.closed_at
        )
        last = [failed for at, failed in closed if at > since][-MOST_FAILURES:]
        return len(last) == MOST_FAILURES and all(last)

    def _ask(self, query: str, *values: object) -> list[Any]:
        assert self._open is not None, "only under `hold`"  # noqa: S101  (an error of ours)
        return self._open.execute(query, values).fetchall()


def _has_failed(order: Order) -> bool:
    return order.outcome in _FAILED or (order.state == "dropped" and order.deaths >= MOST_DEATHS)


def deliveries_of(repository: Repository, environ: Mapping[str, str]) -> Deliveries:
    """Return the deliveries of a repository, as seen from any of its worktrees."""
    return Deliveries(state_folder(environ) / "repos" / repository_name(repository))
