"""Whole runs: what passed and does not is never published, whatever a task lists, a diagnosis grants or an agent says.

Each story here was published once, with exit 0, over a suite that fails.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from e2e.lanes import finding
from kit import (
    AFTER_MAKE,
    FILES,
    MAKE,
    PLAN,
    PLAN_ACCEPTED,
    PLAN_SIMPLE,
    SPLIT_ACCEPTED,
    TASK,
    TESTS,
    Project,
    make_project,
)
from kit import judge as judged

if TYPE_CHECKING:
    from pathlib import Path

    from kit import Entry

pytestmark = [pytest.mark.slow, pytest.mark.broad]

FAST = '[agents.simplify]\nbackend = "off"\n'
GREET = FILES["greet.py"]
OLD = "tests/test_old.py::test_shouts"
TEST_OLD = 'from greet import greet\n\n\ndef test_shouts():\n    assert greet("Ada").upper() == "HELLO, ADA!"\n'
BREAKING = GREET.replace(
    "    return", '    if not name:\n        raise ValueError("a name is needed")\n    return'
).replace("!", ".")
TEST_NEW = (
    "import pytest\n\nfrom greet import greet\n\n\n"
    'def test_empty():\n    with pytest.raises(ValueError):\n        greet("")\n'
)
"""The module's one old test is `tests/test_old.py`: what ends a greeting is noticed by nothing else."""


def project_of(tmp_path: Path, files: dict[str, str] | None = None) -> Project:
    """Return a project whose one old test notices how a greeting ends."""
    kept = {path: text for path, text in FILES.items() if path != "tests/test_greet.py"}
    return make_project(tmp_path, {**kept, "tests/test_old.py": TEST_OLD, **(files or {})})


def until_tests(**task: Any) -> list[Entry]:
    """Return the answers that lead to one task."""
    plan = {**PLAN, "report": {**PLAN["report"], "files": task.get("files", TASK["files"])}}
    split = {"when": {"kind": "split"}, "report": {"tasks": [{**TASK, **task}]}}
    return [plan, PLAN_ACCEPTED, PLAN_SIMPLE, split, SPLIT_ACCEPTED]


def played(project: Project, entries: list[Entry], extra: str = FAST) -> dict[str, Any]:
    """Return the document of a run; its script may end early: such a run parks."""
    project.use_script(entries, extra)
    return project.run()


def is_unpublished(project: Project, document: dict[str, Any]) -> bool:
    """Return whether the run has put no commit on the branch, and does not say that it is done."""
    begun = json.loads((project.run_folder() / "run.json").read_text(encoding="utf-8"))["start_commit"]
    return (
        project.git("rev-parse", "HEAD") == begun and document.get("outcome") != "completed" and document["_code"] != 0
    )


def reviews(typo: dict[str, Any]) -> list[Entry]:
    """Return a final review with one finding, and one without."""
    when = {"kind": "review-result", "role": "check"}
    gone = {"verdict": "ACCEPTABLE", "prior": [{"id": "final-1-01", "status": "resolved"}]}
    found = {"verdict": "NEEDS WORK", "findings": [typo]}
    return [{"when": when, "report": found}, {"when": when, "report": gone}]


@pytest.mark.broad
def test_a_listed_test_that_nobody_touched_has_to_pass(tmp_path: Path) -> None:
    project = project_of(tmp_path)
    listed = [{"id": OLD, "reason": "the ending may change"}]
    tests = {**TESTS, "files": {"tests/test_new.py": TEST_NEW}, "report": {"verdict": "TESTS_READY"}}
    made = {**MAKE, "files": {"greet.py": BREAKING}}
    task = {"tests_to_change": listed, "test_files": [{"path": "tests/test_new.py", "action": "create"}]}
    document = played(project, [*until_tests(**task), tests, made, *AFTER_MAKE])
    assert "implement/REGRESSION" in project.rows(), project.rows()
    assert is_unpublished(project, document)


@pytest.mark.broad
def test_leave_to_change_a_test_that_broke_does_not_make_it_pass(tmp_path: Path) -> None:
    project = project_of(tmp_path)
    tests = {**TESTS, "files": {"tests/test_new.py": TEST_NEW}, "report": {"verdict": "TESTS_READY"}}
    made = {**MAKE, "files": {"greet.py": BREAKING}}
    leave = judged(
        "diagnose", diagnosis="production_logic", notes="let it", tests_to_change=[{"id": OLD, "reason": "x"}]
    )
    task = {"test_files": [{"path": "tests/test_new.py", "action": "create"}]}
    document = played(project, [*until_tests(**task), tests, made, leave, made, *AFTER_MAKE])
    assert project.rows().count("implement/REGRESSION") == 2, project.rows()
    assert is_unpublished(project, document)


DEAD = {
    "dead.py": "def dead():\n    return 1\n",
    "tests/test_dead.py": "import dead\n\n\ndef test_dead():\n    dead.dead()\n",
}
REMOVAL: dict[str, Any] = {
    "evidence": "regression",
    "files": [{"path": "dead.py", "action": "delete"}],
    "test_files": [{"path": "tests/test_dead.py", "action": "delete"}],
    "tests_to_change": [{"id": "tests/test_dead.py", "reason": "its code goes"}],
}


def removal(tmp_path: Path) -> tuple[Project, list[Entry], Entry]:
    """Return a project with dead code and its test, the answers that lead to a task that removes both, and @make's."""
    return project_of(tmp_path, DEAD), until_tests(**REMOVAL), {**MAKE, "files": {"dead.py": None}}


NO_TEST = {"when": {"kind": "write-tests"}, "report": {"verdict": "NOT_TESTABLE", "reason": "config-only"}}


@pytest.mark.broad
def test_a_test_that_goes_while_its_code_stays_is_not_done(tmp_path: Path) -> None:
    project, first, made = removal(tmp_path)
    gone = {**TESTS, "files": {"tests/test_dead.py": None}, "report": {"verdict": "TESTS_READY"}}
    document = played(project, [*first, gone, {**made, "files": {}}, *AFTER_MAKE])
    assert "implement/NO_CHANGE" in project.rows(), project.rows()
    assert is_unpublished(project, document)


@pytest.mark.parametrize("beside", ["tests/helpers.py", "tests/test_old.py"])
@pytest.mark.broad
def test_what_changes_beside_a_removal_is_for_check_to_judge(beside: str, tmp_path: Path) -> None:
    project = project_of(tmp_path, {**DEAD, "tests/helpers.py": "def check(a, b):\n    assert a == b\n"})
    files = [*REMOVAL["test_files"], {"path": beside, "action": "modify"}]
    changed = {"tests/test_dead.py": None, beside: "def check(a, b):\n    pass\n"}
    leave = [*REMOVAL["tests_to_change"], {"id": beside, "reason": "its imports"}]
    task = {**REMOVAL, "test_files": files, "tests_to_change": leave}
    played(project, [*until_tests(**task), {**TESTS, "files": changed, "report": {"verdict": "TESTS_READY"}}])
    assert "write-tests/RED" not in project.rows(), project.rows()
    assert project.rows()[-1].startswith("write-tests/")


@pytest.mark.broad
def test_dead_code_whose_test_nobody_removes_is_not_done(tmp_path: Path) -> None:
    project, first, made = removal(tmp_path)
    accepted = judged("not_testable", accepted=True)
    document = played(project, [*first, NO_TEST, accepted, made, *AFTER_MAKE])
    assert "implement/NOT_GREEN" in project.rows(), project.rows()
    assert is_unpublished(project, document)
    told = next((project.run_folder() / "evidence").glob("green-*.md")).read_text(encoding="utf-8")
    assert "cannot be collected" in told
    assert "tests/test_dead.py" in told


@pytest.mark.broad
def test_the_suite_is_held_against_the_baseline_before_anything_is_published(tmp_path: Path) -> None:
    """An edit of a comment changes no program, so that nothing was measured after it; a test reads the comment."""
    reads = 'def test_says_so():\n    assert "won" in open("greet.py").read()\n'
    project = project_of(tmp_path, {"greet.py": "# the won\n" + GREET, "tests/test_reads.py": reads})
    tests = {**TESTS, "files": {"tests/test_new.py": TEST_NEW}, "report": {"verdict": "TESTS_READY"}}
    made = {**MAKE, "files": {"greet.py": "# the won\n" + BREAKING.replace(".'", "!'").replace('."', '!"')}}
    task = {"test_files": [{"path": "tests/test_new.py", "action": "create"}]}
    typo = finding("A typo", concern="cosmetic", edit={"path": "greet.py", "old": "won", "new": "two"})
    document = played(project, [*until_tests(**task), tests, made, *reviews(typo)])
    assert project.rows()[-2:] == ["final-review/ACCEPTABLE", "publish/REGRESSION"], document["_stderr"]
    assert (document["outcome"], document["reason"], document["_code"]) == ("parked", "regression", 4)
    assert is_unpublished(project, document)
    told = (project.run_folder() / "evidence/published.md").read_text(encoding="utf-8")
    assert "tests/test_reads.py::test_says_so passed and fails now" in told
    assert project.document("resume", "run-GAL-1")["reason"] == "regression", "it is measured again, and fails again"
