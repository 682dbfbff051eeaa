"""The backend `api` where things go wrong: each end has its fault and its sentence, and nothing is left behind."""

from __future__ import annotations

import json
import os
import threading
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from backends.agent_cases import CASES, Case
from backends.api_play import DIALECTS, SECRET, Play, report, told
from model_service.script import (
    Cut,
    Empty,
    Fail,
    Garbage,
    Hang,
    Huge,
    Refuse,
    Report,
    Say,
    Truncate,
    Use,
    call,
    conversation,
    edit,
    read,
    write,
)
from model_service.service import ModelService
from pydantic import SecretStr

from pipeline.agents.backends import BACKENDS
from pipeline.agents.backends.api import ApiBackend
from pipeline.agents.backends.protocol import Ended, Fault
from pipeline.agents.gateway.proxy import ModelGateway
from pipeline.agents.gateway.spending import Allowance
from pipeline.config.providers import Api
from pipeline.errors import UserError
from pipeline.judge.policy.rights import Action, Grant
from pipeline.process import BoxError, Completed
from pipeline.vocabulary import Role

if TYPE_CHECKING:
    from pathlib import Path

    from model_service.record import Request
    from model_service.script import Turn

    from pipeline.config.providers import Api

pytestmark = pytest.mark.slow

DONE = {"result": "COMPLETE", "summary": "a is 2"}
ALL = pytest.mark.parametrize("api", DIALECTS)


@pytest.fixture
def play(tmp_path: Path) -> Play:
    return Play(tmp_path)


@ALL
@pytest.mark.parametrize(
    ("turn", "fault", "sentence"),
    [
        (Fail(401), Fault.UNAUTHORIZED, "The model service ours refused the credential (401): Scripted failure 401."),
        (Fail(403), Fault.UNAUTHORIZED, "The model service ours refused the credential (403): Scripted failure 403."),
        (Fail(404), Fault.UNAVAILABLE, "The model service ours answered 404: Scripted failure 404."),
        (Fail(400), Fault.UNAVAILABLE, "The model service ours answered 400: Scripted failure 400."),
        (Refuse(), Fault.REFUSED, "The model declined to answer."),
        (Truncate(), Fault.TRUNCATED, "The model's answer was cut off at its limit of output; say less at once."),
        (Empty(), Fault.EMPTY, "The turn ended without a word."),
        (Garbage(), Fault.UNAVAILABLE, "The model service ours gave no proper answer: "),
    ],
)
@pytest.mark.broad
def test_what_is_no_answer_is_told_apart(tmp_path: Path, api: Api, turn: Turn, fault: Fault, sentence: str) -> None:
    play = Play(tmp_path, api)
    result = play.play(conversation(Use(edit("app.py", "a = 1", "a = 2")), turn))
    assert (result.fault, result.ended, result.exit_code) == (fault, Ended.NONZERO, 1), result.complaint
    assert (result.complaint or "").startswith(sentence)
    assert result.report_file is None
    assert told(result, "failed") == [{"fault": fault.value, "text": result.complaint}]
    assert SECRET.encode() not in result.stdout


@pytest.mark.slow
@ALL
@pytest.mark.parametrize("turn", [Fail(500), Fail(529), Cut(), Fail(429, headers={"retry-after": "0"})])
@pytest.mark.broad(but_first=1)
def test_an_outage_is_waited_for_a_moment_and_then_told(tmp_path: Path, api: Api, turn: Turn) -> None:
    play = Play(tmp_path, api)
    with ModelService([conversation(turn)], secret=SECRET) as service:
        result = play.run(service)
        assert len(service.requests) == 3
    assert result.fault is Fault.UNAVAILABLE
    assert len(told(result, "again")) == 2
    assert result.steps == 0
    assert result.session is None


@ALL
@pytest.mark.broad
def test_what_is_over_in_a_moment_is_not_noticed(tmp_path: Path, api: Api) -> None:
    result = Play(tmp_path, api).play(conversation(Fail(503, times=1), Report(DONE)))
    assert (result.fault, report(result)) == (None, DONE)


@pytest.mark.broad
def test_a_conversation_that_grew_too_long_is_not_gone_on_with(play: Play) -> None:
    said = {"message": "Too long.", "type": "invalid_request_error", "code": "context_length_exceeded"}
    result = play.play(
        conversation(Use(read("app.py")), Fail(400, json.dumps({"error": said}))), session=play.session()
    )
    assert (result.ended, result.fault, result.session) == (Ended.NONZERO, None, None)
    assert result.complaint == "The conversation is longer than the model can take; read less at a time."


def test_a_refused_call_is_told_in_words_and_counted(play: Play) -> None:
    result = play.play(
        conversation(
            Use(write("other.py", "mine\n"), read("no-such-file"), call("run", {"command": "git commit -a"})),
            Use(call("no_such_tool", {"x": 1}), call("write", {"path": 1}), call("read", "{nonsense")),
            Use(write("\x1b[2J\n" + "x" * 500, "mine\n")),
            Report(DONE),
        )
    )
    assert report(result) == DONE
    assert result.denials == (
        "write other.py: outside-task",
        "run git commit -a: program-not-listed",
        "no_such_tool: no-such-tool",
        f"write \\x1b[2J {'x' * 186} ...: path-characters",
    )
    answers = [line["text"] for line in told(result, "answer")]
    assert answers[0].startswith("Not done: ")
    assert "read, search, write" in answers[3]
    assert "content: Field required" in answers[4]
    assert "not the arguments of read" in answers[5]
    assert play.changes() == ()


@pytest.mark.broad
@pytest.mark.parametrize(
    ("role", "kind", "tools"),
    [
        (Role.CHECK, "review-plan", {"read", "search"}),
        (
            Role.TEST,
            "write-tests",
            {"read", "search", "write", "edit", "delete", "changes", "run", "run_tests", "run_check"},
        ),
    ],
)
def test_a_role_is_offered_what_it_may_use(tmp_path: Path, role: Role, kind: str, tools: set[str]) -> None:
    play = Play(tmp_path, role=role, kind=kind)
    script = conversation(Use(call("write", {"path": "app.py", "content": ""})), Report({"verdict": "ACCEPTABLE"}))
    with ModelService([script], secret=SECRET) as service:
        result = play.run(service)
    assert set(service.requests[0].tools) == tools | {"final_result"}
    assert len(result.denials) == 1
    assert play.changes() == ()


def test_nothing_of_a_transcript_can_be_taken_for_a_report(play: Play) -> None:
    result = play.play(conversation(Say("I have finished.")))
    assert (result.ended, result.report_file, result.fault) == (Ended.OK, None, None)
    assert result.complaint == "There was no report: give it by calling final_result."
    assert not [line for line in result.stdout.splitlines() if line.startswith(b"{")]


def test_a_report_that_is_no_json_is_handed_on(play: Play) -> None:
    result = play.play(conversation(Use(call("final_result", '{"result": "COMP'))))
    assert result.report_file == b'{"result": "COMP'


@pytest.mark.broad
def test_the_last_answer_that_a_model_may_give(play: Play) -> None:
    turns = [Use(read("app.py")) for _ in range(3)]
    result = play.play(conversation(*turns), max_steps=3)
    assert (result.fault, result.steps) == (Fault.STEPS, 3)
    assert result.complaint == "The model did not come to an end within 3 answers."
    assert report(Play(play.folder / "again").play(conversation(*turns[:2], Report(DONE)), max_steps=3)) == DONE


@pytest.mark.broad(but_first=1)
@pytest.mark.parametrize(
    ("allowed", "caps", "fault"),
    [
        (Allowance(tokens=150), {}, Fault.BUDGET),
        (Allowance(answers=1), {}, Fault.STEPS),
        (Allowance(), {"max_requests": 1}, Fault.STEPS),
    ],
)
def test_what_a_dispatch_may_take(play: Play, allowed: Allowance, caps: dict[str, Any], fault: Fault) -> None:
    with ModelService([conversation(Use(read("app.py")), Use(read("app.py")), Report(DONE))], secret=SECRET) as service:
        job = play.job(service.url, provider=caps)
        assert job.service is not None
        gateway = ModelGateway(job.service.provider, SecretStr(SECRET), play.folder / "log", allowance=allowed)
        result = anyio.run(ApiBackend().run, replace(job, gateway=gateway))
        assert len(service.requests) <= 2
    assert result.fault is fault, result.complaint
    assert (result.complaint or "").startswith("redfirst: ")


@pytest.mark.broad
@pytest.mark.slow
def test_the_time_limit_holds_while_the_model_is_silent(play: Play) -> None:
    result = play.play(conversation(Use(edit("app.py", "a = 1", "a = 2")), Hang()), timeout_s=5)
    assert (result.ended, result.exit_code, result.fault) == (Ended.TIMED_OUT, None, None)
    assert result.complaint == "The agent did not finish within 5 seconds and was stopped."
    assert (result.steps, result.usage.output_tokens) == (1, 20)


def test_a_cancelled_dispatch_leaves_nothing(play: Play) -> None:
    threads, descriptors = threading.active_count(), len(os.listdir("/proc/self/fd"))  # noqa: PTH208
    with ModelService([conversation(Use(read("app.py")), Hang())], secret=SECRET) as service:

        def two(requests: list[Request]) -> bool:
            return len(requests) == 2

        async def main() -> None:
            async with anyio.create_task_group() as group:
                group.start_soon(ApiBackend().run, play.job(service.url))
                await anyio.to_thread.run_sync(service.wait_for, two)
                group.cancel_scope.cancel()

        anyio.run(main)
    assert threading.active_count() <= threads
    assert len(os.listdir("/proc/self/fd")) <= descriptors  # noqa: PTH208


@pytest.mark.broad
def test_a_huge_answer_is_bounded(play: Play) -> None:
    result = play.play(conversation(Huge(characters=3_000_000)))
    assert len(result.stdout) < 100_000
    assert b"x [... cut ...] x" in result.stdout


def test_a_long_file_does_not_fill_the_conversation(play: Play) -> None:
    (play.view.host / "app.py").write_text("x" * 300_000)
    with ModelService([conversation(Use(read("app.py")), Report(DONE))], secret=SECRET) as service:
        play.run(service)
    (answer,) = [said for said in service.requests[-1].body["messages"] if said["role"] == "tool"]
    assert len(answer["content"]) < 61_000
    assert "\n[240000 characters are left out here]\n" in answer["content"]


def test_a_broken_box_is_no_answer_of_the_model(play: Play) -> None:
    class Broken:
        name, maps_paths = "broken", False

        def inside(self, host: Path, target: Path) -> Path:
            return host or target

        async def run(self, command: object) -> Completed:
            raise BoxError(f"no box for {type(command).__name__}")

    with ModelService([conversation(Use(call("run", {"command": "cat app.py"})))], secret=SECRET) as service:
        bench = replace(play.bench(), box=Broken())
        with pytest.raises(BoxError, match="no box for Command"):
            play.run(service, tools=bench.offered())


@pytest.mark.parametrize(
    ("change", "word"),
    [({"model": None}, "a model"), ({"service": None}, "a provider"), ({"gateway": None}, "network")],
)
def test_what_the_configuration_leaves_out(play: Play, change: dict[str, Any], word: str) -> None:
    with pytest.raises(UserError, match=word):
        anyio.run(BACKENDS["api"].run, play.job("http://127.0.0.1:9", **change))


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
@pytest.mark.broad(but_first=2)
def test_a_situation_of_every_agent(case: Case, tmp_path: Path) -> None:
    named = ("app.py", "new.txt", "made.txt", "half.txt")
    grants = tuple(Grant(path, Action.MODIFY if path == "app.py" else Action.CREATE) for path in named)
    play = Play(tmp_path, grants=grants, writable=case.writable)
    with ModelService(case.script, secret=SECRET) as service:
        result = play.run(service, **case.job)
    assert service.problems == []
    case.check("api", result, {change.path: change for change in play.changes()})


def nested(depth: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for _ in range(depth):
        found = {"a": found}
    return found


@pytest.mark.broad
@pytest.mark.parametrize("api", DIALECTS)
@pytest.mark.parametrize("arguments", [nested(400), nested(900), {"path": "\ud800"}], ids=["deep", "deeper", "half"])
@pytest.mark.broad(but_first=1)
def test_arguments_that_cannot_be_said_again(api: Api, arguments: dict[str, Any], tmp_path: Path) -> None:
    play = Play(tmp_path, api)
    script = conversation(Use(call("read", arguments)), Report({"result": "COMPLETE", "summary": "done"}))
    with ModelService([script], secret=SECRET) as service:
        result = play.run(service, session=play.session())
    assert service.problems == []
    assert result.fault is None, result.complaint
