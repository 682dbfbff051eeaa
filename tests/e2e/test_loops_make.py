"""Phase 7: every way in which @make can come back, and every way back from it, by whole runs (matrix 1, 2 and 4)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from e2e.lanes import (
    Played,
    diagnoses,
    makes,
    module,
    module_task,
    module_test,
    modules_project,
    play,
    rules,
    stops,
    until_tests,
    writes,
)
from kit import AFTER_MAKE

if TYPE_CHECKING:
    from kit import Entry

pytestmark = [pytest.mark.slow, pytest.mark.broad]

FAST = '[agents.simplify]\nbackend = "off"\n'

NEED_20 = {"path": "m20.py", "action": "modify", "why": "the constant is there"}
NEED_30 = {"path": "m30.py", "action": "modify"}
OLD_4 = "from m4 import value_4\n\n\ndef test_old_4():\n    assert value_4() == {}\n"
HELPER = "\n\ndef helper_5():\n    return {}\n"
OLD_5 = "from m5 import helper_5\n\n\ndef test_helper_5():\n    assert helper_5() == 50\n"
LATER_6 = "def test_later_6():\n    assert value_6() > 0\n"
MARK = '@pytest.mark.xfail(strict=True, reason="not yet")\n'
NEW_6 = "\n\ndef test_new_6():\n    assert value_6() == 6\n"
HEAD_6 = "import pytest\n\nfrom m6 import value_6\n\n\n"
POLLUTING = "SEEN = []\n\n\ndef value_7():\n{}    return {}\n"
FAR_4 = "import far4\n\n\ndef test_far_4():\n    assert callable(far4.value_4)\n"
CLEAN_7 = "import m7\n\n\ndef test_nothing_was_seen():\n    assert m7.SEEN == []\n"

LANES: list[Entry] = [
    *until_tests(
        *(module_task(number) for number in range(1, 6)),
        module_task(6, test_files=[{"path": "tests/test_m6.py", "action": "modify"}]),
        module_task(7),
    ),
    # 1: does nothing, does the wrong thing: the tests are designed again
    writes(1),
    {"when": {"kind": "implement", "task": "1"}, "report": {"result": "COMPLETE"}},
    diagnoses(1, "production_logic", "do it"),
    makes(1, 6),
    diagnoses(1, "production_logic", "six is not one"),
    writes(1, module_test(1, more="\n\ndef test_is_odd():\n    assert value_1() in {1, 3}\n")),
    makes(1),
    # 2: asks for one more file, and gets it
    writes(2),
    {**makes(2, 3), "report": {"result": "INCOMPLETE", "blocking_issue": "m20", "needs": [NEED_20]}},
    rules(2, "amend", accepted=True, notes="it belongs there"),
    {
        **makes(2),
        "files": {"m2.py": "from m20 import TWO\n\n\ndef value_2():\n    return TWO\n", "m20.py": "TWO = 2\n"},
    },
    # 3: asks for one more file, and does without
    writes(3),
    stops(3, blocking_issue="m30", needs=[NEED_30]),
    rules(3, "amend", accepted=False, notes="not needed: return 3"),
    makes(3),
    # 4: doubts the tests at entry; an old one contradicts them
    writes(4),
    stops(4, blocking_issue="test_old_4 pins zero", escalate="entry_validation"),
    diagnoses(
        4, "test_design", "it does", tests_to_change=[{"id": "tests/test_old4.py::test_old_4", "reason": "pins"}]
    ),
    {**writes(4), "files": {"tests/test_old4.py": OLD_4.format(4), "tests/test_m4.py": module_test(4)}},
    makes(4),
    # 5: breaks another test
    writes(5),
    {**makes(5), "files": {"m5.py": module(5, 5) + HELPER.format(5)}},
    diagnoses(5, "production_logic", "leave the helper alone"),
    {**makes(5), "files": {"m5.py": module(5, 5) + HELPER.format(50)}},
    # 6: makes a strict xfail pass
    writes(6, HEAD_6 + MARK + LATER_6 + NEW_6),
    makes(6),
    writes(6, HEAD_6 + LATER_6 + NEW_6),
    {"when": {"kind": "judge", "question": "tests", "task": "6"}, "report": {"verdict": "ACCEPTABLE"}},
    # 7: breaks a test only in the company of others
    writes(7),
    {**makes(7), "files": {"m7.py": POLLUTING.format("    SEEN.append(7)\n", 7)}},
    diagnoses(7, "production_logic", "keep SEEN empty"),
    {**makes(7), "files": {"m7.py": POLLUTING.format("", 7)}},
    *AFTER_MAKE,
]


@pytest.fixture(scope="module")
def lanes(tmp_path_factory: pytest.TempPathFactory) -> Played:
    """Return a finished run of seven tasks, each with a @make that takes another lane."""
    more = {
        "m20.py": "TWO = 0\n",
        "m30.py": "",
        "tests/test_old4.py": OLD_4.format(0),
        "far4.py": "from m4 import value_4\n",
        "tests/test_a_far.py": FAR_4,
        "m5.py": module(5) + HELPER.format(50),
        "tests/test_old5.py": OLD_5,
        "tests/test_m6.py": HEAD_6 + MARK + LATER_6,
        "m7.py": POLLUTING.format("", 0),
        "tests/test_z7.py": CLEAN_7,
    }
    return play(modules_project(tmp_path_factory.mktemp("lanes"), range(1, 8), more=more), LANES, extra=FAST)


def test_the_run_of_all_lanes_is_completed(lanes: Played) -> None:
    assert lanes.document.get("outcome") == "completed", lanes.document["_stderr"]
    wanted = [f"feat: let value {number} be right" for number in range(1, 8)]
    assert lanes.subjects() == [*wanted, "chore(todo): close GAL-1"]


def test_make_is_handed_the_tests_that_import_what_it_touches_the_nearest_first(lanes: Played) -> None:
    """By name nothing is found of these: `m4` is no word of `tests/test_old4.py`."""

    def handed(task: str) -> list[str]:
        asked = lanes.asked("implement", task=task)
        return (
            asked.text("impacted_tests").replace("- ", "").splitlines() if "impacted_tests" in asked.artifacts else []
        )

    assert handed("4") == ["tests/test_old4.py::test_old_4", "tests/test_a_far.py::test_far_4"]
    assert handed("7") == ["tests/test_z7.py::test_nothing_was_seen"]
    assert handed("2") == []
    assert "tests/test_base.py::test_base" in handed("1")


def test_a_second_failure_goes_back_to_the_tests(lanes: Played) -> None:
    assert lanes.rows_of("1") == [
        "write-tests/RED",
        "implement/NO_CHANGE",
        "diagnose/PRODUCTION_LOGIC",
        "implement/NOT_GREEN",
        "diagnose/PRODUCTION_LOGIC",
        "write-tests/RED",
        "implement/GREEN",
    ]
    assert ("diagnose/PRODUCTION_LOGIC", "make_retry") in lanes.exhausted()
    assert "not GREEN: tests/test_m1.py::test_value_1" in lanes.asked("diagnose", 2, task="1").text("test_output")
    assert "six is not one" in lanes.asked("write-tests", 2, task="1").text("findings")
    base = lanes.asked("implement", 3, task="1").result["base_tree"]
    assert "return 6" in lanes.project.git("show", f"{base}:m1.py")
    assert "test_is_odd" in lanes.project.git("show", f"{base}:tests/test_m1.py"), "the new tests over the candidate"


def test_make_is_told_what_its_workspace_shows_where_work_is_applied_already(lanes: Played) -> None:
    assert "measured" not in lanes.asked("implement", task="1").artifacts
    again = lanes.asked("implement", 3, task="1")
    assert "not GREEN: tests/test_m1.py::test_value_1: fails: assert 6 == 1" in again.text("measured")
    retry = lanes.asked("implement", 2, task="5")
    assert "breaks, in 2 of 2 runs: tests/test_old5.py::test_helper_5" in retry.text("measured")
    assert "breaks, in 2 of 2 runs" not in retry.text("diagnosis"), "it was measured again"


def test_a_granted_file_is_added_and_the_candidate_continues(lanes: Played) -> None:
    assert lanes.rows_of("2")[1:] == ["implement/NEEDS_FILE", "diagnose/AMENDED", "implement/GREEN"]
    assert lanes.asked("diagnose", task="2").document["question"] == "amend"
    again = lanes.asked("implement", 2, task="2")
    assert {"path": "m20.py", "action": "modify"} in again.document["write"]
    assert "m20.py" in again.text("task")
    assert "return 3" in lanes.project.git("show", f"{again.result['base_tree']}:m2.py")
    assert lanes.counters("diagnose/AMENDED") == {"scope_amend@task 2": 1}


def test_a_refused_file_costs_the_retry_and_is_explained(lanes: Played) -> None:
    assert lanes.rows_of("3")[1:] == ["implement/NEEDS_FILE", "diagnose/REFUSED", "implement/GREEN"]
    again = lanes.asked("implement", 2, task="3")
    assert "not needed: return 3" in again.text("diagnosis")
    assert {"path": "m30.py", "action": "modify"} not in again.document["write"]
    (paid,) = lanes.counters("diagnose/REFUSED")
    assert paid.startswith("make_retry@task 3 ")


def test_doubts_at_entry_are_diagnosed_and_an_old_test_may_change(lanes: Played) -> None:
    expected = ["implement/ENTRY_FLAG", "diagnose/TEST_DESIGN", "write-tests/RED", "implement/GREEN"]
    assert lanes.rows_of("4")[1:] == expected
    assert "test_old_4 pins zero" in lanes.asked("diagnose", task="4").text("report")
    assert "test `tests/test_old4.py::test_old_4` may change: pins" in lanes.artifact("task-4.md")
    granted = lanes.asked("write-tests", 2, task="4").document["write"]
    assert {"path": "tests/test_old4.py", "action": "modify"} in granted
    evidence = json.loads(lanes.artifact("evidence/task-4.json"))
    assert set(evidence["ledger"]["red"]) == {"tests/test_m4.py::test_value_4", "tests/test_old4.py::test_old_4"}


def test_a_broken_test_elsewhere_is_diagnosed_and_make_goes_on_from_its_own_work(lanes: Played) -> None:
    assert lanes.rows_of("5")[1:] == ["implement/REGRESSION", "diagnose/PRODUCTION_LOGIC", "implement/GREEN"]
    judge = lanes.asked("diagnose", task="5")
    assert "Not accepted here: `already_done`: only when the new tests passed at once" in judge.document["prompt"]
    assert "+    return 5" in judge.text("candidate_patch")
    assert "breaks, in 2 of 2 runs: tests/test_old5.py::test_helper_5" in judge.text("test_output")
    again = lanes.asked("implement", 2, task="5")
    assert "leave the helper alone" in again.text("diagnosis")
    assert "+    return 5" in again.text("candidate_patch")
    assert "return 50" not in lanes.project.git("show", f"{again.result['base_tree']}:m5.py")
    assert again.document["attempt"] == 2


def test_a_strict_xfail_that_passes_now_goes_to_the_test_writer(lanes: Played) -> None:
    assert lanes.rows_of("6") == [
        "write-tests/RED",
        "implement/STALE_XFAIL",
        "write-tests/CHANGED_OLD_TEST",
        "check-tests/ACCEPTABLE",
        "implement/GREEN",
    ]
    assert len(lanes.dispatches("implement", task="6")) == 1, "the candidate is GREEN once the mark is gone"
    assert "strict xfail passes now" in lanes.asked("write-tests", 2, task="6").text("findings")


def test_a_test_that_breaks_only_in_company_is_a_regression_too(lanes: Played) -> None:
    assert lanes.rows_of("7")[1:] == ["implement/REGRESSION", "diagnose/PRODUCTION_LOGIC", "implement/GREEN"]


def test_each_dispatch_is_given_what_its_prompt_names_and_nothing_else(lanes: Played) -> None:
    assert lanes.assert_artifact_rule() > 3
