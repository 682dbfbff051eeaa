"""What a person does with a run: approve, reject, edit in between, resume, abandon, --worktree (contract 1, 2)."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import pytest
from e2e.lanes import Played, go_on, play
from e2e.shapes import CHECK, FAST, SUM_DONE, SUMS_HONEST, sums_project
from kit import HONEST, make_project

if TYPE_CHECKING:
    from pathlib import Path

    from kit import Entry, Project

pytestmark = pytest.mark.slow

PLAN, PLAN_ACCEPTED, _, SPLIT, SPLIT_ACCEPTED, _, MAKE, ACCEPTED, _ = SUMS_HONEST
TESTS_ELSEWHERE: Entry = {
    "when": {"kind": "write-tests"},
    "files": {"extra.check": "still: greet 0 = 0\ntwo: greet 2 = 4\n"},
    "report": {"verdict": "TESTS_READY", "tests": [{"id": "extra.check::still", "expected": "GUARD"}]},
}
FIX_TASK = {
    **SPLIT["report"]["tasks"][0],
    "title": "Say which name",
    "test_files": [{"path": "extra.check", "action": "modify"}],
    "evidence": "regression",
}

SCRIPT: list[Entry] = [
    PLAN,
    PLAN_ACCEPTED,
    PLAN,
    PLAN_ACCEPTED,
    SPLIT,
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


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    return sums_project(tmp_path_factory.mktemp("gates"))


# One run, in the order of these fixtures: each stage goes on where the one before it stopped.


@pytest.fixture(scope="module")
def at_plan(project: Project) -> Played:
    """Return the run parked at its first gate."""
    return play(project, SCRIPT, "--approve", "plan,split,commit", extra=FAST)


@pytest.fixture(scope="module")
def refusals_at_plan(at_plan: Played) -> dict[str, Played]:
    """Return what redfirst says to everything that cannot be done at this gate."""
    return {
        "resume": go_on(at_plan, "resume"),
        "empty": go_on(at_plan, "reject", "--feedback", "  "),
        "too far": go_on(at_plan, "reject", "--feedback", "split it", "--to", "split"),
        "again": Played(at_plan.project, at_plan.project.run()),
    }


@pytest.fixture(scope="module")
def replanned(at_plan: Played, refusals_at_plan: dict[str, Played]) -> Played:
    """Return the run at the plan gate for the second time."""
    assert refusals_at_plan
    return go_on(at_plan, "reject", "--feedback", "Keep it shorter.\nReally.")


@pytest.fixture(scope="module")
def at_split(replanned: Played) -> Played:
    """Return the run at the split gate, after a person edited plan.md."""
    plan = replanned.folder / "plan.md"
    plan.write_text(plan.read_text(encoding="utf-8").replace("Raise ", "Mind the callers. Raise "), encoding="utf-8")
    return go_on(replanned, "approve")


@pytest.fixture(scope="module")
def broken_tasks(at_split: Played) -> dict[str, Played]:
    """Return what redfirst says to task files that cannot be used; the last file is put back."""
    file = at_split.folder / "task-1.md"
    good = file.read_text(encoding="utf-8")
    found: dict[str, Played] = {}
    for name, old, new in (
        ("an action that is none", "action: modify", "action: paint"),
        ("another id", "id: '1'", "id: '7'"),
        ("an unknown task", "depends_on: []", "depends_on: ['9']"),
        ("no file at all", "files:\n- path: greet.sum\n  action: modify\n", "files: []\n"),
    ):
        assert old in good
        file.write_text(good.replace(old, new, 1), encoding="utf-8")
        found[name] = go_on(at_split, "approve")
    file.write_text(good, encoding="utf-8")
    return found


@pytest.fixture(scope="module")
def resplit(at_split: Played, broken_tasks: dict[str, Played]) -> Played:
    """Return the run at the split gate for the second time."""
    assert broken_tasks
    return go_on(at_split, "reject", "--feedback", "Name the test file.")


@pytest.fixture(scope="module")
def at_commit(resplit: Played) -> Played:
    """Return the run at the commit gate, after a person edited the task: title, criterion, test file."""
    file = resplit.folder / "task-1.md"
    text = file.read_text(encoding="utf-8")
    for old, new in (
        ("title: Reject empty names", "title: Refuse no name"),
        ("path: greet.check\n  action: modify", "path: extra.check\n  action: create"),
        ("- `greet.check`\n", "- `extra.check` (create)\n"),
        ('- [ ] C1: greet("") raises ValueError', '- [ ] `greet("")` raises ValueError at once'),
    ):
        assert old in text
        text = text.replace(old, new)
    file.write_text(text, encoding="utf-8")
    return go_on(resplit, "approve")


@pytest.fixture(scope="module")
def fixed(at_commit: Played) -> Played:
    """Return the run at the commit gate for the second time."""
    return go_on(at_commit, "reject", "--feedback", "Say which name.", "--to", "fix")


@pytest.fixture(scope="module")
def published(fixed: Played) -> Played:
    return go_on(fixed, "approve")


def test_a_gate_parks_the_run_and_says_what_can_be_done(at_plan: Played) -> None:
    document = at_plan.document
    assert (document.get("outcome"), document.get("reason")) == ("parked", "approval"), document["_stderr"]
    assert document["_code"] == 4
    assert "redfirst approve run-GAL-1" in document["safe_next_actions"]
    assert "[~]" in (at_plan.project.root / "TODO" / "README.md").read_text(encoding="utf-8")


@pytest.mark.broad
def test_what_cannot_be_done_at_a_gate_is_refused_and_changes_nothing(
    at_plan: Played, refusals_at_plan: dict[str, Played]
) -> None:
    del at_plan
    resume, empty, too_far, again = (
        refusals_at_plan[name].document for name in ("resume", "empty", "too far", "again")
    )
    assert "redfirst approve run-GAL-1" in resume["error"]["message"]
    assert (empty["_code"], too_far["_code"]) == (2, 2)
    assert "not to 'split'" in too_far["error"]["message"]
    assert (again["_code"], again["error"]["kind"]) == (75, "claimed_elsewhere")


def test_a_rejected_plan_is_drafted_again_with_the_feedback(replanned: Played) -> None:
    assert replanned.document["_code"] == 4, replanned.document
    again = replanned.asked("plan", 2)
    assert "Keep it shorter.\nReally." in again.text("feedback")
    assert "findings" not in again.artifacts
    assert replanned.rows[-3:] == ["gate/REJECTED_TO_PLAN", "plan/DRAFTED", "review-plan/ACCEPTABLE"]


def test_an_edited_plan_counts_and_is_journalled_with_its_hash(at_split: Played) -> None:
    assert "Mind the callers." in at_split.asked("split").text("plan")
    digest = hashlib.sha256((at_split.folder / "plan.md").read_bytes()).hexdigest()
    said = {"gate": "plan", "answer": "approved", "artifacts": {"plan.md": digest}, "actor": "Ada", "via": "cli"}
    said |= {"edited": {"plan.md": "plan-2.md"}}
    assert answered(at_split)[1] == said


@pytest.mark.broad
@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("an action that is none", "paint"),
        ("another id", "7"),
        ("an unknown task", "9"),
        ("no file at all", "names no file"),
    ],
)
def test_a_broken_task_file_is_refused_and_the_run_stays_parked(
    at_split: Played, broken_tasks: dict[str, Played], name: str, said: str
) -> None:
    document = broken_tasks[name].document
    assert document["_code"] == 2, document
    assert said in document["error"]["message"]
    assert at_split.name in document["error"]["message"]


@pytest.mark.broad
def test_a_rejected_split_is_drafted_again_under_the_same_ids(resplit: Played) -> None:
    assert "Name the test file." in resplit.asked("split", 2).text("feedback")
    assert resplit.tasks() == {"1": "waiting"}


@pytest.mark.broad
def test_an_edited_task_counts(at_commit: Played) -> None:
    assert at_commit.document.get("reason") == "approval", at_commit.document["_stderr"]
    asked = at_commit.asked("write-tests").document
    assert asked["write"] == [{"path": "extra.check", "action": "create"}]
    assert "raises ValueError at once" in at_commit.asked("write-tests").text("task")
    digest = hashlib.sha256((at_commit.folder / "task-1.md").read_bytes()).hexdigest()
    assert answered(at_commit)[-1]["artifacts"]["task-1.md"] == digest
    assert at_commit.project.git("rev-parse", "work") == at_commit.document["start_commit"]


@pytest.mark.broad
def test_a_rejected_result_becomes_fix_tasks_from_the_feedback(fixed: Played) -> None:
    assert "Say which name." in fixed.asked("split", 3).text("feedback")
    assert fixed.tasks() == {"1": "done", "fix-1": "done"}
    assert fixed.rows[-1] == "final-review/ACCEPTABLE"
    assert fixed.document["_code"] == 4


@pytest.mark.broad
def test_an_approved_result_is_published_as_the_edited_task_says(published: Played) -> None:
    assert (published.document.get("outcome"), published.document["_code"]) == ("completed", 0), published.document
    assert published.subjects() == ["fix: refuse no name", "fix: say which name", "chore(todo): close GAL-1"]
    body = published.project.git("show", "--no-patch", "--format=%b", "work~2")
    assert '`greet("")` raises ValueError at once' in body
    assert published.project.git("status", "--porcelain") == ""
    assert published.project.git("for-each-ref", "refs/redfirst/claims") == ""
    assert published.project.git("show", "work:greet.check") == CHECK.strip()


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


@pytest.mark.broad
def test_each_dispatch_is_given_what_its_prompt_names_and_nothing_else(fixed: Played) -> None:
    assert fixed.assert_artifact_rule() > 3
