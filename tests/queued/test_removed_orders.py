"""Orders that are removed: nothing of the others changes, no key is free again, and no reader is misled."""

from __future__ import annotations

import multiprocessing
import shutil
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from queued.test_orders import placed, read
from runs.real import make_repository

from pipeline.errors import UserError
from pipeline.git import NO_OBJECT
from pipeline.queue.lines import OrderDropped, OrderEnded, OrderHeld, OrderLeft
from pipeline.queue.log import OrderLog
from pipeline.queue.order import Wanted
from pipeline.queue.orders import log_of
from pipeline.queue.orders import read as read_orders
from pipeline.service.gc import swept

if TYPE_CHECKING:
    from pipeline.queue.order import Order

pytestmark = pytest.mark.slow

ISSUES = ("GAL-1", "GAL-2", "GAL-3")
DEEDS = st.lists(
    st.tuples(st.sampled_from(("place", "end", "drop", "hold", "left")), st.sampled_from(ISSUES)), max_size=14
)


def do(folder: Path, deeds: list[tuple[str, str]]) -> None:
    for deed, issue in deeds:
        with OrderLog(folder).locked() as log:
            order = next((one for one in log.orders.values() if one.what == issue and one.is_open), None)
            if deed == "place" or order is None:
                log.place(Wanted(via="cli", issue=issue))
                continue
            match deed:
                case "end":
                    log.add(OrderEnded(order=order.id, outcome="completed", reason="done"))
                case "drop":
                    log.add(OrderDropped(order=order.id, why="dropped by a person"))
                case "hold":
                    log.add(OrderHeld(order=order.id))
                case _:
                    log.add(OrderLeft(order=order.id, why="died"))


def remove(folder: Path, keep: int) -> set[str]:
    """Remove all closed orders but the last *keep*; return them."""
    with OrderLog(folder).locked() as log:
        closed = [one.id for one in log.orders.values() if not one.is_open]
        gone = set(closed[: len(closed) - keep])
        log.remove(gone)
    return gone


@pytest.mark.broad
@given(DEEDS, DEEDS, st.integers(0, 2))
def test_the_rest_folds_as_before_and_a_reader_hears_each_line_once(
    first: list[tuple[str, str]], then: list[tuple[str, str]], keep: int
) -> None:
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        reader = OrderLog(folder)
        do(folder, first)
        told = [line.seq for line in reader.read_on()]
        before = {one.id: one for one in read(folder)}
        gone = remove(folder, keep)
        assert {one.id: one for one in read(folder)} == {id_: one for id_, one in before.items() if id_ not in gone}
        do(folder, then)
        remove(folder, keep)
        do(folder, [("place", "GAL-1")])
        told += [line.seq for line in reader.read_on()]
        fresh = OrderLog(folder)
        left = [line.seq for line in fresh.read_on()]
        assert sorted(set(told)) == told
        assert [number for number in left if number > (told or [0])[-1]] == []
        assert reader.orders == fresh.orders
        assert len({one.placed.key for one in fresh.orders.values()}) == len(fresh.orders)
        assert sum(one.what == "GAL-1" and one.is_open for one in fresh.orders.values()) == 1


def test_a_key_of_a_removed_order_stays_used(tmp_path: Path) -> None:
    first, _ = placed(tmp_path, "GAL-1", key="landing shop-1/run-GAL-1")
    second, _ = placed(tmp_path, "GAL-2")
    do(tmp_path, [("drop", "GAL-1"), ("end", "GAL-2")])
    assert remove(tmp_path, 0) == {first.id, second.id}
    assert read(tmp_path) == []
    again, new = placed(tmp_path, "GAL-1", key="landing shop-1/run-GAL-1")
    assert (again.id, again.what, again.state, new) == (first.id, "GAL-1", "dropped", False)
    third, new = placed(tmp_path, "GAL-2")
    assert (third.placed.key, third.number, new) == ("GAL-2#2", 5, True)
    assert remove(tmp_path, 0) == set()


WANTED = st.builds(
    Wanted,
    via=st.just("sweep"),
    issue=st.sampled_from((None, "GAL-1")),
    run=st.sampled_from(("shop-1/run-GAL-1", "shop-1/run-GAL-2")),
    key=st.sampled_from((None, "a", "b", "GAL-1#1")),
) | st.builds(Wanted, via=st.just("cli"), issue=st.sampled_from(ISSUES), key=st.sampled_from((None, "a", "landing b")))


def place_all(folder: Path, wanted: list[tuple[Wanted, bool]]) -> list[tuple[str, bool]]:
    """Place orders, and drop some at once; return the key of each, and whether it is new."""
    found: list[tuple[str, bool]] = []
    for one, drops in wanted:
        with OrderLog(folder).locked() as log:
            order, new = log.place(one)
            if drops and order.is_open:
                log.add(OrderDropped(order=order.id, why="dropped by a person"))
        found.append((order.placed.key, new))
    return found


@given(st.lists(st.tuples(WANTED, st.booleans()), max_size=8), st.lists(st.tuples(WANTED, st.booleans()), max_size=8))
def test_what_is_placed_after_a_removal_is_what_would_be_placed_without(
    first: list[tuple[Wanted, bool]], then: list[tuple[Wanted, bool]]
) -> None:
    with tempfile.TemporaryDirectory() as place:
        kept, shortened = Path(place, "kept"), Path(place, "shortened")
        place_all(kept, first)
        shutil.copytree(kept, shortened) if first else kept.mkdir()
        remove(shortened, 0)
        assert place_all(shortened, then) == place_all(kept, then)


def test_an_issue_that_is_in_the_queue_is_not_ordered_twice_whoever_ordered_it(tmp_path: Path) -> None:
    landing, _ = placed(tmp_path, "GAL-1", key="landing shop-1/run-GAL-1")
    assert placed(tmp_path, "GAL-1") == (landing, False)


@pytest.mark.parametrize("opens", [False, True], ids=["the first line", "another line"])
def test_words_of_an_order_are_no_head_of_a_shortened_journal(tmp_path: Path, opens: bool) -> None:
    if opens:
        placed(tmp_path, "GAL-3")
    words = 'once {"schema": "redfirst.orders-shortened/1"}'
    order, _ = placed(tmp_path, "GAL-1", key=words)
    placed(tmp_path, "GAL-2")
    do(tmp_path, [("drop", "GAL-2")])
    remove(tmp_path, 0)
    assert order in read(tmp_path)
    placed(tmp_path, "GAL-2")
    do(tmp_path, [("drop", "GAL-2")])
    remove(tmp_path, 0)
    assert order in read(tmp_path)


def test_what_is_open_is_not_removed_and_a_missing_line_is_damage(tmp_path: Path) -> None:
    order, _ = placed(tmp_path, "GAL-1")
    placed(tmp_path, "GAL-2")
    do(tmp_path, [("drop", "GAL-2")])
    before = (tmp_path / "orders.jsonl").read_bytes()
    with OrderLog(tmp_path).locked() as log:
        log.remove({order.id})
    assert (tmp_path / "orders.jsonl").read_bytes() == before
    remove(tmp_path, 0)
    do(tmp_path, [("hold", "GAL-1"), ("place", "GAL-3")])
    path = tmp_path / "orders.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:2] + lines[3:]))
    with pytest.raises(UserError, match="damaged at line 4"):
        read(tmp_path)
    path.write_bytes(b'{"schema":"redfirst.orders-shortened/1"}\n' + b"".join(lines[1:]))
    with pytest.raises(UserError, match="damaged at line 1"):
        read(tmp_path)


def _write(folder: Path, number: int) -> None:
    if number % 5:
        placed(folder, f"GAL-{number}")
        do(folder, [("drop", f"GAL-{number}")])
    else:
        remove(folder, 0)


def test_writers_lose_nothing_while_orders_are_removed(tmp_path: Path) -> None:
    with multiprocessing.get_context("fork").Pool(4) as pool:
        pool.starmap(_write, [(tmp_path, number) for number in range(60)])
    remove(tmp_path, 0)
    log = OrderLog(tmp_path)
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
    path = log_of(here, environ).path
    path.parent.mkdir(parents=True)
    if is_link:
        path.symlink_to(tmp_path / "elsewhere")
    else:
        path.write_text("no line of orders\n")
    here.set_ref("refs/redfirst/publish/shop-1/run-GAL-1", here.resolve("HEAD") or "", NO_OBJECT)
    for apply in (False, True):
        ref, orders = swept(here, environ, older_than_s=1, apply=apply).things
        assert (ref.kind, orders.kind, orders.status) == ("publish_ref", "orders", "kept")
        assert ("symbolic link" if is_link else "damaged at line 1") in orders.why
