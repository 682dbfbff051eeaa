"""The queue of a fleet at scale: limits hold over all machines, and what it takes grows as the orders do."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import pytest
from fleet import scale
from postgres import needs_postgres
from queued import sums_project
from queued.stores import new_database

from pipeline.app.ordering import order
from pipeline.app.work import RepositoryWork
from pipeline.pids import ProcessId
from pipeline.queue.order_lines import OrderStarted, RunWords
from pipeline.queue.orders import Wanted, log_of
from pipeline.queue.worker import Worker
from pipeline.repo import Repository

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pipeline.queue.orders import OrderLog
    from pipeline.queue.pick import Candidate, Room

pytestmark = pytest.mark.slow


@needs_postgres
def test_limits_hold_over_machines_and_no_order_is_begun_twice(tmp_path: Path) -> None:
    table = "jobs = 4\nper_repo = 5\nper_provider = 3"
    shop = scale.make(tmp_path, new_database("scale"), 12, 2, table, driver_s=0.05)
    shop.place(12)
    with shop.workers():
        lines = shop.wait_for_all()
    log = shop.log()
    log.read_on()
    assert {(one.outcome, len(one.drivers)) for one in log.orders.values()} == {("completed", 1)}
    most, each = scale.most_of_all(shop, lines)
    assert 2 <= most <= 5
    assert [1 <= one <= 3 for one in each] == [True, True]


def test_who_loses_an_order_to_another_worker_begins_the_next_one(tmp_path: Path) -> None:
    queued = sums_project.make(tmp_path, 2)
    here, environ = Repository.find(queued.project.root), queued.project.environment()
    environ["PYTHONPATH"] = str(scale.stand_in(tmp_path))
    first, _ = order(here, environ, queued.ids, RunWords())

    class Late(RepositoryWork):
        """What a worker knows that is slower than another one, once."""

        def look(self, log: OrderLog, *, only: bool = False) -> tuple[list[Candidate], Room]:
            found = super().look(log, only=only)
            me = ProcessId.of(os.getpid())
            with log_of(here, environ).locked() as other:
                if me is not None and not other.orders[first.id].drivers:
                    begun = OrderStarted(
                        order=first.id, log="", pid=me.pid, start_time=me.start_time, boot_id=me.boot_id
                    )
                    other.add(begun)
            return found

    log, work = log_of(here, environ), Late(here, environ, 1)
    Worker(log, work.shared, work, here.worktree, environ, lambda _line, _order: None, lambda _why: None, print).work(
        once=True
    )
    assert [one.state for one in log.orders.values()] == ["started", "ended"]


def test_what_a_look_and_an_order_cost_grows_as_their_number_does(tmp_path: Path) -> None:
    queued = sums_project.make(tmp_path, 160)
    here, environ = Repository.find(queued.project.root), queued.project.environment()
    order(here, environ, ["GAL-1"], RunWords())  # what is imported once counts for nobody
    few = calls(lambda: order(here, environ, queued.ids[:20], RunWords()))
    assert calls(lambda: order(here, environ, queued.ids[:80], RunWords())) < 4.4 * few
    log, work = log_of(here, environ), RepositoryWork(here, environ)
    work.look(log)
    looked = calls(lambda: work.look(log))
    with log.locked():
        for issue in queued.ids[80:]:
            log.place(Wanted(via="cli", issue=issue))
    assert calls(lambda: work.look(log)) < 2.2 * looked


def calls(does: Callable[[], object]) -> int:
    """Return how many functions are called meanwhile: unlike time, the same on a busy machine."""
    found = 0

    def count(_frame: object, event: str, _of: object) -> None:
        nonlocal found
        found += event in {"call", "c_call"}

    sys.setprofile(count)
    try:
        does()
    finally:
        sys.setprofile(None)
    return found
