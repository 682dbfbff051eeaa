"""The engine drives a workflow that is no issue: folder, lease, crash, resume, gate and bound are the same."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import pytest
from engine.haiku import Haiku

from pipeline.errors import UserError
from pipeline.matrix.engine.journal import Journal
from pipeline.matrix.engine.journal_kinds import ConfigChanged, RunStarted
from pipeline.matrix.engine.loop import drive
from pipeline.matrix.engine.protocols import Decision, Event, LoopState
from pipeline.matrix.engine.run import MachineRun
from pipeline.outcomes import Outcome, Reason
from pipeline.run.folder import RunFolder
from pipeline.run.lease import FileLease

if TYPE_CHECKING:
    from collections.abc import Iterable

HaikuRun = MachineRun[LoopState, Event, Decision]
OURS = Path(__file__).parents[2]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / ".workflow" / "run-poem"
    path.mkdir(parents=True)
    run = load(path)
    run.journal.append(RunStarted(run_id=path.name))
    return path


def load(folder: Path) -> HaikuRun:
    store = RunFolder(folder)
    run: HaikuRun = MachineRun(store, Journal.open(store), Haiku(), program="haiku 1")
    run.recover()
    return run


def go_on(folder: Path, signals: Iterable[str]) -> HaikuRun:
    """Drive the run with steps that report these signals, one after the other."""
    lease = FileLease.take(folder)
    run, said = load(folder), iter(signals)

    async def step(state: LoopState, _lane: str) -> Event:
        run.write_artifact(f"{state.trunk.step}-{state.trunk.visit}.md", "an old silent pond\n")
        return Event(signal=next(said), note=state.trunk.step)

    def tell(decision: Decision, event: Event) -> None:
        assert decision.step == event.note

    anyio.run(drive, run, step, tell)
    lease.release()
    return run


def rows(run: HaikuRun) -> list[str]:
    return [one.decision.row for one in run.history]


def kinds(folder: Path) -> list[str]:
    return [json.loads(line)["kind"] for line in (folder / "journal.jsonl").read_text().splitlines()]


def test_it_waits_at_a_gate_for_a_person_and_ends(folder: Path) -> None:
    run = go_on(folder, ["written", "fits"])
    assert (run.state.outcome, run.state.reason, run.state.trunk.gate) == (Outcome.PARKED, Reason.APPROVAL, "poem")
    run = load(folder)
    run.resume()
    assert run.state.outcome is Outcome.PARKED, "a gate is answered, not resumed"
    run.answer_gate("approved", Event(signal="approved"))
    assert rows(load(folder)) == ["write/written", "count/fits", "count/approved"]
    assert load(folder).state.has_ended
    assert kinds(folder)[-4:] == ["run_resumed", "gate_answered", "decision", "run_finished"]
    assert load(folder).artifacts.keys() == {"write-1.md", "count-2.md"}


def test_a_parked_run_is_asked_again_when_it_is_resumed(folder: Path) -> None:
    assert go_on(folder, ["no_paper"]).state.reason is Reason.ENVIRONMENT
    load(folder).resume()
    assert load(folder).state.resumes == 1
    assert go_on(folder, ["written", "fits"]).journal.epoch == 2


def test_a_bound_is_paid_and_may_be_raised(folder: Path) -> None:
    again = ["written", "too_long"] * 2
    assert go_on(folder, ["no_paper"]).state.counters == {}
    run = load(folder)
    run.resume()
    run.tell(ConfigChanged(limits={"rewrites": 2}, config_hash="hash"))
    run = go_on(folder, [*again, "written", "too_long"])
    assert (run.state.outcome, run.state.reason) == (Outcome.FAILED, Reason.LOOPS_EXHAUSTED)
    assert run.state.counters == load(folder).state.counters == {"rewrites@run": 2}


_KILLED = """
import os, signal, sys
from pathlib import Path
sys.path[:0] = sys.argv[2:]
from engine.test_another_machine import go_on
def signals():
    yield "written"
    os.kill(os.getpid(), signal.SIGKILL)
go_on(Path(sys.argv[1]), signals())
"""


def test_a_killed_driver_is_followed_by_another(folder: Path) -> None:
    argv = [sys.executable, "-c", _KILLED, str(folder), str(OURS), str(OURS / "tests")]
    assert subprocess.run(argv, check=False, cwd=OURS).returncode == -signal.SIGKILL
    assert load(folder).state.trunk.step == "count"
    assert go_on(folder, ["fits"]).state.trunk.gate == "poem"
    journal = folder / "journal.jsonl"
    whole = journal.read_bytes()
    os.truncate(journal, whole[:-2].rfind(b"\n") + 10)  # killed within the line that says that the run is parked
    load(folder)
    assert kinds(folder)[-3:] == ["decision", "gate_opened", "run_parked"]


def test_what_was_decided_otherwise_is_refused(folder: Path) -> None:
    go_on(folder, ["written", "fits"])
    journal = folder / "journal.jsonl"
    journal.write_text(journal.read_text().replace('"count/fits"', '"count/long"'))
    with pytest.raises(UserError, match=r"decided otherwise at journal line 5.*haiku 1"):
        load(folder)
