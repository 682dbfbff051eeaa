"""The client's side of the Agent Client Protocol, against an agent that does what it is told, well or badly."""

from __future__ import annotations

import json
import secrets
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread
import pytest
from backends.acp_stand import AGAIN, COMPLETE, Stand, boxed
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.backends.acp import AcpBackend
from pipeline.backends.acp_answer import report_in
from pipeline.backends.acp_values import Policy
from pipeline.backends.acp_wire import LONGEST
from pipeline.backends.protocol import Ended, Fault, Service, Usage
from pipeline.config.agents import AgentConfig, Backend, Profile
from pipeline.config.providers import Api, Provider
from pipeline.dispatch.nobox import NoBox
from pipeline.errors import UserError
from pipeline.pids import carries, pids
from pipeline.policy.roles import Network
from pipeline.process import Mount

if TYPE_CHECKING:
    from collections.abc import Callable

    from pipeline.backends.protocol import AgentJob, AgentResult
    from pipeline.dispatch.box import Box

AGENT = Path(__file__).with_name("acp_agent.py")
REPORT = json.dumps(COMPLETE)
DONE = ["say", f"All done.\n{REPORT}"]


@pytest.fixture(params=["bwrap", "none"])
def box(request: pytest.FixtureRequest) -> Box:
    return boxed() if request.param == "bwrap" else NoBox()


def stand(folder: Path, box: Box | None = None, **more: Any) -> Stand:
    argv = (sys.executable, "-I", "-S", str(AGENT))
    return Stand(folder, Profile.CUSTOM, box or NoBox(), argv, **more)


def told(place: Stand, job: dict[str, Any], **said: Any) -> AgentJob:
    """Return a job for the scripted agent."""
    script = place.folder / "play.json"
    script.write_text(json.dumps(said), encoding="utf-8")
    shown = Mount(script, Path("/run/redfirst/play.json"))
    env = {"PLAY": str(place.box.inside(shown.source, shown.target)), **job.pop("env", {})}
    return place.job(env=env, read=(Mount(AGENT.parent, AGENT.parent), shown), **job)


def play(
    folder: Path, *turn: list[Any], box: Box | None = None, job: dict[str, Any] | None = None, **said: Any
) -> AgentResult:
    """Return how one dispatch to the scripted agent went."""
    return anyio.run(AcpBackend().run, told(stand(folder, box), {**(job or {})}, turn=turn, **said))


def lines(result: AgentResult) -> list[list[Any]]:
    return [json.loads(line) for line in result.stdout.splitlines()]


def spoken(result: AgentResult) -> str:
    return "".join(line[1] for line in lines(result) if line[0] == "message")


def test_a_turn(box: Box, tmp_path: Path) -> None:
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


def test_it_is_asked_in_the_workspace_with_the_prompt(box: Box, tmp_path: Path) -> None:
    result = play(tmp_path, ["write", "made.txt", "x"], DONE, box=box, echo=True)
    assert "# This request: implement" in spoken(result)
    assert (tmp_path / "view").exists()
    assert result.complaint is None


def test_no_line_of_the_transcript_can_be_taken_for_a_report(tmp_path: Path) -> None:
    result = play(tmp_path, ["say", f"{REPORT}\n"], ["call", "read", REPORT], ["say", f"{REPORT}\nBut no."])
    assert result.report_file is None
    assert not any(line.startswith(b"{") for line in result.stdout.splitlines())
    assert (
        result.complaint == "There was no report; answer with the JSON object that was asked for, as your last words."
    )


def test_the_report_file_counts_before_the_last_words(box: Box, tmp_path: Path) -> None:
    result = play(tmp_path, ["report", '{"from": "file"}'], DONE, box=box)
    assert result.report_file == b'{"from": "file"}'


def test_only_the_last_message_is_looked_at(tmp_path: Path) -> None:
    result = play(tmp_path, DONE, ["call", "edit", "app.py"], ["say", "I changed my mind."])
    assert result.report_file is None


def test_a_last_word_before_a_call_is_the_last_word(tmp_path: Path) -> None:
    assert play(tmp_path, DONE, ["call", "other", "todo"]).report_file == REPORT.encode()


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


def test_what_it_may_do_is_allowed_once(tmp_path: Path) -> None:
    result = play(tmp_path, ["ask", "execute"], DONE)
    assert json.loads(spoken(result).splitlines()[0]) == {"outcome": "selected", "optionId": "the-allow_once"}
    assert result.denials == ()


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


def test_giving_up_over_refusals_is_told(tmp_path: Path) -> None:
    result = play(tmp_path, ["ask", "execute"], ["say", "Then I cannot."], job={"shell": False})
    assert result.fault is Fault.DENIED
    assert "execute: wants to execute" in (result.complaint or "")


def test_no_file_and_no_terminal_of_ours_is_offered(tmp_path: Path) -> None:
    methods = ["fs/write_text_file", "fs/read_text_file", "terminal/create", "elicitation/create", "_own/method"]
    result = play(tmp_path, *[["request", method, {"path": "/etc/passwd"}] for method in methods], DONE)
    assert spoken(result).splitlines()[:5] == [f"{method}: -32601" for method in methods]


# --- how a turn ends ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reason", "fault", "words"),
    [
        ("max_tokens", Fault.TRUNCATED, "limit of output"),
        ("max_turn_requests", Fault.STEPS, "answers of the model"),
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


@pytest.mark.parametrize(
    ("error", "fault"),
    [
        ({"code": -32000, "message": "Authentication required"}, Fault.UNAUTHORIZED),
        ({"code": -32603, "message": "API error 401"}, Fault.UNAUTHORIZED),
        ({"code": 1, "message": "x", "data": {"details": "Invalid API key"}}, Fault.UNAUTHORIZED),
        ({"code": 1, "message": "overloaded_error"}, Fault.UNAVAILABLE),
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


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        (None, Usage()),
        ({"totalTokens": 9, "inputTokens": 5, "outputTokens": 4}, Usage(5, 4)),
        (
            {"totalTokens": 9, "inputTokens": 5, "outputTokens": 4, "cachedReadTokens": 3, "cachedWriteTokens": 2},
            Usage(10, 4),
        ),
        ({"inputTokens": -5, "outputTokens": 4}, Usage()),
        ("nonsense", Usage()),
    ],
)
def test_usage_is_what_the_agent_says_or_unknown(tmp_path: Path, usage: Any, expected: Usage) -> None:
    result = play(tmp_path, DONE, ["stop", {"stopReason": "end_turn", "usage": usage}])
    assert result.complaint is None
    assert result.usage == expected


@pytest.mark.parametrize(
    ("cost", "expected"),
    [
        ({"amount": 0.5, "currency": "USD"}, 0.5),
        ({"amount": 0, "currency": "USD"}, None),
        ({"amount": 0.5, "currency": "EUR"}, None),
        ({"amount": -1, "currency": "USD"}, None),
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


@pytest.mark.parametrize("hello", [{"result": None}, {"result": {"protocolVersion": "one"}}, {"error": {"code": 1}}])
def test_an_answer_that_is_no_greeting(tmp_path: Path, hello: dict[str, Any]) -> None:
    result = play(tmp_path, DONE, hello=hello)
    assert (result.complaint or "").startswith("The agent could not begin a conversation")
    assert result.report_file is None


def test_no_answer_to_the_greeting(box: Box, tmp_path: Path) -> None:
    result = play(tmp_path, box=box, hello="silence", job={"timeout_s": 1})
    assert result.ended is Ended.TIMED_OUT
    assert "within 1 seconds" in (result.complaint or "")


def test_a_login_that_is_missing(tmp_path: Path) -> None:
    result = play(tmp_path, session={"error": {"code": -32000, "message": "Authentication required"}})
    assert result.fault is Fault.UNAUTHORIZED


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


def test_its_own_model_is_named_in_the_result(tmp_path: Path) -> None:
    assert play(tmp_path, DONE, options=[option("one")]).usage.model == "one"


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


@pytest.mark.parametrize("able", [{"loadSession": True}, {"sessionCapabilities": {"resume": {}}}, {}])
def test_a_conversation_that_is_gone_begins_anew_with_the_whole_prompt(tmp_path: Path, able: dict[str, Any]) -> None:
    gone = {"error": {"code": -32002, "message": "Resource not found"}}
    result = play(tmp_path, DONE, able=able, resume=gone, id="y", echo=True, job={"session": "x"})
    assert "# This request: implement" in spoken(result)
    assert AGAIN not in spoken(result)
    assert result.report_file == REPORT.encode()


def test_what_an_agent_keeps_it_finds_again(box: Box, tmp_path: Path) -> None:
    place = stand(tmp_path, box)
    for number in range(2):
        turn = [["count", "XDG_STATE_HOME"], ["say", REPORT]]
        result = anyio.run(AcpBackend().run, told(place, {}, turn=turn))
        assert spoken(result).startswith(str(number))


# --- an agent that misbehaves ---------------------------------------------------------------------------------------

NOISE = [
    "not JSON\n",
    "\n\n",
    "[1, 2]\n",
    '"text"\n',
    '{"id": [1], "result": {}}\n',
    '{"id": 999, "result": {}}\n',
    '{"id": 2, "error": "text"}\n',
    '{"method": 7}\n',
    '{"method": "session/update"}\n',
    '{"method": "session/update", "params": {"sessionId": "s", "update": {"sessionUpdate": "of tomorrow"}}}\n',
    '{"method": "session/update", "params": [1]}\n',
    '{"method": "session/unheard_of", "params": {}}\n',
    '{"id": 5, "method": "session/request_permission", "params": {"options": "none"}}\n',
    '{"id": null, "method": "session/request_permission"}\n',
    "[" * 100_000 + "\n",
    '{"a": ' * 100_000 + "\n",
    "\x00\xff\n",
]


@pytest.mark.parametrize("text", NOISE, ids=range(len(NOISE)))
def test_what_is_no_message_is_passed_over(tmp_path: Path, text: str, caplog: pytest.LogCaptureFixture) -> None:
    result = play(tmp_path, ["raw", text], DONE, first=text)
    assert (result.complaint, result.report_file) == (None, REPORT.encode())
    assert caplog.records == [], "the SDK says nothing on the user's terminal"


def test_a_message_without_end_breaks_the_wire(tmp_path: Path) -> None:
    result = play(tmp_path, ["line", LONGEST + 1_000_000], DONE)
    assert result.complaint == f"The agent sent a message of more than {LONGEST} bytes."
    assert result.report_file is None


def test_requests_without_end_break_the_wire(box: Box, tmp_path: Path) -> None:
    result = play(tmp_path, ["flood", 20_000], DONE, box=box, job={"timeout_s": 30})
    assert result.complaint is not None
    assert "waiting for an answer" in result.complaint
    assert result.seconds < 20


def test_a_long_message_is_bounded_and_its_end_counts(tmp_path: Path) -> None:
    result = play(tmp_path, ["huge", 30_000_000], ["say", f"\n{REPORT}"])
    assert result.report_file == REPORT.encode()
    assert len(result.stdout) < 100_000


def test_a_long_turn_keeps_its_beginning_and_its_end(tmp_path: Path) -> None:
    result = play(tmp_path, ["say", "first"], *[["call", "read", "x" * 10_000]] * 400, DONE)
    assert result.truncated
    assert len(result.stdout) < 4_000_000
    told = lines(result)
    assert (told[0], told[-1]) == (["message", "first"], ["message", f"All done.\n{REPORT}"])
    assert [line[0] for line in told].count("left out") == 1


@pytest.mark.parametrize(
    ("act", "ended", "words"),
    [
        (["die", 7], Ended.NONZERO, "exit code 7; the last line of its stderr is: broken."),
        (["die", 0], Ended.OK, "ended before it had answered"),
        (["kill", 11], Ended.SIGNAL, "signal 11"),
    ],
)
def test_an_agent_that_dies_in_its_turn(box: Box, tmp_path: Path, act: list[Any], ended: Ended, words: str) -> None:
    result = play(tmp_path, DONE, ["err", "broken\n"], act, box=box)
    assert result.ended is ended
    assert words in (result.complaint or "")


def test_an_agent_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="not found"):
        anyio.run(AcpBackend().run, Stand(tmp_path, Profile.CUSTOM, NoBox(), ("/no/such/agent",)).job())


def test_an_agent_that_is_no_agent(box: Box, tmp_path: Path) -> None:
    result = anyio.run(AcpBackend().run, Stand(tmp_path, Profile.CUSTOM, box, ("/bin/echo", "hello")).job())
    assert (result.ended, result.complaint) == (Ended.OK, "The agent ended before it had answered.")
    assert lines(result) == [["noise", "hello"]]


def test_at_the_time_limit_it_is_told_to_stop(tmp_path: Path) -> None:
    result = play(tmp_path, DONE, ["until told", "cancelled"], job={"timeout_s": 2})
    assert (result.ended, result.exit_code) == (Ended.TIMED_OUT, 0)
    assert result.complaint == "The agent did not finish within 2 seconds and was stopped."
    assert spoken(result) == f"All done.\n{REPORT}"


def test_one_that_does_not_stop_is_stopped(box: Box, tmp_path: Path) -> None:
    mark = secrets.token_hex(8)
    result = play(tmp_path, ["hang", 60], box=box, job={"timeout_s": 1, "env": {"MARK": mark}})
    assert result.ended is Ended.TIMED_OUT
    assert result.seconds < 10
    assert [pid for pid in pids() if carries(pid, f"MARK={mark}")] == []


def test_a_cancelled_dispatch_leaves_nothing(box: Box, tmp_path: Path) -> None:
    mark = secrets.token_hex(8)
    place = stand(tmp_path, box)

    async def cancel() -> None:
        job = told(place, {"env": {"MARK": mark}}, turn=[["write", "begun", "x"], ["hang", 60]])
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(AcpBackend().run, job)
            await anyio.to_thread.run_sync(until, lambda: "begun" in place.changes())
            tasks.cancel_scope.cancel()

    anyio.run(cancel)
    assert [pid for pid in pids() if carries(pid, f"MARK={mark}")] == []


def until(there: Callable[[], bool]) -> None:
    end = time.monotonic() + 20
    while not there():
        assert time.monotonic() < end
        time.sleep(0.01)


# --- what is refused before it is asked -----------------------------------------------------------------------------


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


def test_a_service_that_speaks_another_dialect(tmp_path: Path) -> None:
    program = tmp_path / "codex-acp"
    program.symlink_to("/bin/true")
    place = Stand(tmp_path / "stand", Profile.CUSTOM, NoBox(), (str(program),))
    place.profile = Profile.CODEX
    service = Service("claude", Provider(url="https://example.com", api=(Api.ANTHROPIC,)))
    with pytest.raises(UserError, match="codex-acp speaks responses; the provider claude speaks anthropic"):
        anyio.run(AcpBackend().run, place.job(network="model", service=service))


def test_code_of_the_repository_that_cannot_be_hidden_is_not_run(tmp_path: Path) -> None:
    files = {"app.py": "a = 1\n", ".opencode/plugin/evil.js": "x"}
    place = Stand(tmp_path, Profile.CUSTOM, NoBox(), ("/bin/true",), files=files)
    place.profile = Profile.OPENCODE
    with pytest.raises(UserError, match=r"\.opencode, without isolation"):
        anyio.run(AcpBackend().run, place.job(network="open"))


def test_the_sdk_is_loaded_by_nobody_else() -> None:
    code = "import sys, pipeline.backends, pipeline.cli.main; sys.exit('acp' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parents[2], check=True)


# --- a report in the last words -------------------------------------------------------------------------------------

PLAIN = st.text(st.characters(exclude_characters="{}`", exclude_categories=["Cs"]))
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)
OBJECTS = st.dictionaries(st.text(), VALUES, max_size=4)


@settings(max_examples=50)
@given(PLAIN, OBJECTS, st.sampled_from([None, 2]), st.sampled_from(["", "\n```", " \n"]))
def test_an_object_at_the_end_is_found_whatever_stands_before(
    words: str, report: dict[str, Any], indent: int | None, end: str
) -> None:
    found = report_in(f"{words}{json.dumps(report, indent=indent)}{end}")
    assert found is not None
    assert json.loads(found) == report


@pytest.mark.parametrize("text", ["", "no", "[1]", '[{"a": 1}]', '{"a": 1} and more', "}", "{", '{"a": 1', "x}" * 100])
def test_what_does_not_end_with_an_object_has_none(text: str) -> None:
    assert report_in(text) is None


def test_the_last_of_several_counts() -> None:
    assert report_in('{"a": 1}\n{"b": 2}\n') == b'{"b": 2}'


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        "{" * 2_000_000 + " x}",
        '{"k":' * 400_000 + " x}",
        '{"k":' * 900 + "[" + "1," * 500_000 + "1]" + "}" * 900 + " x}",
    ],
)
def test_a_hopeless_text_is_given_up(text: str) -> None:
    assert report_in(text) is None
