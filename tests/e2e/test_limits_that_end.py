"""A limit of an account that says when it ends is kept, shown and waited for; asking before it ends is in vain."""

from __future__ import annotations

import signal
import sys
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from console.served import opened
from crashes import await_end_of, processes_of, spawn
from e2e.real_agents import results
from e2e.test_signals import await_line
from kit import HONEST, Project, make_project
from model_service.script import Fail, Say, conversation
from model_service.service import ModelService
from waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Generator

    from model_service.script import Turn

pytestmark = pytest.mark.slow

AGENT = Path(__file__).parent / "agents/limited.py"


def limited(retry_after: object, times: int | None = None) -> Fail:
    return Fail(429, headers={"retry-after": str(retry_after)}, times=times)


@contextmanager
def planned_by(project: Project, *turns: Turn, outage: str = "") -> Generator[ModelService]:
    """Let the plan be drafted by an agent that asks a service which answers so; all else is played."""
    split = conversation(Say("yes"), kind="split")
    with ModelService([conversation(*turns, Say("yes"), kind="plan"), split]) as service:
        script = project.script(HONEST)
        project.configure(
            f'[outage]\nbackoff_s = []\n{outage}\n[agents]\nbackend = "scripted"\nscript = "{script}"\n'
            f'[agents.orchestrator]\nbackend = "command"\nargv = ["{sys.executable}", "{AGENT}", "{script}"]\n'
            f'read = ["{AGENT.parent}", "{project.home}"]\nnetwork = "model"\nprovider = "local"\n'
            f'[providers.local]\nurl = "{service.url}"\napi = ["chat"]\n'
        )
        yield service
    assert service.problems == []


def waits(project: Project) -> list[dict[str, Any]]:
    return [line for line in project.journal() if line["kind"] == "dispatch_waits"]


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


@pytest.mark.broad
def test_a_driver_waits_until_the_limit_ends_and_says_until_when(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    with planned_by(project, limited(2, times=1)) as service:
        document = project.run()
    assert document["outcome"] == "completed", document["note"]
    (line,) = waits(project)
    assert moment(line["data"]["not_before"]) - moment(line["at"]) >= timedelta(seconds=1)
    ended = next(each["at"] for each in project.journal() if each["kind"] == "dispatch_finished")
    assert moment(ended) >= moment(line["data"]["not_before"])
    assert [request.status for request in service.work] == [429, 200, 200]
    assert f"The limit ends at {line['data']['not_before'].replace('T', ' ')[:19]} UTC" in document["_stderr"]
    assert document["not_before"] is None
    assert len(results(project)[0]["tries"]) == 1


@pytest.mark.broad
def test_what_is_longer_than_the_wait_parks_at_once_with_when_it_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = make_project(tmp_path)
    before = datetime.now(UTC)
    with planned_by(project, limited(7200), outage="wait_s = 0") as service:
        document = project.run()
    assert (document["_code"], document["reason"], len(service.work)) == (75, "agent_unavailable", 1)
    said = str(document["not_before"])
    assert timedelta(hours=1.9) < moment(said) - before < timedelta(hours=2.1)
    assert results(project)[0]["not_before"] == said
    assert [line["data"]["not_before"] for line in project.journal() if line["kind"] == "dispatch_finished"] == [said]
    words = f"{said.replace('T', ' ')[:19]} UTC"
    show, runs = project.document("show"), project.document("runs")
    assert (show["not_before"], runs["runs"][0]["not_before"]) == (said, said)
    for command in (("show",), ("show", "-v"), ("runs",)):
        text = " ".join(project.redfirst(*command).stdout.split())
        assert f"not before {words}" in text, command
    monkeypatch.setenv("XDG_STATE_HOME", project.environment()["XDG_STATE_HOME"])
    with opened(project.root) as browser:
        assert browser.json("/runs/run-GAL-1")["not_before"] == browser.json("/")["runs"][0]["not_before"] == said
        for page in ("/", "/runs/run-GAL-1"):
            assert f"not before {words}" in browser.get(page).text.lower().replace("utc", "UTC"), page


def test_where_no_header_says_it_the_words_of_the_product_do(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    before = datetime.now(UTC)
    said = '{"error": {"message": "You have hit your usage limit. It resets in 2h 14m."}}'
    with planned_by(project, Fail(429, body=said), outage="wait_s = 0"):
        document = project.run()
    assert (document["_code"], document["reason"]) == (75, "agent_unavailable")
    assert timedelta(hours=2.2) < moment(document["not_before"]) - before < timedelta(hours=2.4)


@pytest.mark.broad
def test_a_wait_is_over_at_once_when_the_run_is_stopped(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    with planned_by(project, limited(3600, times=1)):
        with spawn(project, "run", "GAL-1") as driver:
            await_line(driver, "The limit ends at")
            wait_until(lambda: waits(project) != [])
            there = processes_of(project)
            seen = project.document("show")
            driver.send_signal(signal.SIGINT)
            driver.communicate(timeout=300)
        assert driver.returncode == 130
        await_end_of(there)
        assert seen["not_before"] == waits(project)[0]["data"]["not_before"]
        assert "waiting until" in " ".join(each["what"] for each in seen["now"])
        assert project.document("show")["not_before"] == seen["not_before"]
        assert project.document("resume")["outcome"] == "completed"
