"""An answer is journalled without driving; what was not seen, or was answered already, is not answered."""

from __future__ import annotations

import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest
from people.ground import FAST, SCRIPT, go_on, waiting
from workflows.test_gates_and_commands import answer, asks
from workflows.test_gates_and_commands import make as make_recipe

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import Any

    from people.ground import Played

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def parked(tmp_path_factory: pytest.TempPathFactory) -> Played:
    return waiting(tmp_path_factory.mktemp("parked"))


@pytest.fixture
def at_plan(parked: Played, tmp_path: Path) -> Iterator[Played]:
    """Return the run at approval point plan, in a copy of its own: its paths are those of the first."""
    project, kept = parked.project, tmp_path / "kept"
    shutil.copytree(project.root, kept / "project")
    shutil.copytree(project.home, kept / "home")
    yield parked
    for there, mine in ((project.root, kept / "project"), (project.home, kept / "home")):
        shutil.rmtree(there)
        shutil.copytree(mine, there)


def kinds(played: Played) -> list[str]:
    return [line["kind"] for line in played.project.journal(played.name)]


@pytest.mark.broad
def test_an_answered_run_stands_queued_and_goes_on_to_the_same_commits(at_plan: Played) -> None:
    project = at_plan.project
    before = len(kinds(at_plan))
    document = go_on(at_plan, "approve", "--no-drive").document
    assert (document["_code"], document["answer"], document["queued"]) == (0, "approved", True)
    assert document["safe_next_actions"] == ["redfirst resume run-GAL-1"]
    assert kinds(at_plan)[before:] == ["gate_answered", "decision", "run_queued"]
    said = project.journal()[before]["data"]
    assert (said["actor"], said["via"]) == ("Ada", "cli")
    (line,) = project.document("runs")["runs"]
    assert (line["status"], line["queued"], line["live"]) == ("queued", True, False)
    shown = project.document("show", "GAL-1")
    assert (shown["queued"], shown["outcome"]) == (True, None)
    assert shown["safe_next_actions"][0] == "redfirst resume run-GAL-1"
    assert "queued" in project.redfirst("show", "GAL-1").stdout.splitlines()[1]
    assert "queued" in project.redfirst("explain", "GAL-1").stdout.splitlines()[0]
    events = [json.loads(one) for one in project.redfirst("events", "GAL-1").stdout.splitlines()]
    assert [one["type"].split(".", 1)[1] for one in events[-3:]] == [
        "approval.granted.v1",
        "step.completed.v1",
        "run.queued.v1",
    ]
    assert events[-3]["data"] == {"gate": "plan", "actor": "Ada", "via": "cli"}
    refused = go_on(at_plan, "approve").document
    assert "was answered already" in refused["error"]["message"]
    done = go_on(at_plan, "resume").document
    assert (done["outcome"], done["_code"]) == ("completed", 0), done["_stderr"]
    resumed = [line["data"] for line in project.journal() if line["kind"] == "run_resumed"]
    assert [one["was"] for one in resumed] == ["queued"]
    queued = project.git("log", "--format=%H", "main..work")
    assert queued.count("\n") == 1


@pytest.mark.broad
def test_an_approval_drives_on_by_default_to_the_same_tree(at_plan: Played) -> None:
    done = go_on(at_plan, "approve").document
    assert (done["outcome"], done["_code"]) == ("completed", 0), done["_stderr"]
    assert "run_queued" not in kinds(at_plan)


@pytest.mark.broad
def test_a_rejected_run_stands_queued_and_its_asker_gets_the_feedback(at_plan: Played) -> None:
    document = go_on(at_plan, "reject", "--feedback", "shorter", "--no-drive").document
    assert (document["answer"], document["queued"]) == ("rejected to plan", True)
    assert at_plan.rows[-1] == "gate/REJECTED_TO_PLAN"
    at_plan.project.use_script([*SCRIPT, *SCRIPT], FAST)
    assert go_on(at_plan, "resume").document["reason"] == "approval"
    assert "shorter" in at_plan.asked("plan", 2).text("feedback")


def test_check_11_what_was_edited_since_it_was_looked_at_is_not_approved(at_plan: Played) -> None:
    project, plan = at_plan.project, at_plan.folder / "plan.md"
    packet = project.document("show", "GAL-1", "--packet")
    assert packet == {**project.document("show", "GAL-1", "--packet"), "_stderr": packet["_stderr"]}
    assert (packet["gate"], packet["diff"]) == ("plan", None)
    assert {file["name"]: file["counts"] for file in packet["files"]} == {
        "issue.md": False,
        "plan.md": True,
        "reviews/plan-1.md": False,
    }
    plan.write_text(plan.read_text("utf-8").replace("# Plan", "# The plan", 1), "utf-8")
    before = (at_plan.folder / "journal.jsonl").read_bytes()
    for command in (
        ("approve",),
        ("approve", "--no-drive"),
        ("reject", "--feedback", "no"),
        ("reject", "--feedback", "no", "--no-drive"),
    ):
        refused = go_on(at_plan, *command, "--seen", packet["digest"]).document
        assert (refused["error"]["kind"], refused["_code"]) == ("stale", 2), refused
        assert (at_plan.folder / "journal.jsonl").read_bytes() == before
    again = project.document("show", "GAL-1", "--packet")["digest"]
    assert again != packet["digest"]
    assert again in project.redfirst("show", "GAL-1", "--packet").stdout
    plan.write_text(packet["files"][1]["text"], "utf-8")
    assert go_on(at_plan, "approve", "--no-drive", "--seen", packet["digest"]).document["queued"]


def test_check_12_of_two_approvals_at_once_one_counts(at_plan: Played) -> None:
    def approve(_: int) -> dict[str, Any]:
        return go_on(at_plan, "approve", "--no-drive").document

    with ThreadPoolExecutor(4) as pool:
        told = list(pool.map(approve, range(4)))
    assert sum(one["ok"] for one in told) == 1
    assert kinds(at_plan).count("gate_answered") == 1
    for one in told:
        if not one["ok"]:
            assert one["error"]["kind"] in {"locked", "usage"}
            assert "is driving" in one["error"]["message"] or "answered already" in one["error"]["message"]


def test_what_cannot_be_shown_is_not_approved_and_can_be_rejected(at_plan: Played) -> None:
    review = at_plan.folder / "issue.md"
    review.unlink()
    review.mkdir()
    refused = go_on(at_plan, "approve", "--no-drive").document
    assert "issue.md cannot be read" in refused["error"]["message"]
    assert "It stays shut" in refused["error"]["message"]
    assert "gate_answered" not in kinds(at_plan)
    assert go_on(at_plan, "reject", "--feedback", "again", "--no-drive").document["queued"]


@pytest.mark.broad
def test_the_packet_at_gate_commit_has_red_and_green_and_the_diff(tmp_path: Path) -> None:
    seen = {"title": "Greeting a list fails", "description": "Seen on the way."}
    script = [
        {**entry, "report": {**entry["report"], "out_of_scope": [seen]}}
        if entry["when"].get("kind") == "implement"
        else entry
        for entry in SCRIPT
    ]
    played = waiting(tmp_path, "commit", script)
    packet = played.project.document("show", "GAL-1", "--packet")
    assert packet["notes"] == ["your approval files this issue, too: Greeting a list fails"]
    assert played.document["at_gate"]["notes"] == packet["notes"]
    (task,) = packet["tasks"]
    assert [one["id"] for one in task["evidence"]["red"]] == ["greet.check::two"]
    assert task["evidence"]["green"]["passed"] == ["greet.check::two"]
    assert "+greet n = n * 2" in packet["diff"]["patch"]
    assert len(packet["commits"]) == 2
    text = played.project.redfirst("show", "GAL-1", "--packet").stdout
    for word in (
        "your approval files this issue, too",
        "greet.check::two",
        "+greet n = n * 2",
        packet["digest"],
        "redfirst approve run-GAL-1",
    ):
        assert word in text
    (played.folder / "evidence" / "task-1.json").write_text("{", "utf-8")
    refused = go_on(played, "approve", "--no-drive").document
    assert "evidence/task-1.json cannot be read" in refused["error"]["message"]


@pytest.mark.broad
def test_gates_of_a_recipe_are_answered_one_after_the_other_and_then_driven(tmp_path: Path) -> None:
    project = make_recipe(
        tmp_path,
        [answer("look", "Seen."), answer("go", "Gone.")],
        asks("look"),
        {"id": "one", "gate": "approve", "prompt": "One?", "depends_on": ["look"]},
        {"id": "two", "gate": "ask", "prompt": "Two?", "depends_on": ["look"]},
        asks("go", "{{steps.two.output}}", depends_on=["one", "two"]),
    )
    assert project.document("run", "own")["reason"] == "approval"
    packet = project.document("show", "run-own", "--packet")
    assert packet["error"]["details"]["steps"] == ["one", "two"]
    packet = project.document("show", "run-own", "--packet", "--step", "two")
    assert (packet["gate"], packet["question"]) == ("two", "Two?")
    assert "--step belongs to --packet" in project.document("show", "run-own", "--step", "two")["error"]["message"]
    first = project.document("approve", "run-own", "--step", "one", "--no-drive")
    assert (first["queued"], first["outcome"], first["reason"]) == (False, "parked", "approval")
    second = project.document("approve", "run-own", "answer=yes", "--no-drive")
    assert (second["queued"], second["outcome"]) == (True, None)
    assert project.document("runs")["runs"][0]["status"] == "queued"
    answered = [line["data"]["gate"] for line in project.journal("run-own") if line["kind"] == "gate_answered"]
    assert answered == ["one", "two"]
    done = project.document("resume", "run-own")
    assert (done["outcome"], done["queued"], done["usable"]) == ("completed", False, ["look", "one", "two", "go"])


@pytest.mark.broad
def test_an_answer_that_ends_a_recipe_puts_it_away(tmp_path: Path) -> None:
    ok = {"id": "ok", "gate": "approve", "depends_on": ["look"]}
    project = make_recipe(tmp_path, [answer("look", "Seen.")], asks("look"), ok)
    assert project.document("run", "own")["reason"] == "approval"
    document = project.document("approve", "run-own", "--no-drive")
    assert (document["queued"], document["outcome"]) == (False, "completed")
    outcome = json.loads((project.run_folder("run-own") / "steps/ok/outcome.json").read_text("utf-8"))
    assert outcome["checkpoint"] == "ready"
    assert not list((project.home / "state" / "redfirst" / "runs").glob("*/run-own*"))
