"""A run that a limit parked goes on by itself when that ends, whoever drove it; until then a worker says so."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest
from console.served import opened
from e2e.test_limits_that_end import AGENT, limited
from model_service.script import Say, conversation
from model_service.service import ModelService
from queued.sums_project import PLAIN, Queued, make
from waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

    from model_service.script import Turn

pytestmark = pytest.mark.slow


@contextmanager
def planned_by(queued: Queued, *turns: Turn) -> Generator[ModelService]:
    """Let the plan be drafted by an agent whose service answers so, and nobody wait for it."""
    script = queued.project.home / "script-1.json"
    later = [conversation(Say("yes"), kind=kind) for kind in ("plan", "split")]
    with ModelService([conversation(*turns, Say("yes"), kind="plan"), *later]) as model:
        config = queued.project.home / "config/redfirst/config.toml"
        outage = "[outage]\nbackoff_s = []\nwait_s = 0\n"
        agent = f'backend = "command"\nargv = ["{sys.executable}", "{AGENT}", "{script}"]\nprovider = "local"\n'
        text = config.read_text(encoding="utf-8").replace(PLAIN, outage)  # without a box there is no gateway
        queued.project.configure(
            f'{text}\n[agents.orchestrator]\nnetwork = "model"\nread = ["{AGENT.parent}", "{script.parent}"]\n{agent}'
            f'[providers.local]\nurl = "{model.url}"\napi = ["chat"]\n'
        )
        yield model


def by_hand(queued: Queued) -> str:
    """Run the issue with nobody's order until it parks; return until when."""
    document = queued.redfirst("run", "GAL-1", "--set", f"agents.script={queued.project.home}/script-1.json")
    assert (document["_code"], document.get("reason")) == (75, "agent_unavailable"), document
    return str(document["not_before"])


@pytest.mark.broad
def test_a_run_that_another_worker_parked_goes_on_when_its_limit_ends(tmp_path: Path) -> None:
    queued = make(tmp_path, 1)
    with planned_by(queued, limited(1, times=1)) as model:
        queued.add()
        first = queued.work()
        assert "agent_unavailable" in [event["data"].get("reason") for event in first]

        def went_on() -> bool:
            queued.work()
            return len(model.work) > 1

        wait_until(went_on)
    ended, resumed = queued.orders()
    assert (ended["outcome"], ended["reason"]) == ("parked", "agent_unavailable")
    assert (resumed["via"], resumed["do"], resumed["outcome"]) == ("sweep", "resume", "completed")
    assert resumed["not_before"] is not None
    assert queued.branches() == ["gal-1-double-m1"]


@pytest.mark.broad
def test_a_worker_that_finds_a_limited_run_says_which_and_until_when_and_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "home/state"))
    queued = make(tmp_path, 1)
    with planned_by(queued, limited(7200)) as model:
        until = by_hand(queued)
        words = f"not before {until.replace('T', ' ')[:19]} UTC, when the limit of its account ends"
        for done in (queued.project.redfirst("work", "--once"), queued.project.redfirst("work", "--once")):
            assert done.returncode == 0
            assert "before by: redfirst resume project-" in done.stderr
            assert f"GAL-1 (o-{queued.orders()[0]['order'][2:]}) does not begin: {words}" in done.stderr
        (order,) = queued.orders()
        assert (order["via"], order["state"], order["not_before"][:19]) == ("sweep", "queued", until[:19])
        assert words in queued.dry_run()["GAL-1"]
        assert words.partition(",")[0] in queued.project.redfirst("queue", "list").stdout
        with opened(queued.project.root) as browser:
            assert words.partition(",")[0] in browser.get("/queue").text
        assert queued.redfirst("queue", "drop", "GAL-1")["ok"]
        done = queued.project.redfirst("work", "--once")
        assert f"/run-GAL-1 is parked (agent_unavailable): {words}" in done.stderr
        assert [one["state"] for one in queued.orders()] == ["dropped"]  # who drops it does not get it again
        assert len(model.work) == 1
        assert "It goes on then" not in done.stderr
        command = done.stderr.partition("Its order is over, so go on with it then by: redfirst ")[2].split()
        assert queued.project.redfirst(*command).returncode == 0  # who cannot wait asks at once
        assert [request.status for request in model.work] == [429, 200, 200]


def test_a_worker_says_of_each_parked_run_what_it_needs(tmp_path: Path) -> None:
    queued = make(tmp_path, 1)
    script = f"agents.script={queued.project.home}/script-1.json"
    assert queued.redfirst("run", "GAL-1", "--set", script, "--approve", "plan")["reason"] == "approval"
    for argv in (("work", "--once"), ("work", "--dry-run")):
        done = queued.project.redfirst(*argv)
        said = next(line for line in done.stderr.splitlines() if "/run-GAL-1 is parked (approval)" in line)
        what, _, command = said.partition(": redfirst ")
        assert what.endswith("it waits for you at approval point plan (1 of 1)")
        assert queued.project.redfirst(*command.split()).returncode == 0
    assert queued.orders() == []
