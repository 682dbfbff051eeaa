"""Orders that are removed: nothing of the others changes, no key is free again, and no reader is misled."""

from __future__ import annotations

import multiprocessing
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from queued.stores import log_in
from queued.test_orders import placed, read
from runs.real import make_repository

from pipeline.app.gc import swept
from pipeline.queue.order_lines import OrderDropped, OrderEnded, OrderHeld
from pipeline.queue.orders import OrderLog, Wanted, log_of
from pipeline.queue.orders import read as read_orders
from pipeline.queue.sqlite import DATABASE
from pipeline.repo import NO_OBJECT

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.queue.orders import Order

pytestmark = pytest.mark.slow


def do(folder: Path, deeds: list[tuple[str, str]]) -> None:
    for deed, issue in deeds:
        with log_in(folder).locked() as log:
            order = next((one for one in log.orders.values() if one.what == issue and one.is_open), None)
            if deed == "place" or order is None:
                log.place(Wanted(via="cli", issue=issue))
                continue
            match deed:
                case "end":
                    log.add(OrderEnded(order=order.id, outcome="completed", reason="done"))
                case "drop":
                    log.add(OrderDropped(order=order.id, why="dropped by a person"))
                case _:
                    log.add(OrderHeld(order=order.id))


def remove(folder: Path, keep: int) -> set[str]:
    """Remove all closed orders but the last *keep*; return them."""
    with log_in(folder).locked() as log:
        closed = [one.id for one in log.orders.values() if not one.is_open]
        gone = set(closed[: len(closed) - keep])
        log.remove(gone)
    return gone


def test_the_rest_folds_as_before_and_a_reader_hears_each_line_once(place: Path) -> None:
    reader = log_in(place)
    do(place, [("place", "GAL-1"), ("end", "GAL-1"), ("place", "GAL-2"), ("hold", "GAL-2"), ("place", "GAL-3")])
    told = [line.seq for line in reader.read_on()]
    before = read(place)
    assert remove(place, 0) == {before[0].id}
    assert read(place) == before[1:]
    do(place, [("drop", "GAL-3"), ("place", "GAL-1")])
    remove(place, 0)
    told += [line.seq for line in reader.read_on()]
    assert told == [1, 2, 3, 4, 5, 7]
    assert [one.what for one in read(place)] == ["GAL-2", "GAL-1"]


def test_a_key_of_a_removed_order_stays_used(place: Path) -> None:
    first, _ = placed(place, "GAL-1", key="landing shop-1/run-GAL-1")
    second, _ = placed(place, "GAL-2")
    do(place, [("drop", "GAL-1"), ("end", "GAL-2")])
    assert remove(place, 0) == {first.id, second.id}
    assert read(place) == []
    again, new = placed(place, "GAL-1", key="landing shop-1/run-GAL-1")
    assert (again.id, again.what, again.state, new) == (first.id, "GAL-1", "dropped", False)
    third, new = placed(place, "GAL-2")
    assert (third.placed.key, third.number, new) == ("GAL-2#2", 5, True)
    assert remove(place, 0) == set()


def test_an_issue_that_is_in_the_queue_is_not_ordered_twice_whoever_ordered_it(place: Path) -> None:
    landing, _ = placed(place, "GAL-1", key="landing shop-1/run-GAL-1")
    assert placed(place, "GAL-1") == (landing, False)


def test_what_is_open_is_not_removed(place: Path) -> None:
    order, _ = placed(place, "GAL-1")
    with log_in(place).locked() as log:
        log.remove({order.id})
    assert read(place) == [order]


def _write(folder: Path, number: int) -> None:
    if number % 5:
        placed(folder, f"GAL-{number}")
        do(folder, [("drop", f"GAL-{number}")])
    else:
        remove(folder, 0)


def test_writers_lose_nothing_while_orders_are_removed(place: Path) -> None:
    with multiprocessing.get_context("fork").Pool(4) as pool:
        pool.starmap(_write, [(place, number) for number in range(60)])
    remove(place, 0)
    log = log_in(place)
    with log.locked():
        orders = [log.place(Wanted(via="cli", issue=f"GAL-{number}"))[0] for number in range(60) if number % 5]
    assert {order.placed.key for order in orders} == {f"GAL-{number}#2" for number in range(60) if number % 5}


def test_gc_removes_what_closed_90_days_ago(tmp_path: Path) -> None:
    here, environ = make_repository(tmp_path / "project"), {"HOME": str(tmp_path)}
    old = datetime.now(UTC) - timedelta(days=91)
    with OrderLog(log_of(here, environ).folder, clock=lambda: old).locked() as log:
        for issue in ("GAL-1", "GAL-2"):
            order: Order = log.place(Wanted(via="cli", issue=issue))[0]
        log.add(OrderDropped(order=order.id, why="dropped by a person"))
    said = "1 order closed 90 days ago or more"
    for apply, status in ((False, "would_remove"), (True, "removed")):
        (thing,) = swept(here, environ, older_than_s=1, apply=apply).things
        assert (thing.kind, thing.status, thing.why) == ("orders", status, said)
    assert [one.what for one in read_orders(here, environ)] == ["GAL-1"]
    assert swept(here, environ, older_than_s=1).things == ()


@pytest.mark.parametrize("is_link", [False, True], ids=["damaged", "a link"])
def test_gc_keeps_a_journal_of_orders_that_it_cannot_read_and_looks_at_the_rest(tmp_path: Path, is_link: bool) -> None:
    here, environ = make_repository(tmp_path / "project"), {"HOME": str(tmp_path)}
    path = log_of(here, environ).folder / DATABASE
    path.parent.mkdir(parents=True)
    if is_link:
        path.symlink_to(tmp_path / "elsewhere")
    else:
        path.write_text("no database\n")
    here.set_ref("refs/redfirst/publish/shop-1/run-GAL-1", here.resolve("HEAD") or "", NO_OBJECT)
    for apply in (False, True):
        ref, orders = swept(here, environ, older_than_s=1, apply=apply).things
        assert (ref.kind, orders.kind, orders.status) == ("publish_ref", "orders", "kept")
        assert ("symbolic link" if is_link else "damaged") in orders.why
