"""Claude Code and Codex, as they are installed, in every situation of the table."""

from __future__ import annotations

import json
import os
import secrets
from typing import TYPE_CHECKING

import anyio
import pytest
from agent_clis import cli
from model_service.script import Hang, Report, Use, conversation, run, write
from model_service.service import ModelService

from backends.agent_cases import CASES, Case
from backends.real_agents import COMPLETE, SECRET, Stand, boxed
from pipeline.backends import BACKENDS
from pipeline.dispatch.bubblewrap import Bubblewrap
from pipeline.dispatch.limits import BOX_USER
from pipeline.pids import carries, pids

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow


@pytest.fixture(params=["claude", "codex"])
def backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def stand(backend: str, folder: Path, **more: object) -> Stand:
    return Stand(folder, backend, cli(backend), boxed(), **more)  # type: ignore[arg-type]


def left(mark: str) -> list[int]:
    """Return the processes of a dispatch that are still there."""
    return [pid for pid in pids() if carries(pid, mark)]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_situation(backend: str, case: Case, tmp_path: Path) -> None:
    place = stand(backend, tmp_path, writable=case.writable)
    mark = secrets.token_hex(8)
    result, service = place.ask(*case.script, env={"MARK": mark}, **case.job)
    assert service.problems == []
    case.check(backend, result, place.changes())
    assert left(f"MARK={mark}") == []


def test_what_it_says_of_itself(backend: str, tmp_path: Path) -> None:
    place = stand(backend, tmp_path)
    result, service = place.ask(conversation(Use(run("true")), Report(COMPLETE)), effort="high")
    assert service.problems == []
    assert (result.usage.input_tokens, result.usage.output_tokens) == (200, 40)
    assert result.usage.model == "claude-sonnet-4-5"
    assert (result.usage.cost_usd is None) == (backend == "codex")
    assert result.steps == (None if backend == "codex" else 2)
    assert {request.asked.model for request in service.work if request.asked} == {"claude-sonnet-4-5"}
    assert not any(SECRET in json.dumps(request.body) for request in service.work)


def test_a_price_is_not_made_up(tmp_path: Path) -> None:
    result, _ = stand("claude", tmp_path).ask(conversation(Report(COMPLETE)), model="glm-9")
    assert result.usage.input_tokens == 100
    assert result.usage.cost_usd is None


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


def test_without_a_session_nothing_is_kept(backend: str, tmp_path: Path) -> None:
    result, _ = stand(backend, tmp_path).ask(conversation(Report(COMPLETE)), session=None)
    assert result.session is not None
    place = stand(backend, tmp_path / "second")
    with ModelService([conversation(Report(COMPLETE))], secret=SECRET) as service:
        job = place.job(service)
        result = anyio.run(BACKENDS[backend].run, type(job)(**{**vars(job), "session": None}))
    assert (result.session, result.complaint) == (None, None)
    assert list(place.sessions.iterdir()) == []


def test_a_cancelled_dispatch_leaves_no_process(backend: str, tmp_path: Path) -> None:
    place = stand(backend, tmp_path)
    mark = secrets.token_hex(8)
    script = [conversation(Use(run("setsid sleep 300 >/dev/null 2>&1 &")), Hang())]

    async def cancelled() -> None:
        with ModelService(script, secret=SECRET) as service:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(BACKENDS[backend].run, place.job(service, env={"MARK": mark}))
                await anyio.to_thread.run_sync(service.wait_for, lambda seen: any(each.turn == 1 for each in seen))
                assert left(f"MARK={mark}")
                tasks.cancel_scope.cancel()

    anyio.run(cancelled)
    assert left(f"MARK={mark}") == []


@pytest.mark.skipif(os.getuid() != 0, reason="only a driver that runs as root gives the box another user")
def test_as_another_user(backend: str, tmp_path: Path) -> None:
    place = stand(backend, tmp_path)
    place.box = Bubblewrap(boxed().program, BOX_USER)
    results, service = place.ask_on(
        [conversation(Use(write("new.txt", "x\n")), Report(COMPLETE))], [conversation(Report(COMPLETE), reask=True)]
    )
    assert service.problems == []
    assert [result.complaint for result in results] == [None, None]
    assert place.changes().keys() == {"new.txt"}
