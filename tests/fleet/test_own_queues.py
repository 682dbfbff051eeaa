"""Machines that share a hub, and each of which has orders of its own: none takes from another one what that has."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from crashes import KILLED, die_at
from fleet.machines import RUN, fleet
from fleet.test_hub import BRANCH, published_once, run, taken

from pipeline.app.attend import attend
from pipeline.app.work import SWEEP
from pipeline.queue.orders import Wanted, log_of
from pipeline.repo import Repository
from pipeline.run.store import WORKFLOW, key_of_run, note_gone_on

if TYPE_CHECKING:
    from pathlib import Path

    from fleet.machines import Machine

pytestmark = pytest.mark.slow


def works(machine: Machine, *said: str) -> list[tuple[str, str | None, int]]:
    """Let a worker do what it can, which says these words; return how orders stand, and what their drivers came to."""
    done = machine.project.redfirst("work", "--once", timeout=60)
    assert done.returncode == 0, (done.stdout, done.stderr)
    assert [words for words in said if words not in done.stderr] == [], done.stderr
    orders = machine.redfirst("queue", "list")["orders"]
    return [(one["state"], one["outcome"], one["starts"]) for one in orders]


def test_a_run_that_another_machine_took_is_left_to_it_until_its_order_is_over(tmp_path: Path) -> None:
    one, two = fleet(tmp_path)
    (order,) = one.redfirst("queue", "add", "GAL-1")["orders"]
    begun, at = ("run", "GAL-1", "--worktree", f"--order={order['order']}"), ("after journal dispatch_finished", 3)
    assert die_at(one.project, *at, *begun) == KILLED
    assert die_at(two.project, *at, "fleet", "take", RUN, "--resume") == KILLED
    theirs = f"goes on with {key_of_run(one.worktree / WORKFLOW / RUN)}. If it does not: redfirst fleet take "
    assert works(one, theirs) == [("queued", None, 0)]
    one.hub.rename(one.hub.with_name("away"))
    assert works(one, theirs, "is out of reach") == [("queued", None, 0)], "what this machine has heard counts"
    one.hub.with_name("away").rename(one.hub)
    assert two.redfirst("resume", RUN, cwd=two.worktree)["outcome"] == "completed"
    assert works(one) == [("ended", "completed", 0)]
    published_once(two)


def test_a_run_with_an_order_of_this_machine_alone_is_over_when_it_is_at_another_one(tmp_path: Path) -> None:
    one, two = fleet(tmp_path)
    assert run(one, "--approve", "plan")["reason"] == "approval"
    assert one.redfirst("approve", RUN, "--no-drive", cwd=one.worktree)["ok"]
    assert works(two) == [], "it is of the other machine's worker"
    key = key_of_run(one.worktree / WORKFLOW / RUN)
    with log_of(Repository.find(one.main), one.project.environment()).locked() as log:
        log.place(Wanted(via=SWEEP, issue="GAL-1", run=key, key=f"{key}@then"))
    assert taken(two)["outcome"] == "completed"
    assert one.redfirst("resume", RUN, cwd=one.worktree)["error"]["kind"] == "superseded"
    assert works(one) == [("dropped", None, 0)]
    assert works(one) == [("dropped", None, 0)], "it is not swept up again"
    published_once(two)


def test_an_issue_that_another_machine_has_leaves_nothing_here_however_often_it_is_looked_at(tmp_path: Path) -> None:
    one, two = fleet(tmp_path)
    assert run(two, "--approve", "plan")["reason"] == "approval"
    one.redfirst("queue", "add", "GAL-1")
    for _ in range(2):
        assert works(one, f"{key_of_run(two.worktree / WORKFLOW / RUN)} of another machine has it") == [
            ("queued", None, 0)
        ]
    assert not one.worktree.exists()
    assert one.project.git("for-each-ref", BRANCH) == ""
    one.hub.rename(one.hub.with_name("away"))
    assert works(one, "is out of reach")[0][0] == "queued", "a hub that is away stops no worker"
    assert not one.worktree.exists()


@pytest.mark.parametrize("then", ["abandon", "reject"])
def test_a_gate_of_a_run_that_went_on_elsewhere_is_left_to_the_machine_that_has_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, then: str
) -> None:
    one, two = fleet(tmp_path, more=f'[gates]\ntimeout = "1h"\non_timeout = "{then}"\n')
    assert run(one, "--approve", "plan")["reason"] == "approval"
    said, before = list[str](), one.journal()

    def attended() -> int:
        with monkeypatch.context() as ours:  # what attends is called, not started
            for name, value in one.project.environment().items():
                ours.setenv(name, value)
            return len(attend(Repository.find(one.main), datetime.now(UTC) + timedelta(days=1), said.append))

    one.hub.rename(one.hub.with_name("away"))
    assert attended() == 0
    assert "is out of reach" in said.pop(), "nobody knows whether it is elsewhere"
    one.hub.with_name("away").rename(one.hub)
    two.redfirst("fleet", "take", RUN)
    done = two.redfirst("approve", RUN, cwd=two.worktree)
    assert done.get("outcome") == "completed", done
    assert attended() == 0
    assert one.journal() == before
    note_gone_on(one.worktree / WORKFLOW / RUN, "two")
    one.hub.rename(one.hub.with_name("away"))
    assert (attended(), said, one.journal()) == (0, [], before), "what it has heard counts, and nobody is asked"
