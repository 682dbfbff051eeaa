"""A limit of an account that says when it ends is kept, shown and waited for; other troubles end in their rows."""

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
from e2e.real_agents import AGENTS, KEY, MODEL, Agent, each, playing, results, story
from e2e.test_interruptions import await_line
from kit import HONEST, Project, make_project
from model_service.script import Fail, Hang, Say, Use, conversation, read
from model_service.service import ModelService
from waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from kit import Project
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


# --- what goes wrong between an agent and its model: nothing applied, nothing left ------------------------------------

BY_NAME = {agent.name: agent for agent in AGENTS}
PRODUCTS = [BY_NAME["claude"], BY_NAME["api-chat"]]
QUICK = "[outage]\nbackoff_s = [0]\n"


@pytest.fixture
def agent() -> Agent:
    """Return the quickest one: what each product makes of trouble is tested where its adapter is."""
    return BY_NAME["api-chat"]


each_product = pytest.mark.parametrize("agent", each(PRODUCTS, "claude", "api-chat"))


def troubled(
    project: Project, agent: Agent, before: Sequence[Turn], *, more: str = QUICK, flags: Sequence[str] = ()
) -> tuple[dict[str, Any], ModelService]:
    """Return how a run stands in which the first conversation meets trouble, and who was asked."""
    start = project.git("rev-parse", "HEAD")
    with playing(agent, story(before=before), project, more) as service:
        document = project.run(*flags)
    if document["outcome"] != "completed":
        assert project.git("rev-parse", "HEAD") == start
        assert project.git("diff", "--name-only", "HEAD", "--", ":!TODO") == ""
        assert results(project)[-1]["changes"] == []
    assert processes_of(project) == {}
    return document, service


@each_product
@pytest.mark.broad(but_first=1)
def test_a_refused_credential_parks_at_once(agent: Agent, tmp_path: Path) -> None:
    document, service = troubled(make_project(tmp_path), agent, [Fail(401)])
    assert (document["_code"], document["reason"]) == (75, "agent_unavailable")
    assert "LOOP_KEY" in document["note"]
    assert "401" in document["note"]
    assert len(service.work) == 1


@pytest.mark.broad
def test_a_spare_takes_over_and_stays(agent: Agent, tmp_path: Path) -> None:
    project = make_project(tmp_path)
    spare = BY_NAME["api-responses"]
    with ModelService(story(), secret=KEY) as good:
        more = (
            f'{QUICK}[spares.other]\nbackend = "api"\nprovider = "good"\nmodel = "{MODEL}"\n'
            f'[providers.good]\nurl = "{good.url}"\ncredential_env = "LOOP_KEY"\napi = ["{spare.api}"]\n'
        )
        flags = ("--set", 'agents.fallback=["other"]')
        document, bad = troubled(project, agent, [Fail(500)], more=more, flags=flags)
    assert document["outcome"] == "completed", document["note"]
    first, *others = results(project)
    assert [each["agent"]["service"] for each in first["tries"]] == ["loop", "loop"]
    assert first["agent"]["service"] == "good"
    assert all(result["agent"]["service"] == "good" and result["tries"] == [] for result in others)
    assert {request.status for request in bad.work} == {500}


@each_product
@pytest.mark.broad
def test_a_budget_ends_a_dispatch_in_its_middle_and_more_of_it_goes_on(agent: Agent, tmp_path: Path) -> None:
    project = make_project(tmp_path)
    look = [Use(read("greet.py"))] * 3
    document, service = troubled(project, agent, look, flags=("--set", "budget.tokens=100"))
    assert (document["_code"], document["reason"]) == (5, "budget"), document["note"]
    assert "tokens" in document["note"]
    begun = len(service.work)
    assert begun < len(look)
    with playing(agent, story(), project):
        resumed = project.document("resume", "GAL-1", "--set", "budget.tokens=1000000")
    assert resumed["outcome"] == "completed", resumed
    assert resumed["usage"]["input_tokens"] is None or resumed["usage"]["input_tokens"] > 0


@each_product
@pytest.mark.broad
def test_a_killed_driver_leaves_no_agent_and_its_tokens_count(agent: Agent, tmp_path: Path) -> None:
    project = make_project(tmp_path)
    with playing(agent, story(instead={"review-plan": [Hang(begun=True)]}), project) as service:
        with spawn(project, "run", "GAL-1") as driver:
            service.wait_for(lambda asked: any("review-plan" in request.line() for request in asked))
            driver.kill()
            driver.communicate()
        await_end_of(processes_of(project))
    with playing(agent, story(), project):
        resumed = project.document("resume", "GAL-1")
    assert resumed["outcome"] == "completed", resumed
    assert list(project.run_folder().glob("dispatches/*.lost-1"))


@each_product
@pytest.mark.broad
def test_two_signals_take_the_agent_away(agent: Agent, tmp_path: Path) -> None:
    project = make_project(tmp_path)
    with playing(agent, story(before=[Hang()]), project) as service, spawn(project, "run", "GAL-1", "--json") as driver:
        service.wait_for(lambda asked: len(asked) > 0)
        driver.send_signal(signal.SIGINT)
        await_line(driver, "it stops once")
        driver.send_signal(signal.SIGINT)
        driver.communicate(timeout=300)
        assert driver.returncode == 130
    assert processes_of(project) == {}
