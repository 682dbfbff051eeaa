"""What a person does with a run: approve, reject, edit in between, resume, abandon, --worktree (contract 1, 2).

No edit of plan.md and the task files is lost; one that counts is checked, one that does not is told.
"""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from e2e.lanes import Played, go_on, play
from e2e.shapes import CHECK, FAST, SUM_DONE, SUMS_HONEST, sums_project
from kit import HONEST, make_project

if TYPE_CHECKING:
    from pathlib import Path

    from kit import Entry

pytestmark = pytest.mark.slow

PLAN, PLAN_ACCEPTED, _, SPLIT, SPLIT_ACCEPTED, _, MAKE, ACCEPTED, _ = SUMS_HONEST
REDRAFT: Entry = {**PLAN, "report": {**PLAN["report"], "approach": "Double it before formatting."}}
TASK: dict[str, Any] = SPLIT["report"]["tasks"][0]
SECOND = {**TASK, "title": "Mind zero", "depends_on": [1], "evidence": "regression"}
TESTS_ELSEWHERE: Entry = {
    "when": {"kind": "write-tests"},
    "files": {"extra.check": "still: greet 0 = 0\ntwo: greet 2 = 4\n"},
    "report": {"verdict": "TESTS_READY", "tests": [{"id": "extra.check::still", "expected": "GUARD"}]},
}
FIX_TASK = {
    **TASK,
    "title": "Say which name",
    "test_files": [{"path": "extra.check", "action": "modify"}],
    "evidence": "regression",
}

SCRIPT: list[Entry] = [
    PLAN,
    PLAN_ACCEPTED,
    REDRAFT,
    PLAN_ACCEPTED,
    {**SPLIT, "report": {"tasks": [TASK, SECOND]}},
    SPLIT_ACCEPTED,
    SPLIT,
    SPLIT_ACCEPTED,
    TESTS_ELSEWHERE,
    MAKE,
    ACCEPTED,
    {"when": {"kind": "split"}, "report": {"tasks": [FIX_TASK]}},
    {"when": {"kind": "judge", "question": "not_testable"}, "report": {"accepted": True}},
    {"when": {"kind": "implement"}, "files": {"greet.sum": "greet n = 2 * n\n"}, "report": {"result": "COMPLETE"}},
    ACCEPTED,
]


def answered(played: Played) -> list[dict[str, Any]]:
    """Return what was answered at the gates."""
    return [line["data"] for line in played.project.journal(played.name) if line["kind"] == "gate_answered"]


def edit(played: Played, name: str, *changes: tuple[str, str]) -> str:
    """Edit a file of the run as a person would; return what it was."""
    file = played.folder / name
    before = text = file.read_text(encoding="utf-8")
    for old, new in changes:
        assert old in text
        text = text.replace(old, new, 1)
    file.write_text(text, encoding="utf-8")
    return before


def refused_with(played: Played, name: str, old: str, new: str) -> dict[str, Any]:
    """Return what is said to an approval with this edit; the file is put right afterwards."""
    good = edit(played, name, (old, new))
    document = go_on(played, "approve").document
    (played.folder / name).write_text(good, encoding="utf-8")
    return document


# One run, in the order of these fixtures: each stage goes on where the one before it stopped.


@pytest.fixture(scope="module")
def at_plan(tmp_path_factory: pytest.TempPathFactory) -> Played:
    """Return the run parked at its first gate."""
    project = sums_project(tmp_path_factory.mktemp("gates"))
    return play(project, SCRIPT, "--approve", "plan,split,commit", extra=FAST)


@pytest.fixture(scope="module")
def told_at_plan(at_plan: Played) -> dict[str, Any]:
    """Return what the reading commands say there, and what is said to everything that cannot be done; all stays."""
    run = at_plan.project.redfirst
    return {
        "show": run("show").stdout,
        "below": run("show", cwd=at_plan.project.root / "TODO").stdout,
        "runs": run("runs").stdout,
        "listed": at_plan.project.document("runs")["runs"][0],
        "approve": go_on(at_plan, "approve", "--gate", "split").document,
        "reject": go_on(at_plan, "reject", "--gate", "commit", "--feedback", "no").document,
        "resume": go_on(at_plan, "resume").document,
        "empty": go_on(at_plan, "reject", "--feedback", "  ").document,
        "too far": go_on(at_plan, "reject", "--feedback", "split it", "--to", "split").document,
        "again": at_plan.project.run(),
    }


@pytest.fixture(scope="module")
def replanned(at_plan: Played, told_at_plan: dict[str, Any]) -> Played:
    """Return the run at the plan gate for the second time: its plan was edited, and then rejected."""
    assert told_at_plan
    edit(at_plan, "plan.md", ("Raise ValueError", "Mind the callers. Raise ValueError"))
    return go_on(at_plan, "reject", "--feedback", "Keep it shorter.\nReally.")


@pytest.fixture(scope="module")
def broken_plan(replanned: Played) -> dict[str, Any]:
    """Return what is said to a plan with a section that none has."""
    return refused_with(replanned, "plan.md", "## Problem", "## Problme")


@pytest.fixture(scope="module")
def at_split(replanned: Played, broken_plan: dict[str, Any]) -> Played:
    """Return the run at the split gate with two tasks, after a person edited plan.md."""
    assert broken_plan
    edit(replanned, "plan.md", ("Double it", "Mind the sign. Double it"))
    return go_on(replanned, "approve")


@pytest.fixture(scope="module")
def shown_at_split(at_split: Played) -> str:
    """Return what show says after plan.md was edited there, and a task."""
    edit(at_split, "plan.md", ("Double it", "Treble it"))
    edit(at_split, "task-2.md", ("title: Mind zero", "title: Mind one"))
    return at_split.project.redfirst("show").stdout


@pytest.fixture(scope="module")
def resplit(at_split: Played, shown_at_split: str) -> Played:
    """Return the run at the split gate for the second time, with one task."""
    assert shown_at_split
    return go_on(at_split, "reject", "--feedback", "One task is enough.")


@pytest.fixture(scope="module")
def broken_tasks(resplit: Played) -> dict[str, dict[str, Any]]:
    """Return what redfirst says to task files that cannot be used; the last file is put back."""
    edits = {
        "section": ("## Acceptance Criteria", "## Criteria"),
        "no YAML": ("depends_on: []", "depends_on: ["),
        "paint": ("action: modify", "action: paint"),
        "'7'": ("id: '1'", "id: '7'"),
        "9": ("depends_on: []", "depends_on: ['9']"),
        "names no file": ("files:\n- path: greet.sum\n  action: modify\n", "files: []\n"),
    }
    found = {name: refused_with(resplit, "task-1.md", *change) for name, change in edits.items()}
    (resplit.folder / "task-1.md").unlink()
    return {**found, "gone": go_on(resplit, "approve").document}


@pytest.fixture(scope="module")
def at_commit(resplit: Played, broken_tasks: dict[str, dict[str, Any]]) -> Played:
    """Return the run at the commit gate, after a person edited the task: title, criterion, test file."""
    assert broken_tasks
    edit(
        resplit,
        "task-1.md",
        ("title: Reject empty names", "title: Refuse no name"),
        ("path: greet.check\n  action: modify", "path: extra.check\n  action: create"),
        ("- `greet.check`\n", "- `extra.check` (create)\n"),
        ('- [ ] C1: greet("") raises ValueError', '- [ ] `greet("")` raises ValueError at once'),
    )
    return go_on(resplit, "approve")


@pytest.fixture(scope="module")
def fixed(at_commit: Played) -> Played:
    """Return the run at the commit gate for the second time."""
    return go_on(at_commit, "reject", "--feedback", "Say which name.", "--to", "fix")


@pytest.fixture(scope="module")
def published(fixed: Played) -> Played:
    """Return the run at its end; its task was edited before, at approval point commit."""
    edit(fixed, "task-1.md", ("title: Refuse no name", "title: Do nothing"))
    return go_on(fixed, "approve")


def test_a_gate_parks_the_run_and_says_what_can_be_done_from_where_one_stands(
    at_plan: Played, told_at_plan: dict[str, Any]
) -> None:
    document, place = at_plan.document, "approval point plan (1 of 3)"
    assert (document["outcome"], document["reason"], document["_code"]) == ("parked", "approval", 4)
    assert "redfirst approve run-GAL-1" in document["safe_next_actions"]
    assert "[~]" in (at_plan.project.root / "TODO" / "README.md").read_text(encoding="utf-8")
    assert (document["gate"], document["at_gate"]["place"]) == ("plan", place)
    assert f"parked at {place}" in document["_stderr"]
    assert f"parked at {place}" in told_at_plan["show"]
    assert "at plan (1 of 3)" in told_at_plan["runs"], "its column has no room for more"
    assert (told_at_plan["listed"]["gate"], told_at_plan["listed"]["gate_place"]) == ("plan", place)
    assert document["at_gate"]["edit"] == [str(at_plan.folder / "plan.md")]
    assert re.search(r"may edit +\.workflow/run-GAL-1/plan\.md\n", told_at_plan["show"]), told_at_plan["show"]
    assert re.search(r"read +\.\./\.workflow/run-GAL-1/reviews/plan-1\.md\n", told_at_plan["below"])


def test_what_cannot_be_done_at_a_gate_is_refused_and_changes_nothing(told_at_plan: dict[str, Any]) -> None:
    for word, says in (
        ("approve", "waits at approval point plan (1 of 3), not at approval point split"),
        ("reject", "waits at approval point plan (1 of 3), not at approval point commit"),
        ("resume", "redfirst approve run-GAL-1"),
        ("empty", ""),
        ("too far", "not to 'split'"),
    ):
        assert told_at_plan[word]["_code"] == 2, word
        assert says in told_at_plan[word]["error"]["message"]
    assert "approval point plan (1 of 3)" in told_at_plan["resume"]["error"]["message"]
    again = told_at_plan["again"]
    assert (again["_code"], again["error"]["kind"]) == (75, "claimed_elsewhere")


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


def test_a_rejected_plan_is_drafted_again_with_the_feedback_and_revises_the_edited_one(replanned: Played) -> None:
    assert replanned.document["_code"] == 4, replanned.document
    again = replanned.asked("plan", 2)
    assert "Keep it shorter.\nReally." in again.text("feedback")
    assert "findings" not in again.artifacts
    rows = replanned.rows[replanned.rows.index("gate/REJECTED_TO_PLAN") :]
    assert rows[:3] == ["gate/REJECTED_TO_PLAN", "plan/DRAFTED", "review-plan/ACCEPTABLE"]
    assert "Mind the callers." in again.text("previous_plan")
    assert "Mind the callers." in replanned.artifact("plan-1-edited.md")
    assert "Mind the callers." not in replanned.artifact("plan-1.md") + replanned.artifact("plan.md")


def test_an_edited_plan_is_checked_as_a_draft_is_then_counts_and_is_journalled_with_its_hash(
    broken_plan: dict[str, Any], at_split: Played, resplit: Played
) -> None:
    error = broken_plan["error"]
    assert broken_plan["_code"] == 2, error
    line = resplit.artifact("plan.md").splitlines().index("## Problem") + 1
    assert f"plan.md, line {line}: 'Problme' is no section of a plan; did you mean 'Problem'?" in error["message"]
    assert error["path"] == str(at_split.folder / "plan.md")
    assert error["details"]["problems"][0]["line"] == line
    assert "Mind the sign." in at_split.asked("split").text("plan")
    digest = hashlib.sha256((resplit.folder / "plan.md").read_bytes()).hexdigest()
    said = {"gate": "plan", "answer": "approved", "artifacts": {"plan.md": digest}, "actor": "Ada", "via": "cli"}
    said |= {"edited": {"plan.md": "plan-2.md"}}
    assert answered(at_split)[1] == said


def test_an_edit_after_its_gate_has_no_effect_and_that_is_said(shown_at_split: str, resplit: Played) -> None:
    assert "plan.md" in shown_at_split
    assert "no effect" in shown_at_split
    assert "--to plan" in shown_at_split
    assert "no effect" in resplit.document["_stderr"]
    assert "Treble it" in resplit.artifact("edited/plan-1.md")
    assert "Treble it" not in resplit.artifact("plan.md")
    assert "Treble it" not in resplit.asked("split", 2).text("plan")


def test_a_rejected_split_is_drafted_again_from_the_edited_tasks_which_do_not_lie_beside_live_ones(
    resplit: Played,
) -> None:
    again = resplit.asked("split", 2)
    assert "One task is enough." in again.text("feedback")
    assert resplit.tasks() == {"1": "waiting"}, "under the same id"
    assert "title: Mind one" in again.text("previous_tasks")
    assert sorted(path.name for path in resplit.folder.glob("task-?.md")) == ["task-1.md"]
    assert "title: Mind zero" in resplit.artifact("dropped/task-2-1.md")
    assert "title: Mind one" in resplit.artifact("dropped/task-2-1-edited.md")
    decided = resplit.project.redfirst("explain", resplit.name, "-v").stdout
    assert re.search(r"task-2\.md +\(gone, as it was: dropped/task-2-1\.md\)", decided), decided


def test_an_edited_task_is_checked_as_a_draft_is(broken_tasks: dict[str, dict[str, Any]], resplit: Played) -> None:
    told = {name: str(document["error"]["message"]) for name, document in broken_tasks.items()}
    assert {document["_code"] for document in broken_tasks.values()} == {2}
    assert "task-1.md was removed, which drops nothing: it is put back" in told.pop("gone")
    line = resplit.artifact("task-1.md").splitlines().index("## Acceptance Criteria") + 1
    assert f"task-1.md, line {line}: 'Criteria' is no section of a task" in told.pop("section")
    assert re.search(r"task-1\.md .*line \d+: this is not YAML", told.pop("no YAML"), re.IGNORECASE)
    assert [(word, text) for word, text in told.items() if word not in text or resplit.name not in text] == []


def test_an_edited_task_counts(at_commit: Played) -> None:
    assert at_commit.document.get("reason") == "approval", at_commit.document["_stderr"]
    asked = at_commit.asked("write-tests").document
    assert asked["write"] == [{"path": "extra.check", "action": "create"}]
    assert "raises ValueError at once" in at_commit.asked("write-tests").text("task")
    digest = hashlib.sha256((at_commit.folder / "task-1.md").read_bytes()).hexdigest()
    assert answered(at_commit)[3]["artifacts"]["task-1.md"] == digest
    assert at_commit.project.git("rev-parse", "main") == at_commit.document["start_commit"]


def test_a_rejected_result_becomes_fix_tasks_from_the_feedback(fixed: Played) -> None:
    assert "Say which name." in fixed.asked("split", 3).text("feedback")
    assert fixed.tasks() == {"1": "done", "fix-1": "done"}
    assert fixed.document["_code"] == 4
    assert fixed.assert_artifact_rule() > 3


def test_the_last_gate_says_what_would_be_committed_and_that_is_published_as_the_edited_task_says(
    at_commit: Played, fixed: Played, published: Played
) -> None:
    gate = fixed.document["at_gate"]
    assert at_commit.document["at_gate"]["place"] == gate["place"] == "approval point commit (3 of 3)"
    assert str(fixed.folder / "summary.md") in gate["read"]
    assert list(gate["commits"]) == published.subjects()
    assert (published.document.get("outcome"), published.document["_code"]) == ("completed", 0), published.document
    assert published.subjects() == ["fix: refuse no name", "fix: say which name", "chore(todo): close GAL-1"]
    body = published.project.git("show", "--no-patch", "--format=%b", "work~2")
    assert '`greet("")` raises ValueError at once' in body
    assert published.project.git("status", "--porcelain") == ""
    assert published.project.git("for-each-ref", "refs/redfirst/claims") == ""
    assert published.project.git("show", "work:greet.check") == CHECK.strip()
    assert "task-1.md" in published.document["_stderr"], "an edit after its gate"
    assert "Do nothing" in published.artifact("edited/task-1-1.md")
    checked = published.project.redfirst("verify", published.name)
    assert checked.returncode == 2, checked.stdout + checked.stderr
    assert "fix: refuse no name: verified\n" in checked.stdout
    assert "fix: say which name: not testable\n" in checked.stdout, "its task claims no test"


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
    project = sums_project(tmp_path)
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


# --- abandon, --worktree ----------------------------------------------------------------------------------------------


@pytest.mark.broad
def test_an_abandoned_run_leaves_nothing_but_its_work_and_the_next_gets_a_number(tmp_path: Path) -> None:
    project = sums_project(tmp_path)
    start = project.git("rev-parse", "HEAD")
    parked = play(project, SUMS_HONEST, "--approve", "commit", extra=FAST)
    assert parked.document["reason"] == "approval"
    abandoned = go_on(parked, "abandon").document
    assert (abandoned["_code"], abandoned["ok"]) == (0, True)
    assert (abandoned["outcome"], abandoned["reason"]) == ("cancelled", "abandoned")
    assert project.untouched_since(start)
    assert project.git("for-each-ref", "refs/redfirst/claims", "refs/redfirst/publish") == ""
    assert f"+{SUM_DONE}" in parked.artifact("work.patch")
    (ref,) = project.git("for-each-ref", "--format=%(refname)", "refs/redfirst/runs").splitlines()
    assert project.git("show", f"{ref}:head/greet.sum") == SUM_DONE.strip()
    for words in (["resume"], ["approve"], ["abandon"]):
        assert go_on(parked, *words).document["_code"] == 2
    second = play(project, SUMS_HONEST, "--approve", "plan", extra=FAST, name="run-GAL-1@2")
    assert second.document["run_id"] == "run-GAL-1@2"
    exact = project.document("abandon", "run-GAL-1@2")
    assert exact["outcome"] == "cancelled"


def test_a_gate_that_was_forgotten_is_asked_for_as_the_run_goes_on(tmp_path: Path) -> None:
    project = sums_project(tmp_path)
    at_plan = play(project, SUMS_HONEST, "--approve", "plan", extra=FAST)
    assert go_on(at_plan, "approve", "--no-drive").document["queued"]
    wrong = go_on(at_plan, "resume", "--approve", "make").document
    assert "--approve takes plan, split, commit" in wrong["error"]["message"]
    at_commit = go_on(at_plan, "resume", "--approve", "plan,commit").document
    assert (at_commit["_code"], at_commit["at_gate"]["place"]) == (4, "approval point commit (2 of 2)"), at_commit
    assert "it waits for you at approval point commit" in at_commit["_stderr"]
    assert "it waits for a person at commit, too, from here on" in project.redfirst("explain", "-v").stdout
    assert go_on(at_plan, "approve").document["outcome"] == "completed"


@pytest.mark.broad
def test_a_run_is_given_up_from_a_branch_that_has_no_such_issue(tmp_path: Path) -> None:
    project = sums_project(tmp_path)
    project.git("switch", "--quiet", "main")
    project.git("rm", "--quiet", "-r", "TODO")
    project.commit("no issue here")
    project.git("switch", "--quiet", "work")
    assert play(project, SUMS_HONEST, "--approve", "plan", extra=FAST).document["reason"] == "approval"
    project.git("stash")
    project.git("switch", "--quiet", "main")
    document = project.document("abandon", "run-GAL-1")
    assert (document["_code"], document.get("outcome")) == (0, "cancelled"), document
    assert project.git("for-each-ref", "refs/redfirst/claims") == ""


@pytest.mark.broad
def test_worktree_makes_a_branch_beside_the_checkout_and_lands_there(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    project.git("switch", "--quiet", "main")
    start = project.git("rev-parse", "main")
    project.use_script(HONEST)
    document = project.run("--worktree")
    assert document.get("outcome") == "completed", document
    folder = project.root.parent / "project-gal-1"
    assert document["branch"] == "gal-1-reject-empty-names"
    assert document["run_dir"] == str(folder / ".workflow" / "run-GAL-1")
    assert project.untouched_since(start)
    assert not (project.root / ".workflow").exists()
    assert project.git("branch", "--show-current") == "main"
    assert project.git("branch", "--show-current", cwd=folder) == "gal-1-reject-empty-names"
    assert project.git("status", "--porcelain", cwd=folder) == ""
    assert "raise ValueError" in (folder / "greet.py").read_text(encoding="utf-8")
    subjects = project.git("log", "--reverse", "--format=%s", "main..HEAD", cwd=folder).splitlines()
    assert subjects == ["fix: reject empty names", "chore(todo): close GAL-1"]
    again = project.run("--worktree")
    assert again["_code"] == 2
    assert "GAL-1 is done already: run-GAL-1" in again["error"]["message"]
    advised = "redfirst run GAL-1 --worktree --previous run-GAL-1"
    assert again["error"]["message"].endswith(advised)
    assert project.redfirst(*advised.split()[1:], "--dry-run").returncode == 0
