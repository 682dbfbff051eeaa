"""Every backend in every box: what an agent does comes back the same way."""

from __future__ import annotations

import json
import shutil
import signal
import socket
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from backends.real_agents import job_of
from dispatch.one_view import open_view

from pipeline.agents.backends import BACKENDS
from pipeline.agents.backends.protocol import AgentResult, Ended
from pipeline.judge.policy.rights import ChangeKind
from pipeline.process import Mount
from pipeline.sandbox.boxes.bubblewrap import Bubblewrap
from pipeline.sandbox.boxes.nobox import NoBox

pytestmark = pytest.mark.slow

if TYPE_CHECKING:
    from pipeline.sandbox.boxes.box import ProvableBox
    from pipeline.sandbox.views.view import ShadowView

BWRAP = shutil.which("bwrap")
WORK = Path("/view")
DISPATCH = {
    "schema": "redfirst.dispatch/1",
    "dispatch": "003-implement-make",
    "role": "make",
    "kind": "implement",
    "attempt": 1,
}

AGENT = """
import json, os, signal, subprocess, sys, time
entry = json.loads(os.environ["PLAY"])
document = json.load(sys.stdin)
assert document == json.load(open(os.environ["REDFIRST_DISPATCH"])), "stdin and file differ"
for name, text in entry.get("files", {}).items():
    open(name, "w").write(text)
if entry.get("run"):
    code = subprocess.run(entry["run"]).returncode
    if code:
        sys.exit(code)
time.sleep(entry.get("sleep_s", 0))
if "report" in entry:
    json.dump(entry["report"], open(os.environ["REDFIRST_REPORT"], "w"))
sys.stdout.write(entry.get("stdout", ""))
sys.exit(entry.get("exit", 0))
"""


def fill(folder: Path) -> None:
    (folder / "app.py").write_text("a = 1\n")


@dataclass
class Bench:
    """One backend in one box; `play` has the agent do what the entry says."""

    backend: str
    box: ProvableBox
    folder: Path
    view: ShadowView = field(init=False)
    number: int = 0

    def __post_init__(self) -> None:
        self.view = open_view(fill, self.folder / "view", workspace=WORK, writable=True)
        self.agents = self.folder / "agents"
        self.agents.mkdir()
        (self.agents / "agent.py").write_text(AGENT)

    def play(self, entry: dict[str, Any], **changes: Any) -> AgentResult:
        self.number += 1
        exchange = self.folder / f"exchange-{self.number}"
        exchange.mkdir()
        script = self.folder / f"script-{self.number}.yaml"
        script.write_text(json.dumps([entry]))
        settings: dict[str, Any] = {
            "box": self.box,
            "document": json.dumps(DISPATCH).encode(),
            "view": self.view.mount,
            "exchange": exchange,
            "timeout_s": 30,
            "script": script,
            "argv": (sys.executable, "-I", str(self.agents / "agent.py")),
            "read": (Mount(self.agents, self.agents),),
            "env": {"PLAY": json.dumps(entry)},
            **changes,
        }
        return anyio.run(BACKENDS[self.backend].run, job_of(settings))

    def changes(self) -> dict[str, ChangeKind]:
        return {change.path: change.kind for change in self.view.survey().changes}


@pytest.fixture(params=["command", "scripted"])
def backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=["bwrap", "none"])
def bench(request: pytest.FixtureRequest, backend: str, tmp_path: Path) -> Bench:
    if request.param == "none":
        return Bench(backend, NoBox(), tmp_path)
    if BWRAP is None:
        pytest.skip("bubblewrap is not installed")
    return Bench(backend, Bubblewrap(BWRAP), tmp_path)


@pytest.fixture
def boxed(backend: str, tmp_path: Path) -> Bench:
    if BWRAP is None:
        pytest.skip("bubblewrap is not installed")
    return Bench(backend, Bubblewrap(BWRAP), tmp_path)


@pytest.mark.broad(but_first=1)
def test_a_report_by_file(bench: Bench) -> None:
    result = bench.play({"files": {"app.py": "a = 2\n"}, "report": {"result": "COMPLETE"}})
    assert (result.ended, result.exit_code, result.complaint) == (Ended.OK, 0, None), result.stderr
    assert json.loads(result.report_file or b"") == {"result": "COMPLETE"}
    assert bench.changes() == {"app.py": ChangeKind.MODIFIED}


def test_a_report_by_the_last_line_of_stdout(bench: Bench) -> None:
    result = bench.play({"stdout": 'working\n{"result": "COMPLETE"}\n'})
    assert result.report_file is None
    assert result.stdout.splitlines()[-1] == b'{"result": "COMPLETE"}'
    assert result.complaint is None


def test_an_exit_code_that_is_not_zero(bench: Bench) -> None:
    result = bench.play({"run": ["sh", "-c", "echo broken >&2; exit 7"], "report": {"result": "COMPLETE"}})
    assert (result.ended, result.exit_code) == (Ended.NONZERO, 7)
    assert result.complaint == "The agent ended with exit code 7; the last line of its stderr is: broken."


def test_a_signal(bench: Bench) -> None:
    result = bench.play({"run": ["sh", "-c", "kill -9 $PPID; sleep 5"]})
    assert (result.ended, result.signal, result.exit_code) == (Ended.SIGNAL, signal.SIGKILL, None)
    assert result.complaint == "The agent was ended by signal 9 (Killed)."


@pytest.mark.broad(but_first=1)
def test_a_time_out_with_children_left(bench: Bench) -> None:
    result = bench.play(
        {"run": ["sh", "-c", "(setsid sh -c 'sleep 2; echo late > late.txt' &) ; sleep 60"]}, timeout_s=0.8
    )
    assert (result.ended, result.exit_code, result.signal) == (Ended.TIMED_OUT, None, None)
    assert result.complaint == "The agent did not finish within 0.8 seconds and was stopped."
    assert bench.changes() == {}


@pytest.mark.broad(but_first=1)
def test_a_daemon_is_dead_when_the_view_is_read(bench: Bench) -> None:
    script = "setsid sh -c 'while :; do date +%N > ticking; done' >/dev/null 2>&1 & while ! test -s ticking; do :; done"
    assert bench.play({"run": ["sh", "-c", script]}).ended is Ended.OK
    before = bench.view.read("ticking")
    assert bench.play({}).ended is Ended.OK
    assert bench.view.read("ticking") == before


@pytest.mark.broad(but_first=1)
def test_huge_output_is_cut_and_the_last_line_stays(bench: Bench) -> None:
    result = bench.play(
        {"run": ["sh", "-c", "head -c 9000000 /dev/zero | tr '\\0' x; echo"], "stdout": '{"last": 1}\n'}
    )
    assert result.truncated
    assert len(result.stdout) < 5_000_000
    assert result.stdout.endswith(b'\n{"last": 1}\n')


@pytest.mark.broad(but_first=3)
@pytest.mark.parametrize(
    "script", ['ln -s /etc/passwd "$REDFIRST_REPORT"', 'mkfifo "$REDFIRST_REPORT"', 'mkdir "$REDFIRST_REPORT"']
)
def test_a_report_that_is_no_plain_file_is_not_read(bench: Bench, script: str) -> None:
    result = bench.play({"run": ["sh", "-c", script]})
    assert result.report_file is None
    assert "regular file" in (result.complaint or "")


@pytest.mark.broad(but_first=1)
def test_a_report_without_end_is_read_only_as_far_as_needed(bench: Bench) -> None:
    result = bench.play({"run": ["sh", "-c", 'truncate -s 1G "$REDFIRST_REPORT"']})
    assert 1_000_000 < len(result.report_file or b"") <= 2_000_000


@pytest.mark.broad(but_first=1)
def test_the_document_and_the_artifacts_are_at_hand(bench: Bench) -> None:
    (bench.folder / "plan.md").write_text("the plan")
    artifacts = Mount(bench.folder, Path("/artifacts"))
    plan = bench.box.inside(artifacts.source, artifacts.target) / "plan.md"
    entry = {"run": ["sh", "-c", f'cat {plan} "$REDFIRST_DISPATCH"; echo; echo "$REDFIRST_DEPTH $MORE"']}
    env = {"MORE": "given", "PLAY": json.dumps(entry)}
    result = bench.play(entry, artifacts=(artifacts,), env=env, depth=2)
    assert result.stdout.decode() == f"the plan{json.dumps(DISPATCH)}\n2 given\n"


def test_nothing_outside_the_view_can_be_written(boxed: Bench, tmp_path: Path) -> None:
    targets = [
        tmp_path / "outside",
        boxed.agents / "x",
        Path("/usr/outside-the-view"),
        Path.home() / "outside-the-view",
    ]
    script = "".join(f"echo x > {target}; " for target in targets)
    result = boxed.play({"run": ["sh", "-c", f"{script} echo x > inside"]})
    assert result.ended is Ended.OK, result.stderr
    assert boxed.changes() == {"inside": ChangeKind.ADDED}
    assert not [target for target in targets if target.exists()]


@pytest.mark.broad(but_first=1)
def test_the_network_is_refused(boxed: Bench) -> None:
    if not Path("/usr/bin/python3").exists():
        pytest.skip("the system has no python3")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        connect = f"import socket; socket.create_connection(('127.0.0.1', {listener.getsockname()[1]}), 2)"
        entry = {"run": ["/usr/bin/python3", "-c", connect]}
        assert boxed.play(entry).ended is Ended.NONZERO
        assert boxed.play(entry, network="open").ended is Ended.OK


def test_a_read_only_view_stays_as_it_is(boxed: Bench) -> None:
    boxed.view.writable = False
    result = boxed.play({"run": ["sh", "-c", "echo x > new || chmod +x app.py || rm app.py || exit 9"]})
    assert result.exit_code == 9
    assert boxed.changes() == {}


def test_a_read_only_view_still_takes_a_report(boxed: Bench) -> None:
    boxed.view.writable = False
    assert json.loads(boxed.play({"report": {"verdict": "ACCEPTABLE"}}).report_file or b"") == {"verdict": "ACCEPTABLE"}
