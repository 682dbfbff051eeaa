"""What goes wrong between an agent and its model ends in its row of the matrix: nothing applied, nothing left."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING, Any

import pytest
from crashes import await_end_of, processes_of, spawn
from e2e.real_agents import AGENTS, KEY, MODEL, Agent, each, playing, results, story
from e2e.test_signals import await_line
from kit import make_project
from model_service.script import Fail, Hang, Use, read
from model_service.service import ModelService

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from kit import Project
    from model_service.script import Turn

pytestmark = pytest.mark.slow

BY_NAME = {agent.name: agent for agent in AGENTS}
PRODUCTS = [BY_NAME["claude"], BY_NAME["api-chat"]]
QUICK = "[outage]\nbackoff_s = [0]\n"


@pytest.fixture
def agent() -> Agent:
    """Return the quickest one: what each product makes of trouble is tested where its adapter is."""
    return BY_NAME["api-chat"]


each_product = pytest.mark.parametrize("agent", each(PRODUCTS, "claude", "api-chat"))


def ended(
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
    document, service = ended(make_project(tmp_path), agent, [Fail(401)])
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
        document, bad = ended(project, agent, [Fail(500)], more=more, flags=flags)
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
    document, service = ended(project, agent, look, flags=("--set", "budget.tokens=100"))
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
