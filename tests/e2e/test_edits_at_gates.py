"""A person's edits of plan.md and the task files: none is lost, one that counts is checked, one that does not is told.

One run in a language whose tests take no process, from gate to gate; each stage goes on where the one before stopped.
"""

from __future__ import annotations

import re
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from e2e.lanes import Played, go_on, play
from e2e.shapes import FAST, SUMS_HONEST, sums_project
from kit import HONEST, make_project

if TYPE_CHECKING:
    from pathlib import Path

    from kit import Entry, Project

pytestmark = pytest.mark.slow

PLAN, PLAN_ACCEPTED, _, SPLIT, SPLIT_ACCEPTED, *REST = SUMS_HONEST


def another(entry: Entry, old: str, new: str) -> Entry:
    """Return an answer with other words in its report."""
    report = entry["report"].items()
    return {**entry, "report": {key: text.replace(old, new) if isinstance(text, str) else text for key, text in report}}


def second_task(entry: Entry) -> Entry:
    """Return a split with one more task behind the first."""
    task: dict[str, Any] = entry["report"]["tasks"][0]
    more = {**task, "title": "Mind zero", "depends_on": [1], "evidence": "regression"}
    return {**entry, "report": {"tasks": [task, more]}}


SCRIPT: list[Entry] = [
    PLAN,
    PLAN_ACCEPTED,
    another(PLAN, "Raise ValueError", "Double it"),
    PLAN_ACCEPTED,
    second_task(SPLIT),
    SPLIT_ACCEPTED,
    SPLIT,
    SPLIT_ACCEPTED,
    *[entry for entry in REST if entry["when"].get("role") != "simplify"],
]


def edit(played: Played, name: str, old: str, new: str) -> str:
    """Edit a file of the run as a person would; return what it was."""
    file = played.folder / name
    text = file.read_text(encoding="utf-8")
    assert old in text
    file.write_text(text.replace(old, new, 1), encoding="utf-8")
    return text


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    return sums_project(tmp_path_factory.mktemp("edits"))


@pytest.fixture(scope="module")
def at_plan(project: Project) -> Played:
    """Return the run at its first gate."""
    return play(project, SCRIPT, "--approve", "plan,split,commit", extra=FAST)


@pytest.fixture(scope="module")
def told_at_plan(at_plan: Played) -> dict[str, Any]:
    """Return what the reading commands say, and what is said to whoever means another gate; nothing changes."""
    run = at_plan.project.redfirst
    return {
        "show": run("show").stdout,
        "below": run("show", cwd=at_plan.project.root / "TODO").stdout,
        "runs": run("runs").stdout,
        "listed": at_plan.project.document("runs")["runs"][0],
        "approve": go_on(at_plan, "approve", "--gate", "split").document,
        "reject": go_on(at_plan, "reject", "--gate", "commit", "--feedback", "no").document,
        "resume": go_on(at_plan, "resume").document,
    }


@pytest.fixture(scope="module")
def replanned(at_plan: Played, told_at_plan: dict[str, Any]) -> Played:
    """Return the run at approval point plan for the second time: its plan was edited, and then rejected."""
    assert told_at_plan
    edit(at_plan, "plan.md", "Raise ValueError", "Mind the callers. Raise ValueError")
    return go_on(at_plan, "reject", "--feedback", "Double it.")


@pytest.fixture(scope="module")
def broken_plan(replanned: Played) -> Played:
    """Return what is said to a plan with a section that none has; the file is put right afterwards."""
    good = edit(replanned, "plan.md", "## Problem", "## Problme")
    refused = go_on(replanned, "approve")
    (replanned.folder / "plan.md").write_text(good, encoding="utf-8")
    return refused


@pytest.fixture(scope="module")
def at_split(replanned: Played, broken_plan: Played) -> Played:
    """Return the run at approval point split, with two tasks."""
    assert broken_plan
    return go_on(replanned, "approve")


@pytest.fixture(scope="module")
def shown_at_split(at_split: Played) -> str:
    """Return what show says after plan.md was edited there, and a task."""
    edit(at_split, "plan.md", "Double it", "Treble it")
    edit(at_split, "task-2.md", "title: Mind zero", "title: Mind one")
    return at_split.project.redfirst("show").stdout


@pytest.fixture(scope="module")
def resplit(at_split: Played, shown_at_split: str) -> Played:
    """Return the run at approval point split for the second time, with one task."""
    assert shown_at_split
    return go_on(at_split, "reject", "--feedback", "One task is enough.")


@pytest.fixture(scope="module")
def broken_tasks(resplit: Played) -> list[Played]:
    """Return what is said to a task file with such a section, and to one that is no YAML."""
    found: list[Played] = []
    for old, new in (("## Acceptance Criteria", "## Criteria"), ("depends_on: []", "depends_on: [")):
        good = edit(resplit, "task-1.md", old, new)
        found.append(go_on(resplit, "approve"))
        (resplit.folder / "task-1.md").write_text(good, encoding="utf-8")
    (resplit.folder / "task-1.md").unlink()
    return [*found, go_on(resplit, "approve")]


@pytest.fixture(scope="module")
def at_commit(resplit: Played, broken_tasks: list[Played]) -> Played:
    assert broken_tasks
    return go_on(resplit, "approve")


@pytest.fixture(scope="module")
def published(at_commit: Played) -> Played:
    """Return the run at its end; its task was edited before, at approval point commit."""
    edit(at_commit, "task-1.md", "title: Reject empty names", "title: Do nothing")
    return go_on(at_commit, "approve")


@pytest.mark.broad
def test_a_gate_is_named_wherever_the_run_is_shown(at_plan: Played, told_at_plan: dict[str, Any]) -> None:
    place = "approval point plan (1 of 3)"
    assert (at_plan.document["gate"], at_plan.document["at_gate"]["place"]) == ("plan", place)
    assert f"parked at {place}" in at_plan.document["_stderr"]
    assert f"parked at {place}" in told_at_plan["show"]
    assert "at plan (1 of 3)" in told_at_plan["runs"], "its column has no room for more"
    assert (told_at_plan["listed"]["gate"], told_at_plan["listed"]["gate_place"]) == ("plan", place)
    assert place in told_at_plan["resume"]["error"]["message"]


def test_a_gate_says_what_to_read_from_where_one_stands(at_plan: Played, told_at_plan: dict[str, Any]) -> None:
    assert at_plan.document["at_gate"]["edit"] == [str(at_plan.folder / "plan.md")]
    assert re.search(r"may edit +\.workflow/run-GAL-1/plan\.md\n", told_at_plan["show"]), told_at_plan["show"]
    assert re.search(r"read +\.\./\.workflow/run-GAL-1/reviews/plan-1\.md\n", told_at_plan["below"])


@pytest.mark.broad
def test_a_gate_says_what_each_answer_does_there(at_plan: Played, at_split: Played, at_commit: Played) -> None:
    found = {
        played.document["gate"]: {one["command"]: one["does"] for one in played.document["at_gate"]["answers"]}
        for played in (at_plan, at_split, at_commit)
    }
    assert "it is split into tasks" in found["plan"]["redfirst approve run-GAL-1"]
    assert not any("--to" in command for command in found["plan"])
    assert "drafts the plan again" in found["split"]['redfirst reject run-GAL-1 --to plan --feedback "..."']
    assert "fix tasks" in found["commit"]['redfirst reject run-GAL-1 --feedback "..."']
    assert set(found["commit"]) > {"redfirst diff run-GAL-1", "redfirst approve run-GAL-1"}


def test_the_last_gate_says_what_would_be_committed(at_commit: Played, published: Played) -> None:
    gate = at_commit.document["at_gate"]
    assert gate["place"] == "approval point commit (3 of 3)"
    assert list(gate["commits"]) == published.subjects()
    assert str(at_commit.folder / "summary.md") in gate["read"]


def test_an_answer_to_another_gate_is_refused(told_at_plan: dict[str, Any]) -> None:
    for word, meant in (("approve", "split"), ("reject", "commit")):
        document = told_at_plan[word]
        assert document["_code"] == 2, document
        assert f"waits at approval point plan (1 of 3), not at approval point {meant}" in document["error"]["message"]


def test_an_edited_plan_stays_and_is_what_the_redraft_revises(replanned: Played) -> None:
    assert "Mind the callers." not in replanned.artifact("plan-1.md")
    assert "Mind the callers." in replanned.artifact("plan-1-edited.md")
    assert "Mind the callers." not in replanned.artifact("plan.md")
    assert "Mind the callers." in replanned.asked("plan", 2).text("previous_plan")


def test_an_edited_plan_is_checked_as_a_draft_is(broken_plan: Played, at_split: Played) -> None:
    error = broken_plan.document["error"]
    assert broken_plan.document["_code"] == 2, error
    line = at_split.artifact("plan.md").splitlines().index("## Problem") + 1
    assert f"plan.md, line {line}: 'Problme' is no section of a plan; did you mean 'Problem'?" in error["message"]
    assert error["path"] == str(at_split.folder / "plan.md")
    assert error["details"]["problems"][0]["line"] == line


def test_an_edited_task_is_checked_as_a_draft_is(broken_tasks: list[Played], at_commit: Played) -> None:
    section, broken, gone = (played.document for played in broken_tasks)
    assert (section["_code"], broken["_code"], gone["_code"]) == (2, 2, 2)
    assert "task-1.md was removed, which drops nothing: it is put back" in gone["error"]["message"]
    lines = at_commit.artifact("task-1.md").splitlines()
    line = lines.index("## Acceptance Criteria") + 1
    assert f"task-1.md, line {line}: 'Criteria' is no section of a task" in section["error"]["message"]
    assert re.search(r"task-1\.md .*line \d+: this is not YAML", broken["error"]["message"], re.IGNORECASE), broken
    assert at_commit.document["reason"] == "approval"


@pytest.mark.broad
def test_dropped_tasks_do_not_lie_beside_live_ones_and_the_redraft_gets_them_as_edited(resplit: Played) -> None:
    assert "title: Mind one" in resplit.asked("split", 2).text("previous_tasks")
    assert sorted(path.name for path in resplit.folder.glob("task-*.md")) == ["task-1.md"]
    assert "title: Mind zero" in resplit.artifact("dropped/task-2-1.md")
    assert "title: Mind one" in resplit.artifact("dropped/task-2-1-edited.md")
    decided = resplit.project.redfirst("explain", resplit.name, "-v").stdout
    assert re.search(r"task-2\.md +\(gone, as it was: dropped/task-2-1\.md\)", decided), decided


def test_an_edit_after_its_gate_has_no_effect_and_that_is_said(shown_at_split: str, resplit: Played) -> None:
    assert "plan.md" in shown_at_split
    assert "no effect" in shown_at_split
    assert "--to plan" in shown_at_split
    assert "no effect" in resplit.document["_stderr"]
    assert "Treble it" in resplit.artifact("edited/plan-1.md")
    assert "Treble it" not in resplit.artifact("plan.md")
    assert "Treble it" not in resplit.asked("split", 2).text("plan")


def test_a_task_edited_after_its_gate_neither_changes_the_commit_nor_gets_lost(published: Played) -> None:
    assert published.document["outcome"] == "completed", published.document["_stderr"]
    assert published.subjects()[0] == "fix: reject empty names"
    assert "task-1.md" in published.document["_stderr"]
    assert "Do nothing" in published.artifact("edited/task-1-1.md")
    verified = published.project.redfirst("verify", published.name)
    assert verified.returncode == 0, verified.stdout + verified.stderr


SAVES_BETWEEN = """
import os, sys
from pathlib import Path

import anyio

from pipeline.matrix.engine.journal_kinds import Answerer
from pipeline.errors import UserError
from pipeline.repo import Repository
from pipeline.app.answer import Approval
from pipeline.app.run_config import RunOptions
from pipeline.app.start import go_on

folder = Path(".workflow/run-GAL-1").resolve()


class Editor:
    def __call__(self, text):
        if "not committed" in text:  # after the check, before anything is taken
            plan = folder / "plan.md"
            plan.write_text(plan.read_text() + "\\n## Problme\\n")

    def show(self, standing):
        pass


options = RunOptions("", environ=dict(os.environ))
approve = Approval(Answerer(actor="ada", via="cli"))
try:
    anyio.run(go_on, Repository.find(Path.cwd()), folder, options, approve, Editor())
except UserError as error:
    sys.exit(error.message)
"""


@pytest.mark.broad
def test_what_an_editor_saves_while_it_is_checked_is_not_taken(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    project.use_script(HONEST)
    assert project.run("--approve", "plan")["reason"] == "approval"
    project.write({"mine.txt": "not committed\n"})
    before = project.journal()
    done = subprocess.run(
        [sys.executable, "-c", SAVES_BETWEEN],
        cwd=project.root,
        env=project.environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    assert "plan.md was saved while it was checked" in done.stderr
    assert project.journal() == before
