"""`[fleet]`, `redfirst fleet`, and workers over a server that comes and goes."""

from __future__ import annotations

import json
import os
from datetime import datetime
from typing import TYPE_CHECKING

import forked
import pytest
from crashes import spawn
from hypothesis import given
from hypothesis import strategies as st
from postgres import needs_postgres, server
from pydantic import ValidationError
from queued.stores import fleet_table, new_database
from queued.sums_project import make, share
from waiting import wait_until

from pipeline.app.events import AllEvents, Wanted
from pipeline.config.tables import Fleet
from pipeline.errors import UserError
from pipeline.queue.orders import fleet_of
from pipeline.queue.postgres import workers_of
from pipeline.repo import Repository

if TYPE_CHECKING:
    from pathlib import Path

    from postgres import Server

HUB = 'hub = "/srv/hub.git"\n'
WITHOUT_THE_EXTRA = """import sys
import pipeline.app.fleet, pipeline.app.work
from pipeline.queue.postgres import session_with
print("imported" if "psycopg" in sys.modules else "not imported", flush=True)
sys.modules["psycopg"] = None
session_with("")
"""


def fleet_in(tmp_path: Path, text: str) -> Fleet:
    (tmp_path / "redfirst").mkdir()
    (tmp_path / "redfirst/config.toml").write_text(f"[fleet]\n{text}")
    return fleet_of({"XDG_CONFIG_HOME": str(tmp_path), "HOME": str(tmp_path)})


@pytest.mark.parametrize(
    "dsn", ["postgresql://u:s3cret@h/d", "host=h password = s3cret", "postgresql://h/d?password=s3cret"]
)
def test_a_password_is_refused_and_not_repeated(tmp_path: Path, dsn: str) -> None:
    with pytest.raises(UserError, match="a password does not belong here") as told:
        fleet_in(tmp_path, f'{HUB}postgres = "{dsn}"\n')
    assert "s3cret" not in repr(told.value.facts)
    assert told.value.pointer == "/fleet/postgres"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('postgres = "host=h"\n', "postgres needs hub"),
        (f"{HUB}postgres = 5\n", "valid string"),
        (f'{HUB}postgre = "host=h"\n', 'Did you mean "postgres"'),
        ('hub = "https://u:s3cret@h/x.git"\n', "a password does not belong here"),
    ],
)
def test_what_is_no_fleet_is_refused_with_its_place(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(UserError, match=said) as told:
        fleet_in(tmp_path, text)
    assert str(tmp_path / "redfirst/config.toml") in told.value.message


def test_who_asks_the_hub_does_not_change_its_name() -> None:
    same = ("ssh://ada@h/shop.git", "ssh://bob@h/shop", "ssh://h/shop.git/")
    assert len({Fleet(hub=one).name for one in same}) == 1
    assert Fleet(hub="git@h:shop.git").name.startswith("shop-")
    assert Fleet(hub="/srv/a/shop.git").name != Fleet(hub="/srv/b/shop.git").name


@given(st.text(min_size=1))
def test_any_hub_has_a_name_that_is_safe(hub: str) -> None:
    try:
        name = Fleet(hub=hub).name
    except ValidationError:
        return
    assert all(letter.isascii() and (letter.isalnum() or letter in "-_") for letter in name)


@pytest.mark.slow
def test_38_without_a_fleet_nothing_of_it_is_imported_and_without_the_extra_it_is_named(tmp_path: Path) -> None:
    program = tmp_path / "asked.py"
    program.write_text(WITHOUT_THE_EXTRA)
    done = forked.run([str(program)], cwd=tmp_path, env=os.environ, timeout=300)  # everything of redfirst is imported
    assert done.stdout == "not imported\n", done.stderr
    assert "needs the extra `fleet`" in done.stderr.splitlines()[-1]


@pytest.mark.slow
@needs_postgres
def test_init_and_status_say_what_there_is(tmp_path: Path) -> None:
    queued = make(tmp_path, 1)
    assert "names no fleet" in queued.redfirst("fleet", "status")["error"]["message"]
    dsn = new_database("cli")
    share(queued.project, f"{tmp_path}/shop.git")
    queued.redfirst("config", "set", "--user", "fleet.hub", f"{tmp_path}/shop.git")
    own = queued.project.home / "config/redfirst/config.toml"
    own.write_text(own.read_text().replace("[fleet]\n", f'[limits.work]\nper_repo = 3\n[fleet]\npostgres = "{dsn}"\n'))
    refused = queued.redfirst("queue", "add", "GAL-1")
    assert refused["error"]["safe_next_actions"] == ["redfirst fleet init"]
    said = queued.project.redfirst("fleet", "init").stdout
    assert [line.split()[-1] for line in said.splitlines()[:5]] == [
        "redfirst_schema",
        "redfirst_repositories",
        "redfirst_orders",
        "redfirst_lines",
        "redfirst_spent",
    ]
    again = queued.redfirst("fleet", "init")
    assert (again["ok"], again["made"]) == (True, [])
    queued.add()
    status = queued.redfirst("fleet", "status")
    assert (status["repository"], status["orders"], status["workers"]) == (again["repository"], {"queued": 1}, [])
    assert {one["kind"]: one["free"] for one in status["slots"]} == {"jobs": 2, f"repo-{status['repository']}": 3}
    assert "orders: 1 queued" in queued.project.redfirst("fleet", "status").stdout


@pytest.mark.slow
@needs_postgres
def test_a_driver_that_begins_while_the_server_is_away_costs_no_order(tmp_path: Path) -> None:
    queued = make(tmp_path, 1, extra=f'[fleet]\nhub = "{tmp_path}/hub.git"\npostgres = "host={tmp_path} dbname=x"\n')
    refused = queued.redfirst("run", "GAL-1", "--worktree", "--order=o-123456", "--base", "main")
    assert (refused["_code"], refused["error"]["kind"]) == (75, "locked"), refused
    assert "does not answer" in refused["error"]["message"]


@pytest.mark.slow
@needs_postgres
def test_a_worker_that_begins_while_the_server_is_away_waits_for_it(tmp_path: Path) -> None:
    queued = make(tmp_path, 1, extra=f'[fleet]\nhub = "{tmp_path}/hub.git"\npostgres = "host={tmp_path} dbname=x"\n')
    assert "does not answer" in queued.redfirst("work", "--once")["error"]["message"]
    with spawn(queued.project, "work") as worker:
        assert worker.stderr is not None
        assert any("does not answer" in line and "it is tried again" in line for line in worker.stderr)
        worker.terminate()
        worker.communicate(timeout=300)


@pytest.mark.slow
@needs_postgres
def test_a_repository_names_no_fleet(tmp_path: Path) -> None:
    queued = make(tmp_path, 1)
    queued.project.write({"redfirst.toml": f'[fleet]\n{HUB}postgres = "{server().dsn()}"\n'})
    queued.project.commit()
    document = queued.redfirst("work", "--dry-run")
    assert document["error"]["kind"] == "config"
    assert "fleet.hub counts in your own configuration alone" in document["error"]["message"]
    assert queued.orders() == []  # a list asks no server that a repository names


@pytest.mark.slow
@pytest.mark.broad
@needs_postgres
def test_a_worker_is_woken_by_an_order_and_does_not_wait_for_its_next_look(tmp_path: Path) -> None:
    queued = make(tmp_path, 1, extra=fleet_table(tmp_path))
    dsn = server().dsn()
    with spawn(queued.project, "work") as worker:
        wait_until(lambda: any(one.pid == worker.pid and (one.silent_s or 0) > 1 for one in workers_of(dsn)))
        wait_until(lambda: any(one.pid == worker.pid and (one.silent_s or 9) < 0.5 for one in workers_of(dsn)))
        queued.add()
        wait_until(lambda: queued.driven() != {})
        worker.terminate()
        worker.communicate(timeout=120)
    placed, started = (datetime.fromisoformat(one["time"]) for one in queued.events("order.placed", "order.started"))
    assert (started - placed).total_seconds() < 7


@pytest.mark.slow
@pytest.mark.broad
@needs_postgres
def test_a_server_that_is_killed_meanwhile_costs_no_run(tmp_path: Path, own: Server) -> None:
    queued = make(tmp_path, 2, sleep_s=4, extra=f'[fleet]\nhub = "{tmp_path}/hub.git"\npostgres = "{own.dsn()}"\n')
    queued.redfirst("fleet", "init")
    queued.add()
    with spawn(queued.project, "work", "--once", "--jobs", "1", "--json") as worker:
        wait_until(lambda: queued.driven() != {})
        own.stop()
        assert worker.stderr is not None
        said = next(line for line in worker.stderr if "Drivers go on" in line)
        own.start()
        out, err = worker.communicate(timeout=240)
    assert worker.returncode == 0, (said, out, err)
    assert "the orders can be had again" in err
    types = [json.loads(line)["type"].split(".")[2] for line in out.splitlines()]
    assert types == ["started", "ended", "started", "ended"]
    assert [(one["outcome"], one["starts"]) for one in queued.orders()] == [("completed", 1)] * 2


@pytest.mark.slow
@pytest.mark.broad
@needs_postgres
def test_two_machines_work_through_one_queue_and_begin_no_order_twice(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    here, there = (make(place, 6, sleep_s=0.3, extra=fleet_table(tmp_path)) for place in (tmp_path, tmp_path / "b"))
    here.add()
    with (
        spawn(here.project, "work", "--once", "--jobs", "1") as some,
        spawn(there.project, "work", "--once", "--jobs", "1") as others,
    ):
        said = [one.communicate(timeout=240) for one in (some, others)]
        assert (some.returncode, others.returncode) == (0, 0), said
    orders = there.orders()
    assert orders == here.orders()
    assert [(one["outcome"], one["starts"]) for one in orders] == [("completed", 1)] * 6
    assert len(here.branches()) + len(there.branches()) == 6
    assert here.branches()
    assert there.branches()


@pytest.mark.slow
@needs_postgres
def test_who_listens_to_all_events_is_told_of_orders_again_once_the_server_is_back(
    tmp_path: Path, own: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    queued = make(tmp_path, 2, extra=f'[fleet]\nhub = "{tmp_path}/hub.git"\npostgres = "{own.dsn()}"\n')
    queued.redfirst("fleet", "init")
    queued.add(1)
    for name, value in queued.project.environment().items():
        monkeypatch.setenv(name, value)
    said = list[str]()
    heard = AllEvents(Repository.find(queued.project.root), Wanted(), said.append)
    assert [event.type for event in heard.read_on()] == ["redfirst.order.placed.v1"]
    for outage in (1, 2):
        own.stop()
        assert (heard.read_on(), heard.read_on(), len(said)) == ([], [], outage), "it is said once for each time"
        own.start()
        queued.add(outage)
        assert len(heard.read_on()) == outage - 1, "an order that is there is none anew"
