"""The orders: what is placed once is there once, who dies half-way leaves nothing half, and damage is told."""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import random
import select
import sqlite3
from itertools import count
from typing import TYPE_CHECKING

import pytest
from queued.stores import log_in

from pipeline.errors import UserError
from pipeline.pids import ProcessId
from pipeline.queue.order_lines import (
    OrderDropped,
    OrderEnded,
    OrderHeld,
    OrderLeft,
    OrderLine,
    OrderReleased,
    OrderStarted,
    OrderWorktree,
    RunWords,
)
from pipeline.queue.orders import Order, Wanted
from pipeline.queue.sqlite import DATABASE

if TYPE_CHECKING:
    from collections.abc import Callable
    from multiprocessing.connection import Connection
    from pathlib import Path


def placed(folder: Path, issue: str, *, via: str = "cli", **more: object) -> tuple[Order, bool]:
    with log_in(folder).locked() as log:
        return log.place(Wanted(via=via, issue=issue, **more))  # pyright: ignore[reportArgumentType]


def read(folder: Path) -> list[Order]:
    log = log_in(folder)
    log.read_on()
    return list(log.orders.values())


def test_an_order_is_read_as_it_was_placed(place: Path) -> None:
    words = RunWords(base="main", approve=("plan",), agent=("check=human",))
    order, new = placed(place, "GAL-1", options=words, priority=2)
    assert (new, read(place)) == (True, [order])
    assert (order.state, order.what, order.placed.priority) == ("queued", "GAL-1", 2)
    assert order.placed.options.argv() == ("--base=main", "--approve=plan", "--agent=check=human")


def test_an_open_issue_is_ordered_once_and_again_when_that_is_over(place: Path) -> None:
    first, _ = placed(place, "GAL-1")
    assert placed(place, "GAL-1") == (first, False)
    with log_in(place).locked() as log:
        log.add(OrderEnded(order=first.id, outcome="completed", reason="done"))
    second, new = placed(place, "GAL-1")
    assert new
    assert [one.state for one in read(place)] == ["ended", "queued"]
    assert second.id != first.id


def test_a_key_is_unique_also_when_its_order_is_over(place: Path) -> None:
    first, _ = placed(place, "GAL-1", key="delivery:1f")
    with log_in(place).locked() as log:
        log.add(OrderDropped(order=first.id, why="dropped by a person"))
    again, new = placed(place, "GAL-1", key="delivery:1f")
    assert (again.id, again.state, new) == (first.id, "dropped", False)


def test_writers_side_by_side_lose_nothing(place: Path) -> None:
    with multiprocessing.get_context("fork").Pool(4) as pool:
        pool.starmap(placed, [(place, f"GAL-{number % 10}") for number in range(40)])
    assert sorted(one.what for one in read(place)) == sorted(f"GAL-{number}" for number in range(10))


def _write(folder: Path, role: str, told: Connection) -> None:
    """Write what a console, a worker and a driver write, without end; tell each order that was placed."""
    for number in count():
        order, _ = placed(folder, f"GAL-{number}", via=role)
        told.send(order.id)
        with log_in(folder).locked() as log:
            if role == "worker":
                log.add(OrderStarted(order=order.id, pid=1, start_time=1, boot_id="b", log="/x"))
                log.add(OrderEnded(order=order.id, outcome="completed", reason="done"))
            elif role == "driver":
                log.add(OrderWorktree(order=order.id, folder="/w", branch="b", tip="0" * 40))


@pytest.mark.parametrize(
    "seed", [pytest.param(seed, marks=[pytest.mark.broad] if seed >= 3 else []) for seed in range(25)]
)
def test_a_writer_that_is_killed_loses_and_doubles_no_order(place: Path, seed: int) -> None:
    role, chance = ("console", "worker", "driver")[seed % 3], random.Random(seed)  # noqa: S311  (a schedule, no secret)
    told, its = multiprocessing.Pipe(duplex=False)
    writer = multiprocessing.get_context("fork").Process(target=_write, args=(place, role, its))
    writer.start()
    its.close()
    names: list[str] = [told.recv() for _ in range(chance.randint(1, 9))]
    select.select([], [], [], chance.uniform(0, 0.03))
    writer.kill()
    writer.join()
    with contextlib.suppress(EOFError):
        while True:
            names.append(told.recv())
    placed(place, "GAL-last")
    found = [one.id for one in read(place)][:-1]
    assert found[: len(names)] == names
    assert len(found) <= len(names) + 1, "at most the one that was placed and not yet told"
    assert all((one.state, len(one.drivers)) in {("queued", 0), ("ended", 1)} for one in read(place))


def garbage(path: Path) -> None:
    path.write_bytes(b"no database\n" * 900)


def truncated(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def empty(path: Path) -> None:
    os.truncate(path, 0)


def overwritten(path: Path) -> None:
    with path.open("r+b") as file:
        file.seek(100)
        file.write(b"\xff" * (path.stat().st_size - 100))


@pytest.mark.parametrize("damage", [garbage, truncated, empty, overwritten])
def test_a_damaged_database_is_told_to_who_reads_and_made_anew_by_who_writes(
    tmp_path: Path, damage: Callable[[Path], None], capsys: pytest.CaptureFixture[str]
) -> None:
    placed(tmp_path, "GAL-1")
    there = log_in(tmp_path)
    there.read_on()
    damage(tmp_path / DATABASE)
    damaged = (tmp_path / DATABASE).read_bytes()
    with pytest.raises(UserError, match="are damaged") as told:
        read(tmp_path)
    assert told.value.path == str(tmp_path / DATABASE)
    order, _ = placed(tmp_path, "GAL-2")
    said = capsys.readouterr().err
    assert "is damaged" in said
    assert "A worker orders again what claims and runs tell" in said
    there.read_on()
    assert ([*there.orders.values()], read(tmp_path)) == ([order], [order])
    (aside,) = tmp_path.glob("orders.sqlite.2*")
    assert (aside.read_bytes(), aside.name in said) == (damaged, True)


def test_orders_of_a_database_that_is_read_only_are_copied_by_who_writes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, _ = placed(tmp_path, "GAL-1")
    path = tmp_path / "orders.sqlite"
    with path.open("r+b") as file:
        file.seek(18)
        file.write(b"\x03")  # to be read only, so says the format: also to root
    assert read(tmp_path) == [first]
    second, _ = placed(tmp_path, "GAL-2")
    assert read(tmp_path) == [first, second]
    assert "cannot be written (attempt to write a readonly database)" in capsys.readouterr().err


@pytest.mark.parametrize("data", ["nothing", '{"order": "../x"}', '{"order": "o-ffffff"}'])
def test_a_line_that_cannot_be_read_is_told_with_its_place_and_kept(tmp_path: Path, data: str) -> None:
    placed(tmp_path, "GAL-1")
    with contextlib.closing(sqlite3.connect(tmp_path / "orders.sqlite")) as database, database:
        database.execute("INSERT INTO lines VALUES (2, '2026', 'order_held', 'o-ffffff', ?)", (data,))
    for ask in (lambda: read(tmp_path), lambda: placed(tmp_path, "GAL-2")):
        with pytest.raises(UserError, match="damaged at line 2") as told:
            ask()
        assert told.value.pointer == "/1"


def line(seq: int, kind: str, **data: object) -> dict[str, object]:
    said = {"order": "o-aaaaaa", **data}
    return {"schema": "redfirst.orders/1", "seq": seq, "at": "2026", "host": "h", "kind": kind, "data": said}


def write_earlier(folder: Path, *lines: dict[str, object]) -> Path:
    path = folder / "orders.jsonl"
    path.write_text("".join(f"{json.dumps(one)}\n" for one in lines))
    return path


def test_orders_of_an_earlier_version_are_taken_over_once(tmp_path: Path) -> None:
    forgotten = [{"order": "o-cccccc", "key": "landing shop-1/run-GAL-9", "what": "GAL-9"}]
    path = write_earlier(
        tmp_path,
        {"schema": "redfirst.orders-shortened/1", "at": "2026", "until": 3, "forgotten": forgotten},
        line(2, "order_placed", do="run", issue="GAL-1", via="cli", key="GAL-1#1"),
        line(3, "order_held"),
        line(4, "order_placed", order="o-bbbbbb", do="run", issue="GAL-2", via="cli", key="GAL-2#1"),
    )
    with path.open("a") as file:
        file.write('{"schema":"redfirst.ord')  # its writer was killed
    assert [(one.id, one.number, one.state) for one in read(tmp_path)] == [
        ("o-aaaaaa", 2, "held"),
        ("o-bbbbbb", 4, "queued"),
    ]
    assert not path.exists()
    assert placed(tmp_path, "GAL-9", key="landing shop-1/run-GAL-9")[0].id == "o-cccccc"
    assert placed(tmp_path, "GAL-2")[1] is False
    assert placed(tmp_path, "GAL-3")[0].number == 5


def test_orders_of_an_earlier_version_that_are_damaged_are_told_and_kept(tmp_path: Path) -> None:
    path = write_earlier(tmp_path, line(1, "order_fell"))
    with pytest.raises(UserError, match="damaged at line 1"):
        placed(tmp_path, "GAL-1")
    assert path.exists()


def test_an_order_is_driven_as_long_as_its_process_lives(place: Path) -> None:
    order, _ = placed(place, "GAL-1")
    here = ProcessId.of(os.getpid())
    assert here is not None

    def started(start_time: int) -> None:
        said = OrderStarted(order=order.id, pid=here.pid, start_time=start_time, boot_id=here.boot_id, log="/x")
        with log_in(place).locked() as log:
            log.add(said)

    started(here.start_time)
    assert read(place)[0].is_driven
    started(1)
    (now,) = read(place)
    assert (now.is_driven, now.is_open, len(now.drivers)) == (False, True, 2)


def test_only_what_died_by_itself_counts_as_a_death(place: Path) -> None:
    order, _ = placed(place, "GAL-1")
    with log_in(place).locked() as log:
        log.add(*(OrderLeft(order=order.id, why=why) for why in ("stopped", "died", "busy", "died")))
    assert (read(place)[0].deaths, read(place)[0].state) == (2, "queued")


def test_who_listens_is_told_of_what_comes_and_of_nothing_before(place: Path) -> None:
    placed(place, "GAL-1")
    log, heard = log_in(place), list[tuple[str, str]]()

    def hear(line: OrderLine, order: Order) -> None:
        heard.append((line.data.KIND, order.what))

    log.hears(hear)
    placed(place, "GAL-2")
    log.read_on()
    assert heard == [("order_placed", "GAL-2")]


def test_an_order_whose_driver_died_is_held_whatever_is_told_of_that_driver_later(place: Path) -> None:
    order, _ = placed(place, "GAL-1")
    started = OrderStarted(order=order.id, pid=999999, start_time=1, boot_id="another", log="/x")
    for line in (started, OrderHeld(order=order.id), OrderLeft(order=order.id, why="died")):
        with log_in(place).locked() as log:
            log.add(line)
    (held,) = read(place)
    assert (held.state, held.deaths, held.is_driven) == ("held", 1, False)
    with log_in(place).locked() as log:
        log.add(OrderReleased(order=order.id))
    assert read(place)[0].state == "queued"
