"""Workers of two machines over one queue and one hub: what a machine had begun goes on at the other one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from crashes import Bell, spawn
from fleet.machines import RUN, fleet
from fleet.test_hub import frozen, published_once
from postgres import needs_postgres
from queued.stores import new_database
from waiting import wait_until

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.slow, needs_postgres]


def test_33_a_machine_that_dies_loses_nothing_and_the_other_one_goes_on(tmp_path: Path) -> None:
    dsn = new_database("takeover")
    one, two = fleet(tmp_path, more=f'postgres = "{dsn}"\n')
    assert one.redfirst("fleet", "init")["ok"]
    bell = Bell(tmp_path)
    frozen(tmp_path, one, bell)
    (order,) = two.redfirst("queue", "add", "GAL-1")["orders"]
    with spawn(one.project, "work", "--json") as worker:
        bell.wait(worker)
        assert two.redfirst("work", "--dry-run")["orders"] == [], "it is driven elsewhere"
        worker.kill()

    def is_free() -> bool:
        found = two.redfirst("work", "--dry-run")["orders"]
        return bool(found and found[0]["begins"])

    wait_until(is_free, "the server frees the order of a worker that is gone")
    done = two.project.redfirst("work", "--once", "--json")
    assert done.returncode == 0, (done.stdout, done.stderr)
    (ended,) = two.redfirst("queue", "list")["orders"]
    assert (ended["order"], ended["outcome"], ended["starts"]) == (order["order"], "completed", 2), ended
    published_once(two)
    assert [line["kind"] for line in two.journal()].count("run_resumed") == 1
    late = one.redfirst("resume", RUN, cwd=one.worktree)
    assert (late["_code"], late["error"]["kind"]) == (75, "superseded")
