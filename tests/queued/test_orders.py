"""The journal of orders: what is placed once is there once, a torn line waits, and a damaged one is told."""

from __future__ import annotations

import json
import multiprocessing
import os
from typing import TYPE_CHECKING

import pytest

from pipeline.errors import UserError
from pipeline.pids import ProcessId
from pipeline.queue.lines import OrderDropped, OrderEnded, OrderLeft, OrderLine, OrderStarted, RunWords
from pipeline.queue.log import OrderLog
from pipeline.queue.order import Order, Wanted

if TYPE_CHECKING:
    from pathlib import Path


def placed(folder: Path, issue: str, **more: object) -> tuple[Order, bool]:
    with OrderLog(folder).locked() as log:
        return log.place(Wanted(via="cli", issue=issue, **more))  # pyright: ignore[reportArgumentType]


def read(folder: Path) -> list[Order]:
    log = OrderLog(folder)
    log.read_on()
    return list(log.orders.values())


def test_an_order_is_read_as_it_was_placed(tmp_path: Path) -> None:
    words = RunWords(base="main", approve=("plan",), agent=("check=human",))
    order, new = placed(tmp_path, "GAL-1", options=words, priority=2)
    assert (new, read(tmp_path)) == (True, [order])
    assert (order.state, order.what, order.placed.priority) == ("queued", "GAL-1", 2)
    assert order.placed.options.argv() == ("--base=main", "--approve=plan", "--agent=check=human")
    (text,) = (tmp_path / "orders.jsonl").read_text().splitlines()
    assert json.loads(text)["schema"] == "redfirst.orders/1"


def test_an_open_issue_is_ordered_once_and_again_when_that_is_over(tmp_path: Path) -> None:
    first, _ = placed(tmp_path, "GAL-1")
    assert placed(tmp_path, "GAL-1") == (first, False)
    with OrderLog(tmp_path).locked() as log:
        log.add(OrderEnded(order=first.id, outcome="completed", reason="done"))
    second, new = placed(tmp_path, "GAL-1")
    assert new
    assert [one.state for one in read(tmp_path)] == ["ended", "queued"]
    assert second.id != first.id


def test_a_key_is_unique_also_when_its_order_is_over(tmp_path: Path) -> None:
    first, _ = placed(tmp_path, "GAL-1", key="delivery:1f")
    with OrderLog(tmp_path).locked() as log:
        log.add(OrderDropped(order=first.id, why="dropped by a person"))
    again, new = placed(tmp_path, "GAL-1", key="delivery:1f")
    assert (again.id, again.state, new) == (first.id, "dropped", False)


def test_writers_side_by_side_lose_nothing(tmp_path: Path) -> None:
    with multiprocessing.get_context("fork").Pool(4) as pool:
        pool.starmap(placed, [(tmp_path, f"GAL-{number % 10}") for number in range(40)])
    assert sorted(one.what for one in read(tmp_path)) == sorted(f"GAL-{number}" for number in range(10))


def test_check_4_a_torn_last_line_waits_and_is_cut_off_by_the_next_writer(tmp_path: Path) -> None:
    order, _ = placed(tmp_path, "GAL-1")
    path = tmp_path / "orders.jsonl"
    whole = path.read_bytes()
    reader = OrderLog(tmp_path)
    path.write_bytes(whole + b'{"schema":"redfirst.ord')
    assert (len(reader.read_on()), [*reader.orders]) == (1, [order.id])
    second, _ = placed(tmp_path, "GAL-2")
    assert [line.data.order for line in reader.read_on()] == [second.id]
    assert path.read_bytes().startswith(whole)
    assert len(path.read_text().splitlines()) == 2


@pytest.mark.parametrize(
    "line",
    [
        b"nothing\n",
        b'{"schema":"redfirst.orders/2"}\n',
        b'{"at":"2026","data":{"order":"o-aaaaaa"},"host":"h","kind":"order_fell","schema":"redfirst.orders/1","seq":2}\n',
        b'{"at":"2026","data":{"order":"o-ffffff"},"host":"h","kind":"order_held","schema":"redfirst.orders/1","seq":2}\n',
        b'{"at":"2026","data":{"order":"../x"},"host":"h","kind":"order_held","schema":"redfirst.orders/1","seq":2}\n',
    ],
)
def test_a_damaged_line_is_told_with_its_place(tmp_path: Path, line: bytes) -> None:
    placed(tmp_path, "GAL-1")
    with (tmp_path / "orders.jsonl").open("ab") as file:
        file.write(line)
    with pytest.raises(UserError, match="damaged at line 2") as told:
        read(tmp_path)
    assert told.value.pointer == "/1"


def test_an_order_is_driven_as_long_as_its_process_lives(tmp_path: Path) -> None:
    order, _ = placed(tmp_path, "GAL-1")
    here = ProcessId.of(os.getpid())
    assert here is not None

    def started(start_time: int) -> None:
        said = OrderStarted(order=order.id, pid=here.pid, start_time=start_time, boot_id=here.boot_id, log="/x")
        with OrderLog(tmp_path).locked() as log:
            log.add(said)

    started(here.start_time)
    assert read(tmp_path)[0].is_driven
    started(1)
    (now,) = read(tmp_path)
    assert (now.is_driven, now.is_open, now.starts) == (False, True, 2)


def test_only_what_died_by_itself_counts_as_a_death(tmp_path: Path) -> None:
    order, _ = placed(tmp_path, "GAL-1")
    with OrderLog(tmp_path).locked() as log:
        log.add(*(OrderLeft(order=order.id, why=why) for why in ("stopped", "died", "busy", "died")))
    assert (read(tmp_path)[0].deaths, read(tmp_path)[0].state) == (2, "queued")


def test_who_listens_is_told_of_what_comes_and_of_nothing_before(tmp_path: Path) -> None:
    placed(tmp_path, "GAL-1")
    log, heard = OrderLog(tmp_path), list[tuple[str, str]]()

    def hear(line: OrderLine, order: Order) -> None:
        heard.append((line.kind, order.what))

    log.hears(hear)
    placed(tmp_path, "GAL-2")
    log.read_on()
    assert heard == [("order_placed", "GAL-2")]
