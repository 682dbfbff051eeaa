"""The run that is meant where nobody names one: only where exactly one can be, and it is said which."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from kit import make_project
from runs.real import alone, begin, event, load, make_repository

from pipeline.app.next_lines import meant_by
from pipeline.errors import UserError
from pipeline.matrix.engine.journal_kinds import GateAnswered
from pipeline.outcomes import Reason
from pipeline.repo import Repository
from pipeline.vocabulary import Signal

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.run.run import Run

pytestmark = pytest.mark.slow

UNTIL_GATE = (Signal.OK, Signal.CLAIMED, Signal.DRAFTED, Signal.ACCEPTABLE)


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    alone(monkeypatch, tmp_path / "home")
    return make_repository(tmp_path / "project")


def refused(command: str, repository: Repository) -> str:
    with pytest.raises(UserError) as caught:
        meant_by(command, repository)
    assert caught.value.reason is Reason.USAGE
    return caught.value.message


def test_the_only_one_is_taken_and_of_several_none(repository: Repository) -> None:
    assert "No run of this worktree can go on" in refused("resume", repository)
    begin(repository, "run-GAL-1").decide(event(Signal.PRECONDITION, reason=Reason.DIRTY_TREE))  # has ended
    begin(repository, "run-GAL-2")
    assert meant_by("resume", repository)[0] == meant_by("abandon", repository)[0] == "run-GAL-2"
    assert "No run of this worktree waits at an approval point" in refused("approve", repository)
    waiting = begin(repository, "run-GAL-3", gates=("plan",))
    for signal in UNTIL_GATE:
        waiting.decide(event(signal))
    assert meant_by("approve", repository)[0] == meant_by("reject", repository)[0] == "run-GAL-3"
    assert "run-GAL-2, run-GAL-3" in refused("abandon", repository)


def test_a_driver_that_died_at_an_answer_leaves_the_gate_open(repository: Repository) -> None:
    waiting = begin(repository, "run-GAL-3", gates=("plan",))
    for signal in UNTIL_GATE:
        waiting.decide(event(signal))
    waiting.resume()
    assert meant_by("approve", repository)[0] == meant_by("reject", repository)[0] == "run-GAL-3"
    waiting.journal.append(GateAnswered(gate="plan", answer="approved", artifacts={}))
    assert meant_by("approve", repository)[0] == "run-GAL-3"
    again = load(waiting, driving=True)
    again.answer_gate("approved", event(Signal.APPROVED))
    assert "No run of this worktree waits at an approval point" in refused("approve", repository)


@pytest.mark.broad
def test_on_the_command_line_it_is_said_which_one_was_taken(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    assert "No run of this worktree is unfinished" in project.redfirst("abandon").stderr
    done = project.redfirst("reject", "--feedback", "no")
    assert (done.returncode, "waits at an approval point" in done.stderr) == (2, True)
    there = project.root.parent / "there"
    project.git("worktree", "add", "--quiet", "--detach", str(there))
    refused = project.document("reject", "--feedback", "it's no", "--to", "plan")["error"]
    assert refused["safe_next_actions"] == ["redfirst runs"]
    waiting = begin_in(there, "run-GAL-2", gates=("plan",))
    for signal in UNTIL_GATE:
        waiting.decide(event(signal))
    refused = project.document("reject", "--feedback", "it's no", "--to", "plan")["error"]
    told = """redfirst reject run-GAL-2 --feedback 'it'"'"'s no' --to plan"""
    assert (refused["safe_next_actions"], f"run-GAL-2 in {there}" in refused["message"]) == ([told], True)
    begin_in(project.root, "run-GAL-1")
    done = project.redfirst("diff")
    assert done.stderr.splitlines()[0] == "run-GAL-1: the newest run"
    document = project.document("abandon")
    assert "run-GAL-1: the only run here that is unfinished" in document["_stderr"]
    assert (document["run_id"], document["reason"]) == ("run-GAL-1", "abandoned")
    assert json.loads(project.redfirst("explain", "--json").stdout)["run_id"] == "run-GAL-1"


def begin_in(root: Path, name: str, **info: Any) -> Run:
    return begin(Repository.find(root), name, **info)
