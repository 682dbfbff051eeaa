"""opencode, Gemini CLI, Claude Code and Codex over the Agent Client Protocol, as they are installed."""

from __future__ import annotations

import json
import os
import secrets
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import pytest
from backends.acp_hostile import HOSTILE, WORD
from backends.acp_stand import DIALECT, MODEL, Stand
from backends.agent_cases import CASES, Facts
from backends.real_agents import COMPLETE, SECRET, boxed
from model_service.script import Report, Say, Use, call, conversation, read, run, write
from model_service.service import ModelService

from pipeline.agents.backends.acp import AcpBackend
from pipeline.agents.backends.protocol import Ended, Fault
from pipeline.config.agents import Profile
from pipeline.config.providers import Api
from pipeline.pids import carries, pids
from pipeline.process import Mount
from pipeline.sandbox.boxes.bubblewrap import Bubblewrap
from pipeline.sandbox.boxes.limits import BOX_USER
from pipeline.sandbox.boxes.nobox import NoBox

if TYPE_CHECKING:
    from backends.agent_cases import Case

pytestmark = pytest.mark.slow

AGENTS = [Profile.OPENCODE, Profile.GEMINI, Profile.CLAUDE, Profile.CODEX]
LEFT_OUT = {"a role without tools", "given up over a tool"}
"""They call tools of one product."""
ENOUGH = {"work", "401", "500 for ever", "cut once", "malformed JSON", "refusal", "truncated", "empty", "killed"}
"""What ends in another way over this protocol. The other situations are tried over streams."""
UNAVAILABLE = Facts(fault=Fault.UNAVAILABLE, complaint=r"\w")
NO_REPORT = Facts(complaint="There was no report")
EMPTY = Facts(fault=Fault.EMPTY, complaint="without a word")
DONE = Facts(report=COMPLETE)
BUT: dict[tuple[Profile, str], Facts] = {
    # The adapter outlives what it has started, and says so.
    (Profile.CLAUDE, "killed"): Facts(complaint="exited unexpectedly"),
    # It does not try again after a 429.
    (Profile.CODEX, "429 once"): UNAVAILABLE,
    # Nothing tells a refusal from an empty answer, or from the words of one.
    (Profile.CODEX, "refusal"): EMPTY,
    (Profile.GEMINI, "refusal"): NO_REPORT,
    # It takes what there is for the whole.
    (Profile.GEMINI, "truncated"): NO_REPORT,
    (Profile.OPENCODE, "truncated"): NO_REPORT,
    # It does not send what its model could not take.
    (Profile.GEMINI, "huge output"): Facts(fault=Fault.TRUNCATED, complaint="limit of output"),
    # It has no such limit; the gateway counts.
    (Profile.CODEX, "too many steps"): DONE,
    # It asks for a last answer without tools.
    (Profile.OPENCODE, "too many steps"): DONE,
}
"""What comes back from single agents, and why."""


@pytest.fixture(params=AGENTS)
def profile(request: pytest.FixtureRequest) -> Profile:
    return request.param


def left(mark: str) -> list[int]:
    """Return the processes of a dispatch that are still there."""
    return [pid for pid in pids() if carries(pid, f"MARK={mark}")]


SITUATIONS = [
    pytest.param(profile, case, id=f"{profile}-{case.name}", marks=() if case.name == "work" else pytest.mark.broad)
    for profile in AGENTS
    for case in CASES
    if case.name not in LEFT_OUT and (case.name in ENOUGH or (profile, case.name) in BUT)
]


@pytest.mark.parametrize(("profile", "case"), SITUATIONS)
@pytest.mark.broad
def test_a_situation(profile: Profile, case: Case, tmp_path: Path) -> None:
    place = Stand(tmp_path, boxed(), profile, writable=case.writable)
    mark = secrets.token_hex(8)
    result, _ = place.ask(*case.script, env={"MARK": mark}, **case.job)
    facts = BUT.get((profile, case.name), case.facts)
    facts.check(result, place.changes())
    assert left(mark) == []


@pytest.mark.broad
def test_what_it_says_of_itself(profile: Profile, tmp_path: Path) -> None:
    result, service = Stand(tmp_path, boxed(), profile).ask(conversation(Use(run("true")), Report(COMPLETE)))
    assert (result.complaint, service.problems) == (None, [])
    model = MODEL[DIALECT[profile]]
    assert result.usage.model == model
    assert {request.asked.model for request in service.work if request.asked} == {model}
    assert not [request.line() for request in service.requests if request.beside], "no request beside the work"
    assert (result.usage.cost_usd is None) == (profile is not Profile.CLAUDE)
    assert not any(SECRET in json.dumps(request.body) for request in service.work)


@pytest.mark.broad
def test_a_price_that_claude_makes_up_does_not_count(tmp_path: Path) -> None:
    result, _ = Stand(tmp_path, boxed(), Profile.CLAUDE).ask(conversation(Report(COMPLETE)), model="scripted-9")
    assert (result.complaint, result.usage.cost_usd) == (None, None)


@pytest.mark.broad
def test_asked_again_in_the_same_conversation(profile: Profile, tmp_path: Path) -> None:
    first = [conversation(Use(run("echo one > one.txt")), Say("Not yet."))]
    second = [conversation(Use(run("echo two > two.txt")), Report(COMPLETE), reask=True)]
    if profile is Profile.GEMINI:  # it cannot go on, so it is asked the whole anew
        second = [conversation(Use(run("echo two > two.txt")), Report(COMPLETE))]
    place = Stand(tmp_path, boxed(), profile)
    results, service = place.ask_on(first, second)
    assert service.problems == []
    assert [result.report_file for result in results] == [None, json.dumps(COMPLETE).encode()]
    assert place.changes().keys() == {"one.txt", "two.txt"}
    assert (results[0].session is None) == (profile is Profile.GEMINI)
    if profile is not Profile.GEMINI:
        assert results[0].session == results[1].session
        assert "one.txt" in json.dumps(service.work[-1].body), "the first turn is part of the second"
        assert b"Not yet." not in results[1].stdout, "the history is no part of the second turn"


@pytest.mark.broad
def test_a_conversation_that_is_gone_begins_anew(profile: Profile, tmp_path: Path) -> None:
    gone = "ses_gone" if profile is Profile.OPENCODE else "01a200c1-bd5f-46a1-80d0-d468956fa29f"
    result, service = Stand(tmp_path, boxed(), profile).ask(conversation(Report(COMPLETE), reask=False), session=gone)
    assert (result.complaint, service.problems) == (None, [])
    assert result.session != gone


@pytest.mark.parametrize("api", [Api.ANTHROPIC, Api.RESPONSES, Api.GOOGLE])
@pytest.mark.broad
def test_opencode_speaks_every_dialect(api: Api, tmp_path: Path) -> None:
    place = Stand(tmp_path, boxed(), Profile.OPENCODE)
    result, service = place.ask(conversation(Use(run("touch new.txt")), Report(COMPLETE)), api=api, effort="high")
    assert (result.complaint, service.problems) == (None, [])
    assert place.changes().keys() == {"new.txt"}
    assert {request.dialect for request in service.requests} == {api.value}
    assert all(request.asked and request.asked.effort for request in service.work), "it says how much to think"


@pytest.mark.broad
def test_in_the_box_of_a_driver_that_is_root(tmp_path: Path) -> None:
    if os.getuid() != 0:
        pytest.skip("the driver is not root")
    tmp_path.chmod(0o755)
    place = Stand(tmp_path, Bubblewrap(boxed().program, BOX_USER), Profile.GEMINI)
    result, service = place.ask(conversation(Use(run("id -u > new.txt")), Report(COMPLETE)))
    assert (result.complaint, service.problems) == (None, [])
    assert place.view.read("new.txt") == b"1000\n"


@pytest.mark.broad
def test_without_a_box(tmp_path: Path) -> None:
    place = Stand(tmp_path, NoBox(), Profile.GEMINI)
    script = conversation(Use(write("new.txt", "x\n")), Report(COMPLETE))
    with ModelService([script]) as service:
        env = {"GOOGLE_GEMINI_BASE_URL": service.url, "GEMINI_API_KEY": "placeholder"}
        job = place.job(network="open", env=env, model="gemini-2.5-flash")
        result = anyio.run(AcpBackend().run, job)
    assert (result.complaint, service.problems) == (None, [])
    assert place.changes().keys() == {"new.txt"}
    assert "web_fetch" not in service.work[0].tools, "its settings count without a box, too"


# --- a role that only reads -----------------------------------------------------------------------------------------

CHANGING = {
    Profile.OPENCODE: [
        call("write", {"filePath": "/redfirst-view/evil.txt", "content": "x"}),
        call("bash", {"command": "touch evil.txt", "description": "d"}),
    ],
    Profile.GEMINI: [
        call("write_file", {"file_path": "/redfirst-view/evil.txt", "content": "x"}),
        call("run_shell_command", {"command": "touch evil.txt"}),
    ],
    Profile.CLAUDE: [
        call("Write", {"file_path": "/redfirst-view/evil.txt", "content": "x"}),
        call("Bash", {"command": "touch evil.txt"}),
    ],
    Profile.CODEX: [call("exec_command", {"cmd": "touch evil.txt"})],
}


@pytest.mark.broad
def test_a_role_that_only_reads(profile: Profile, tmp_path: Path) -> None:
    plan = tmp_path / "plan.md"
    plan.write_text("the plan is good")
    shown = Mount(plan, Path("/run/redfirst/artifacts/plan.md"))
    place = Stand(tmp_path / "stand", boxed(), profile, writable=False)
    acts = [Use(read(str(shown.target))), *[Use(act) for act in CHANGING[profile]]]
    result, service = place.ask(conversation(*acts, Report(COMPLETE)), shell=False, artifacts=(shown,))
    assert (result.complaint, service.problems) == (None, [])
    assert place.changes() == {}
    told = service.work[1].asked
    assert told is not None
    assert "the plan is good" in told.messages[-1].text, "what lies beside the workspace can be read"
    if profile is not Profile.CODEX:  # its shell is how it reads
        offered = {tool.lower() for tool in service.work[0].tools}
        assert not offered & {"write", "write_file", "edit", "replace", "bash", "run_shell_command", "task", "agent"}


# --- a time limit in the middle of a command ------------------------------------------------------------------------


@pytest.mark.broad
def test_a_command_that_would_go_on_after_the_end_is_dead(profile: Profile, tmp_path: Path) -> None:
    script = conversation(Use(run("echo begun > begun.txt; sleep 100; echo late > late.txt")), Report(COMPLETE))
    for seconds in (20, 90):  # on a busy machine the agent itself may not have started in the first ones
        place = Stand(tmp_path / str(seconds), boxed(), profile)
        mark = secrets.token_hex(8)
        result, service = place.ask(script, timeout_s=seconds, env={"MARK": mark})
        assert (service.problems, result.ended, left(mark)) == ([], Ended.TIMED_OUT, [])
        if place.changes():
            break
    assert place.changes().keys() == {"begun.txt"}
    assert b"sleep 100" in result.stdout, "the transcript says what it was at"


# --- a hostile repository -------------------------------------------------------------------------------------------


@pytest.mark.broad
def test_nothing_of_the_repository_runs_or_is_told(profile: Profile, tmp_path: Path) -> None:
    place = Stand(tmp_path, boxed(), profile, files=HOSTILE)
    result, service = place.ask(conversation(Use(write("new.txt", "x\n")), Use(run("true")), Report(COMPLETE)))
    assert (result.complaint, service.problems) == (None, [])
    assert place.changes().keys() == {"new.txt"}
    assert WORD not in json.dumps([request.body for request in service.requests])
    assert {request.asked.model for request in service.work if request.asked} == {MODEL[DIALECT[profile]]}


@pytest.mark.broad
def test_what_is_hidden_stays_as_it_is(tmp_path: Path) -> None:
    place = Stand(tmp_path, boxed(), Profile.OPENCODE, files=HOSTILE)
    changing = run("ls -A .opencode; cat opencode.json; rm -rf .opencode opencode.json; echo x > opencode.json; true")
    result, service = place.ask(conversation(Use(changing), Report(COMPLETE)))
    assert (result.complaint, service.problems) == (None, [])
    assert place.changes() == {}
