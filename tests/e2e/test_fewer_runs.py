"""Whole runs, counted: how often a test runner starts for a task, and what is not measured again."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from e2e.lanes import makes, module, module_task, modules_project, play, until_tests, writes
from kit import AFTER_MAKE

if TYPE_CHECKING:
    from pathlib import Path

    from e2e.lanes import Played
    from kit import Entry, Project

pytestmark = pytest.mark.slow

TRIED = '[agents.simplify]\nbackend = "off"\n[limits]\nparallel = 2\n[probes]\nmutants = 2\n'


def beside(tmp_path: Path, more: dict[str, str] | None = None) -> Project:
    """Return a project of two modules whose tasks are worked on side by side, and tried."""
    project = modules_project(tmp_path, range(1, 3), more=more)
    del project.env["REDFIRST_LIMITS__PARALLEL"]
    project.probed = True
    return project


def runs(played: Played) -> list[tuple[str, str]]:
    """Return tree and words of each run of tests but those of the small faults, in order."""
    lines = [line["data"] for line in played.project.journal() if line["kind"] == "tests_ran"]
    return [(data["tree"], data["what"]) for data in lines]


def evidence(played: Played, task: str) -> dict[str, Any]:
    return json.loads(played.artifact(f"evidence/task-{task}.json"))


def verifies(project: Project) -> None:
    start = project.journal()[0]["data"]["start_commit"]
    document = project.document("verify", f"{start}..HEAD")
    assert document["_code"] == 0, document
    told = document["_stderr"]
    assert told.count("the whole suite over the parent:") == 1, "that of the others is the commit before"


@pytest.mark.broad
def test_a_task_that_is_put_over_another_takes_two_runs(tmp_path: Path) -> None:
    project = beside(tmp_path)
    entries = [*until_tests(module_task(1), module_task(2)), writes(1), writes(2), makes(1), makes(2), *AFTER_MAKE]
    played = play(project, entries, extra=TRIED)
    assert played.document["_code"] == 0, played.document["_stderr"]
    found = evidence(played, "2")
    over, probes = {found["red_tree"], found["green"]["tree"]}, found["probes"]
    assert [what for tree, what in runs(played) if tree in over] == [
        "the new tests over the old code, must fail",
        "the whole suite over the new code, must pass",
    ]
    lane = probes["measured"]
    assert lane != found["green"]["tree"]
    assert "def value_2():\n    return 2" in project.git("show", f"{lane}:m2.py")
    assert "return 0" in project.git("show", f"{lane}:m1.py"), "what was tried is the work before it was put over"
    assert (probes["mutation"]["killed"], probes["reach"]["entering"], probes["repeated"]["runs"]) == (2, 1, 2)
    assert (probes["revert"]["measured"], probes["revert"]["production"]) == (found["red_tree"], found["production"])
    assert f"over tree {lane[:12]}" in played.artifact("evidence/probes-2.md")
    verifies(project)


def counted(tmp_path: Path, *entries: Entry, more: dict[str, str] | None = None, **task: Any) -> list[str]:
    """Return the words of each run of tests, but those of faults, of a run of one task."""
    project = beside(tmp_path, more)
    begin = until_tests({**module_task(1), **task})
    played = play(project, [*begin, *entries, *AFTER_MAKE], extra=TRIED)
    assert played.document["_code"] == 0, played.document["_stderr"]
    return [what for _, what in runs(played)]


def test_a_task_with_a_new_file_of_tests_takes_six_runs(tmp_path: Path) -> None:
    assert counted(tmp_path, writes(1), makes(1)) == [
        "the whole suite before any change, to compare with",
        "tests over the old code, new ones must fail",
        "new tests over the old code again, traced, must fail",
        "the whole suite over the new code, must pass",
        "the new tests over the new code again, must pass",
        "old tests near the change over the new code again, must pass",
    ]


@pytest.mark.broad
def test_what_is_put_over_something_that_its_tests_stand_on_is_tried_again(tmp_path: Path) -> None:
    """The first task brings a fixture for all tests that does the second one's work, once that is there."""
    swaps = (
        "import sys\n\nimport m2\nimport pytest\n\nKNOWN = m2.value_2()\n\n\n"
        "@pytest.fixture(autouse=True)\ndef swapped(monkeypatch):\n"
        "    if KNOWN == 2 and 'test_m2' in sys.modules:\n"
        "        monkeypatch.setattr('test_m2.value_2', lambda: 2)\n"
    )
    project = beside(tmp_path)
    created = [{"path": f"tests/{name}.py", "action": "create"} for name in ("test_m1", "conftest")]
    first = {**writes(1), "files": {**writes(1)["files"], "tests/conftest.py": swaps}}
    tasks = module_task(1, test_files=created), module_task(2)
    entries = [*until_tests(*tasks), first, writes(2), makes(1), makes(2), *AFTER_MAKE]
    played = play(project, entries, extra=TRIED)
    found = evidence(played, "2")
    assert found["green"]["tree"], played.document["_stderr"]
    assert (found["probes"]["measured"], found["probes"]["reach"]["elsewhere"]) == (
        "",
        ["tests/test_m2.py::test_value_2"],
    )


@pytest.mark.broad
def test_what_enters_code_that_was_changed_meanwhile_is_tried_again(tmp_path: Path) -> None:
    project = beside(tmp_path)
    (project.root / "m2.py").write_text("from m1 import value_1\n\n\ndef value_2():\n    return value_1() * 0\n")
    project.git("commit", "-qam", "m2 asks m1")
    code = "from m1 import value_1\n\n\ndef value_2():\n    return value_1() * 0 + 2\n"
    entered = {**makes(2), "files": {"m2.py": code}}
    entries = [*until_tests(module_task(1), module_task(2)), writes(1), writes(2), makes(1), entered, *AFTER_MAKE]
    played = play(project, entries, extra=TRIED)
    assert played.document["_code"] == 0, played.document["_stderr"]
    assert evidence(played, "2")["probes"]["measured"] == ""
    assert module(1, 1) in project.git("show", "work:m1.py") + "\n"
