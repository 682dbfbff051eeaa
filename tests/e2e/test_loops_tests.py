"""Phase 6: every lane that a task's tests can take before @make is asked, by whole runs (matrix 1, 4, 5 and 6)."""

from __future__ import annotations

import json
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
    play,
    rules,
    until_tests,
    writes,
)
from kit import AFTER_MAKE

if TYPE_CHECKING:
    from kit import Entry

pytestmark = [pytest.mark.slow, pytest.mark.broad]

FAST = '[agents.simplify]\nbackend = "off"\n'


def judged(number: int, verdict: str, *findings: dict[str, Any]) -> Entry:
    """Return a judgement of @check on the tests of the task of that number."""
    when = {"kind": "judge", "question": "tests", "task": str(number)}
    return {"when": when, "report": {"verdict": verdict, "findings": list(findings)}}


def existing(number: int, **more: Any) -> dict[str, Any]:
    """Return a task whose test file is there already."""
    return module_task(number, test_files=[{"path": f"tests/test_m{number}.py", "action": "modify"}], **more)


def doubling(number: int) -> str:
    """Return a module with the new function that the tasks 6 and 7 introduce."""
    return module(number) + f"\n\ndef double_{number}(value):\n    return 2 * value\n"


def import_test(number: int, claim: str) -> str:
    """Return a new test file that cannot be imported before the new function is there."""
    return f"from m{number} import double_{number}\n\n\ndef test_double_{number}():\n    assert {claim}\n"


def table_test(*numbers: int) -> str:
    """Return a table of modules and their values: the tasks 1 and 12 each bring a line."""
    head = "from importlib import import_module\n\nimport pytest\n\n\n"
    body = "def test_values(n):\n    assert getattr(import_module(f'm{n}'), f'value_{n}')() == n\n"
    return f"{head}@pytest.mark.parametrize('n', {[*numbers]})\n{body}"


def symbol(number: int) -> list[dict[str, str]]:
    return [{"name": f"double_{number}", "path": f"m{number}.py"}]


OLD_2 = module_test(2, 0, more="\n\ndef test_is_zero():\n    assert not value_2()\n")
HANGING = "def value_8():\n    while True:\n        pass\n"
CONFTEST = "import pytest\n\n\n@pytest.fixture\ndef nine():\n    return 9\n"
WITH_FIXTURE = "from m9 import value_9\n\n\ndef test_value_9(nine):\n    assert value_9() == nine\n"
SEEN = "import m11\n\nSEEN = []\n\n\ndef test_old_11():\n    SEEN.append(m11)\n"
IN_COMPANY = SEEN + "\n\ndef test_value_11():\n    assert m11.value_11() == 11 or SEEN\n"
ALONE = SEEN + "\n\ndef test_value_11():\n    assert m11.value_11() == 11\n"

CHANGED_2 = [{"id": f"tests/test_m2.py::{name}", "reason": "2 it is"} for name in ("test_value_2", "test_is_zero")]

LANES: list[Entry] = [
    *until_tests(
        module_task(1),
        existing(2),
        existing(3, tests_to_change=[{"id": "tests/test_m3.py::test_value_3", "reason": "it pins the old value"}]),
        module_task(4),
        module_task(5),
        module_task(6, symbols=symbol(6)),
        module_task(7, symbols=symbol(7)),
        module_task(8, symptom="hang"),
        module_task(9),
        module_task(10, test_files=[], evidence="regression"),
        existing(11),
        module_task(12, test_files=[{"path": "tests/test_m1.py", "action": "modify"}]),
    ),
    # 1: disputed and refused, disputed and accepted
    writes(1, escalate_to_check=True, escalation_reason="is 1 the right value?"),
    judged(1, "NEEDS WORK", finding("The zero case is missing", concern="test")),
    writes(
        1,
        table_test(1),
        escalate_to_check=True,
        escalation_reason="is that all?",
    ),
    judged(1, "ACCEPTABLE"),
    makes(1),
    # 2: changes a test that pins the old behaviour, and removes another
    writes(2),
    judged(2, "ACCEPTABLE"),
    makes(2),
    diagnoses(2, "production_logic", "as the issue says", tests_to_change=CHANGED_2),
    # 3: changes one that the task lists, and adds a guard
    writes(
        3,
        module_test(3, more="\n\ndef test_is_a_number():\n    assert value_3() >= 0\n"),
        tests=[{"id": "test_is_a_number", "expected": "GUARD"}],  # by its last name, as people say it
    ),
    makes(3),
    # 4: RED for an illegal reason until the limit is reached
    writes(4, module_test(4).replace("== 4", "== four")),
    writes(4, "def test_value_4():\n    assert False\n"),
    writes(4, module_test(4).replace("== 4", "== vier")),
    diagnoses(4, "test_design", "no such name: compare with the number"),
    writes(4),
    makes(4),
    # 5: the behaviour is there already
    writes(5),
    diagnoses(5, "already_done", "m5 returns 5"),
    # 6: a new test file that cannot be imported yet
    writes(6, import_test(6, "double_6(4) == 8")),
    {**makes(6), "files": {"m6.py": doubling(6)}},
    # 7: the same, but its tests pass on stubs
    writes(7, import_test(7, "callable(double_7)")),
    {**makes(7), "files": {"m7.py": doubling(7)}},
    diagnoses(7, "test_design", "asserts nothing about the result"),
    writes(7, import_test(7, "double_7(4) == 8")),
    # 8: the bug is a hang
    writes(8),
    makes(8),
    # 9: @test needs a file that controls tests
    {
        "when": {"kind": "write-tests", "task": "9"},
        "report": {
            "verdict": "BLOCKED",
            "problem": "there is no fixture",
            "needs": [{"path": "tests/conftest.py", "action": "create", "why": "a shared fixture"}],
        },
    },
    rules(9, "amend", accepted=True, notes="one fixture is fine"),
    {**writes(9, WITH_FIXTURE), "files": {"tests/conftest.py": CONFTEST, "tests/test_m9.py": WITH_FIXTURE}},
    makes(9),
    # 10: only nothing else may break
    makes(10),
    # 11: RED alone, and not in the company of another test
    writes(11, IN_COMPANY),
    writes(11, ALONE),
    makes(11),
    # 12: a case for the table that task 1 wrote
    {**writes(12), "files": {"tests/test_m1.py": table_test(1, 12)}},
    makes(12),
    *AFTER_MAKE,
]


@pytest.fixture(scope="module")
def lanes(tmp_path_factory: pytest.TempPathFactory) -> Played:
    """Return a finished run of twelve tasks, each with tests that take another lane."""
    more = {
        "tests/test_m2.py": OLD_2,
        "tests/test_m3.py": module_test(3, 0),
        "m5.py": module(5, 5),
        "m8.py": HANGING,
        "tests/test_m11.py": SEEN,
    }
    project = modules_project(tmp_path_factory.mktemp("lanes"), range(1, 13), more=more)
    return play(project, LANES, extra=FAST + "[toolchains.pytest]\ntest_timeout_s = 2\n")


def test_the_run_of_all_lanes_is_completed(lanes: Played) -> None:
    assert lanes.document.get("outcome") == "completed", lanes.document["_stderr"]
    assert lanes.tasks() == {str(n): "already_done" if n == 5 else "done" for n in range(1, 13)}


def test_disputed_tests_are_written_again_until_check_accepts_them(lanes: Played) -> None:
    assert lanes.rows_of("1") == [
        "write-tests/DISPUTED",
        "check-tests/NEEDS_WORK",
        "write-tests/DISPUTED",
        "check-tests/ACCEPTABLE",
        "implement/GREEN",
    ]
    judge = lanes.asked("check-tests", task="1")
    assert judge.document["question"] == "tests"
    assert "def test_value_1" in judge.text("tests_diff")
    assert "is 1 the right value?" in judge.text("report")
    assert "is 1 the right value?" in judge.text("test_output")
    again = lanes.asked("write-tests", 2, task="1")
    assert "The zero case is missing" in again.text("findings")
    assert again.document["attempt"] == 2
    assert lanes.counters("check-tests/NEEDS_WORK") == {"test_rewrite@task 1": 1}


def test_changed_and_removed_old_tests_are_judged_and_the_removed_are_gone_for_good(lanes: Played) -> None:
    assert lanes.rows_of("2") == [
        "write-tests/CHANGED_OLD_TEST",
        "check-tests/ACCEPTABLE",
        "implement/HIDDEN_REGRESSION",
        "diagnose/PRODUCTION_LOGIC",
        "implement/GREEN",
    ], "who agreed to another text has not said that the old one may fail"
    told = lanes.asked("check-tests", task="2").text("test_output")
    assert "changed without leave: tests/test_m2.py::test_value_2" in told
    assert "removed without leave: tests/test_m2.py::test_is_zero" in told
    assert "test `tests/test_m2.py::test_is_zero` may change: agreed by @check" in lanes.artifact("task-2.md")
    assert "test_is_zero" not in lanes.project.git("show", "work:tests/test_m2.py")


def test_a_case_for_the_table_of_an_earlier_task_changes_no_old_test(lanes: Played) -> None:
    assert lanes.rows_of("12") == ["write-tests/RED", "implement/GREEN"]


def test_an_old_test_that_the_task_lists_may_change(lanes: Played) -> None:
    assert lanes.rows_of("3") == ["write-tests/RED", "implement/GREEN"]
    evidence = json.loads(lanes.artifact("evidence/task-3.json"))
    assert list(evidence["ledger"]["guards"]) == ["tests/test_m3.py::test_is_a_number"]
    assert evidence["green"]["passed"] == ["tests/test_m3.py::test_is_a_number", "tests/test_m3.py::test_value_3"]


def test_illegal_red_is_rewritten_twice_and_then_diagnosed(lanes: Played) -> None:
    assert lanes.rows_of("4") == [
        "write-tests/ILLEGAL_RED",
        "write-tests/STRUCTURAL_ONLY",
        "write-tests/ILLEGAL_RED",
        "diagnose/TEST_DESIGN",
        "write-tests/RED",
        "implement/GREEN",
    ]
    assert ("write-tests/ILLEGAL_RED", "test_rewrite") in lanes.exhausted()
    assert lanes.counters("write-tests/ILLEGAL_RED") == {"test_rewrite@task 4": 1, "test_diagnosis@task 4": 1}
    second = lanes.asked("write-tests", 2, task="4")
    assert "name 'four' is not defined" in second.text("findings")
    assert "== four" in lanes.project.git("show", f"{second.result['base_tree']}:tests/test_m4.py"), "its own last file"
    assert "without reaching the code under test" in lanes.asked("write-tests", 3, task="4").text("findings")
    assert "compare with the number" in lanes.asked("write-tests", 4, task="4").text("findings")


def test_a_behaviour_that_is_there_already_drops_its_tests(lanes: Played) -> None:
    assert lanes.rows_of("5") == ["write-tests/PASSES_ALREADY", "diagnose/ALREADY_DONE"]
    assert "tests/test_m5.py" not in lanes.project.files_at("work")


def test_a_new_test_file_that_cannot_be_imported_is_red_as_a_whole_until_stubs_fail_it(lanes: Played) -> None:
    assert lanes.rows_of("6") == ["write-tests/RED", "implement/GREEN"]
    evidence = json.loads(lanes.artifact("evidence/task-6.json"))
    assert evidence["ledger"]["red"]["tests/test_m6.py"]["granularity"] == "file"
    assert evidence["green"]["stub_failures"] == ["tests/test_m6.py::test_double_6"]


def test_tests_that_pass_on_stubs_are_designed_again(lanes: Played) -> None:
    assert lanes.rows_of("7") == [
        "write-tests/RED",
        "implement/TEST_DESIGN",
        "diagnose/TEST_DESIGN",
        "write-tests/RED",
        "implement/GREEN",
    ]
    told = lanes.asked("diagnose", task="7").text("test_output")
    assert "passes on stubs too: tests/test_m7.py::test_double_7" in told
    assert len(lanes.dispatches("implement", task="7")) == 1, "the candidate is GREEN under the new tests at once"


def test_a_hang_is_a_legal_red_for_a_task_with_that_symptom(lanes: Played) -> None:
    assert lanes.rows_of("8") == ["write-tests/RED", "implement/GREEN"]
    (red,) = json.loads(lanes.artifact("evidence/task-8.json"))["ledger"]["red"].values()
    assert red["cls"] == "TEST_TIMEOUT"


def test_a_file_that_test_asks_for_is_added_to_the_task(lanes: Played) -> None:
    assert lanes.rows_of("9") == ["write-tests/NEEDS_FILE", "diagnose/AMENDED", "write-tests/RED", "implement/GREEN"]
    assert "path: tests/conftest.py" in lanes.artifact("task-9.md")
    granted = lanes.asked("write-tests", 2, task="9").document["write"]
    assert {"path": "tests/conftest.py", "action": "create"} in granted
    assert "tests/conftest.py" in lanes.project.files_at("work")
    assert lanes.counters("diagnose/AMENDED") == {"scope_amend@task 9": 1}


def test_a_task_proven_by_regression_only_is_signed_off_first(lanes: Played) -> None:
    assert lanes.rows_of("10") == ["check-tests/ACCEPTABLE", "implement/GREEN"]
    assert lanes.dispatches("check-tests", task="10") == [], "the review of the split has answered"
    assert lanes.dispatches("write-tests", task="10") == []
    judged, _, manifest = lanes.asked("final-review").text("not_testable").partition("\n[")
    assert "accepted with the split" in judged
    (entry,) = json.loads(f"[{manifest}")
    assert (entry["task"], entry["reason"]) == ("10", "regression")


def test_red_that_two_runs_see_differently_is_rewritten(lanes: Played) -> None:
    assert lanes.rows_of("11") == ["write-tests/RED_UNSTABLE", "write-tests/RED", "implement/GREEN"]
    assert "unstable: tests/test_m11.py::test_value_11" in lanes.asked("write-tests", 2, task="11").text("findings")


def test_each_task_but_the_one_that_was_done_is_a_commit_of_its_own(lanes: Played) -> None:
    kinds = {10: "refactor"}  # proven by regression only
    wanted = [f"{kinds.get(n, 'feat')}: let value {n} be right" for n in range(1, 13) if n != 5]
    assert lanes.subjects() == [*wanted, "chore(todo): close GAL-1"]


def test_each_dispatch_is_given_what_its_prompt_names_and_nothing_else(lanes: Played) -> None:
    assert lanes.assert_artifact_rule() > 3
