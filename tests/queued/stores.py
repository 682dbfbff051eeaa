"""Where the orders of a test lie: in a folder, or on Postgres, if a file of the folder says so."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from postgres import database, needs_postgres, server

from pipeline.matrix.engine.journal import utc_now
from pipeline.queue.orders import OrderLog
from pipeline.queue.postgres import PostgresRows, session_with
from pipeline.queue.slots import FleetSlots, LocalSlots

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.matrix.engine.journal import Clock

BOTH = ("sqlite", pytest.param("postgres", marks=needs_postgres))


def log_in(folder: Path, clock: Clock = utc_now) -> OrderLog:
    """Return the orders of a folder, also in another process."""
    dsn = folder / "dsn"
    return OrderLog(folder, PostgresRows(dsn.read_text(), str(folder)) if dsn.exists() else None, clock=clock)


def slots_in(folder: Path) -> LocalSlots | FleetSlots:
    """Return the slots that workers over the orders of a folder share."""
    here, dsn = LocalSlots(folder / "slots"), folder / "dsn"
    return FleetSlots(here, dsn.read_text(), str(folder)) if dsn.exists() else here


def fleet_table(tmp_path: Path) -> str:
    """Return what a user's configuration says of a fleet whose hub is in this folder."""
    return f'[fleet]\nhub = "{tmp_path}/hub.git"\npostgres = "{database()}"\n'


def new_database(name: str) -> str:
    """Return a database of its own."""
    with session_with(server().dsn()) as session:
        session.execute(f"DROP DATABASE IF EXISTS {name}")  # pyright: ignore[reportArgumentType, reportCallIssue]
        session.execute(f"CREATE DATABASE {name}")  # pyright: ignore[reportArgumentType, reportCallIssue]
    return server().dsn(name)
