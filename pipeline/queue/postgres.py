"""Keeps the orders of a fleet on Postgres: one database for many repositories, the same behaviour as on disk.

A transaction that holds the repository's advisory lock writes, so that lines become visible in the order of their
numbers. Each session has time limits: one that freezes with the lock in its hand is ended by the server.
"""

from __future__ import annotations

import os
import re
import secrets
import socket
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, LiteralString

from pipeline.errors import UserError
from pipeline.outcomes import Reason
from pipeline.queue.order_lines import Found, NotNowError, Row

if TYPE_CHECKING:
    from collections.abc import Collection, Generator, Iterable, Mapping

    from psycopg import Connection, Error

    Session = Connection[tuple[Any, ...]]

VERSION: Final = 1
CHANNEL: Final = "redfirst"
WORKER: Final = "redfirst work"
"""What the sessions of workers are called that listen."""
_LIMITS: Final = """
SET idle_in_transaction_session_timeout = '15s';
SET lock_timeout = '20s';
SET statement_timeout = '30s';
SET tcp_keepalives_idle = 10;
SET tcp_keepalives_interval = 5;
SET tcp_keepalives_count = 3;
SET synchronous_commit = on;
SET client_min_messages = warning
"""
"""Who waits for a lock waits longer than the server lets somebody sleep who has it."""
_TABLES: Final[dict[LiteralString, tuple[LiteralString, ...]]] = {
    "redfirst_schema": ("version integer NOT NULL", "made text NOT NULL"),
    "redfirst_repositories": ("name text PRIMARY KEY", "last bigint NOT NULL"),
    "redfirst_orders": (
        *("repository text NOT NULL REFERENCES redfirst_repositories", "name text NOT NULL", "key text NOT NULL"),
        *("what text NOT NULL", "PRIMARY KEY (repository, name)", "UNIQUE (repository, key)"),
    ),
    "redfirst_lines": (
        *("repository text NOT NULL", "seq bigint NOT NULL", "at text NOT NULL", "kind text NOT NULL"),
        *("name text NOT NULL", "data text NOT NULL", "PRIMARY KEY (repository, seq)"),
        "FOREIGN KEY (repository, name) REFERENCES redfirst_orders",
    ),
    "redfirst_spent": (
        *("repository text NOT NULL", "day text NOT NULL", "run text NOT NULL", "usd float NOT NULL"),
        "PRIMARY KEY (repository, day, run)",
    ),
}
ADVISORY: Final[LiteralString] = (
    "SELECT (classid::bigint << 32) | objid::bigint FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 1 "
    "AND granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
)
"""The advisory locks that somebody has in this database."""


def machine_name(host: str) -> str:
    """Return how a machine is called where workers are listed."""
    return re.sub(r"[^A-Za-z0-9._-]", "-", host)[:30]


_MACHINE: Final = machine_name(socket.gethostname())
STALLED_S: Final = 30
"""A worker that said nothing for so many seconds, by the server's clock, has no orders any more."""
_WORKERS: Final[LiteralString] = (
    "SELECT split_part(application_name, ' ', 3), split_part(application_name, ' ', 4)::bigint, client_addr::text, "
    "extract(epoch FROM clock_timestamp() - state_change)::float FROM pg_stat_activity "
    "WHERE datname = current_database() AND application_name ~ '^redfirst work [^ ]+ [0-9]+$' ORDER BY 1, 2"
)
_END_STALLED: Final[LiteralString] = (
    f"WITH worker (machine, pid, address, silent) AS ({_WORKERS}) "  # noqa: S608  (a text of ours)
    "SELECT pg_terminate_backend(one.pid) FROM pg_stat_activity AS one, worker WHERE datname = current_database() "
    "AND usename = current_user AND silent > %s "
    "AND application_name = 'redfirst slots ' || machine || ' ' || worker.pid"
)
_HELD: Final[LiteralString] = (
    f"SELECT name FROM redfirst_orders WHERE repository = %s AND hashtextextended(%s || name, 0) IN ({ADVISORY})"  # noqa: S608
)


def lock_of_order(repository: str, name: str) -> str:
    """Return the name of the lock that a worker has for as long as its driver is at work for an order."""
    return f"redfirst order {repository} {name}"


class PostgresRows:
    """The rows of one repository on a server.

    Args:
        dsn: The database, as libpq takes it.
        repository: The name of the repository, the same on all machines.
    """

    def __init__(self, dsn: str, repository: str) -> None:
        self.repository = repository
        self._dsn = dsn
        self._open: Session | None = None
        self._ear: Session | None = None
        self._listens = False

    @property
    def where(self) -> str:
        """Return where they are, for people."""
        return f"{self.repository} on Postgres"

    @property
    def is_there(self) -> bool:
        """Return whether somebody ever placed an order."""
        query = "SELECT 1 FROM redfirst_repositories WHERE name = %s"
        with self._session() as session:
            return session.execute(query, (self.repository,)).fetchone() is not None

    @property
    def bell(self) -> int | None:
        """Return the socket of the session that listens; None where there is none now."""
        return None if self._ear is None or self._ear.closed else self._ear.fileno()

    @contextmanager
    def listening(self) -> Generator[None]:
        """Keep a session meanwhile that is told when lines are added."""
        self._listens = True
        try:
            yield
        finally:
            self._listens = False
            if self._ear is not None:
                self._ear.close()
                self._ear = None

    def read(self, made: object, seq: int) -> Found:
        """Return the lines behind a number; all where the tables were made anew.

        Raises:
            UserError: the server cannot be asked.
        """
        if self._listens and self._open is None:
            self._hear()
        with self._session() as session:
            now = made_of(session)
            query = "SELECT seq, at, kind, data FROM redfirst_lines WHERE repository = %s AND seq > %s ORDER BY seq"
            rows = session.execute(query, (self.repository, seq if now == made else 0)).fetchall()
            held = session.execute(_HELD, (self.repository, lock_of_order(self.repository, "")))
            return Found(now, [Row(*row) for row in rows], frozenset(name for (name,) in held))

    # --- writing ---------------------------------------------------------------------------------------------------

    @contextmanager
    def transaction(self) -> Generator[None]:
        """Hold the repository's lock, in a transaction.

        Raises:
            UserError: the server cannot be asked, or somebody holds the lock.
        """
        with self._session() as session, session.transaction():
            session.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", (f"redfirst {self.repository}",))
            query = "INSERT INTO redfirst_repositories VALUES (%s, 0) ON CONFLICT DO NOTHING"
            session.execute(query, (self.repository,))
            self._open = session
            try:
                yield
            finally:
                self._open = None

    def find(self, key: str) -> tuple[str, str] | None:
        """Return name and issue or run of the order with a key."""
        query = "SELECT name, what FROM redfirst_orders WHERE repository = %s AND key = %s"
        found = self._transaction.execute(query, (self.repository, key)).fetchone()
        return None if found is None else (found[0], found[1])

    def has(self, name: str) -> bool:
        """Return whether an order ever had this name."""
        query = "SELECT 1 FROM redfirst_orders WHERE repository = %s AND name = %s"
        return self._transaction.execute(query, (self.repository, name)).fetchone() is not None

    def insert(self, name: str, key: str, what: str) -> None:
        """Keep name and key of a new order for ever."""
        query = "INSERT INTO redfirst_orders VALUES (%s, %s, %s, %s)"
        self._transaction.execute(query, (self.repository, name, key, what))

    def add(self, at: str, lines: Iterable[tuple[str, str, str]]) -> None:
        """Add lines, each by its kind, the name of its order, and its data; who listens is told at the end."""
        query = (
            "WITH next AS (UPDATE redfirst_repositories SET last = last + 1 WHERE name = %s RETURNING last) "
            "INSERT INTO redfirst_lines SELECT %s, last, %s, %s, %s, %s FROM next"
        )
        for line in lines:
            self._transaction.execute(query, (self.repository, self.repository, at, *line))
        self._transaction.execute("SELECT pg_notify(%s, %s)", (CHANNEL, self.repository))

    def remove(self, names: Collection[str]) -> None:
        """Remove the lines of these orders."""
        query = "DELETE FROM redfirst_lines WHERE repository = %s AND name = ANY(%s)"
        self._transaction.execute(query, (self.repository, list(names)))

    @property
    def _transaction(self) -> Session:
        assert self._open is not None, "only in a `transaction`"  # noqa: S101  (an error of ours)
        return self._open

    # --- sessions --------------------------------------------------------------------------------------------------

    @contextmanager
    def _session(self) -> Generator[Session]:
        """Yield the session of the transaction, else one for now."""
        if self._open is not None:
            yield self._open
            return
        with session_with(self._dsn) as session, refusals():
            yield session

    def _hear(self) -> None:
        """Take in what the ear was told, before a look that finds it; begin it anew where it broke.

        Nothing else is asked by this session: so its socket can be read exactly where there is news.
        """
        if self._ear is None or self._ear.closed:
            self._ear = session_with(self._dsn, WORKER)
            self._ear.add_notify_handler(lambda _news: None)
        try:
            with refusals():
                self._ear.execute(f"LISTEN {CHANNEL}")  # also says to others that this worker lives
                self._ear.execute(_END_STALLED, (STALLED_S,))
        except UserError:
            self._ear.close()
            raise


def session_with(dsn: str, kind: str = "redfirst") -> Session:
    """Return a session of its own, with limits; each statement is a transaction of its own.

    Args:
        dsn: The database.
        kind: What others see that it is, beside machine and process.

    Raises:
        UserError: the extra is not installed, or the server does not take it.
    """
    try:
        import psycopg  # noqa: PLC0415  (an extra)
    except ImportError:
        from pipeline.agents.backends.extras import install_command  # noqa: PLC0415  (rarely wanted)

        raise UserError(
            "The queue of a fleet needs the extra `fleet`. Install it:",
            Reason.USAGE,
            actions=(install_command("fleet"),),
        ) from None
    with refusals():
        session = psycopg.connect(
            dsn,
            autocommit=True,
            connect_timeout=5,
            application_name=f"{kind} {_MACHINE} {os.getpid()}",
            tcp_user_timeout=20_000,
            keepalives_idle=10,
            keepalives_interval=5,
            keepalives_count=3,
        )
        try:
            session.execute(_LIMITS)
        except BaseException:
            session.close()
            raise
        return session


@contextmanager
def refusals() -> Generator[None]:
    """Turn what the server or its library refuses into a `UserError` that says what to do.

    Raises:
        UserError: the same.
    """
    from psycopg import Error  # noqa: PLC0415  (an extra)

    try:
        yield
    except Error as error:
        raise _as_user_error(error) from error


def _as_user_error(error: Error) -> UserError:
    from psycopg import InterfaceError, OperationalError  # noqa: PLC0415  (an extra)

    code, said = error.sqlstate or "", " ".join(str(error).split())
    if code == "42P01":
        return UserError(
            "The database of the fleet lacks tables of redfirst. Make them once:",
            Reason.CONFIG,
            actions=("redfirst fleet init",),
        )
    if code in {"55P03", "57014"}:
        return NotNowError(
            f"Somebody holds the orders of this repository ({said}). The server ends who is frozen. Try again.",
            Reason.LOCKED,
            actions=("redfirst fleet status",),
        )
    is_away = code[:2] in {"", "08", "25", "53", "57"} and isinstance(error, OperationalError | InterfaceError)
    if is_away or code == "25P03":
        return NotNowError(
            f"Postgres of the fleet does not answer ({said}). See that it runs and lets you in: fleet.postgres of your "
            "configuration names it, PGPASSWORD or ~/.pgpass has the password.",
            Reason.ENVIRONMENT,
            actions=("redfirst config get fleet", "redfirst fleet status"),
        )
    return UserError(
        f"Postgres of the fleet refuses this: {said}. Mend fleet.postgres of your configuration, or the rights of its "
        "role in the database.",
        Reason.CONFIG,
        actions=("redfirst config get fleet",),
    )


@dataclass(frozen=True)
class WorkerSeen:
    """A worker that is connected.

    Attributes:
        machine: What its machine calls itself.
        pid: Its process there.
        address: Where it comes from; None on the server's own machine.
        silent_s: How long it has said nothing; it speaks each 10 seconds.
    """

    machine: str
    pid: int
    address: str | None
    silent_s: float | None

    @property
    def is_stalled(self) -> bool:
        """Return whether its orders are free for others."""
        return (self.silent_s or 0) > STALLED_S


def workers_of(dsn: str) -> list[WorkerSeen]:
    """Return the workers that are connected to the database.

    Raises:
        UserError: the server cannot be asked.
    """
    with session_with(dsn) as session, refusals():
        return [WorkerSeen(*row) for row in session.execute(_WORKERS)]


_FORGET: Final = (
    "DELETE FROM redfirst_spent WHERE repository = %s AND "
    "day < to_char(clock_timestamp() AT TIME ZONE 'UTC' - interval '2 days', 'YYYY-MM-DD')"
)


def spent_in_fleet(dsn: str, repository: str, day: str, runs: Mapping[str, float]) -> float:
    """Add what models cost here today, in USD by run, and return what they cost on all machines.

    Of a run that several machines have had, the copy that came furthest says the most, and counts.

    Raises:
        UserError: the server cannot be asked.
    """
    add = (
        "INSERT INTO redfirst_spent SELECT %s, %s, * FROM unnest(%s::text[], %s::float[]) "
        "ON CONFLICT (repository, day, run) DO UPDATE SET usd = greatest(redfirst_spent.usd, excluded.usd)"
    )
    query = "SELECT coalesce(sum(usd), 0)::float FROM redfirst_spent WHERE repository = %s AND day = %s"
    with session_with(dsn) as session, refusals(), session.transaction():
        session.execute(_FORGET, (repository,))  # by the server's clock: a machine may be days ahead
        if runs:
            session.execute(add, (repository, day, list(runs), list(runs.values())))
        found = session.execute(query, (repository, day)).fetchone()
        return found[0] if found is not None else 0.0


def clock_of(dsn: str) -> float:
    """Return the time of the server, in seconds since the epoch, once its tables are known to be ours.

    Raises:
        UserError: the server cannot be asked, has no tables, or has those of another version.
    """
    with session_with(dsn) as session, refusals():
        made_of(session)
        found = session.execute("SELECT extract(epoch FROM clock_timestamp())::float").fetchone()
        return found[0] if found is not None else 0.0


# --- the schema ------------------------------------------------------------------------------------------------------


def made_of(session: Session) -> str:
    """Return which database it is.

    Raises:
        UserError: another version of redfirst made the tables.
    """
    found = session.execute("SELECT version, made FROM redfirst_schema").fetchone()
    if found is None or found[0] != VERSION:
        raise UserError(
            f"The tables of the fleet are of version {found[0] if found else 'none'}, and this redfirst has version "
            f"{VERSION}. Use the same redfirst on all machines.",
            Reason.CONFIG,
        )
    return found[1]


def make_schema(dsn: str) -> tuple[str, ...]:
    """Make the tables that are missing, all or none; return which.

    Raises:
        UserError: the server cannot be asked, or does not allow it.
    """
    with session_with(dsn) as session, refusals(), session.transaction():
        session.execute("SELECT pg_advisory_xact_lock(hashtextextended('redfirst schema', 0))")
        made: list[str] = []
        for name, columns in _TABLES.items():
            if session.execute("SELECT to_regclass(%s)", (name,)).fetchone() == (None,):
                session.execute(f"CREATE TABLE {name} ({', '.join(columns)})")
                made.append(name)
        if "redfirst_schema" in made:
            session.execute("INSERT INTO redfirst_schema VALUES (%s, %s)", (VERSION, secrets.token_hex(8)))
        made_of(session)
        return tuple(made)
