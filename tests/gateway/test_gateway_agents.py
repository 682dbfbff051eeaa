"""The real agents through the gateway: everything they ask for passes, is counted, and can be refused for good."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import anyio
import pytest
from gateway.box import SECRET, Box, box
from model_service.bare import bare
from model_service.script import Fail, Report, Turn, Use, conversation, run, write
from model_service.service import ModelService

from pipeline.config.providers import Api, Provider
from pipeline.gateway.halting import Patience, Trouble
from pipeline.gateway.spending import Allowance

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

DIALECTS = {"claude": Api.ANTHROPIC, "codex": Api.RESPONSES, "opencode": Api.CHAT, "gemini": Api.GOOGLE}
WORK: tuple[Turn, ...] = (
    Use(write("made.py", "print('made')\n")),
    Use(run("python3 made.py")),
    Report({"result": "COMPLETE", "summary": "done"}),
)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def service_at(url: str, api: Api) -> Provider:
    return Provider(url=url, credential_env="THE_KEY", api=(api,))


async def drive(name: str, agent: Box, place: Path) -> subprocess.CompletedProcess[bytes]:
    """Run a real agent until it ends or the gateway halts; then it is killed."""
    home, workspace = place / "home", place / "project"
    home.mkdir()
    workspace.mkdir()
    request = f"Implement task 1 (issue GAL-1, attempt 1).\n\nWorkspace: `{workspace}`\n"
    prompt = f"You are @make. You implement one task.\n\n# This request: implement\n\n{request}"
    start = bare(name, url=f"http://127.0.0.1:{agent.port}", home=home, workspace=workspace, prompt=prompt)
    out, code = bytearray(), None
    async with await anyio.open_process(
        start.argv, stdin=subprocess.DEVNULL, stderr=subprocess.STDOUT, env=start.env, cwd=workspace
    ) as process:
        with anyio.fail_after(180):
            async with anyio.create_task_group() as group:

                async def stop() -> None:
                    await agent.gateway.halted()
                    process.kill()

                group.start_soon(stop)
                assert process.stdout is not None
                async for piece in process.stdout:
                    out += piece
                code = await process.wait()
                group.cancel_scope.cancel()
    return subprocess.CompletedProcess(start.argv, -1 if code is None else code, bytes(out), b"")


@pytest.mark.parametrize("name", DIALECTS)
@pytest.mark.broad
async def test_all_that_a_real_agent_takes_is_counted(name: str, tmp_path: Path) -> None:
    script = [conversation(*WORK, kind="implement", role="make", task="1")]
    async with (
        ModelService(script, secret=SECRET) as model,
        box(service_at(model.url, DIALECTS[name]), tmp_path / "model.jsonl", name="acme") as agent,
    ):
        done = await drive(name, agent, tmp_path)
    assert done.returncode == 0, done.stdout.decode()
    assert (model.problems, agent.gateway.halt) == ([], None)
    assert agent.gateway.use.refused == 0, agent.written()
    spent = agent.gateway.use.spent
    assert (spent.unmetered, spent.cut) == (0, 0)
    assert spent.answers == len([line for line in agent.lines() if "tokens" in line]) >= len(WORK)
    assert (spent.tokens.input, spent.tokens.output) == (100 * spent.answers, 20 * spent.answers)
    assert spent.tokens.cache_read == 30 * spent.answers


@pytest.mark.parametrize("name", DIALECTS)
@pytest.mark.broad(but_first=1)
async def test_a_refused_credential_stops_a_real_agent_at_its_first_request(name: str, tmp_path: Path) -> None:
    script = [conversation(*WORK, kind="implement", role="make", task="1")]
    async with (
        ModelService(script, secret="another one") as model,
        box(service_at(model.url, DIALECTS[name]), tmp_path / "model.jsonl", name="acme") as agent,
    ):
        await drive(name, agent, tmp_path)
    assert agent.gateway.halt is not None
    assert agent.gateway.halt.trouble is Trouble.UNAUTHORIZED
    assert [line["status"] for line in agent.lines() if line["method"] == "POST"] == [401]
    assert not (tmp_path / "project" / "made.py").exists()


@pytest.mark.parametrize("name", DIALECTS)
@pytest.mark.broad
async def test_a_used_up_allowance_stops_a_real_agent(name: str, tmp_path: Path) -> None:
    script = [conversation(*WORK, kind="implement", role="make", task="1")]
    async with (
        ModelService(script, secret=SECRET) as model,
        box(service_at(model.url, DIALECTS[name]), tmp_path / "model.jsonl", allowance=Allowance(tokens=130)) as agent,
    ):
        await drive(name, agent, tmp_path)
    assert agent.gateway.halt is not None
    assert agent.gateway.halt.trouble is Trouble.BUDGET
    assert [line["status"] for line in agent.lines() if line["method"] == "POST"] == [200, 200, 402]


@pytest.mark.broad
@pytest.mark.parametrize("name", ["claude", "codex"])
async def test_a_service_that_stays_down_stops_a_real_agent(name: str, tmp_path: Path) -> None:
    script = [conversation(Fail(529), *WORK, kind="implement", role="make", task="1")]
    async with (
        ModelService(script, secret=SECRET) as model,
        box(service_at(model.url, DIALECTS[name]), tmp_path / "model.jsonl", patience=Patience(2, 0.0)) as agent,
    ):
        await drive(name, agent, tmp_path)
    assert agent.gateway.halt is not None
    assert (agent.gateway.halt.trouble, agent.gateway.halt.status) == (Trouble.UNAVAILABLE, 529)
    assert [line["status"] for line in agent.lines() if line["method"] == "POST"] == [529, 529]
