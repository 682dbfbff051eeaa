"""A gate that nobody answers in time: it waits, reminds, sends back or gives up, as configured; it never approves."""

from __future__ import annotations

import json
import shutil
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from people.ground import FAST, SCRIPT, go_on, make, play
from workflows.test_gates_and_commands import make as make_recipe

from pipeline.app.attend import attend
from pipeline.repo import Repository

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from people.ground import Played

pytestmark = pytest.mark.slow
LATER = timedelta(hours=72, minutes=1)


@pytest.fixture(scope="module")
def parked(tmp_path_factory: pytest.TempPathFactory) -> Played:
    project = make(tmp_path_factory.mktemp("parked"))
    return play(project, [*SCRIPT, *SCRIPT], "--approve", "plan", extra=FAST)


@pytest.fixture
def at_plan(parked: Played, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Played]:
    """Return the run at approval point plan as it was, its environment as ours: what attends is called, not started."""
    project, kept = parked.project, tmp_path / "kept"
    shutil.copytree(project.root, kept / "project")
    shutil.copytree(project.home, kept / "home")
    for name, value in project.environment().items():
        monkeypatch.setenv(name, value)
    yield parked
    for there, mine in ((project.root, kept / "project"), (project.home, kept / "home")):
        shutil.rmtree(there)
        shutil.copytree(mine, there)


def configured(folder: Path, **said: str) -> None:
    """Let the run be one that another version began, with this configuration of gates."""
    path = folder / "run.json"
    record = json.loads(path.read_text("utf-8"))
    config = record["config"]
    record["config"] = {**config, "gates": {**config["gates"], **said}, "of_another_version": {"key": 1}}
    path.write_text(json.dumps(record), "utf-8")


def attended(played: Played, after: timedelta = LATER) -> list[tuple[str, str]]:
    now = datetime.now(UTC) + after
    return [(one.gate, one.then.value) for one in attend(Repository.find(played.project.root), now, pytest.fail)]


def said(played: Played, kind: str) -> list[dict[str, Any]]:
    return [line["data"] for line in played.project.journal(played.name) if line["kind"] == kind]


def test_check_13_a_timeout_rejects_once_in_a_row_and_never_approves(at_plan: Played) -> None:
    configured(at_plan.folder, timeout="72h", on_timeout="reject")
    assert attended(at_plan, timedelta(hours=71)) == []
    assert attended(at_plan) == [("plan", "reject")]
    assert attended(at_plan) == [], "it is queued: nothing waits"
    (answer,) = said(at_plan, "gate_answered")
    assert (answer["answer"], answer["actor"], answer["via"]) == ("rejected to plan", "redfirst", "timeout")
    events = at_plan.project.redfirst("events", "GAL-1", "--type", "approval.*").stdout.splitlines()
    assert [json.loads(one)["type"] for one in events[1:]] == [
        "redfirst.approval.expired.v1",
        "redfirst.approval.rejected.v1",
    ]
    assert go_on(at_plan, "resume").document["reason"] == "approval"
    assert "Nobody answered within 72h" in at_plan.asked("plan", 2).text("feedback")
    assert attended(at_plan) == [("plan", "remind")], "a second draft for nobody would be paid for, too"
    assert attended(at_plan) == []
    assert len(said(at_plan, "gate_answered")) == 1


def test_check_13_by_default_a_gate_waits(at_plan: Played) -> None:
    before = (at_plan.folder / "journal.jsonl").read_bytes()
    assert attended(at_plan, timedelta(days=400)) == []
    configured(at_plan.folder, timeout="1m", on_timeout="wait")
    assert attended(at_plan, timedelta(days=400)) == []
    assert (at_plan.folder / "journal.jsonl").read_bytes() == before


@pytest.mark.broad
def test_a_reminder_is_told_once_and_the_gate_still_waits(at_plan: Played) -> None:
    configured(at_plan.folder, timeout="2d", on_timeout="remind")
    assert attended(at_plan) == [("plan", "remind")]
    assert attended(at_plan) == []
    assert said(at_plan, "gate_expired") == [{"gate": "plan", "then": "remind"}]
    assert go_on(at_plan, "approve", "--no-drive").document["queued"]


@pytest.mark.broad
def test_a_run_may_be_given_up(at_plan: Played) -> None:
    configured(at_plan.folder, timeout="72h", on_timeout="abandon")
    assert attended(at_plan) == [("plan", "abandon")]
    assert attended(at_plan) == []
    assert at_plan.project.document("show", "GAL-1")["reason"] == "abandoned"
    assert at_plan.project.git("for-each-ref", "refs/redfirst/claims") == ""


@pytest.mark.broad
def test_a_gate_of_a_recipe_is_sent_back_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = make_recipe(tmp_path, [], {"id": "ok", "gate": "approve"})
    assert project.document("run", "own")["reason"] == "approval"
    configured(project.run_folder("run-own"), timeout="30m", on_timeout="reject")
    for name, value in project.environment().items():
        monkeypatch.setenv(name, value)
    (one,) = attend(Repository.find(project.root), datetime.now(UTC) + timedelta(hours=1))
    assert (one.run, one.gate, one.then) == ("run-own", "ok", "reject")
    assert project.document("show", "run-own")["failed"] == ["ok"]


@pytest.mark.broad
def test_a_span_of_time_is_a_number_and_a_unit(tmp_path: Path) -> None:
    refused = make(tmp_path).document("run", "GAL-1", "--set", "gates.timeout=soon")
    assert "gates.timeout" in refused["error"]["message"]
