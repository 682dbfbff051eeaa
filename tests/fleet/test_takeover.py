"""Workers of two machines over one queue and one hub: what a machine had begun goes on at the other one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from crashes import KILLED, Bell, await_end_of, die_at, processes_of, spawn
from fleet.machines import RUN, fleet
from fleet.test_hub import BRANCH, frozen, published_once
from postgres import database, needs_postgres, own_database
from triggered.outside import LABEL, github
from waiting import wait_until

from pipeline.app.triggers import deliver
from pipeline.queue.drivers import _end  # pyright: ignore[reportPrivateUsage]
from pipeline.queue.order_lines import OrderLeft, OrderWorktree
from pipeline.queue.orders import log_of
from pipeline.repo import Repository

if TYPE_CHECKING:
    from pathlib import Path

    from fleet.machines import Machine

pytestmark = [pytest.mark.slow, needs_postgres]


def test_33_a_machine_that_dies_loses_nothing_and_the_other_one_goes_on(tmp_path: Path) -> None:
    one, two = pair(tmp_path)
    bell = Bell(tmp_path)
    frozen(tmp_path, one, bell)
    (order,) = two.redfirst("queue", "add", "GAL-1")["orders"]
    with spawn(one.project, "work", "--json") as worker:
        bell.wait(worker)
        assert two.redfirst("work", "--dry-run")["orders"] == [], "it is driven elsewhere"
        there = processes_of(one.project)
        worker.kill()
    await_end_of(there)

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


def pair(tmp_path: Path, more: str = "") -> tuple[Machine, ...]:
    """Return two machines of a fleet with a queue."""
    return fleet(tmp_path, more=f'postgres = "{database()}"\n{more}')


def works(machine: Machine) -> list[dict[str, Any]]:
    """Let a worker do what it can; return the orders then."""
    done = machine.project.redfirst("work", "--once", "--json")
    assert done.returncode == 0, (done.stdout, done.stderr)
    return machine.redfirst("queue", "list")["orders"]


def ordered(machine: Machine) -> str:
    (order,) = machine.redfirst("queue", "add", "GAL-1")["orders"]
    return f"--order={order['order']}"


def test_an_answer_at_a_machine_without_a_worker_is_gone_on_with_by_another(tmp_path: Path) -> None:
    one, two = pair(tmp_path)
    assert one.redfirst("run", "GAL-1", "--worktree", "--approve", "plan")["reason"] == "approval"
    assert works(two) == [], "a person is asked"
    assert one.redfirst("approve", RUN, "--no-drive", cwd=one.worktree)["ok"]
    (order,) = works(two)
    assert (order["via"], order["outcome"]) == ("sweep", "completed"), order
    published_once(two)
    assert works(one) == [order], "what is here of it is old, and nobody goes on with it"


@pytest.mark.broad
def test_33_a_machine_whose_run_went_on_elsewhere_takes_it_from_there(tmp_path: Path) -> None:
    one, two = pair(tmp_path)
    assert (
        die_at(one.project, "after journal dispatch_finished", 3, "run", "GAL-1", "--worktree", ordered(one)) == KILLED
    )
    assert die_at(two.project, "after journal dispatch_finished", 3, "fleet", "take", RUN, "--resume") == KILLED
    (order,) = works(one)
    assert order["outcome"] == "completed", order
    published_once(one)
    assert [line["kind"] for line in one.journal()].count("run_resumed") == 2
    assert [path.name for path in one.worktree.glob(".workflow/left-*")], "what it wrote beside is kept"


@pytest.mark.broad
@pytest.mark.parametrize("instant", ["after journal publish_moving", ""])
def test_33_what_is_published_is_not_done_again_where_nobody_said_that_its_order_has_ended(
    tmp_path: Path, instant: str
) -> None:
    one, two = pair(tmp_path)
    assert die_at(one.project, instant or "never", 2, "run", "GAL-1", "--worktree", ordered(one)) == (
        KILLED if instant else 0
    )
    (order,) = works(two)
    assert (order["outcome"], order["starts"]) == ("completed", 1 if instant else 0), order
    published_once(two)
    late = two.redfirst("fleet", "take", RUN, "--resume")  # what a worker is told that looked a moment before
    end = _end(late, late["_code"])
    assert (late["_code"], end.outcome, end.reason) == (2, "completed", "done"), late


@pytest.mark.broad
@pytest.mark.parametrize("who", ["a driver of the order", "a person"])
def test_33_who_lost_a_run_to_an_earlier_driver_of_its_order_takes_it_again_and_leaves_it_to_a_person(
    tmp_path: Path, who: str
) -> None:
    one, two = pair(tmp_path)
    order, at = ordered(one), ("after journal dispatch_finished", 3)
    log = log_of(Repository.find(two.main), two.project.environment())
    if who == "a person":
        assert die_at(one.project, *at, "run", "GAL-1", "--worktree", order) == KILLED
    else:
        bell = Bell(tmp_path)
        frozen(tmp_path, one, bell)
        with spawn(one.project, "work", "--json") as worker:
            bell.wait(worker)
            there = processes_of(one.project)
            worker.kill()
        await_end_of(there)
    with log.locked():  # what the worker of a later driver writes that finds the run gone on with
        log.add(OrderLeft(order=order.removeprefix("--order="), why="superseded"))
    (said,) = two.redfirst("work", "--dry-run")["orders"]
    assert bool(said["begins"]) is (who != "a person"), said


@pytest.mark.broad
def test_33_an_order_is_known_by_the_worktree_that_says_so_whatever_was_made_for_it_since(tmp_path: Path) -> None:
    one, _ = pair(tmp_path)
    order, name = ordered(one), "project-gal-1-2"
    assert die_at(one.project, "after journal dispatch_finished", 3, "run", "GAL-1", "--worktree", order) == KILLED
    log = log_of(Repository.find(one.main), one.project.environment())
    with log.locked():  # a machine that had begun before the hub heard of that run, and whose place was taken
        made = OrderWorktree(
            order=order.removeprefix("--order="), folder=str(tmp_path / name), branch=name, tip="1" * 40
        )
        log.add(made)
    (done,) = works(one)
    assert (done["outcome"], done["starts"]) == ("completed", 1), "it was swept up by a second order"


@pytest.mark.broad
@pytest.mark.parametrize("instant", ["before", "after"])
def test_33_a_claim_without_its_run_is_none_that_an_order_goes_on_with(tmp_path: Path, instant: str) -> None:
    one, two = pair(tmp_path)
    assert (
        die_at(one.project, "after journal dispatch_finished", 3, "run", "GAL-1", "--worktree", ordered(one)) == KILLED
    )
    assert die_at(two.project, f"{instant} replace run.json", 1, "fleet", "take", RUN, "--resume") == KILLED
    (order,) = works(two)
    assert order["outcome"] == "completed", order
    published_once(two)


@pytest.mark.broad
def test_33_a_machine_that_had_the_run_before_brings_what_another_one_published_to_its_end(tmp_path: Path) -> None:
    one, two = pair(tmp_path)
    begun = "run", "GAL-1", "--worktree", ordered(one)
    assert die_at(one.project, "after journal dispatch_finished", 3, *begun) == KILLED
    assert die_at(two.project, "after git push.*gal-1-reject", 1, "fleet", "take", RUN, "--resume") == KILLED
    assert BRANCH in two.refs(), "it is published"
    (order,) = works(one)
    assert order["outcome"] == "completed", order
    published_once(one)


def test_an_issue_that_a_trigger_filed_is_begun_by_any_machine_on_the_newest_base(tmp_path: Path) -> None:
    one, two = pair(tmp_path, LABEL)
    main = one.project.git("rev-parse", "main")
    (one.main / "NEWS").write_text("what the other machine does not have yet\n")
    one.project.git("add", "--all")
    one.project.git("commit", "--quiet", "-m", "docs: news")
    one.project.git("push", "--quiet", str(one.hub), "main")
    headers, body = github(issue={"body": (one.main / "TODO/GAL-1.md").read_text()})
    environ = {**two.project.environment(), "HOOK": "secret"}
    assert deliver(Repository.find(two.main), environ, "label", headers, body).result == "ordered"
    (order,) = works(one)
    assert (order["outcome"], order["reason"]) == ("parked", "approval"), order
    assert one.project.git("log", "--format=%s", "gh-12", cwd=one.hub).splitlines()[:2] == [
        "chore: file GH-12",
        "docs: news",
    ]
    assert two.project.git("rev-parse", "main") == main


@pytest.mark.broad
def test_an_issue_that_landed_at_the_hub_alone_is_begun(tmp_path: Path) -> None:
    one, two = pair(tmp_path)
    issue = one.main / "TODO/GAL-1.md"
    issue.with_name("GAL-2.md").write_text(issue.read_text().replace("GAL-1", "GAL-2"))
    one.project.git("add", "--all")
    one.project.git("commit", "--quiet", "-m", "chore: file GAL-2")
    one.project.git("push", "--quiet", str(one.hub), "main")
    one.redfirst("queue", "add", "GAL-2")
    (order,) = works(two)
    assert order["outcome"] == "completed", order


def test_doctor_says_what_keeps_a_machine_from_working_in_its_fleet(tmp_path: Path) -> None:
    one, two = fleet(tmp_path, more=f'postgres = "{own_database("doctored")}"\n')

    def checks(machine: Machine) -> dict[str, str]:
        document = machine.redfirst("fleet", "doctor")
        assert document["_code"] == (0 if document["ok"] else 2)
        return {check["id"]: check["status"] for check in document["checks"]}

    before = one.refs()
    assert checks(one)["hub"] == "ok"
    assert one.refs() == before, "nothing is left at the hub"
    assert die_at(one.project, "after journal dispatch_finished", 3, "run", "GAL-1", "--worktree") == KILLED
    one.project.git("commit", "--quiet", "--allow-empty", "-m", "docs: news")
    assert checks(one) == {"hub": "ok", "base": "warn", "postgres": "ok", "workers": "warn", "runs": "warn"}
    one.project.git("push", "--quiet", str(one.hub), "main")
    assert (checks(one)["base"], checks(two)["base"]) == ("ok", "ok")
    hook = one.hub / "hooks/pre-receive"
    hook.write_text("#!/bin/sh\necho closed >&2; exit 1\n")
    hook.chmod(0o755)
    assert checks(two)["hub"] == "fail", "it can be read, and no run could be kept there"


@pytest.mark.broad
def test_33_a_run_that_the_hub_never_heard_of_ends_where_another_one_did_its_order(tmp_path: Path) -> None:
    one, two = pair(tmp_path)
    assert die_at(one.project, "before git push", 1, "run", "GAL-1", "--worktree", ordered(one)) == KILLED
    (order,) = works(two)
    assert order["outcome"] == "completed", order
    assert works(one) == [order], "it is done: nobody goes on with what is here of it"
    late = one.redfirst("resume", RUN, cwd=one.worktree)
    assert (late["_code"], late["error"]["kind"]) == (75, "superseded"), late
    given_up = one.redfirst("abandon", RUN, cwd=one.worktree)
    assert given_up["_code"] == 0, given_up
    assert not one.project.git("for-each-ref", "refs/redfirst/claims"), "the issue is free here, too"
    published_once(two)
