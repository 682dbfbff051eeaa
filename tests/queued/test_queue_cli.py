"""`redfirst queue`: what is ordered, held, released and dropped, and what is told of it."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from queued.sums_project import make

from pipeline.app.events import checked
from pipeline.faces.cli.queue import line_text
from pipeline.pids import ProcessId, boot_id
from pipeline.queue.order_lines import OrderDropped, OrderEnded, OrderLine, OrderPlaced, OrderStarted
from pipeline.queue.orders import Order, Wanted

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow


def test_orders_are_added_once_held_released_and_dropped(tmp_path: Path) -> None:
    queued = make(tmp_path, 3)
    added = queued.redfirst("queue", "add", "gal-1", "GAL-2", "--priority", "1", "--hold")
    again = queued.redfirst("queue", "add", "GAL-2", "GAL-3")
    names = [one["order"] for one in queued.orders()]
    assert [one["order"] for one in added["orders"]] == names[:2]
    assert [one["order"] for one in again["orders"]] == names[1:]
    assert set(queued.dry_run().values()) == {"", *(f"it is held: redfirst queue release {name}" for name in names[:2])}
    queued.redfirst("queue", "release", "GAL-2")
    assert [name for name, why in queued.dry_run().items() if not why] == ["GAL-2", "GAL-3"]
    queued.redfirst("queue", "drop", "gal-3", names[0])
    assert [one["state"] for one in queued.orders()] == ["dropped", "queued", "dropped"]
    text = queued.project.redfirst("queue", "list").stdout
    assert f"{names[1]}  GAL-2" in text.splitlines()[0]
    events = queued.project.redfirst("events", "--type", "order.*").stdout.splitlines()
    assert [json.loads(line)["type"].split(".")[2] for line in events] == [*["placed"] * 3, *["dropped"] * 2]
    assert all(map(checked().validate_json, events))
    third = json.loads(events[2])["id"]
    assert queued.project.redfirst("events", "--since", third).stdout.splitlines() == events[3:]


@pytest.mark.parametrize("more", [("--hold",), ("--approve", "plan"), ("--priority", "3"), ("--recipe", "quick")])
@pytest.mark.broad(but_first=1)
def test_what_an_open_order_would_not_do_is_refused(tmp_path: Path, more: tuple[str, ...]) -> None:
    queued = make(tmp_path, 2)
    queued.redfirst("queue", "add", "GAL-1")
    refused = queued.redfirst("queue", "add", "GAL-2", "GAL-1", *more)
    (order,) = queued.orders()
    assert refused["_code"] == 2
    assert f"GAL-1 is in the queue already ({order['order']}, queued)" in refused["error"]["message"]
    queued.project.redfirst(*refused["error"]["safe_next_actions"][0].split()[1:])
    assert queued.redfirst("queue", "add", "GAL-2", "GAL-1", *more)["_code"] == 0
    assert (
        queued.redfirst("queue", "add", "GAL-1", *more)["_code"]
        == queued.redfirst("queue", "add", "GAL-1")["_code"]
        == 0
    )


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (("add", "GAL-9"), "GAL-9"),
        (("add", "GAL-1", "--set", "nothing=1"), "nothing"),
        (("add", "run-GAL-1"), "is not a run of this repository"),
        (("add", "GAL-1", "--approve", "nonsense"), "--approve takes plan, split, commit"),
        (("add", "GAL-1", "--recipe", "nope"), "nope"),
        (("drop", "GAL-1"), "No order of the queue is called 'GAL-1'"),
    ],
)
@pytest.mark.broad(but_first=1)
def test_what_is_not_there_is_refused_and_nothing_is_ordered(tmp_path: Path, argv: tuple[str, ...], said: str) -> None:
    queued = make(tmp_path, 1)
    document = queued.redfirst("queue", *argv)
    assert (document["_code"], document["ok"]) == (2, False)
    assert said in document["error"]["message"]
    assert queued.orders() == []


def test_an_order_that_is_over_is_known_as_such(tmp_path: Path) -> None:
    queued = make(tmp_path, 1)
    queued.add()
    assert queued.redfirst("queue", "drop", "GAL-1")["ok"]
    again = queued.redfirst("queue", "drop", "GAL-1")["error"]["message"]
    assert again == "The order 'GAL-1' of the queue is over: there is nothing to drop."


@pytest.mark.broad
def test_who_watches_a_worker_is_told_what_other_machines_do_without_their_paths() -> None:
    placed = OrderPlaced(order="o-123abc", do="run", issue="GAL-1", via="cli", key="a")
    mine = Order("o-123abc", placed, 1, "", drivers=(ProcessId(1, 1, boot_id()),), run="w/run-GAL-1", outcome="parked")
    theirs = replace(mine, drivers=(ProcessId(1, 1, "another boot"),))
    lines = (
        (OrderStarted(order="o-123abc", pid=1, start_time=1, boot_id="", log="/l"), "begun, its log is /l", "begun"),
        (OrderEnded(order="o-123abc", outcome="parked", reason="input"), "redfirst show w/", "redfirst fleet take w/"),
        (OrderDropped(order="o-123abc", why="x"), "Look at its log", "dropped, x"),
    )
    for fact, here, there in lines:
        line = OrderLine(1, "2026-01-01T00:00:00Z", fact)
        assert here in line_text(line, mine)
        assert "GAL-1 (o-123abc, at another machine): " in line_text(line, theirs)
        assert there in line_text(line, theirs)
        assert "log" not in line_text(line, theirs)


def test_a_repository_does_not_say_what_the_machine_does(tmp_path: Path) -> None:
    queued = make(tmp_path, 1)
    queued.project.write({"redfirst.toml": "[limits.work]\njobs = 60\n"})
    queued.project.commit()
    document = queued.redfirst("work", "--dry-run")
    assert document["error"]["kind"] == "config"
    assert "limits.work.jobs counts in your own configuration alone" in document["error"]["message"]


def test_an_order_of_a_run_and_its_issue_is_known_by_the_plain_name_of_the_run(tmp_path: Path) -> None:
    queued = make(tmp_path, 1)
    with queued.log().locked() as log:
        log.place(Wanted(via="sweep", issue="GAL-1", run="project-gal-1-abcdef/run-GAL-1"))
    assert queued.redfirst("queue", "hold", "run-GAL-1")["ok"]
    assert queued.redfirst("queue", "drop", "project-gal-1-abcdef/run-GAL-1")["ok"]
    assert [one["state"] for one in queued.orders()] == ["dropped"]
