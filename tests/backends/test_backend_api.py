"""The backend `api`: our own tool loop with a model that plays a script, in every dialect."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import anyio
import pytest
from backends.api_play import DIALECTS, SECRET, WORK, Play, report, told
from languages.direct import environment
from model_service.script import Empty, Report, Use, call, conversation, edit, read, run, write
from model_service.service import ModelService

from pipeline.agents.backends.extras import install_command
from pipeline.agents.backends.protocol import Ended, Fault
from pipeline.config.providers import Api
from pipeline.sandbox.boxes.bubblewrap import Bubblewrap
from pipeline.testing.measure.project_tools import Tools

pytestmark = pytest.mark.slow

if TYPE_CHECKING:
    from pathlib import Path

DONE = {"result": "COMPLETE", "summary": "a is 2"}


@pytest.fixture(params=DIALECTS)
def play(request: pytest.FixtureRequest, tmp_path: Path) -> Play:
    return Play(tmp_path, request.param)


@pytest.mark.broad(but_first=1)
def test_a_conversation_with_every_kind_of_tool(play: Play) -> None:
    result = play.play(
        conversation(
            Use(read("app.py")),
            Use(edit("app.py", "a = 1", "a = 2"), write("new.py", "d = 1\n"), text="Both at once."),
            Use(run("cat app.py")),
            Report(DONE),
            kind="implement",
        )
    )
    assert (result.ended, result.complaint, result.fault) == (Ended.OK, None, None), result.stdout.decode()
    assert report(result) == DONE
    assert [change.path for change in play.changes()] == ["app.py", "new.py"]
    assert (result.steps, result.denials) == (4, ())
    assert (result.usage.input_tokens, result.usage.output_tokens, result.usage.model) == (400, 80, "scripted")
    assert [line["tool"] for line in told(result, "call")] == ["read", "edit", "write", "run", "final_result"]
    assert "a = 2\nb = 1" in told(result, "answer")[3]["text"]


@pytest.mark.broad(but_first=1)
def test_an_answer_that_did_not_count_is_asked_for_again_in_the_same_conversation(play: Play) -> None:
    script = [
        conversation(Use(edit("app.py", "a = 1", "a = 2")), Report({"result": "DONE"})),
        conversation(Report(DONE)),
    ]
    with ModelService(script, secret=SECRET) as service:
        first = play.run(service, session=play.session())
        assert first.session is not None
        again = play.session(first.session, "Your last answer to this request did not count: no such result.")
        second = play.run(service, session=again)
        assert service.problems == []
    assert (report(first), report(second)) == ({"result": "DONE"}, DONE)
    asked = service.requests[-1].asked
    assert asked is not None
    assert asked.messages[-1].text == again.prompt
    assert (asked.rounds, second.steps) == (2, 1)
    assert [line["text"] for line in told(second, "prompt")] == [again.prompt]


@pytest.mark.broad
def test_a_conversation_that_failed_half_way_is_gone_on_with(play: Play) -> None:
    with ModelService([conversation(Use(read("app.py")), Empty(), Report(DONE))], secret=SECRET) as service:
        first = play.run(service, session=play.session())
        assert (first.fault, first.steps) == (Fault.EMPTY, 2)
    with ModelService([conversation(Use(read("app.py")), Report(DONE))], secret=SECRET) as service:
        second = play.run(service, session=play.session(first.session, "Say something."))
        assert service.problems == []
    assert report(second) == DONE


@pytest.mark.broad(but_first=1)
def test_a_history_that_was_changed_is_not_gone_on_with(play: Play, tmp_path: Path) -> None:
    with ModelService([conversation(Report({})), conversation(Report(DONE))], secret=SECRET) as service:
        first = play.run(service, session=play.session())
        (kept,) = (tmp_path / "session").iterdir()
        kept.write_bytes(kept.read_bytes().replace(b"You are @make", b"You are @root"))
        second = play.run(service, session=play.session(first.session, "Again."))
        assert service.problems == []
    assert report(second) == DONE
    assert told(second, "prompt")[0]["text"] == play.prompt()


@pytest.mark.broad(but_first=1)
@pytest.mark.parametrize("name", ["../secret", "a" * 64, "", "/etc/passwd"])
def test_a_name_that_is_none_begins_anew(tmp_path: Path, name: str) -> None:
    play = Play(tmp_path)
    assert report(play.play(conversation(Report(DONE)), session=play.session(name, "Again."))) == DONE


@pytest.mark.parametrize(
    ("api", "model", "said"),
    [
        pytest.param(Api.ANTHROPIC, "claude-opus-4-5", ("output_config", "thinking"), marks=pytest.mark.slow),
        pytest.param(Api.RESPONSES, "gpt-5", ("reasoning",), marks=pytest.mark.slow),
        pytest.param(Api.RESPONSES, "own-model", ("reasoning",), marks=pytest.mark.slow),
        (Api.CHAT, "gpt-5", ("reasoning_effort",)),
        (Api.CHAT, "own-model", ("reasoning_effort",)),
        pytest.param(Api.GOOGLE, "gemini-3-pro-preview", ("generationConfig",), marks=pytest.mark.slow),
    ],
)
@pytest.mark.broad
def test_effort_is_said_in_the_words_of_the_service(tmp_path: Path, api: Api, model: str, said: tuple[str]) -> None:
    play = Play(tmp_path, api)
    with ModelService([conversation(Report(DONE)), conversation(Report(DONE))], secret=SECRET) as service:
        assert report(play.run(service, model=model, effort="high")) == DONE
        assert report(play.run(service, model=model)) == DONE
    first, second = (request.body for request in service.requests)
    assert {key: first.get(key) for key in said} != {key: second.get(key) for key in said}
    assert "high" in str([first.get(key) for key in said]).lower()


@pytest.mark.broad(but_first=1)
def test_what_is_asked_goes_through_the_gateway_and_nowhere_else(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "GOOGLE_API_KEY", "GEMINI_API_KEY"):
        monkeypatch.setenv(name, "a-key-of-the-environment")
    for name in (
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "ALL_PROXY",
        "OPENAI_BASE_URL",
        "ANTHROPIC_BASE_URL",
        "GOOGLE_GEMINI_BASE_URL",
    ):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    result = play.play(conversation(Report(DONE)))
    assert report(result) == DONE
    log = (play.folder / "model.jsonl").read_text()
    assert len(log.splitlines()) == 1


@pytest.mark.parametrize("api", list(Api))
@pytest.mark.broad
def test_no_other_connection_is_opened(api: Api, tmp_path: Path) -> None:
    with ModelService([conversation(Use(read("app.py")), Report(DONE))], secret=SECRET) as service:
        code = f"""if True:
            import sys
            from pathlib import Path
            import anyio
            from backends.api_play import Api, ApiBackend, Play, report
            seen = set()
            def listen(event, arguments):
                if event in {{"socket.connect", "socket.sendto"}}:
                    seen.add(str(arguments[1]))
                elif event == "socket.getaddrinfo":
                    seen.add(str(arguments[:2]))
            sys.addaudithook(listen)
            result = anyio.run(ApiBackend().run, Play(Path({str(tmp_path)!r}), Api({api.value!r})).job({service.url!r}))
            assert report(result) == {DONE!r}, result
            print(*sorted(seen), sep="\\n")"""
        environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        done = subprocess.run(
            [sys.executable, "-c", code], env=environ, capture_output=True, text=True, timeout=300, check=False
        )
    assert done.returncode == 0, done.stderr
    by_gateway, to_gateway = done.stdout.splitlines()
    assert by_gateway == f"('127.0.0.1', {service.url.rpartition(':')[2]})"
    assert to_gateway.startswith("/proc/self/fd/")


def test_others_do_not_reach_the_socket(tmp_path: Path) -> None:
    play = Play(tmp_path)
    play.play(conversation(Report(DONE)))
    assert (tmp_path / "exchange-1" / "model").stat().st_mode & 0o777 == 0o700


@pytest.mark.broad
def test_tests_run_in_the_box(tmp_path: Path) -> None:
    bwrap = shutil.which("bwrap") or ""
    box = Bubblewrap(bwrap)
    if not bwrap or not anyio.run(box.canary).ok:
        pytest.skip("this machine has no working bubblewrap")
    play = Play(tmp_path, box=box)
    env = environment()
    bench = replace(
        play.bench(),
        tools=Tools(
            env.mounts,
            {"PATH": f"{env.prefix / 'bin'}:/usr/bin:/bin", "PYTHONPATH": "."},
            test_command=env.command,
        ),
    )
    result = play.play(
        conversation(
            Use(call("run_tests", {"ids": ["tests/test_app.py::test_a"]})),
            Use(edit(f"{WORK}/app.py", "a = 1", "a = 2")),
            Use(call("run_tests"), call("changes"), call("search", {"pattern": r"^a = \d"})),
            Report(DONE),
        ),
        tools=bench.offered(),
    )
    assert report(result) == DONE
    answers = told(result, "answer")
    assert [answer.get("exit_code") for answer in answers] == [1, None, 0, None, None, None]
    assert "\n-a = 1\n+a = 2\n" in answers[3]["text"]
    assert answers[4]["text"] == "app.py:1: a = 2\n"


def test_nothing_is_imported_before_such_an_agent_is_asked() -> None:
    code = """if True:
        import sys
        from pipeline.agents.backends import BACKENDS
        from pipeline.config.agents import AgentConfig
        import pipeline.faces.cli.main, pipeline.agents.dispatch.dispatcher
        BACKENDS["api"].require(AgentConfig(), "")
        heavy = {"pydantic_ai", "openai", "anthropic", "google.genai", "httpx2", "httpx"} & sys.modules.keys()
        sys.exit(f"imported: {heavy}" if heavy else 0)"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr


def test_without_the_extra_it_says_what_to_install() -> None:
    code = """if True:
        import sys
        sys.modules |= dict.fromkeys(("pydantic_ai", "google"))
        from pipeline.agents.backends import BACKENDS
        from pipeline.config.agents import AgentConfig
        from pipeline.errors import UserError
        try:
            BACKENDS["api"].require(AgentConfig(), "")
        except UserError as error:
            print(error.message)"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=False)
    assert done.stdout == f'backend = "api" needs pydantic_ai, google.genai. Install it: {install_command("api")}\n'
