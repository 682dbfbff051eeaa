"""An agent that misbehaves in the Agent Client Protocol: each way ends in one sentence, and leaves nothing."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread
import pytest
from backends.acp_play import DONE, REPORT, lines, play, spoken, stand, told
from backends.acp_stand import Stand
from backends.real_agents import boxed
from waiting import wait_until

from pipeline.agents.backends.acp import AcpBackend
from pipeline.agents.backends.acp_client import LONGEST
from pipeline.agents.backends.protocol import Ended
from pipeline.config.agents import Profile
from pipeline.pids import carries, pids
from pipeline.sandbox.boxes.nobox import NoBox

pytestmark = pytest.mark.slow

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.sandbox.boxes.box import ProvableBox


@pytest.fixture(params=["bwrap", "none"])
def box(request: pytest.FixtureRequest) -> ProvableBox:
    return boxed() if request.param == "bwrap" else NoBox()


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
@pytest.mark.broad(but_first=1)
def test_what_is_no_message_is_passed_over(tmp_path: Path, text: str, caplog: pytest.LogCaptureFixture) -> None:
    result = play(tmp_path, ["raw", text], DONE, first=text)
    assert (result.complaint, result.report_file) == (None, REPORT.encode())
    assert caplog.records == [], "the SDK says nothing on the user's terminal"


def test_a_message_without_end_breaks_the_wire(tmp_path: Path) -> None:
    result = play(tmp_path, ["line", LONGEST + 1_000_000], DONE)
    assert result.complaint == f"The agent sent a message of more than {LONGEST} bytes."
    assert result.report_file is None


@pytest.mark.broad(but_first=1)
def test_requests_without_end_break_the_wire(box: ProvableBox, tmp_path: Path) -> None:
    result = play(tmp_path, ["flood", 20_000], DONE, box=box, job={"timeout_s": 30})
    assert result.complaint is not None
    assert "waiting for an answer" in result.complaint
    assert result.seconds < 20


@pytest.mark.broad
def test_a_long_message_is_bounded_and_its_end_counts(tmp_path: Path) -> None:
    result = play(tmp_path, ["huge", 30_000_000], ["say", f"\n{REPORT}"])
    assert result.report_file == REPORT.encode()
    assert len(result.stdout) < 100_000


@pytest.mark.broad(but_first=1)
@pytest.mark.parametrize(
    ("act", "ended", "words"),
    [
        (["die", 7], Ended.NONZERO, "exit code 7; the last line of its stderr is: broken."),
        (["die", 0], Ended.OK, "ended before it had answered"),
        (["kill", 11], Ended.SIGNAL, "signal 11"),
    ],
)
def test_an_agent_that_dies_in_its_turn(
    box: ProvableBox, tmp_path: Path, act: list[Any], ended: Ended, words: str
) -> None:
    result = play(tmp_path, DONE, ["err", "broken\n"], act, box=box)
    assert result.ended is ended
    assert words in (result.complaint or "")


def test_an_agent_that_is_no_agent(box: ProvableBox, tmp_path: Path) -> None:
    result = anyio.run(AcpBackend().run, Stand(tmp_path, box, Profile.CUSTOM, ("/bin/echo", "hello")).job())
    assert (result.ended, result.complaint) == (Ended.OK, "The agent ended before it had answered.")
    assert lines(result) == [["noise", "hello"]]


@pytest.mark.broad
def test_at_the_time_limit_it_is_told_to_stop(tmp_path: Path) -> None:
    result = play(tmp_path, DONE, ["until told", "cancelled"], job={"timeout_s": 5})
    assert (result.ended, result.exit_code) == (Ended.TIMED_OUT, 0)
    assert result.complaint == "The agent did not finish within 5 seconds and was stopped."
    assert spoken(result) == f"All done.\n{REPORT}"


@pytest.mark.broad
def test_one_that_does_not_stop_is_stopped(box: ProvableBox, tmp_path: Path) -> None:
    mark = secrets.token_hex(8)
    result = play(tmp_path, ["hang", 60], box=box, job={"timeout_s": 1, "env": {"MARK": mark}})
    assert result.ended is Ended.TIMED_OUT
    assert result.seconds < 30
    assert [pid for pid in pids() if carries(pid, f"MARK={mark}")] == []


def test_a_cancelled_dispatch_leaves_nothing(box: ProvableBox, tmp_path: Path) -> None:
    mark = secrets.token_hex(8)
    place = stand(tmp_path, box)

    async def cancel() -> None:
        job = told(place, {"env": {"MARK": mark}}, turn=[["write", "begun", "x"], ["hang", 60]])
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(AcpBackend().run, job)
            await anyio.to_thread.run_sync(wait_until, lambda: "begun" in place.changes())
            tasks.cancel_scope.cancel()

    anyio.run(cancel)
    assert [pid for pid in pids() if carries(pid, f"MARK={mark}")] == []
