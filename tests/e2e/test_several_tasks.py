"""Several tasks in one run: order, trees, one commit each, and what one role hands on to the next (matrix 1 and 4)."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from e2e.lanes import (
    Played,
    diagnoses,
    finding,
    makes,
    module,
    module_task,
    module_test,
    modules_project,
    plan_for,
    play,
    review,
    rules,
    split_into,
    until_tests,
    writes,
)
from e2e.shapes import FAST
from kit import AFTER_MAKE, MAKE, PLAN, PLAN_ACCEPTED, TASK, TESTS, Project, make_project

if TYPE_CHECKING:
    from pathlib import Path

    from kit import Entry

pytestmark = pytest.mark.slow

SECOND = {
    **TASK,
    "title": "Reject spaces",
    "acceptance_criteria": ['greet(" ") raises ValueError'],
    "test_files": [{"path": "tests/test_spaces.py", "action": "create"}],
}
SPACES = """import pytest

from greet import greet


def test_a_blank_name_is_refused():
    with pytest.raises(ValueError):
        greet(" ")


def test_an_empty_name_is_still_refused():
    with pytest.raises(ValueError):
        greet("")
"""
BLANK_DONE = '''"""Greetings."""


def greet(name):
    if not name.strip():
        raise ValueError("a name is needed")
    return f"Hello, {name}!"
'''


def run_pytest(project: Project) -> subprocess.CompletedProcess[str]:
    """Run the project's tests in the user's worktree, as the user would."""
    argv = [sys.executable, "-B", "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    return subprocess.run(
        argv, cwd=project.root, env=project.environment(), capture_output=True, text=True, check=False
    )


@pytest.fixture(scope="module")
def ordered(tmp_path_factory: pytest.TempPathFactory) -> Played:
    """Return a finished run of two tasks that were listed the other way round, after a split review that ran out."""
    tests = [
        {"id": "tests/test_spaces.py::test_a_blank_name_is_refused"},
        {"id": "tests/test_spaces.py::test_an_empty_name_is_still_refused", "expected": "GUARD"},
    ]
    drafts = split_into({**SECOND, "depends_on": [2]}, TASK)
    entries = [
        PLAN,
        PLAN_ACCEPTED,
        drafts,
        review("review-split", "NEEDS WORK", finding("Too small")),
        drafts,
        review("review-split", "NEEDS WORK", finding("Too large"), prior=[{"id": "split-1-01", "status": "resolved"}]),
        {**TESTS, "when": {"kind": "write-tests", "task": "2"}},
        {**MAKE, "when": {"kind": "implement", "task": "2"}},
        {
            "when": {"kind": "write-tests", "task": "1"},
            "files": {"tests/test_spaces.py": SPACES},
            "report": {"verdict": "TESTS_READY", "tests": tests},
        },
        {
            "when": {"kind": "implement", "task": "1"},
            "files": {"greet.py": BLANK_DONE},
            "report": {"result": "COMPLETE", "summary": "strips"},
        },
        *AFTER_MAKE,
    ]
    return play(make_project(tmp_path_factory.mktemp("ordered")), entries, extra=FAST)


def test_two_split_reviews_with_new_findings_each_go_on_with_the_blocker(ordered: Played) -> None:
    assert ordered.document["_code"] == 3, ordered.document["_stderr"]
    assert ("review-split/NEEDS_WORK", "split_review") in ordered.exhausted()
    assert ordered.document["blockers"] == ["split-2-01"]
    (filed,) = ordered.document["follow_ups"]
    issue = ordered.project.git("show", f"work:TODO/{filed}.md")
    assert "title: Too large" in issue
    assert "followup" in issue
    assert "Too large" in ordered.project.redfirst("show").stdout


def test_tasks_are_done_in_the_order_of_their_dependencies(ordered: Played) -> None:
    asked = [entry.document["task"] for entry in ordered.dispatches("implement")]
    assert asked == ["2", "1"]
    assert ordered.subjects() == ["fix: reject empty names", "fix: reject spaces", "chore(todo): close GAL-1"]


def test_the_second_task_is_red_over_the_result_of_the_first(ordered: Played) -> None:
    ledger = json.loads(ordered.artifact("evidence/task-1.json"))["ledger"]
    assert list(ledger["red"]) == ["tests/test_spaces.py::test_a_blank_name_is_refused"]
    assert list(ledger["guards"]) == ["tests/test_spaces.py::test_an_empty_name_is_still_refused"]
    base = ordered.asked("write-tests", task="1").result["base_tree"]
    assert base == ordered.project.git("rev-parse", "work~2^{tree}"), "what the first task left"


def test_each_commit_holds_its_task_and_says_so(ordered: Played) -> None:
    git = ordered.project.git
    assert git("diff", "--name-only", "work~2", "work~1").splitlines() == ["greet.py", "tests/test_spaces.py"]
    message = git("show", "--no-patch", "--format=%B", "work~1")
    digest = "Red-Evidence: sha256:"
    assert all(line in message for line in ("Issue: GAL-1", "Run-Id: run-GAL-1", "Task: 1", digest, "Assisted-by: "))


def test_the_published_tests_pass_and_the_last_fail_without_the_last_change(ordered: Played) -> None:
    project = ordered.project
    assert run_pytest(project).returncode == 0
    project.git("checkout", "--quiet", "work~2", "--", "greet.py")
    again = run_pytest(project)
    assert again.returncode == 1
    assert "1 failed, 3 passed" in again.stdout


# --- what one role found reaches whoever goes on: remarks, work that came back, the cause of a stop -------------------

STUBS = 'sandbox = "none"\n[stub_first]\npytest = true\n'


def symbol(number: int) -> list[dict[str, str]]:
    return [{"name": f"double_{number}", "path": f"m{number}.py", "signature": f"double_{number}(value)"}]


def stub(number: int, body: str) -> Entry:
    text = module(number) + f"\n\ndef double_{number}(value):\n    {body}\n"
    when = {"kind": "stub", "task": str(number)}
    return {"when": when, "files": {f"m{number}.py": text}, "report": {"result": "COMPLETE"}}


def judged(number: int, *findings: dict[str, Any]) -> Entry:
    when = {"kind": "judge", "question": "tests", "task": str(number)}
    return {"when": when, "report": {"verdict": "ACCEPTABLE", "findings": list(findings)}}


GAP = "the second criterion is not done: there is no rule for blanks"
DOUBLED = "import m1\n\n\ndef test_double_1():\n    assert m1.double_1(2) == 4\n"
STUB = "raise NotImplementedError"

SEEN: dict[str, Any] = {"out_of_scope": [{"title": "m2 rounds wrongly", "description": "also below zero"}]}
PLANNED = plan_for("m1.py", "m2.py")

STORY: list[Entry] = [
    {**PLANNED, "report": {**PLANNED["report"], **SEEN}},
    review("review-plan", "ACCEPTABLE", finding("Name the overflow", "LOW")),
    {
        "when": {"kind": "review-plan", "role": "simplify"},
        "report": {"verdict": "MOSTLY APPROPRIATE", "findings": [{"title": "One loop", "simpler": "A sum."}]},
    },
    split_into(module_task(1, symbols=symbol(1)), module_task(2)),
    review("review-split", "ACCEPTABLE", finding("Say the unit", "MEDIUM")),
    # 1: a stub that is more than a stub, then a stub
    stub(1, "return 2 * value"),
    stub(1, STUB),
    writes(1, DOUBLED, escalate_to_check=True, escalation_reason="is that all?", notes="the clock of m1 is left alone"),
    judged(1, finding("One example only", "LOW", concern="test")),
    {**makes(1), "files": {"m1.py": module(1) + "\n\ndef double_1(value):\n    return 2 * value\n"}},
    # 2: @test says that there is nothing to test, and leaves a file; it is sent back
    {
        "when": {"kind": "write-tests", "task": "2"},
        "files": {"tests/test_m2.py": module_test(2, 99)},
        "report": {"verdict": "NOT_TESTABLE", "reason": "pure-wiring", "attempted": "looked at m2"},
    },
    rules(2, "not_testable", accepted=False, notes="value_2 returns a number"),
    writes(2),
    # what is handed in is refused, then nothing is, with a reason
    {**makes(2), "files": {"tests/test_m2.py": "", "m2.py": module(2, 3)}},
    {
        "when": {"kind": "implement", "task": "2"},
        "report": {"result": "CANNOT_PROCEED", "missing": "m2 has no clock", "why": "two clocks could be meant"},
    },
    diagnoses(2, "production_logic", "there is no clock in this"),
    # what is handed in passes, and is not all
    {**makes(2), "report": {"result": "INCOMPLETE", "blocking_issue": GAP, "out_of_scope": [{"title": "m1 is odd"}]}},
    *AFTER_MAKE,
]


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Played:
    """Return a run in which every role says something to the next."""
    return play(modules_project(tmp_path_factory.mktemp("told"), range(1, 3)), STORY, extra=STUBS)


@pytest.mark.broad
def test_remarks_beside_acceptable_reach_the_splitter_tests_and_make(told: Played) -> None:
    assert "Name the overflow" in told.asked("split").text("remarks")
    for step in ("stub", "write-tests", "implement"):
        said = told.asked(step, task="1").text("remarks")
        assert "Name the overflow" in said, step
        assert "Say the unit" in said, step
        assert "A sum." in said, "the advice of @simplify"
    assert "One example only" in told.asked("implement", task="1").text("remarks"), "of @check, on accepted tests"


@pytest.mark.broad
def test_what_the_plan_leaves_out_reaches_who_reviews(told: Played) -> None:
    for step in ("review-plan", "review-split", "check-tests", "final-review"):
        asked = told.asked(step, role="check")
        assert "m2 rounds wrongly: also below zero" in asked.text("plan"), step
        assert "out of scope" in asked.document["prompt"], step


@pytest.mark.broad
def test_what_test_says_of_its_tests_reaches_make(told: Played) -> None:
    assert "the clock of m1 is left alone" in told.asked("implement", task="1").text("red")


@pytest.mark.broad
def test_a_stub_and_tests_that_came_back_are_on_the_desk(told: Played) -> None:
    base = told.asked("stub", 2, task="1").result["base_tree"]
    assert "return 2 * value" in told.project.git("show", f"{base}:m1.py")
    base = told.asked("write-tests", 2, task="2").result["base_tree"]
    assert "== 99" in told.project.git("show", f"{base}:tests/test_m2.py")


@pytest.mark.broad
def test_the_cause_of_a_stop_stands_before_what_follows_from_it(told: Played) -> None:
    said = told.asked("diagnose", task="2").text("test_output")
    assert said.index("m2 has no clock") < said.index("not GREEN")
    assert "two clocks could be meant" in said
    refused = told.asked("diagnose", task="2").text("refusals")
    assert "tests/test_m2.py" in refused


@pytest.mark.broad
def test_nothing_but_words_is_handed_over_as_findings(told: Played) -> None:
    again = told.asked("write-tests", 2, task="2")
    assert all(path.endswith(".md") for path in again.document["artifacts"]["findings"])
    assert "value_2 returns a number" in again.text("findings")


@pytest.mark.broad
def test_what_is_missing_beside_green_is_a_signal_of_its_own_and_is_read_at_the_end(told: Played) -> None:
    assert told.document.get("outcome") == "completed", told.document["_stderr"]
    assert told.rows_of("2")[-1] == "implement/GREEN_INCOMPLETE"
    notes = told.artifact("reviews/work-notes-1.md")
    assert f"task 2, @make (implement) says that this is in the way: {GAP}" in notes
    assert "task 1, @test (write-tests) notes: the clock of m1 is left alone" in notes
    assert "@make (implement) reports a bug that was there before, and that is filed: m1 is odd" in notes
    assert GAP in told.artifact("summary.md")
    (asked,) = told.dispatches("final-review", role="check")
    assert "work-notes-1.md" in asked.document["prompt"]
    assert told.assert_artifact_rule() > 3


def test_what_stopped_make_before_other_tests_were_written_is_settled(tmp_path: Path) -> None:
    wrong = module_test(1, 2)
    gives_up = {"result": "INCOMPLETE", "blocking_issue": "the test wants 2", "out_of_scope": [{"title": "m1 is slow"}]}
    story: list[Entry] = [
        *until_tests(module_task(1)),
        writes(1, wrong),
        {**makes(1), "report": gives_up},
        diagnoses(1, "test_design", "one it is"),
        writes(1),
        *AFTER_MAKE,
    ]
    played = play(modules_project(tmp_path, range(1, 2)), story, extra=FAST)
    assert played.document.get("outcome") == "completed", played.document["_stderr"]
    notes = played.artifact("reviews/work-notes-1.md")
    assert "m1 is slow" in notes
    assert "the test wants 2" not in notes
