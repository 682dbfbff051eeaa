"""The tests of orders, slots and workers run over both stores, as far as they are about behaviour."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pytest
from postgres import Server, database
from queued.stores import BOTH, fleet_table

if TYPE_CHECKING:
    from collections.abc import Generator


@pytest.fixture(params=BOTH)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Return a folder for orders that lie in it, or on Postgres under its name."""
    if request.param == "postgres":
        (tmp_path / "dsn").write_text(database())
    return tmp_path


@pytest.fixture(params=BOTH)
def fleet(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return what the user's configuration says of a fleet: nothing, or a hub of the test's own and Postgres."""
    return fleet_table(tmp_path) if request.param == "postgres" else ""


@pytest.fixture
def own() -> Generator[Server]:
    """Return a server of the test's own; a folder of pytest is not open to the user who runs it."""
    with TemporaryDirectory(prefix="redfirst-own-") as folder:
        Path(folder).chmod(0o755)
        found = Server(Path(folder) / "own")
        found.make()
        found.start()
        yield found
        found.stop()
