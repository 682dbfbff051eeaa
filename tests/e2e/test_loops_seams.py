"""Phase 6 without tests, or only after a seam; what is done already; what is not installed (matrix 1 and 6)."""

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
    module_test,
    modules_project,
    play,
    rules,
    until_tests,
    writes,
)
from kit import AFTER_MAKE, RESULT_ACCEPTED

if TYPE_CHECKING:
    from pathlib import Path

    from kit import Entry

pytestmark = [pytest.mark.slow, pytest.mark.broad]

FAST = '[agents.simplify]\nbackend = "off"\n'


def untestable(number: int, reason: str, **more: Any) -> Entry:
    """Return NOT_TESTABLE by @test for the task of that number."""
    when = {"kind": "write-tests", "task": str(number)}
    return {"when": when, "report": {"verdict": "NOT_TESTABLE", "reason": reason, **more}}


def opens_seam(number: int, content: str) -> Entry:
    """Return a seam by @make for the task of that number."""
    when = {"kind": "seam", "task": str(number)}
    return {"when": when, "files": {f"m{number}.py": content}, "report": {"result": "COMPLETE", "summary": "a seam"}}


SEAM_3 = "def raw_3():\n    return 0\n\n\ndef value_3():\n    return raw_3()\n"

SEAMS: list[Entry] = [
    *until_tests(*(module_task(number) for number in range(1, 7))),
    # 1: a seam outside the plan is no seam: signed off
    untestable(1, "missing-seam", future_seam="Inject the clock into m1.", seam_files=["clock.py"]),
    rules(1, "not_testable", accepted=True, notes="needs the clock"),
    makes(1),
    # 2: not testable, refused
    untestable(2, "pure-wiring", attempted="nothing"),
    rules(2, "not_testable", accepted=False, notes="call value_2"),
    writes(2),
    makes(2),
    # 3: a seam in a file of the plan
    untestable(3, "missing-seam", future_seam="Split value_3.", seam_files=["m3.py"]),
    opens_seam(3, SEAM_3),
    writes(3),
    makes(3),
    # 4: a seam that breaks a test
    untestable(4, "missing-seam", future_seam="Split value_4.", seam_files=["m4.py"]),
    opens_seam(4, module(4, 5)),
    rules(4, "not_testable", accepted=True, notes="look at the seam of m4"),
    {**makes(4), "files": {"m4.py": "# four\n" + module(4)}},
    # 5: blocked
    {"when": {"kind": "write-tests", "task": "5"}, "report": {"verdict": "BLOCKED", "problem": "which five?"}},
    diagnoses(5, "production_logic", "the number five"),
    writes(5),
    makes(5),
    # 6: without tests only @make can say that it is done
    untestable(6, "config-only"),
    rules(6, "not_testable", accepted=True),
    {**makes(6, 3), "report": {"result": "INCOMPLETE", "blocking_issue": "half of it"}},
    diagnoses(6, "production_logic", "it is six"),
    makes(6),
    *AFTER_MAKE,
]


@pytest.fixture(scope="module")
def seams(tmp_path_factory: pytest.TempPathFactory) -> Played:
    """Return a finished run of six tasks that cannot be tested, or not yet."""
    more = {"tests/test_old.py": module_test(4, 0).replace("test_value_4", "test_old_4")}
    project = modules_project(tmp_path_factory.mktemp("seams"), range(1, 7), more=more)
    return play(project, SEAMS, extra=FAST)


def test_a_task_without_tests_is_signed_off_made_and_flagged(seams: Played) -> None:
    assert seams.document.get("outcome") == "completed", seams.document["_stderr"]
    assert seams.rows_of("1") == ["write-tests/NOT_TESTABLE", "check-tests/ACCEPTABLE", "implement/GREEN"]
    asked = seams.asked("implement", task="1")
    assert "red" not in asked.artifacts
    assert "This task has no tests of its own" in asked.document["prompt"]
    assert "accepted" in asked.text("remarks")
    told = seams.asked("final-review")
    manifest = json.loads((told.folder / "artifacts/not_testable/not-testable-1.json").read_text())
    assert [(entry["task"], entry["reason"]) for entry in manifest] == [
        ("1", "missing-seam"),
        ("4", "missing-seam"),
        ("6", "config-only"),
    ]
    assert "look at the seam of m4" in told.text("not_testable"), "what a reader should watch"
    assert "Without Tests" in seams.artifact("summary.md")


def test_a_seam_for_later_is_filed_as_tech_debt(seams: Played) -> None:
    filed = {name: seams.project.git("show", f"work:TODO/{name}.md") for name in seams.document["follow_ups"]}
    assert list(filed) == ["GAL-1.1", "GAL-1.2"]
    assert "title: 'Make it testable: Inject the clock into m1.'" in filed["GAL-1.1"].replace('"', "'")
    assert "labels: [tech-debt]" in filed["GAL-1.1"]
    assert "Split value_4" in filed["GAL-1.2"]
    assert not any("value_3" in text for text in filed.values()), "that seam was opened"


def test_no_tests_that_check_refuses_become_tests(seams: Played) -> None:
    expected = ["write-tests/NOT_TESTABLE", "check-tests/NEEDS_WORK", "write-tests/RED", "implement/GREEN"]
    assert seams.rows_of("2") == expected
    assert "call value_2" in seams.asked("write-tests", 2, task="2").text("findings")


def test_a_missing_seam_is_opened_and_then_tested(seams: Played) -> None:
    expected = ["write-tests/MISSING_SEAM", "seam/SEAM_DONE", "write-tests/RED", "implement/GREEN"]
    assert seams.rows_of("3") == expected
    assert "Split value_3." in seams.asked("seam", task="3").text("report")
    again = seams.asked("write-tests", 2, task="3").result["base_tree"]
    assert "raw_3" in seams.project.git("show", f"{again}:m3.py")
    assert seams.counters("write-tests/MISSING_SEAM") == {"seam@task 3": 1, "seam@task 4": 1}


def test_a_seam_that_breaks_a_test_ends_in_the_sign_off(seams: Played) -> None:
    expected = ["write-tests/MISSING_SEAM", "seam/REGRESSION", "check-tests/ACCEPTABLE", "implement/GREEN"]
    assert seams.rows_of("4") == expected
    made = seams.asked("implement", task="4").result["base_tree"]
    assert seams.project.git("show", f"{made}:m4.py") == module(4).strip(), "the seam is not kept"


def test_blocked_tests_are_diagnosed_and_written(seams: Played) -> None:
    assert seams.rows_of("5") == [
        "write-tests/BLOCKED",
        "diagnose/PRODUCTION_LOGIC[asked by WRITE_TESTS]",
        "write-tests/RED",
        "implement/GREEN",
    ]
    assert "which five?" in seams.asked("diagnose", task="5").text("report")
    assert "the number five" in seams.asked("write-tests", 2, task="5").text("findings")


def test_a_task_without_tests_is_not_green_before_make_says_so(seams: Played) -> None:
    assert seams.rows_of("6")[2:] == ["implement/INCOMPLETE", "diagnose/PRODUCTION_LOGIC", "implement/GREEN"]
    assert "return 6" in seams.project.git("show", "work:m6.py")


def test_an_issue_that_is_done_already_changes_only_the_tracker(tmp_path: Path) -> None:
    project = modules_project(tmp_path, range(1, 2), more={"m1.py": module(1, 1)})
    entries = [*until_tests(module_task(1)), writes(1), diagnoses(1, "already_done", "it returns 1"), RESULT_ACCEPTED]
    played = play(project, entries, extra=FAST)
    assert (played.document["outcome"], played.document["reason"]) == ("completed", "nothing_to_do")
    assert played.document["_code"] == 0
    rows = ["diagnose/ALREADY_DONE", "final-review/ACCEPTABLE", "publish/PUBLISHED[every task was done already]"]
    assert played.rows[-3:] == rows
    shown = played.asked("final-review", role="check").text("evidence")
    assert "it returns 1" in shown
    assert "+def test_value_1():" in shown, "the tests that pass without any change are what there is to review"
    assert played.subjects() == ["chore(todo): close GAL-1"]
    assert set(project.git("diff", "--name-only", "main", "work").splitlines()) == {"TODO/GAL-1.md", "TODO/README.md"}
    assert "status: Done" in project.git("show", "work:TODO/GAL-1.md")
    assert project.git("status", "--porcelain") == ""


def test_a_module_that_is_not_installed_parks_the_run(tmp_path: Path) -> None:
    content = "import not_installed_anywhere\n" + module_test(1)
    played = play(
        modules_project(tmp_path, range(1, 2)), [*until_tests(module_task(1)), writes(1, content)], extra=FAST
    )
    assert (played.document.get("reason"), played.document["_code"]) == ("environment", 4), played.document
    assert "not_installed_anywhere" in played.document["note"]
    assert played.rows[-1] == "any/ENV_BROKEN"
    again = go_on(played, "resume").document
    assert (again["reason"], again["usage"]["dispatches"]) == ("environment", played.document["usage"]["dispatches"])


def test_each_dispatch_is_given_what_its_prompt_names_and_nothing_else(seams: Played) -> None:
    assert seams.assert_artifact_rule() > 3
