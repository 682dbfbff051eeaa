"""The queue of a fleet at scale: limits hold over all machines, and what it takes grows as the orders do."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest
from fleet import scale
from postgres import needs_postgres
from queued import sums_project
from queued.stores import new_database

from pipeline.app.ordering import order
from pipeline.app.work import RepositoryWork
from pipeline.queue.lines import RunWords
from pipeline.queue.orders import Wanted, log_of
from pipeline.repo import Repository

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.slow


@needs_postgres
def test_limits_hold_over_machines_and_no_order_is_begun_twice(tmp_path: Path) -> None:
    table = "jobs = 4\nper_repo = 5\nper_provider = 3"
    shop = scale.make(tmp_path, new_database("scale"), 30, 2, table, driver_s=0.05)
    shop.place(30)
    with shop.workers():
        lines = shop.wait_for_all()
    log = shop.log()
    log.read_on()
    orders = set(log.orders)
    others = {one.id for one in log.orders.values() if one.placed.options.values}
    assert {(one.outcome, one.starts) for one in log.orders.values()} == {("completed", 1)}
    assert (len(orders), len(others)) == (30, 15)
    assert 2 <= scale.most_at_once(lines, orders) <= 5
    assert max(scale.most_at_once(lines, each) for each in (others, orders - others)) <= 3


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
