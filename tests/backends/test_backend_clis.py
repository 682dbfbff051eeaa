"""Claude Code and Codex, as they are installed, in every situation of the table."""

from __future__ import annotations

import json
import os
import secrets
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread
import pytest
from agent_clis import cli
from backends.agent_cases import CASES, Case
from backends.real_agents import COMPLETE, PROMPT, SECRET, Stand, boxed
from model_service.script import Hang, Report, Use, conversation, run, write
from model_service.service import ModelService

from pipeline.agents.backends import BACKENDS
from pipeline.config.agents import AgentConfig, Backend
from pipeline.judge.policy.roles import Network
from pipeline.pids import carries, pids
from pipeline.process import WORKSPACE
from pipeline.sandbox.boxes.bubblewrap import Bubblewrap
from pipeline.sandbox.boxes.limits import BOX_USER
from pipeline.sandbox.boxes.nobox import NoBox

if TYPE_CHECKING:
    from pathlib import Path

    from model_service.service import Request

pytestmark = pytest.mark.slow


@pytest.fixture(params=["claude", "codex"])
def backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def stand(backend: str, folder: Path, **more: Any) -> Stand:
    return Stand(folder, boxed(), backend, cli(backend), **more)


def left(mark: str) -> list[int]:
    """Return the processes of a dispatch that are still there."""
    return [pid for pid in pids() if carries(pid, mark)]


@pytest.mark.parametrize(
    "case",
    [pytest.param(case, id=case.name, marks=() if case.name == "work" else pytest.mark.broad) for case in CASES],
)
@pytest.mark.broad(but_first=1)
def test_a_situation(backend: str, case: Case, tmp_path: Path) -> None:
    place = stand(backend, tmp_path, writable=case.writable)
    mark = secrets.token_hex(8)
    result, service = place.ask(*case.script, env={"MARK": mark}, **case.job)
    assert service.problems == []
    case.check(backend, result, place.changes())
    assert left(f"MARK={mark}") == []


@pytest.mark.broad
def test_what_it_says_of_itself(backend: str, tmp_path: Path) -> None:
    place = stand(backend, tmp_path)
    result, service = place.ask(conversation(Use(run("true")), Report(COMPLETE)))
    assert service.problems == []
    assert (result.usage.input_tokens, result.usage.output_tokens) == (200, 40)
    assert result.usage.model == "claude-sonnet-4-5"
    assert (result.usage.cost_usd is None) == (backend == "codex")
    assert result.steps == (None if backend == "codex" else 2)
    assert {request.asked.model for request in service.work if request.asked} == {"claude-sonnet-4-5"}
    assert not any(SECRET in json.dumps(request.body) for request in service.work)


@pytest.mark.broad
def test_a_price_is_not_made_up(tmp_path: Path) -> None:
    result, _ = stand("claude", tmp_path).ask(conversation(Report(COMPLETE)), model="glm-9")
    assert result.usage.input_tokens == 100
    assert result.usage.cost_usd is None


@pytest.mark.broad
def test_asked_again_in_the_same_conversation(backend: str, tmp_path: Path) -> None:
    place = stand(backend, tmp_path)
    first, second = (
        [conversation(Use(write("new.txt", "x\n")), Report({"result": "COMPLETE"}))],
        [conversation(Report(COMPLETE), reask=True)],
    )
    results, service = place.ask_on(first, second)
    assert service.problems == []
    assert [json.loads(result.report_file or b"") for result in results] == [{"result": "COMPLETE"}, COMPLETE]
    assert results[0].session == results[1].session
    again = json.dumps(service.work[-1].body)
    assert "new.txt" in again, "the first conversation is not in the second request"
    assert "did not count" in again
    if backend == "codex":
        assert results[1].usage.input_tokens is None, "it counts the whole conversation"


@pytest.mark.broad
def test_a_conversation_that_is_gone_begins_anew(backend: str, tmp_path: Path) -> None:
    gone = "01a200c1-bd5f-46a1-80d0-d468956fa29f"
    result, service = stand(backend, tmp_path).ask(conversation(Report(COMPLETE), reask=False), session=gone)
    assert (result.complaint, service.problems) == (None, [])
    assert result.session not in {None, gone}


@pytest.mark.broad
def test_a_prompt_of_any_length(backend: str, tmp_path: Path) -> None:
    place = stand(backend, tmp_path)
    result, service = place.ask(
        conversation(Report(COMPLETE)), prompt=PROMPT.format(workspace=WORKSPACE) + "long " * 60_000
    )
    assert (result.complaint, service.problems) == (None, [])
    assert "long long" in json.dumps(service.work[0].body)


@pytest.mark.broad
def test_how_much_it_thinks(backend: str, tmp_path: Path) -> None:
    result, service = stand(backend, tmp_path).ask(
        conversation(Report(COMPLETE)), model="claude-opus-4-6", effort="low"
    )
    assert result.complaint is None
    assert [request.asked.effort for request in service.work if request.asked] == ["low"]


@pytest.mark.broad
def test_the_users_login(tmp_path: Path) -> None:
    """The product's own file, read-only, and its own connection: here to the service, by the user's variable."""
    place = stand("claude", tmp_path)
    home = tmp_path / "home"
    (home / ".claude").mkdir(parents=True)
    file = home / ".claude" / ".credentials.json"
    login = {"accessToken": SECRET, "refreshToken": "x", "expiresAt": 4102444800000, "scopes": ["user:inference"]}
    file.write_text(json.dumps({"claudeAiOauth": login}))
    spoil = run("echo x >> ~/.claude/.credentials.json; rm -f ~/.claude/.credentials.json")
    with ModelService([conversation(Use(spoil), Report(COMPLETE))], secret=SECRET) as service:
        agent = AgentConfig(backend=Backend.CLAUDE, login=True, network=Network.OPEN)
        env = {"ANTHROPIC_BASE_URL": service.url}
        job = place.served(service, network="open", gateway=None, agent=agent, home=home, env=env)
        result = anyio.run(BACKENDS["claude"].run, job)
    assert (result.complaint, service.problems) == (None, [])
    assert service.work[0].headers["authorization"] == f"Bearer {SECRET}"
    assert json.loads(file.read_text()) == {"claudeAiOauth": login}


@pytest.mark.broad
def test_without_a_box(tmp_path: Path) -> None:
    place = Stand(tmp_path, NoBox(), "claude", cli("claude"))
    script = conversation(Use(write("new.txt", "x\n")), Use(run("echo x > made.txt")), Report(COMPLETE))
    with ModelService([script], secret=SECRET) as service:
        env = {"ANTHROPIC_BASE_URL": service.url, "ANTHROPIC_API_KEY": SECRET}
        prompt = PROMPT.format(workspace=place.view.mount.source)
        job = place.served(service, network="open", gateway=None, env=env, prompt=prompt)
        result = anyio.run(BACKENDS["claude"].run, job)
    assert (result.complaint, result.session, result.denials, service.problems) == (None, None, (), [])
    assert place.changes().keys() == {"new.txt", "made.txt"}


@pytest.mark.broad
def test_without_a_session_nothing_is_kept(backend: str, tmp_path: Path) -> None:
    place = stand(backend, tmp_path)
    with ModelService([conversation(Report(COMPLETE))], secret=SECRET) as service:
        job = replace(place.served(service), session=None)
        result = anyio.run(BACKENDS[backend].run, job)
    assert (result.session, result.complaint) == (None, None)
    assert list(place.sessions.iterdir()) == []


@pytest.mark.broad(but_first=1)
def test_a_cancelled_dispatch_leaves_no_process(backend: str, tmp_path: Path) -> None:
    place = stand(backend, tmp_path)
    mark = secrets.token_hex(8)
    script = [conversation(Use(run("setsid sleep 300 >/dev/null 2>&1 &")), Hang())]

    def hanging(seen: list[Request]) -> bool:
        return any(request.turn == 1 for request in seen)

    async def cancelled() -> None:
        with ModelService(script, secret=SECRET) as service:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(BACKENDS[backend].run, place.served(service, env={"MARK": mark}))
                await anyio.to_thread.run_sync(service.wait_for, hanging)
                assert left(f"MARK={mark}")
                tasks.cancel_scope.cancel()

    anyio.run(cancelled)
    assert left(f"MARK={mark}") == []


@pytest.mark.skipif(os.getuid() != 0, reason="only a driver that runs as root gives the box another user")
@pytest.mark.broad(but_first=1)
def test_as_another_user(backend: str, tmp_path: Path) -> None:
    place = stand(backend, tmp_path)
    place.box = Bubblewrap(boxed().program, BOX_USER)
    results, service = place.ask_on(
        [conversation(Use(write("new.txt", "x\n")), Report(COMPLETE))], [conversation(Report(COMPLETE), reask=True)]
    )
    assert service.problems == []
    assert [result.complaint for result in results] == [None, None]
    assert place.changes().keys() == {"new.txt"}
