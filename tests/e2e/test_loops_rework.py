"""Back to the split, to the plan, to the user; what a reached limit leads to, and what FAILURE leaves (matrix 2, 4)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from e2e.lanes import (
    Played,
    diagnoses,
    go_on,
    makes,
    module,
    module_task,
    modules_project,
    plan_for,
    play,
    rules,
    split_into,
    stops,
    until_tests,
    writes,
)
from e2e.shapes import FAST
from kit import AFTER_MAKE, HONEST, PLAN, PLAN_ACCEPTED, SPLIT_ACCEPTED, make_project

if TYPE_CHECKING:
    from pathlib import Path

    from kit import Entry


pytestmark = pytest.mark.slow


REWORK: list[Entry] = [
    plan_for("m1.py", "m2.py", "m3.py"),
    PLAN_ACCEPTED,
    split_into(module_task(1), module_task(2, title="Too much")),
    SPLIT_ACCEPTED,
    writes(1),
    makes(1),
    writes(2),
    {**makes(2, 9), "report": {"result": "INCOMPLETE", "blocking_issue": "two things", "escalate": "split_needed"}},
    diagnoses(2, "split_needed", "value_2 and value_3 are two tasks"),
    split_into(module_task(2), module_task(3)),
    SPLIT_ACCEPTED,
    writes(2, task="3"),
    makes(2, task="3"),
    writes(3, task="4"),
    makes(3, 8, task="4"),
    diagnoses(4, "plan", "m3 is not the place"),
    plan_for("m1.py"),
    PLAN_ACCEPTED,
    split_into(module_task(1)),
    SPLIT_ACCEPTED,
    writes(1, task="5"),
    {**makes(1, 7, task="5"), "report": {"result": "INCOMPLETE", "blocking_issue": "the clock is wrong"}},
    diagnoses(5, "environment", "set the clock"),
]


@pytest.fixture(scope="module")
def parked(tmp_path_factory: pytest.TempPathFactory) -> Played:
    """Return a run that was split again, planned again, and is parked on its environment."""
    return play(modules_project(tmp_path_factory.mktemp("rework"), range(1, 4)), REWORK, extra=FAST)


@pytest.fixture(scope="module")
def resumed(parked: Played) -> Played:
    """Return the same run after the user mended the environment, at the second try."""
    again = diagnoses(5, "environment", "a built file is missing")
    more = [diagnoses(5, "production_logic", "the clock is right now"), makes(1, task="5"), *AFTER_MAKE]
    parked.project.script([*REWORK, again, *more])
    (parked.project.root / ".git/info/exclude").write_text("built.txt\n.worktreeinclude\n")
    parked.project.write({"built.txt": "built\n", ".worktreeinclude": "built.*\n"})
    assert go_on(parked, "resume").document["reason"] == "environment"
    assert [*(parked.project.home / "state").rglob("include/built.txt")], "what was built meanwhile is brought"
    return go_on(parked, "resume")


@pytest.mark.broad
def test_an_environment_at_fault_parks_the_run(parked: Played) -> None:
    assert (parked.document.get("outcome"), parked.document.get("reason")) == ("parked", "environment"), parked.document
    assert parked.document["_code"] == 4
    assert "set the clock" in parked.document["note"]


@pytest.mark.broad
def test_a_new_split_keeps_the_done_tasks(parked: Played) -> None:
    again = parked.asked("split", 2)
    assert "value_2 and value_3 are two tasks" in again.text("findings")
    assert "id: '1'" in again.text("done_tasks").replace('"', "'")
    base = again.result["base_tree"]
    assert "return 1" in parked.project.git("show", f"{base}:m1.py"), "what is done stays"
    assert "return 0" in parked.project.git("show", f"{base}:m2.py"), "the failing task gives its start back"
    assert parked.counters("diagnose/SPLIT_NEEDED") == {"split_rework@plan 1": 1}
    assert parked.rows_of("3") == ["write-tests/RED", "implement/GREEN"]
    assert "return 1" in parked.project.git("show", f"{parked.asked('implement', task='3').result['base_tree']}:m1.py")


@pytest.mark.broad
def test_a_new_plan_starts_over_and_gets_the_earlier_work_as_a_patch(parked: Played) -> None:
    again = parked.asked("plan", 2)
    assert "m3 is not the place" in again.text("findings")
    patch = again.text("previous_patch")
    assert all(line in patch for line in ("+    return 1", "+    return 2", "+    return 8"))
    assert again.result["base_tree"] == json.loads(parked.artifact("run.json"))["start_tree"]
    assert parked.counters("diagnose/PLAN") == {"plan_rework@run": 1}
    red = parked.asked("write-tests", task="5").result["base_tree"]
    assert red == json.loads(parked.artifact("run.json"))["start_tree"]


@pytest.mark.broad
def test_a_resumed_run_asks_again_who_blamed_the_environment(resumed: Played) -> None:
    assert resumed.document.get("outcome") == "completed", resumed.document["_stderr"]
    assert resumed.rows_of("5") == [
        "write-tests/RED",
        "implement/INCOMPLETE",
        "diagnose/ENVIRONMENT",
        "diagnose/ENVIRONMENT",
        "diagnose/PRODUCTION_LOGIC",
        "implement/GREEN",
    ]
    told = ["parked the run here" in one.document["prompt"] for one in resumed.dispatches("diagnose", task="5")]
    assert told == [False, True, True]
    assert resumed.subjects() == ["feat: let value 1 be right", "chore(todo): close GAL-1"]
    assert resumed.tasks() == {"5": "done"}


@pytest.mark.broad
def test_prose_that_calls_a_task_by_a_number_that_is_gone_is_sent_back(tmp_path: Path) -> None:
    def about(number: int) -> Entry:
        return split_into(module_task(2), module_task(3, description=f"Task {number} reads it, and task 1 is done."))

    at = REWORK.index(split_into(module_task(2), module_task(3)))
    project = modules_project(tmp_path, range(1, 4))
    project.use_script([*REWORK[:at], about(2), about(3)], FAST)  # nobody is there to review the last one
    played = Played(project, project.run(), "run-GAL-1")
    again = played.asked("split", 3)
    assert "speaks of task 2, which is none any more; those of this list are 3, 4, done are 1" in again.text("findings")
    assert "Your tasks get the ids 3, 4, 5" in again.document["prompt"]
    assert "In words call them" in again.document["prompt"]
    assert "Task 3 reads it" in played.artifact("task-4.md")


# --- what a reached limit leads to ------------------------------------------------------------------------------------

NONE_LEFT = """
[limits]
scope_amend = 0
split_rework = 0
seam = 0
test_rewrite = 0
test_design = 0
make_retry = 0
cosmetic = 0
plan_rework = 3
"""


def planned_again(task: dict[str, Any]) -> list[Entry]:
    return [plan_for("m1.py"), PLAN_ACCEPTED, split_into(task), SPLIT_ACCEPTED]


EMPTY: list[Entry] = [
    # a granted file, no amendment left, no split left
    *planned_again(module_task(1)),
    writes(1),
    stops(1, blocking_issue="m30", needs=[{"path": "m30.py", "action": "modify"}]),
    rules(1, "amend", accepted=True),
    # a seam, none left; no tests, refused; no rewrite left; one diagnosis; no redesign left
    *planned_again(module_task(1)),
    {
        "when": {"kind": "write-tests", "task": "2"},
        "report": {"verdict": "NOT_TESTABLE", "reason": "missing-seam", "seam_files": ["m1.py"]},
    },
    rules(2, "not_testable", accepted=False),
    diagnoses(2, "test_design"),
    # not GREEN, no second attempt left, no redesign left
    *planned_again(module_task(1)),
    writes(1, task="3"),
    makes(1, 5, task="3"),
    diagnoses(3, "production_logic"),
    # done, and nothing left for a comment
    *planned_again(module_task(1)),
    writes(1, task="4"),
    {**makes(1, task="4"), "files": {"m1.py": "# won\n" + module(1, 1)}},
    {
        "when": {"kind": "review-result"},
        "report": {
            "verdict": "NEEDS WORK",
            "findings": [
                {
                    "severity": "MEDIUM",
                    "title": "A typo",
                    "concern": "cosmetic",
                    "edit": {"path": "m1.py", "old": "won", "new": "one"},
                }
            ],
        },
    },
]


@pytest.mark.broad
def test_a_reached_limit_leads_where_the_bounds_say(tmp_path: Path) -> None:
    project = modules_project(tmp_path, range(1, 2), more={"m30.py": ""})
    played = play(project, EMPTY, extra=FAST + NONE_LEFT)
    assert played.document.get("outcome") == "completed_with_blockers", played.document["_stderr"]
    assert played.exhausted() == [
        ("diagnose/AMENDED", "scope_amend"),
        ("diagnose/AMENDED", "split_rework"),
        ("write-tests/MISSING_SEAM", "seam"),
        ("check-tests/NEEDS_WORK", "test_rewrite"),
        ("diagnose/TEST_DESIGN", "test_design"),
        ("diagnose/PRODUCTION_LOGIC", "make_retry"),
        ("diagnose/PRODUCTION_LOGIC", "test_design"),
        ("final-review/COSMETIC", "cosmetic"),
    ]
    assert played.counters("diagnose/PRODUCTION_LOGIC") == {"plan_rework@run": 3}
    assert played.document["blockers"] == ["final-1-01"], "it is left open, and on record"
    assert project.git("show", "work:m1.py").startswith("# won"), "advice is not applied"
    assert played.tasks() == {"4": "done"}


@pytest.mark.broad
def test_each_dispatch_is_given_what_its_prompt_names_and_nothing_else(resumed: Played) -> None:
    assert resumed.assert_artifact_rule() > 3


# --- FAILURE and the limits: what a run leaves when it cannot go on (contract 2) --------------------------------------


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
    assert "1 of 2 dispatches are used up, and review-plan asks 2" in document["note"]
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
