"""Machines of a fleet that die, freeze and get lost, a server that crashes: nothing is lost or done twice."""

from __future__ import annotations

import os
import select
import shutil
import signal
import time
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pytest
from fleet.chaos import ChaosFleet, Pace, needs_machines
from postgres import needs_postgres
from queued.sums_project import KNOWN
from waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Generator

    from postgres import Server

pytestmark = [pytest.mark.slow, pytest.mark.broad, needs_postgres, needs_machines]
ROOT = Path(__file__).parents[2]
QUICK = Pace(stalled_s=4, looks_s=1, thinks_s=0.5)
FAKETIME = next(iter(Path("/usr/lib").glob("*/faketime/libfaketime.so.1")), None)


@contextmanager
def fleet_of(place: Path, server: Server, count: int, pace: Pace = QUICK, machines: int = 3) -> Generator[ChaosFleet]:
    """Yield a fleet that is off; nothing of it is left afterwards."""
    fleet = ChaosFleet(place, server, count, pace)
    try:
        fleet.make(machines)
        yield fleet
    finally:
        fleet.end()


def test_33_a_fleet_under_fire_loses_nothing_and_moves_each_branch_once(tmp_path: Path, own: Server) -> None:
    with fleet_of(tmp_path, own, 3) as fleet:
        fleet.under_fire(1, {"kill": 2, "freeze": 1, "restart": 1}, 200)
        fleet.rest()
        fleet.lost_nothing()


@pytest.mark.timeout(3000)
def test_33_fifty_kills_fifty_freezes_and_ten_restarts(tmp_path: Path, own: Server) -> None:
    with fleet_of(tmp_path, own, 200, Pace(stalled_s=10, looks_s=3, thinks_s=1)) as fleet:
        fleet.under_fire(33, {"kill": 40, "lost": 10, "driver": 10, "freeze": 50, "restart": 10}, 1200)
        fleet.rest()
        fleet.lost_nothing()


@pytest.mark.timeout(1500)
def test_33_a_machine_that_dies_or_freezes_is_replaced_within_45_seconds(tmp_path: Path, own: Server) -> None:
    with fleet_of(tmp_path, own, 20, Pace()) as fleet:
        fleet.under_fire(45, {"kill": 4, "freeze": 3}, 400)
        fleet.rest()
        fleet.lost_nothing()
        assert max(max(each) for each in fleet.takeovers().values() if each) < 45


@pytest.mark.parametrize("away_s", [pytest.param(4, id="seconds"), pytest.param(300, id="minutes")])
def test_35_a_hub_that_is_away_loses_nothing_and_nobody_takes_over(tmp_path: Path, own: Server, away_s: float) -> None:
    with fleet_of(tmp_path, own, 2, machines=2) as fleet:
        for number in (1, 2):
            fleet.order(number)
        for machine in fleet.machines:
            machine.start()
        wait_until(lambda: fleet.asked("GAL-1") > 0 and fleet.asked("GAL-2") > 0)
        away = fleet.hub.with_name("away")
        fleet.hub.rename(away)
        wait_until(lambda: all("the hub is out of reach" in said for said in fleet.driver_logs()))
        time.sleep(away_s)  # that it lasts is what is tested
        assert [one.state for one in fleet.orders()] == ["started", "started"]
        away.rename(fleet.hub)
        fleet.until_done()
        fleet.rest()
        fleet.lost_nothing()
        assert [len(one.drivers) for one in fleet.orders()] == [1, 1]


@pytest.mark.skipif(FAKETIME is None, reason="faketime is not installed: scripts/system-packages.sh")
def test_36_a_machine_whose_clock_is_a_day_ahead_steals_nothing_and_loses_nothing(tmp_path: Path, own: Server) -> None:
    with fleet_of(tmp_path, own, 2, machines=2) as fleet:
        ahead, right = fleet.machines
        ahead.env = {"LD_PRELOAD": str(FAKETIME), "FAKETIME": "+1d"}
        fleet.order(1)
        right.start()
        fleet.until(1, 2)
        ahead.start()
        fleet.order(2)  # and it finds the other one, which is driven by a machine that looks a day late
        fleet.until(2, 2)
        assert [len(one.drivers) for one in fleet.orders()] == [1, 1]
        fleet.kill(right)
        fleet.until_done()
        fleet.rest()
        fleet.lost_nothing()
        assert len(fleet.orders()) == 2


def test_33_a_run_comes_back_to_a_machine_that_had_it_before(tmp_path: Path, own: Server) -> None:
    with fleet_of(tmp_path, own, 1, machines=2) as fleet:
        fleet.order(1)
        for asked, machine in ((2, fleet.machines[0]), (4, fleet.machines[1])):
            machine.start()
            fleet.until(1, asked)
            fleet.kill(machine)
        fleet.machines[0].start()
        fleet.until_done()
        fleet.rest()
        fleet.lost_nothing()
        assert len(fleet.orders()[0].drivers) == 3


def test_33_what_a_machine_had_published_before_it_was_lost_is_not_done_again(tmp_path: Path, own: Server) -> None:
    with fleet_of(tmp_path, own, 1, machines=2) as fleet:
        fleet.order(1)
        one, two = fleet.machines
        one.start()
        wait_until((fleet.hub / "refs/heads/gal-1-double-m1").exists)
        fleet.lose(one)
        assert fleet.orders()[0].is_open, "its worker was quicker"
        two.start()
        fleet.until_done()
        two.stop()
        fleet.lost_nothing()
        assert fleet.asked("GAL-1") == 7


FALLS = """
CREATE SEQUENCE starts;
CREATE FUNCTION falls() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    IF NEW.kind = 'order_started' AND nextval('starts') = 1 THEN PERFORM pg_terminate_backend(pg_backend_pid()); END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER falls BEFORE INSERT ON redfirst_lines FOR EACH ROW EXECUTE FUNCTION falls();
"""


def test_33_a_driver_does_nothing_of_which_the_server_does_not_take_that_it_was_begun(
    tmp_path: Path, own: Server
) -> None:
    with fleet_of(tmp_path, own, 1, machines=1) as fleet:
        (one,) = fleet.machines
        with psycopg.connect(own.dsn()) as session:
            session.execute(FALLS)
        fleet.order(1)
        one.start()
        fleet.until_done()
        one.stop()
        fleet.lost_nothing()
        assert "the orders can be had again" in (one.folder / "said").read_text()
        assert [line["kind"] for line in fleet.journal("GAL-1")].count("run_resumed") == 0
        assert (fleet.orders()[0].deaths, fleet.asked("GAL-1")) == (0, 7)


def test_a_run_that_was_only_brought_here_goes_on_with_the_flags_of_its_order(tmp_path: Path, own: Server) -> None:
    with fleet_of(tmp_path, own, 1, machines=2) as fleet:
        fleet.order(1)
        one, two = fleet.machines
        one.start()
        fleet.until(1, 2)
        fleet.kill(one)
        assert two.redfirst("fleet", "take", "run-GAL-1").returncode == 0
        two.start()
        fleet.until_done()
        two.stop()
        fleet.lost_nothing()


def test_a_run_whose_worker_was_stopped_goes_on_at_another_machine(tmp_path: Path, own: Server) -> None:
    with fleet_of(tmp_path, own, 1, machines=2) as fleet:
        fleet.order(1)
        one, two = fleet.machines
        one.start()
        fleet.until(1, 2)
        one.stop()
        two.start()
        fleet.until_done()
        two.stop()
        fleet.lost_nothing()


def test_33_a_worker_that_was_frozen_closes_no_order_that_another_one_has(tmp_path: Path, own: Server) -> None:
    with fleet_of(tmp_path, own, 1, replace(QUICK, thinks_s=6), machines=2) as fleet:
        fleet.order(1)
        one, two = fleet.machines
        one.start()
        fleet.until(1, 1)
        worker, (driver,) = one.worker(), one.drivers()
        handle = os.pidfd_open(driver)
        os.kill(worker, signal.SIGSTOP)
        two.start()
        wait_until(lambda: len(fleet.orders()[0].drivers) == 2)
        assert select.select([handle], [], [], 60)[0], "a driver whose run goes on elsewhere stays"
        os.close(handle)
        os.kill(worker, signal.SIGCONT)
        fleet.until_done()
        fleet.rest()
        fleet.lost_nothing()


def other_version(place: Path, path: str, old: str, new: str) -> dict[str, str]:
    """Return the environment of a redfirst with other words in one of its files."""
    place.mkdir()
    for name in ("pipeline", "todo", "agents", "commands"):
        shutil.copytree(ROOT / name, place / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "redfirst.py", place)
    text = (place / path).read_text()
    assert old in text
    (place / path).write_text(text.replace(old, new))
    return {"PYTHONPATH": f"{place}:{KNOWN}"}


def test_37_a_run_of_another_matrix_waits_for_its_version_and_other_prompts_are_journalled(
    tmp_path: Path, own: Server
) -> None:
    with fleet_of(tmp_path, own, 1) as fleet:
        begins, waits, goes_on = fleet.machines
        other = "L.HYGIENE: Bound(2,", "L.HYGIENE: Bound(3,"
        begins.env = other_version(tmp_path / "other", "pipeline/matrix/routing/matrix.py", *other)
        goes_on.env = other_version(tmp_path / "newer", "pipeline/matrix/routing/matrix.py", *other)
        prompt = tmp_path / "newer/agents/check.md"
        prompt.write_text(f"{prompt.read_text()}\nBe kind.\n")
        fleet.order(1)
        begins.start()
        fleet.until(1, 2)
        fleet.kill(begins)
        wait_until(lambda: not fleet.orders()[0].is_held_elsewhere)
        looked = waits.redfirst("work", "--once")
        assert "another routing matrix" in looked.stdout + looked.stderr, (looked.stdout, looked.stderr)
        (order,) = fleet.orders()
        assert (order.is_open, len(order.drivers), order.deaths) == (True, 1, 0)
        goes_on.start()
        fleet.until_done()
        goes_on.stop()
        fleet.lost_nothing()
        (resumed,) = (line for line in fleet.journal("GAL-1") if line["kind"] == "run_resumed")
        assert resumed["data"]["program"].keys() == {"redfirst", "prompts"}
