"""Several tasks in one run: order, trees that build on each other, one commit each (matrix 1 and 4)."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from e2e.lanes import Played, finding, play, review, split_into
from kit import AFTER_MAKE, MAKE, PLAN, PLAN_ACCEPTED, TASK, TESTS, Project, make_project

pytestmark = pytest.mark.slow

FAST = '[agents.simplify]\nbackend = "off"\n'
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
