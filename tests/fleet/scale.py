"""A fleet at scale on one machine: workers with a home and a clone each, over one queue and one hub.

Drivers are the real ones, with scripted agents, or stand-ins: processes that say at once that all is done. So a queue
can be measured alone. The workers, their slots and their orders are real in both.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kit import Project
from queued import sums_project
from queued.sums_project import PLAIN, Queued
from waiting import PATIENCE_S

from pipeline.queue.order_lines import OrderEnded, OrderLeft, OrderStarted, RunWords
from pipeline.queue.orders import Wanted, log_of
from pipeline.queue.postgres import session_with
from pipeline.repo import Repository

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

    from pipeline.queue.order_lines import OrderLine
    from pipeline.queue.orders import OrderLog

OTHER: Final = "agents.backend=claude"
"""What every second order says, so that it asks another provider."""
_ROOT: Final = Path(__file__).parents[2]
_AT_ONCE: Final = """
import json
import time


def main() -> None:
    time.sleep(%s)
    print(json.dumps({"outcome": "completed", "reason": "done"}))
"""
"""Stands in for redfirst as a driver: it waits for so many seconds, and says that all is done."""


@dataclass(frozen=True)
class Shop:
    """A project with so many issues, its hub, and its machines."""

    machines: tuple[Queued, ...]
    hub: Path
    stand_in: Path
    dsn: str

    @property
    def repository(self) -> Repository:
        """Return the clone of the first machine."""
        return Repository.find(self.machines[0].project.root)

    def log(self) -> OrderLog:
        """Return the orders, not read yet."""
        return log_of(self.repository, self.machines[0].project.environment())

    def place(self, count: int, *, scripts: bool = False) -> None:
        """Place so many orders in one transaction: every second one asks another provider, or each has its script."""
        home = self.hub.parent / "home"
        with self.log().locked() as log:
            for number, issue in enumerate(self.machines[0].ids[:count]):
                other = (OTHER,) if number % 2 else ()
                said = (f"agents.script={home}/script-{number + 1}.json",) if scripts else other
                words = RunWords(values=said)
                log.place(Wanted(via="cli", issue=issue, options=words))

    @contextmanager
    def workers(self, *, real: bool = False) -> Generator[list[subprocess.Popen[str]]]:
        """Let a worker work on each machine meanwhile, and end it as a person does."""
        program = (
            f"import sys; sys.path[:0] = {[str(_ROOT), str(_ROOT / 'tests')]!r}; import fleet.scale as it; it.work"
        )
        argv = [sys.executable, "-P", "-c", f"{program}({'' if real else str(self.stand_in)!r})"]
        started = [
            subprocess.Popen(
                argv, cwd=one.project.root, env=one.project.environment(), stdout=subprocess.DEVNULL, text=True
            )
            for one in self.machines
        ]
        try:
            yield started
        finally:
            for one in started:
                one.send_signal(signal.SIGTERM)
            for one in started:
                one.wait(timeout=120)

    @contextmanager
    def server_statements(self) -> Generator[Callable[[], int]]:
        """Yield what tells afterwards how many transactions the server has done meanwhile."""
        before = self._transactions()
        count: list[int] = []
        yield lambda: count[0]
        count.append(self._transactions() - before)

    def _transactions(self) -> int:
        query = "SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = current_database()"
        with session_with(self.dsn) as session:
            found = session.execute(query).fetchone()
            assert found is not None
            return found[0]

    def wait_for_all(self, patience_s: float = PATIENCE_S) -> list[OrderLine]:
        """Return all lines about orders, once each order is closed."""
        log = self.log()
        lines: list[OrderLine] = []

        def closed() -> bool:
            before = len(lines)
            lines.extend(log.read_on())
            return not any(one.is_open for one in log.orders.values()) and len(lines) == before

        end = time.monotonic() + patience_s
        while not closed():
            stay = [(one.placed.issue, one.state, one.drivers, one.left) for one in log.orders.values() if one.is_open]
            assert time.monotonic() < end, f"these orders stay open: {stay}"
            time.sleep(0.2)
        return lines


def make(tmp_path: Path, dsn: str, count: int, machines: int, table: str, *, driver_s: float = 0) -> Shop:
    """Return a project of so many issues, and machines that work on it.

    Args:
        tmp_path: Where.
        dsn: A database without orders of it.
        count: The number of issues.
        machines: The number of machines.
        table: What `[limits.work]` of each machine says.
        driver_s: How long a stand-in takes.
    """
    origin, hub = sums_project.make(tmp_path, count), tmp_path / "hub.git"
    sums_project.share(origin.project, str(hub))
    made: list[Queued] = []
    for number in range(1, machines + 1):
        home = tmp_path / f"machine-{number}"
        home.mkdir()
        project = Project(home / "shop", home, env=dict(origin.project.env))
        origin.project.git("clone", "--quiet", "--origin", "hub", str(hub), str(project.root))
        project.git("config", "user.name", "Ada")
        project.git("config", "user.email", "ada@example.org")
        fleet = f'[fleet]\nhub = "{hub}"\npostgres = "{dsn}"\n'
        project.use_script([], f"{PLAIN}[limits.work]\n{table}\n{fleet}")
        made.append(Queued(project, count))
    assert made[0].redfirst("fleet", "init")["ok"]
    return Shop(tuple(made), hub, stand_in(tmp_path, driver_s), dsn)


def stand_in(tmp_path: Path, driver_s: float = 0) -> Path:
    """Return a new folder from which a driver is a stand-in."""
    folder = tmp_path / "stand-in"
    folder.mkdir()
    (folder / "redfirst.py").write_text(_AT_ONCE % driver_s, encoding="utf-8")
    return folder


def most_at_once(lines: Sequence[OrderLine], orders: set[str]) -> int:
    """Return how many of these orders had a driver at most, as the lines follow each other on the server."""
    most = now = 0
    for line in lines:
        if line.data.order in orders:
            now += isinstance(line.data, OrderStarted) - isinstance(line.data, OrderEnded | OrderLeft)
            most = max(most, now)
    return most


def most_of_all(shop: Shop, lines: Sequence[OrderLine]) -> tuple[int, list[int]]:
    """Return how many drivers there were at most, in all, and for each of the two providers."""
    log = shop.log()
    log.read_on()
    orders = set(log.orders)
    others = {one.id for one in log.orders.values() if OTHER in one.placed.options.values}
    return most_at_once(lines, orders), [most_at_once(lines, each) for each in (orders - others, others)]


def work(stand_in: str) -> None:
    """Work here until somebody ends it; drivers are stand-ins, unless there are none."""
    from pipeline.app.work import worker_of

    environ = {**os.environ, **({"PYTHONPATH": stand_in} if stand_in else {})}
    here = Repository.find(Path.cwd())
    worker_of(here, environ, None, lambda _line, _order: None, lambda _why: None, lambda _said: None).work(once=False)
