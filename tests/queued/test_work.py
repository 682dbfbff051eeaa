"""Orders become branches: whole runs of a worker with scripted agents (checks 16 to 19 of the queue)."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
from crashes import await_end_of, processes_of, spawn
from e2e.test_interruptions import Halt
from queued.sums_project import KNOWN, make, most_at_once
from waiting import wait_until, waits_for_a_lock
from workflows.test_gates_and_commands import answer, asks
from workflows.test_gates_and_commands import make as make_recipe

from pipeline.app.work import RepositoryWork
from pipeline.queue.order_lines import OrderEnded, OrderWorktree
from pipeline.queue.orders import OrderLog, log_of
from pipeline.queue.sqlite import DATABASE
from pipeline.repo import Repository
from pipeline.run.store import Claim, claims

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow


@pytest.mark.broad(but_first=1)
def test_orders_become_branches_each_in_a_worktree_of_its_own(tmp_path: Path, fleet: str) -> None:
    queued = make(tmp_path, 2, extra=fleet, GAL_2=["GAL-1"])
    queued.add()
    assert queued.dry_run() == {"GAL-1": "", "GAL-2": "GAL-1 has to land first"}
    assert [order["starts"] for order in queued.orders()] == [0, 0]
    events = queued.work("--jobs", "2")
    assert [event["type"] for event in events] == ["redfirst.order.started.v1", "redfirst.order.ended.v1"]
    assert queued.branches() == ["gal-1-double-m1"]
    assert queued.subjects("gal-1-double-m1")[-1].startswith("chore(todo)")
    first, second = queued.orders()
    assert (first["state"], first["outcome"], second["state"]) == ("ended", "completed", "queued")
    owner = json.loads((queued.project.root / ".git/worktrees/project-gal-1/redfirst.json").read_text())
    assert (owner["order"], owner["branch"]) == (first["order"], "gal-1-double-m1")
    queued.project.git("switch", "--quiet", "main")
    queued.project.git("merge", "--quiet", "gal-1-double-m1")
    assert queued.dry_run() == {"GAL-2": ""}


@pytest.mark.broad
def test_check_16_eight_issues_and_four_jobs_make_eight_branches_and_never_five_drivers(tmp_path: Path) -> None:
    queued = make(tmp_path, 8, sleep_s=0.5)
    queued.add()
    events = queued.work("--jobs", "4")
    assert queued.branches() == [f"gal-{number}-double-m{number}" for number in range(1, 9)]
    assert {order["outcome"] for order in queued.orders()} == {"completed"}
    assert most_at_once(events) == 4
    began = [event["subject"] for event in events if event["type"].endswith("started.v1")]
    assert began == [order["order"] for order in queued.orders()]


@pytest.mark.broad
def test_check_17_a_killed_worker_leaves_no_process_and_the_next_one_resumes_everything(
    tmp_path: Path, fleet: str
) -> None:
    queued = make(tmp_path, 3, sleep_s=2, extra=fleet)
    queued.add()
    with spawn(queued.project, "work", "--jobs", "2", "--json") as worker:
        wait_until(lambda: len(queued.driven()) == 2)
        there = processes_of(queued.project)
        worker.kill()
        worker.communicate()
    assert len(there) >= 3
    await_end_of(there)
    assert processes_of(queued.project) == {}
    queued.work("--jobs", "2")
    assert {order["outcome"] for order in queued.orders()} == {"completed"}
    assert len(queued.branches()) == 3


@pytest.mark.broad
def test_a_damaged_database_of_orders_is_made_anew_from_claims_and_runs(tmp_path: Path) -> None:
    queued = make(tmp_path, 2, sleep_s=2)
    queued.add()
    with spawn(queued.project, "work", "--jobs", "2") as worker:
        wait_until(lambda: len(queued.project.git("for-each-ref", "refs/redfirst/claims").splitlines()) == 2)
        there = processes_of(queued.project)
        worker.kill()
        worker.communicate()
        await_end_of(there)
    (queued.log().folder / DATABASE).write_bytes(b"no database\n" * 900)
    done = queued.project.redfirst("work", "--once", "--jobs", "2")
    assert (done.returncode, "is damaged (file is not a database)" in done.stderr) == (0, True), done.stderr
    assert {(order["via"], order["outcome"]) for order in queued.orders()} == {("sweep", "completed")}
    assert len(queued.branches()) == 2


@pytest.mark.broad
def test_a_run_that_another_machine_completed_is_not_ordered_again_whatever_is_said_here_later(tmp_path: Path) -> None:
    queued = make(tmp_path, 2, sleep_s=2)
    queued.add()
    with spawn(queued.project, "work", "--jobs", "2") as worker:
        wait_until(lambda: len(queued.project.git("for-each-ref", "refs/redfirst/claims").splitlines()) == 2)
        there = processes_of(queued.project)
        worker.kill()
        worker.communicate()
        await_end_of(there)
    here, environ = Repository.find(queued.project.root), queued.project.environment()
    log = log_of(here, environ)
    log.read_on()
    claimed = claims(here)
    before = OrderLog(log.folder, clock=lambda: datetime(2020, 1, 1, tzinfo=UTC))
    with before.locked():
        for order, outcome in zip(log.orders.values(), ("completed", "parked"), strict=True):
            claim = claimed[order.what]
            assert isinstance(claim, Claim)
            before.add(OrderEnded(order=order.id, run=claim.run, outcome=outcome, reason="done"))
    RepositoryWork(here, environ).look(log)
    told = [(one.what, one.placed.via) for one in log.orders.values()]
    assert told == [("GAL-1", "cli"), ("GAL-2", "cli"), ("GAL-2", "sweep")]


@pytest.mark.broad(but_first=1)
def test_check_18_nothing_begins_while_the_disk_is_low_and_it_is_said(tmp_path: Path, fleet: str) -> None:
    queued = make(tmp_path, 1, extra=fleet)
    queued.add()
    queued.project.env["REDFIRST_LIMITS__WORK__MIN_FREE_MB"] = "999999999"
    done = queued.project.redfirst("work", "--once", "--json")
    assert (done.returncode, done.stdout) == (0, "")
    assert "does not begin: the disk of" in done.stderr
    assert "limits.work.min_free_mb" in queued.dry_run()["GAL-1"]
    assert (queued.branches(), queued.orders()[0]["starts"]) == ([], 0)


@pytest.mark.broad
def test_check_19_no_more_drivers_than_slots_of_a_provider(tmp_path: Path, fleet: str) -> None:
    queued = make(tmp_path, 4, sleep_s=0.5, extra=f"[limits.work]\nper_provider = 2\n{fleet}")
    queued.add()
    why = "all slots of scripted are taken (limits.work.per_provider)"
    assert list(queued.dry_run("--jobs", "4").values()) == ["", "", why, why]
    assert most_at_once(queued.work("--jobs", "4")) == 2
    assert len(queued.branches()) == 4


@pytest.mark.broad
def test_ctrl_c_stops_all_so_that_the_next_worker_goes_on(tmp_path: Path, fleet: str) -> None:
    queued = make(tmp_path, 3, sleep_s=2, extra=fleet)
    queued.add()
    with spawn(queued.project, "work", "--jobs", "2") as worker:
        wait_until(lambda: len(queued.driven()) == 2)
        worker.terminate()
        worker.communicate(timeout=120)
    assert worker.returncode == 130
    assert (processes_of(queued.project), [one["state"] for one in queued.orders()]) == ({}, ["queued"] * 3)
    queued.work("--jobs", "2")
    assert {order["outcome"] for order in queued.orders()} == {"completed"}


@pytest.mark.broad
def test_a_run_that_was_answered_goes_on_by_itself(tmp_path: Path, fleet: str) -> None:
    queued = make(tmp_path, 1, extra=fleet)
    queued.add(flags=("--approve", "plan"))
    events = queued.work()
    assert [(event["data"].get("outcome"), event["data"].get("reason")) for event in events][-1] == (
        "parked",
        "approval",
    )
    assert queued.work() == []
    run = str(events[-1]["data"]["run"])
    assert queued.project.redfirst("approve", run, "--no-drive").returncode == 0
    types = [event["type"].split(".")[2] for event in queued.work()]
    assert types == ["placed", "started", "ended"]
    assert [order["outcome"] for order in queued.orders()] == ["parked", "completed"]


@pytest.mark.broad
def test_an_order_that_three_drivers_die_of_is_dropped_and_somebody_is_told(tmp_path: Path, fleet: str) -> None:
    queued = make(tmp_path, 1, sleep_s=30, extra=fleet)
    queued.add()
    with spawn(queued.project, "work", "--once") as worker:
        for starts in (1, 2, 3):
            wait_until(lambda starts=starts: [pid for pid, number in queued.driven().items() if number == starts] != [])
            queued.kill_driver()
        out, _ = worker.communicate(timeout=300)
    assert worker.returncode == 8
    assert "dropped, 3 drivers died of it, the last one by signal 9" in out
    (order,) = queued.orders()
    assert (order["state"], order["deaths"]) == ("dropped", 3)
    events: list[dict[str, Any]] = queued.events("order.*")
    assert [event["type"].split(".")[2] for event in events] == ["placed", *["started"] * 3, "dropped"]
    assert queued.work() == []  # nothing has happened since


@pytest.mark.broad
def test_a_worktree_of_a_driver_that_died_before_it_said_whose_it_is_is_finished(tmp_path: Path) -> None:
    queued = make(tmp_path, 1)
    queued.project.git("switch", "--quiet", "main")
    (queued.project.root / ".worktreeinclude").write_text("local.txt\n")
    (queued.project.root / ".gitignore").write_text("local.txt\n.workflow/\n")
    queued.project.git("add", "--all")
    queued.project.git("commit", "--quiet", "-m", "settings")
    (queued.project.root / "local.txt").write_text("mine\n")
    assert queued.project.redfirst("trust", "--yes").returncode == 0
    queued.add()
    (order,) = queued.orders()
    folder, tip = tmp_path / "project-gal-1", queued.project.git("rev-parse", "main")
    with queued.log().locked() as log:
        log.add(OrderWorktree(order=order["order"], folder=str(folder), branch="gal-1-double-m1", tip=tip))
    queued.project.git("worktree", "add", "--quiet", "-b", "gal-1-double-m1", str(folder), tip)
    queued.work()
    assert queued.branches() == ["gal-1-double-m1"]
    owner = json.loads((queued.project.root / ".git/worktrees/project-gal-1/redfirst.json").read_text())
    assert (owner["order"], owner["issue"], owner["tip"]) == (order["order"], "GAL-1", tip)
    assert (folder / "local.txt").read_text() == "mine\n"
    assert [one["outcome"] for one in queued.orders()] == ["completed"]


@pytest.mark.broad
@pytest.mark.parametrize("left", ["a branch alone", "a worktree that git had not finished"])
def test_what_a_git_that_was_killed_has_left_is_made_anew(left: str, tmp_path: Path) -> None:
    queued = make(tmp_path, 1)
    queued.add()
    (order,) = queued.orders()
    folder, tip = tmp_path / "project-gal-1", queued.project.git("rev-parse", "main")
    with queued.log().locked() as log:
        log.add(OrderWorktree(order=order["order"], folder=str(folder), branch="gal-1-double-m1", tip=tip))
    queued.project.git("worktree", "add", "--quiet", "-b", "gal-1-double-m1", str(folder), tip)
    if left == "a branch alone":
        queued.project.git("worktree", "remove", str(folder))
    else:
        (queued.project.root / ".git/worktrees/project-gal-1/locked").write_text("initializing")
        next(folder.glob("[!.]*.*")).unlink()
    queued.work()
    assert (queued.branches(), [one["outcome"] for one in queued.orders()]) == (["gal-1-double-m1"], ["completed"])
    assert [line for line in queued.project.git("worktree", "list").splitlines() if "locked" in line] == []


@pytest.mark.broad
def test_the_worktree_that_git_makes_on_behalf_of_a_dead_driver_is_waited_for(tmp_path: Path) -> None:
    queued = make(tmp_path, 1)
    queued.add()
    halt = Halt.of(queued.project, "git", "*worktree*add*")
    with spawn(queued.project, "work", "--once") as worker:
        halt.wait(worker)
        queued.project.git("branch", "gal-1-double-m1", "main")  # as git does first, before there is a worktree
        queued.kill_driver()
        wait_until(lambda: any(map(waits_for_a_lock, queued.driven())) or len(queued.branches()) > 1)
        queued.project.git("branch", "--delete", "gal-1-double-m1")
        halt.let_go()
        worker.communicate(timeout=120)
    assert (worker.returncode, queued.branches()) == (0, ["gal-1-double-m1"])
    assert [order["outcome"] for order in queued.orders()] == ["completed"]


@pytest.mark.broad
def test_an_answered_run_of_a_recipe_is_gone_on_with(tmp_path: Path) -> None:
    project = make_recipe(
        tmp_path, [answer("use", "Used.")], {"id": "ok", "gate": "approve"}, asks("use", depends_on=["ok"])
    )
    project.env["PYTHONPATH"] = str(KNOWN)
    assert project.document("run", "own")["outcome"] == "parked"
    waits = project.redfirst("work", "--once")
    assert (waits.returncode, project.document("show")["outcome"]) == (0, "parked")
    assert project.document("approve", "--no-drive")["_code"] == 0
    worked = project.redfirst("work", "--once")
    assert (worked.returncode, project.document("show")["outcome"]) == (0, "completed"), worked.stderr
    assert project.redfirst("work", "--once").returncode == 0
    assert len(project.document("queue", "list")["orders"]) == 1


def test_a_configuration_that_somebody_breaks_meanwhile_ends_no_driver(tmp_path: Path) -> None:
    queued = make(tmp_path, 2, sleep_s=12)
    queued.add()
    with spawn(queued.project, "work", "--once", "--jobs", "1") as worker:
        wait_until(lambda: queued.project.git("for-each-ref", "refs/redfirst/claims") != "")
        queued.project.write({"redfirst.toml": "[limits\n"})
        queued.project.commit()
        _, said = worker.communicate(timeout=120)
    assert said.count("Drivers go on, none is begun, and it is tried again") == 1, said
    assert [one["outcome"] for one in queued.orders()] == ["completed", None], "with no driver alive it may end"
    assert worker.returncode == 2
