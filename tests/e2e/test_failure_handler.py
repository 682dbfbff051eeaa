"""FAILURE and the limits: what a run leaves when it cannot go on (matrix 2; contract 2)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from e2e.lanes import Played, diagnoses, go_on, makes, module_task, modules_project, play, until_tests, writes
from kit import HONEST, PLAN, PLAN_ACCEPTED, make_project

if TYPE_CHECKING:
    from pathlib import Path

    from kit import Entry

pytestmark = pytest.mark.slow

FAST = '[agents.simplify]\nbackend = "off"\n'


def untidy(draft: int) -> Entry:
    """A plan that asks what it should say; no two of a run are the same bytes."""
    return {
        **PLAN,
        "report": {
            **PLAN["report"],
            "approach": f"Draft {draft}. Should greet raise?",
            "out_of_scope": [{"title": "Greetings have no tests for umlauts", "description": "Seen while planning."}],
        },
    }


UNTIDY = [untidy(draft) for draft in (1, 2, 3)]
SEEN: dict[str, Any] = {"out_of_scope": [{"title": "The value 0 is odd"}]}
STUCK: list[Entry] = [*until_tests(module_task(1)), writes(1), makes(1, 5, **SEEN), diagnoses(1, "plan", "wrong file")]


@pytest.mark.broad
def test_a_draft_that_stays_untidy_fails_the_run_and_gives_the_issue_back(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    start = project.git("rev-parse", "HEAD")
    played = play(project, UNTIDY, extra=FAST)
    document = played.document
    assert (document.get("outcome"), document.get("reason")) == ("failed", "loops_exhausted"), document["_stderr"]
    assert document["_code"] == 7
    assert played.rows[2:] == ["plan/HYGIENE", "plan/HYGIENE", "plan/HYGIENE", "failure/HANDLED"]
    assert played.exhausted() == [("plan/HYGIENE", "hygiene")]
    assert played.subjects() == ["chore(todo): GAL-1 back to Todo"], "one commit for everything"
    issue = project.git("show", "work:TODO/GAL-1.md")
    assert "status: Todo" in issue
    assert "- 2026-01-02 - run-GAL-1 failed (loops_exhausted); branch `work`" in issue
    assert "- [ ] [GAL-1](GAL-1.md)" in project.git("show", "work:TODO/README.md")
    assert document["follow_ups"] == ["GAL-1.1"]
    child = project.git("show", "work:TODO/GAL-1.1.md")
    assert "title: Greetings have no tests for umlauts" in child
    assert "labels: [bug]" in child
    assert project.git("status", "--porcelain") == ""
    assert project.git("diff", "--name-only", start, "work", "--", ".", ":!TODO") == ""
    assert project.git("for-each-ref", "refs/redfirst/claims", "refs/redfirst/publish") == ""
    assert "What Failed" in played.artifact("summary.md")
    assert not (played.folder / "work.patch").exists()
    assert go_on(played, "resume").document["_code"] == 2, "a failed run has ended"


@pytest.fixture(scope="module")
def stuck(tmp_path_factory: pytest.TempPathFactory) -> Played:
    """Return a failed run: the plan was blamed and could not be made again."""
    project = modules_project(tmp_path_factory.mktemp("stuck"), range(1, 2))
    return play(project, STUCK, extra=FAST + "[limits]\nplan_rework = 0\n")


@pytest.fixture(scope="module")
def stuck_with_wip(stuck: Played) -> Played:
    """Return the next run of the issue, which fails alike and leaves its work on the branch."""
    extra = FAST + '[limits]\nplan_rework = 0\n[failure]\nkeep = "wip"\n'
    return play(stuck.project, STUCK, extra=extra, name="run-GAL-1@2")


def test_a_task_that_reaches_the_last_limit_means_that_evidence_was_not_reached(stuck: Played) -> None:
    document = stuck.document
    assert (document.get("outcome"), document.get("reason")) == ("failed", "evidence_not_reached"), document["_stderr"]
    assert document["_code"] == 7
    assert stuck.exhausted() == [("diagnose/PLAN", "plan_rework")]
    assert "redfirst run GAL-1" in document["safe_next_actions"]


def test_the_work_of_a_failed_run_is_kept_on_its_ref_with_a_patch(stuck: Played) -> None:
    project = stuck.project
    assert "+    return 5" in stuck.artifact("work.patch")
    assert len(stuck.document["commits"]) == 1
    (commit,) = stuck.document["commits"]
    assert project.git("show", "--name-only", "--format=", commit).splitlines() == ["TODO/GAL-1.1.md", "TODO/GAL-1.md"]
    assert "title: The value 0 is odd" in project.git("show", f"{commit}:TODO/GAL-1.1.md")
    (ref,) = (r for r in project.git("for-each-ref", "--format=%(refname)").splitlines() if r.endswith("run-GAL-1"))
    assert project.git("show", f"{ref}:task-1-candidate/m1.py").endswith("return 5")


@pytest.mark.broad
def test_keep_wip_puts_the_work_on_the_branch_before_the_tracker(stuck_with_wip: Played) -> None:
    assert stuck_with_wip.document.get("reason") == "evidence_not_reached", stuck_with_wip.document["_stderr"]
    assert stuck_with_wip.subjects() == [
        "wip: incomplete workflow run for GAL-1",
        "chore(todo): GAL-1 back to Todo",
    ]
    assert stuck_with_wip.project.git("show", "work~1:m1.py").endswith("return 5")
    assert "Run-Id: run-GAL-1@2" in stuck_with_wip.project.git("show", "--no-patch", "--format=%B", "work~1")
    assert stuck_with_wip.document["follow_ups"] == [], "it is open already"
    assert stuck_with_wip.project.git("status", "--porcelain") == ""


@pytest.mark.broad
def test_a_failure_that_cannot_be_published_says_what_is_left(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    parked = play(project, [PLAN, PLAN_ACCEPTED, *UNTIDY], "--approve", "plan", extra=FAST)
    project.git("commit", "--quiet", "--amend", "--message", "mine", "--only")
    mine = project.git("rev-parse", "HEAD")
    document = go_on(parked, "reject", "--feedback", "decide").document
    assert (document.get("outcome"), document.get("reason")) == ("failed", "cleanup_needed"), document
    assert document["_code"] == 7
    assert "no longer holds" in document["note"]
    assert project.untouched_since(mine)
    assert project.git("for-each-ref", "refs/redfirst/claims") == ""


@pytest.mark.broad
def test_a_failure_is_put_on_top_of_what_the_user_has_committed_meanwhile(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    parked = play(project, [PLAN, PLAN_ACCEPTED, *UNTIDY], "--approve", "plan", extra=FAST)
    project.git("commit", "--quiet", "--all", "--message", "mine, with In Progress")
    document = go_on(parked, "reject", "--feedback", "decide").document
    assert (document.get("outcome"), document.get("reason")) == ("failed", "loops_exhausted"), document
    assert parked.subjects() == ["mine, with In Progress", "chore(todo): GAL-1 back to Todo"]
    assert "status: Todo" in project.git("show", "work:TODO/GAL-1.md")
    assert project.git("status", "--porcelain") == ""


@pytest.mark.broad
def test_a_run_out_of_dispatches_is_parked_and_goes_on_with_a_higher_limit(tmp_path: Path) -> None:
    parked = play(make_project(tmp_path), HONEST, "--approve", "plan", "--set", "limits.dispatches=2")
    document = parked.document
    assert (document.get("outcome"), document.get("reason"), document["_code"]) == ("parked", "budget", 5), document
    assert document["usage"]["dispatches"] == 1, "two reviewers are asked side by side, and there is one dispatch left"
    assert "1 of 2 dispatches are used up" in document["note"]
    same = go_on(parked, "resume", "--set", "limits.dispatches=2")
    assert (same.document["reason"], same.document["usage"]["dispatches"]) == ("budget", 1)
    assert "began with other" not in same.document["_stderr"]
    record = parked.project.run_folder() / "run.json"
    info = json.loads(record.read_text(encoding="utf-8"))
    record.write_text(json.dumps({**info, "prompts_hash": "0" * 64}), encoding="utf-8")
    more = go_on(parked, "resume", "--set", "limits.dispatches=9")
    assert (more.document["reason"], more.document["usage"]["dispatches"]) == ("approval", 3), more.document
    assert "the run began with other prompts" in more.document["_stderr"]
    (changed,) = (line["data"] for line in parked.project.journal() if line["kind"] == "config_changed")
    assert changed["limits"]["dispatches"] == 9
