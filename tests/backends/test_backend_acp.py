"""The client's side of the Agent Client Protocol, against an agent that does what it is told."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from backends.acp_play import DONE, REPORT, lines, play, spoken, stand, told
from backends.acp_stand import Stand
from backends.real_agents import AGAIN, COMPLETE, boxed

from pipeline.agents.backends.acp import AcpBackend
from pipeline.agents.backends.acp_values import Policy
from pipeline.agents.backends.protocol import Ended, Fault, Service, Usage
from pipeline.config.agents import AgentConfig, Backend, Profile
from pipeline.config.providers import Api, Provider
from pipeline.errors import UserError
from pipeline.judge.policy.roles import Network
from pipeline.sandbox.boxes.nobox import NoBox

pytestmark = pytest.mark.slow

if TYPE_CHECKING:
    from pipeline.sandbox.boxes.box import ProvableBox


@pytest.fixture(params=["bwrap", "none"])
def box(request: pytest.FixtureRequest) -> ProvableBox:
    return boxed() if request.param == "bwrap" else NoBox()


def test_a_turn(box: ProvableBox, tmp_path: Path) -> None:
    result = play(
        tmp_path, ["think", "hm"], ["say", "Let me "], ["say", "look."], ["call", "read", "app.py"], DONE, box=box
    )
    assert (result.ended, result.exit_code, result.complaint, result.fault) == (Ended.OK, 0, None, None), result.stderr
    assert json.loads(result.report_file or b"") == COMPLETE
    assert lines(result) == [
        ["thought", "hm"],
        ["message", "Let me look."],
        ["call", "read", "app.py", {"what": "app.py"}, "completed", "done it"],
        ["message", f"All done.\n{REPORT}"],
    ]
    assert result.denials == ()


def test_no_line_of_the_transcript_can_be_taken_for_a_report(tmp_path: Path) -> None:
    result = play(tmp_path, ["say", f"{REPORT}\n"], ["call", "read", REPORT], ["say", f"{REPORT}\nBut no."])
    assert result.report_file is None
    assert not any(line.startswith(b"{") for line in result.stdout.splitlines())
    assert (
        result.complaint == "There was no report; answer with the JSON object that was asked for, as your last words."
    )


def test_the_report_file_counts_before_the_last_words(box: ProvableBox, tmp_path: Path) -> None:
    result = play(tmp_path, ["report", '{"from": "file"}'], DONE, box=box)
    assert result.report_file == b'{"from": "file"}'


def test_only_the_last_message_is_looked_at(tmp_path: Path) -> None:
    result = play(tmp_path, DONE, ["call", "edit", "app.py"], ["say", "I changed my mind."])
    assert result.report_file is None


# --- what it may do -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "reviewer", "writer", "maker"),
    [
        ("read", True, True, True),
        ("search", True, True, True),
        ("think", True, True, True),
        ("edit", False, True, True),
        ("delete", False, True, True),
        ("move", False, True, True),
        ("execute", False, False, True),
        ("fetch", False, False, False),
        ("switch_mode", False, False, False),
        ("other", False, False, True),
        (None, False, False, True),
    ],
)
def test_a_permission_follows_the_role(kind: str | None, reviewer: bool, writer: bool, maker: bool) -> None:
    roles = Policy(False, False), Policy(True, False), Policy(True, True)
    assert [role.allows(kind) for role in roles] == [reviewer, writer, maker]


def test_what_it_may_not_do_is_refused_once_and_counted(tmp_path: Path) -> None:
    result = play(tmp_path, ["ask", "execute"], ["ask", "read"], DONE, job={"shell": False})
    assert [json.loads(line)["optionId"] for line in spoken(result).splitlines()[:2]] == [
        "the-reject_once",
        "the-allow_once",
    ]
    assert result.denials == ("execute: wants to execute",)
    assert result.complaint is None


def test_what_a_call_is_may_have_been_said_before(tmp_path: Path) -> None:
    result = play(tmp_path, ["describe", "execute", "rm -rf /"], ["ask", None], DONE, job={"shell": False})
    assert "the-reject_once" in spoken(result)
    assert result.denials == ("execute: wants to None",)


@pytest.mark.parametrize("options", [[], ["allow_once"]])
def test_where_nothing_can_be_refused_the_call_is_cancelled(tmp_path: Path, options: list[str]) -> None:
    result = play(tmp_path, ["ask", "execute", options], DONE, job={"shell": False})
    assert '{"outcome": "cancelled"}' in spoken(result)


def test_no_file_and_no_terminal_of_ours_is_offered(tmp_path: Path) -> None:
    methods = ["fs/write_text_file", "fs/read_text_file", "terminal/create", "elicitation/create", "_own/method"]
    result = play(tmp_path, *[["request", method, {"path": "/etc/passwd"}] for method in methods], DONE)
    assert spoken(result).splitlines()[:5] == [f"{method}: -32601" for method in methods]


# --- how a turn ends ------------------------------------------------------------------------------------------------


@pytest.mark.broad(but_first=1)
@pytest.mark.parametrize(
    ("reason", "fault", "words"),
    [
        ("max_tokens", Fault.TRUNCATED, "limit of output"),
        ("max_turn_requests", Fault.STEPS, "gave 300 answers"),
        ("refusal", Fault.REFUSED, "declined"),
        ("cancelled", Fault.DENIED, "gave up"),
    ],
)
def test_a_turn_that_is_no_answer(tmp_path: Path, reason: str, fault: Fault, words: str) -> None:
    result = play(tmp_path, DONE, ["stop", {"stopReason": reason}])
    assert (result.ended, result.fault) == (Ended.OK, fault)
    assert words in (result.complaint or "")


def test_a_turn_without_a_word(tmp_path: Path) -> None:
    result = play(tmp_path, ["call", "read", "app.py"])
    assert result.fault is Fault.EMPTY


@pytest.mark.broad(but_first=2)
@pytest.mark.parametrize(
    ("error", "fault"),
    [
        ({"code": -32000, "message": "Authentication required"}, Fault.UNAUTHORIZED),
        ({"code": -32603, "message": "API error 401"}, Fault.UNAUTHORIZED),
        ({"code": 1, "message": "x", "data": {"details": "Invalid API key"}}, Fault.UNAUTHORIZED),
        ({"code": 1, "message": "overloaded_error"}, Fault.UNAVAILABLE),
        ({"code": 1, "message": "You have exhausted your capacity on this model."}, Fault.UNAVAILABLE),
        ({"code": 1, "message": "You've hit your usage limit."}, Fault.UNAVAILABLE),
        ({"code": 1, "message": "status 503"}, Fault.UNAVAILABLE),
        ({"code": 1, "message": "Failed to parse JSON"}, Fault.UNAVAILABLE),
        ({"code": 1, "message": "max_output_tokens reached"}, Fault.TRUNCATED),
        ({"code": 1, "message": "TypeError: undefined is not a function"}, None),
        ({"code": "no number", "message": ["no text"]}, None),
        ({}, None),
    ],
)
def test_an_error_instead_of_an_answer(tmp_path: Path, error: dict[str, Any], fault: Fault | None) -> None:
    result = play(tmp_path, DONE, ["error", error])
    assert result.fault is fault
    assert (result.complaint or "").startswith("The agent could not finish its turn")


@pytest.mark.broad(but_first=2)
@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        (None, Usage()),
        ({"totalTokens": 9, "inputTokens": 5, "outputTokens": 4}, Usage(input_tokens=5, output_tokens=4)),
        (
            {"totalTokens": 9, "inputTokens": 5, "outputTokens": 4, "cachedReadTokens": 3, "cachedWriteTokens": 2},
            Usage(input_tokens=10, output_tokens=4),
        ),
        ({"inputTokens": -5, "outputTokens": 4}, Usage()),
        ("nonsense", Usage()),
    ],
)
def test_usage_is_what_the_agent_says_or_unknown(tmp_path: Path, usage: Any, expected: Usage) -> None:
    result = play(tmp_path, DONE, ["stop", {"stopReason": "end_turn", "usage": usage}])
    assert result.complaint is None
    assert result.usage == expected


@pytest.mark.broad(but_first=2)
@pytest.mark.parametrize(
    ("cost", "expected"),
    [
        ({"amount": 0.5, "currency": "USD"}, 0.5),
        ({"amount": 0, "currency": "USD"}, None),
        ({"amount": 0.5, "currency": "EUR"}, None),
        ({"amount": -1, "currency": "USD"}, None),
        ({"amount": float("nan"), "currency": "USD"}, None),
        ({"amount": float("inf"), "currency": "USD"}, None),
        ("free", None),
    ],
)
def test_cost_is_never_made_up(tmp_path: Path, cost: Any, expected: float | None) -> None:
    result = play(tmp_path, DONE, ["update", "usage_update", {"used": 1, "size": 2, "cost": cost}])
    assert result.usage.cost_usd == expected


# --- before the turn ------------------------------------------------------------------------------------------------


def test_another_version_of_the_protocol(tmp_path: Path) -> None:
    result = play(tmp_path, DONE, hello={"result": {"protocolVersion": 2}})
    assert result.complaint == "The agent speaks version 2 of its protocol, not 1."


@pytest.mark.broad(but_first=1)
@pytest.mark.parametrize("hello", [{"result": None}, {"result": {"protocolVersion": "one"}}, {"error": {"code": 1}}])
def test_an_answer_that_is_no_greeting(tmp_path: Path, hello: dict[str, Any]) -> None:
    result = play(tmp_path, DONE, hello=hello)
    assert (result.complaint or "").startswith("The agent could not begin a conversation")
    assert result.report_file is None


def option(value: str) -> dict[str, Any]:
    choices = [{"value": name, "name": name} for name in ("one", "two")]
    return {"id": "model", "name": "Model", "type": "select", "currentValue": value, "options": choices}


def test_the_model_is_set_where_it_is_another(tmp_path: Path) -> None:
    result = play(
        tmp_path,
        DONE,
        options=[option("one")],
        set={"result": {"configOptions": [option("two")]}},
        job={"model": "two"},
    )
    assert (result.complaint, result.usage.model) == (None, "two")


def test_a_model_that_it_does_not_have(tmp_path: Path) -> None:
    error = {"error": {"code": -32602, "message": "no such model"}}
    result = play(tmp_path, DONE, options=[option("one")], set=error, job={"model": "three"})
    assert "no such model" in (result.complaint or "")


# --- one conversation, several dispatches ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("able", "name"), [({"loadSession": True}, "x"), ({"sessionCapabilities": {"resume": {}}}, "x"), ({}, None)]
)
def test_a_conversation_is_named_if_it_can_be_gone_on_with(
    tmp_path: Path, able: dict[str, Any], name: str | None
) -> None:
    result = play(tmp_path, DONE, able=able, id="x")
    assert result.session == name


@pytest.mark.parametrize("able", [{"loadSession": True}, {"sessionCapabilities": {"resume": {}}}])
def test_a_conversation_goes_on_and_its_history_is_no_answer(tmp_path: Path, able: dict[str, Any]) -> None:
    result = play(tmp_path, able=able, history=[REPORT], id="x", echo=True, job={"session": "x"})
    assert spoken(result) == f"{AGAIN}\n"
    assert result.report_file is None


@pytest.mark.broad(but_first=1)
@pytest.mark.parametrize("able", [{"loadSession": True}, {"sessionCapabilities": {"resume": {}}}, {}])
def test_a_conversation_that_is_gone_begins_anew_with_the_whole_prompt(tmp_path: Path, able: dict[str, Any]) -> None:
    gone = {"error": {"code": -32002, "message": "Resource not found"}}
    result = play(tmp_path, DONE, able=able, resume=gone, id="y", echo=True, job={"session": "x"})
    assert "# This request: implement" in spoken(result)
    assert AGAIN not in spoken(result)
    assert result.report_file == REPORT.encode()


@pytest.mark.broad(but_first=1)
def test_what_an_agent_keeps_it_finds_again(box: ProvableBox, tmp_path: Path) -> None:
    place = stand(tmp_path, box)
    for number in range(2):
        turn = [["count", "XDG_STATE_HOME"], ["say", REPORT]]
        result = anyio.run(AcpBackend().run, told(place, {}, turn=turn))
        assert spoken(result).startswith(str(number))


# --- what an agent is not even asked for


@pytest.mark.parametrize(
    ("agent", "words"),
    [
        ({}, "needs profile"),
        ({"profile": Profile.CUSTOM}, "needs argv"),
        ({"profile": Profile.OPENCODE}, "opencode was not found"),
        ({"profile": Profile.GEMINI}, "gemini on PATH was not found"),
        ({"profile": Profile.CUSTOM, "argv": ("sh",), "login": True}, "login = true is for a known profile"),
    ],
)
def test_a_configuration_that_cannot_work(tmp_path: Path, agent: dict[str, Any], words: str) -> None:
    (tmp_path / "sh").write_text("#!/bin/sh\n")
    (tmp_path / "sh").chmod(0o755)
    with pytest.raises(UserError, match=words):
        AcpBackend().require(AgentConfig(backend=Backend.ACP, **agent), str(tmp_path))


def test_an_agent_that_cannot_reach_its_model(tmp_path: Path) -> None:
    program = tmp_path / "gemini"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    config = AgentConfig(backend=Backend.ACP, profile=Profile.GEMINI, network=Network.NONE)
    with pytest.raises(UserError, match="has to reach its model"):
        AcpBackend().require(config, str(tmp_path))
    AcpBackend().require(config.model_copy(update={"network": Network.MODEL}), str(tmp_path))


@pytest.mark.broad
def test_a_service_that_speaks_another_dialect(tmp_path: Path) -> None:
    program = tmp_path / "codex-acp"
    program.symlink_to("/bin/true")
    place = Stand(tmp_path / "stand", NoBox(), Profile.CUSTOM, (str(program),))
    place.profile = Profile.CODEX
    service = Service("claude", Provider(url="https://example.com", api=(Api.ANTHROPIC,)))
    with pytest.raises(UserError, match="codex-acp speaks responses; the provider claude speaks anthropic"):
        anyio.run(AcpBackend().run, place.job(network="model", service=service))


def test_code_of_the_repository_that_cannot_be_hidden_is_not_run(tmp_path: Path) -> None:
    files = {"app.py": "a = 1\n", ".opencode/plugin/evil.js": "x"}
    place = Stand(tmp_path, NoBox(), Profile.CUSTOM, ("/bin/true",), files=files)
    place.profile = Profile.OPENCODE
    with pytest.raises(UserError, match=r"\.opencode, without isolation"):
        anyio.run(AcpBackend().run, place.job(network="open"))


def test_the_sdk_is_loaded_by_nobody_else() -> None:
    code = "import sys, pipeline.agents.backends, pipeline.faces.cli.main; sys.exit('acp' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parents[2], check=True)
