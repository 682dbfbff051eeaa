"""Orders on Postgres: what the server or its way here brings about is told, loses nothing, and holds nobody up."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from postgres import database, needs_postgres, server
from queued.stores import log_in, new_database
from waiting import wait_until

from pipeline.errors import UserError
from pipeline.queue.order_lines import NotNowError, OrderHeld
from pipeline.queue.orders import OrderLog, Wanted
from pipeline.queue.postgres import PostgresRows, make_schema, session_with, spent_in_fleet, workers_of

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

    from postgres import Server

pytestmark = [pytest.mark.slow, needs_postgres]

HOLDS_THE_LOCK = """
import sys
from pathlib import Path
from queued.stores import log_in
with log_in(Path(sys.argv[1])).locked():
    print("held", flush=True)
    sys.stdin.readline()
"""
WORKS = """
import sys
from pathlib import Path
from queued.stores import log_in, slots_in
log = log_in(Path(sys.argv[1]))
with log.rows.listening():
    log.read_on()
    taken = slots_in(Path(sys.argv[1])).take({}, sys.argv[2])
    print(taken is not None, flush=True)
    sys.stdin.readline()
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "dsn").write_text(database())
    return tmp_path


@contextmanager
def process(code: str, *argv: str) -> Generator[subprocess.Popen[bytes]]:
    """Run code, and yield its process once it has said something."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", code, *argv]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env) as there:
        assert there.stdout is not None
        assert there.stdout.readline() != b""
        yield there
        there.kill()


def order(log: OrderLog, issue: str) -> str:
    with log.locked():
        return log.place(Wanted(via="cli", issue=issue))[0].id


def ask(sql: str, *values: object) -> list[tuple[Any, ...]]:
    with psycopg.connect(database(), autocommit=True) as session:
        return session.execute(sql, values).fetchall()  # pyright: ignore[reportArgumentType, reportCallIssue]


def read(dsn: str) -> None:
    PostgresRows(dsn, "shop-1").read(None, 0)


def test_who_listens_is_woken_by_an_order_of_another_machine_and_by_nothing_else(place: Path) -> None:
    alone = new_database("ear")  # others of these tests make orders in the one that they share
    make_schema(alone)
    (place / "dsn").write_text(alone)
    here, there = log_in(place), log_in(place)
    with here.rows.listening():
        here.read_on()
        assert here.rows.bell is not None
        assert select.select([here.rows.bell], [], [], 0) == ([], [], [])
        order(there, "GAL-1")
        assert select.select([here.rows.bell], [], [], 5)[0] == [here.rows.bell]
        assert [line.data.KIND for line in here.read_on()] == ["order_placed"]
        assert select.select([here.rows.bell], [], [], 0) == ([], [], [])
    assert here.rows.bell is None


def test_each_repository_has_its_own_orders_keys_and_numbers(place: Path) -> None:
    some, others = (OrderLog(place, PostgresRows(database(), f"{place}-{name}")) for name in "ab")
    order(some, "GAL-1")
    order(some, "GAL-2")
    with others.locked():
        placed, new = others.place(Wanted(via="cli", issue="GAL-1"))
    assert (new, placed.number, placed.placed.key) == (True, 1, "GAL-1#1")
    assert [one.what for one in some.orders.values()] == ["GAL-1", "GAL-2"]


def test_what_fails_half_way_leaves_nothing_and_is_told_to_nobody(place: Path) -> None:
    log, heard = log_in(place), list[int]()
    first = order(log, "GAL-1")
    log.hears(lambda line, _order: heard.append(line.seq))
    with pytest.raises(ZeroDivisionError):
        fail_after_holding(log, first)
    assert (log.read_on()[-1].seq, heard, log.orders[first].state) == (1, [], "queued")
    order(log, "GAL-2")
    assert heard == [2]


@pytest.mark.broad
def test_a_writer_that_freezes_with_the_lock_is_ended_by_the_server_and_the_next_one_writes(place: Path) -> None:
    with process(HOLDS_THE_LOCK, str(place)) as there:
        there.send_signal(signal.SIGSTOP)
        order(log_in(place), "GAL-1")
        there.send_signal(signal.SIGCONT)
        there.communicate(b"\n")
    assert there.returncode == 1
    log = log_in(place)
    log.read_on()
    assert [one.what for one in log.orders.values()] == ["GAL-1"]


def test_a_session_that_is_ended_in_the_middle_loses_nothing_and_the_next_call_works(place: Path) -> None:
    log = log_in(place)
    with log.rows.listening():
        first = order(log, "GAL-1")
        log.read_on()
        ask(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name ~ %s",
            f"^redfirst work .* {os.getpid()}$",
        )
        with pytest.raises(NotNowError, match="does not answer"):
            log.read_on()
        assert log.rows.bell is None
        log.read_on()
        assert log.rows.bell is not None
    with pytest.raises(NotNowError, match="does not answer"):
        hold_without_a_session(log, first)
    with log.locked():
        assert log.orders[first].state == "queued"
        log.add(OrderHeld(order=first))
    assert log.orders[first].state == "held"


def fail_after_holding(log: OrderLog, name: str) -> None:
    with log.locked():
        log.add(OrderHeld(order=name))
        raise ZeroDivisionError


def hold_without_a_session(log: OrderLog, name: str) -> None:
    with log.locked():
        ask(
            "SELECT pg_terminate_backend(l.pid) FROM pg_locks l JOIN pg_stat_activity a USING (pid) "
            "WHERE locktype = 'advisory' AND application_name ~ %s",
            f"^redfirst .* {os.getpid()}$",
        )
        log.add(OrderHeld(order=name))


@pytest.fixture(scope="module")
def guarded() -> str:
    """Return a role that has a password."""
    with session_with(server().dsn()) as session:
        session.execute("DROP ROLE IF EXISTS guarded")
        session.execute("CREATE ROLE guarded LOGIN PASSWORD 'secret-9'")
    return server().dsn(user="guarded")


@pytest.mark.parametrize(
    ("dsn", "said", "action"),
    [
        ("host=/nowhere user=postgres", "does not answer .*No such file", "redfirst config get fleet"),
        ("host=127.0.0.1 port=1 user=postgres", "does not answer .*refused", "redfirst config get fleet"),
        ("no dsn", "Mend fleet.postgres", "redfirst config get fleet"),
        ("{server} dbname=nothing", 'database "nothing" does not exist', "redfirst config get fleet"),
        ("{server} dbname=template1", "lacks tables of redfirst", "redfirst fleet init"),
    ],
)
def test_what_is_wrong_is_said_with_what_to_do(dsn: str, said: str, action: str) -> None:
    with pytest.raises(UserError, match=said) as told:
        read(dsn.replace("{server}", server().dsn().rpartition(" ")[0]))
    assert told.value.actions[0] == action


def test_a_wrong_password_is_said_and_not_repeated(guarded: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGPASSWORD", "wrong-7")
    with pytest.raises(UserError, match=r"PGPASSWORD or ~/\.pgpass has the password") as told:
        read(guarded)
    assert "wrong-7" not in repr(told.value.facts)
    monkeypatch.setenv("PGPASSWORD", "secret-9")
    with pytest.raises(UserError, match="permission denied"):
        read(guarded)


def test_init_makes_what_is_missing_once_and_refuses_another_version() -> None:
    dsn = new_database("fresh")
    assert len(make_schema(dsn)) == 5
    assert make_schema(dsn) == ()
    with session_with(dsn) as session:
        session.execute("UPDATE redfirst_schema SET version = 9")
    for call in (partial(make_schema, dsn), partial(read, dsn)):
        with pytest.raises(UserError, match="Use the same redfirst on all machines"):
            call()


def test_tables_that_were_made_anew_are_read_anew(tmp_path: Path) -> None:
    dsn = new_database("again")
    make_schema(dsn)
    log = OrderLog(tmp_path, PostgresRows(dsn, "shop-1"))
    order(log, "GAL-1")
    with session_with(dsn) as session:
        session.execute("DROP TABLE redfirst_lines, redfirst_orders, redfirst_repositories, redfirst_schema")
    make_schema(dsn)
    other = OrderLog(tmp_path, PostgresRows(dsn, "shop-1"))
    order(other, "GAL-2")
    log.read_on()
    assert [one.what for one in log.orders.values()] == ["GAL-2"]


@pytest.mark.broad
def test_a_server_that_was_killed_and_is_there_again_has_everything(tmp_path: Path, own: Server) -> None:
    make_schema(own.dsn())
    log = OrderLog(tmp_path, PostgresRows(own.dsn(), "shop-1"))
    order(log, "GAL-1")
    own.stop()
    with pytest.raises(NotNowError, match="does not answer"):
        order(log, "GAL-2")
    own.start()
    order(log, "GAL-2")
    assert [one.what for one in log.orders.values()] == ["GAL-1", "GAL-2"]


@pytest.mark.broad
def test_orders_of_a_worker_that_is_frozen_are_free_after_half_a_minute(place: Path) -> None:
    log = log_in(place)
    name = order(log, "GAL-1")
    with process(WORKS, str(place), name) as there, log.rows.listening():
        assert {one.pid for one in workers_of(database())} >= {there.pid}
        log.read_on()
        assert log.orders[name].is_driven
        there.send_signal(signal.SIGSTOP)

        def free() -> bool:
            log.read_on()
            return not log.orders[name].is_driven

        wait_until(free)
        (seen,) = [one for one in workers_of(database()) if one.pid == there.pid]
        assert (seen.silent_s or 0) > 30


def test_what_models_cost_today_counts_of_all_machines_and_once_for_each_run(tmp_path: Path) -> None:
    name, day = str(tmp_path), datetime.now(UTC).strftime("%Y-%m-%d")
    assert spent_in_fleet(database(), name, day, {}) == 0
    assert spent_in_fleet(database(), name, day, {"a/run-1": 1.5, "a/run-2": 1.0}) == 2.5
    assert spent_in_fleet(database(), name, day, {"a/run-1": 2.0, "b/run-3": 0.25}) == 3.25, "it went on elsewhere"
    assert spent_in_fleet(database(), name, day, {"a/run-1": 1.5}) == 3.25, "what is behind says less"
    assert spent_in_fleet(database(), name, "2026-01-01", {"a/run-1": 9.0}) == 9
    assert spent_in_fleet(database(), name, day, {}) == 3.25
