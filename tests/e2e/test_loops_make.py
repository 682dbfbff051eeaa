"""Phase 7: every way in which @make can come back, and every way back from it, by whole runs (matrix 1, 2 and 4)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

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
    plan_for,
    play,
    rules,
    split_into,
    stops,
    until_tests,
    writes,
)
from kit import AFTER_MAKE, PLAN_ACCEPTED, SPLIT_ACCEPTED

if TYPE_CHECKING:
    from kit import Entry

pytestmark = pytest.mark.slow

FAST = '[agents.simplify]\nbackend = "off"\n'

NEED_30 = {"path": "m30.py", "action": "modify", "why": "the constant is there"}
NEED_40 = {"path": "m40.py", "action": "modify"}
HELPER = "\n\ndef helper_6():\n    return {}\n"
OLD_6 = "from m6 import helper_6\n\n\ndef test_helper_6():\n    assert helper_6() == 60\n"
XFAIL_7 = '\n\n@pytest.mark.xfail(strict=True, reason="not yet")\ndef test_later_7():\n    assert value_7() > 0\n'
NEW_7 = module_test(7).replace("test_value_7", "test_new_7").partition("def ")[2]
WITH_XFAIL = "import pytest\n\n" + module_test(7, 0).partition("\n\n\n")[0] + "\n" + XFAIL_7
POLLUTED = "SEEN = []\n\n\ndef value_8():\n{}    return {}\n"
CLEAN_8 = "import m8\n\n\ndef test_nothing_was_seen():\n    assert m8.SEEN == []\n"
OLD_10 = "from m10 import value_10\n\n\ndef test_old_10():\n    assert value_10() == {}\n"

LANES: list[Entry] = [
    *until_tests(
        *(module_task(number) for number in range(1, 7)),
        module_task(7, test_files=[{"path": "tests/test_m7.py", "action": "modify"}]),
        *(module_task(number) for number in range(8, 11)),
    ),
    # 1: claims what is not so, and mends it
    writes(1),
    makes(1, 5),
    diagnoses(1, "production_logic", "five is not one"),
    makes(1),
    # 2: not the second time either: the tests are designed again
    writes(2),
    makes(2, 5),
    diagnoses(2, "production_logic", "five is not two"),
    makes(2, 6),
    diagnoses(2, "production_logic", "six is not two"),
    writes(2, module_test(2, more="\n\ndef test_is_even():\n    assert value_2() in {2, 4}\n")),
    makes(2),
    # 3: asks for one more file, and gets it
    writes(3),
    {**makes(3, 2), "report": {"result": "INCOMPLETE", "blocking_issue": "m30", "needs": [NEED_30]}},
    rules(3, "amend", accepted=True, notes="it belongs there"),
    {
        **makes(3),
        "files": {"m3.py": "from m30 import THREE\n\n\ndef value_3():\n    return THREE\n", "m30.py": "THREE = 3\n"},
    },
    # 4: asks for one more file, and does without
    writes(4),
    stops(4, blocking_issue="m40", needs=[NEED_40]),
    rules(4, "amend", accepted=False, notes="not needed: return 4"),
    makes(4),
    # 5: doubts the tests at entry
    writes(5, module_test(5, 50)),
    stops(5, blocking_issue="fifty is not five", escalate="entry_validation"),
    diagnoses(5, "test_design", "the issue says five"),
    writes(5),
    makes(5),
    # 6: breaks another test
    writes(6),
    {**makes(6), "files": {"m6.py": module(6, 6) + HELPER.format(6)}},
    diagnoses(6, "production_logic", "leave the helper alone"),
    {**makes(6), "files": {"m6.py": module(6, 6) + HELPER.format(60)}},
    # 7: makes a strict xfail pass
    writes(7, WITH_XFAIL + "\n\ndef " + NEW_7),
    makes(7),
    writes(7, WITH_XFAIL.replace(XFAIL_7.partition("def")[0], "\n\n") + "\n\ndef " + NEW_7),
    {"when": {"kind": "judge", "question": "tests", "task": "7"}, "report": {"verdict": "ACCEPTABLE"}},
    # 8: breaks a test only in the company of others
    writes(8),
    {**makes(8), "files": {"m8.py": POLLUTED.format("    SEEN.append(8)\n", 8)}},
    diagnoses(8, "production_logic", "keep SEEN empty"),
    {**makes(8), "files": {"m8.py": POLLUTED.format("", 8)}},
    # 9: says that it is done and did nothing
    writes(9),
    {"when": {"kind": "implement", "task": "9"}, "report": {"result": "COMPLETE"}},
    diagnoses(9, "production_logic", "do it"),
    makes(9),
    # 10: an old test contradicts the new ones
    writes(10),
    stops(10, blocking_issue="test_old_10 pins zero", escalate="test_design"),
    diagnoses(
        10,
        "test_design",
        "it does",
        tests_to_change=[{"id": "tests/test_old10.py::test_old_10", "reason": "pins zero"}],
    ),
    {
        **writes(10),
        "files": {"tests/test_old10.py": OLD_10.format(10), "tests/test_m10.py": module_test(10)},
    },
    makes(10),
    *AFTER_MAKE,
]


@pytest.fixture(scope="module")
def lanes(tmp_path_factory: pytest.TempPathFactory) -> Played:
    """Return a finished run of ten tasks, each with a @make that takes another lane."""
    more = {
        "m6.py": module(6) + HELPER.format(60),
        "m8.py": POLLUTED.format("", 0),
        "m30.py": "THREE = 0\n",
        "m40.py": "",
        "tests/test_old6.py": OLD_6,
        "tests/test_m7.py": WITH_XFAIL,
        "tests/test_z8.py": CLEAN_8,
        "tests/test_old10.py": OLD_10.format(0),
    }
    return play(modules_project(tmp_path_factory.mktemp("lanes"), range(1, 11), more=more), LANES, extra=FAST)


def test_the_run_of_all_lanes_is_completed(lanes: Played) -> None:
    assert lanes.document.get("outcome") == "completed", lanes.document["_stderr"]
    assert lanes.subjects() == [
        *(f"feat: let value {number} be right" for number in range(1, 11)),
        "chore(todo): close GAL-1",
    ]


def test_what_is_not_green_is_diagnosed_and_made_once_more(lanes: Played) -> None:
    assert lanes.rows_of("1")[1:] == ["implement/NOT_GREEN", "diagnose/PRODUCTION_LOGIC", "implement/GREEN"]
    judge = lanes.asked("diagnose", task="1")
    assert "return 5" in judge.text("candidate_patch")
    assert "not GREEN: tests/test_m1.py::test_value_1" in judge.text("test_output")
    again = lanes.asked("implement", 2, task="1")
    assert "five is not one" in again.text("diagnosis")
    assert "return 5" in again.text("candidate_patch")
    assert "return 5" in lanes.project.git("show", f"{again.result['base_tree']}:m1.py"), "it goes on from its own work"
    assert again.document["attempt"] == 2


def test_a_second_failure_goes_back_to_the_tests(lanes: Played) -> None:
    assert lanes.rows_of("2") == [
        "write-tests/RED",
        "implement/NOT_GREEN",
        "diagnose/PRODUCTION_LOGIC",
        "implement/NOT_GREEN",
        "diagnose/PRODUCTION_LOGIC",
        "write-tests/RED",
        "implement/GREEN",
    ]
    assert ("diagnose/PRODUCTION_LOGIC", "make_retry") in lanes.exhausted()
    assert "six is not two" in lanes.asked("write-tests", 2, task="2").text("findings")
    third = lanes.asked("implement", 3, task="2")
    base = third.result["base_tree"]
    assert "return 6" in lanes.project.git("show", f"{base}:m2.py")
    assert "test_is_even" in lanes.project.git("show", f"{base}:tests/test_m2.py"), "the new tests over the candidate"


def test_a_granted_file_is_added_and_the_candidate_continues(lanes: Played) -> None:
    assert lanes.rows_of("3")[1:] == ["implement/NEEDS_FILE", "diagnose/AMENDED", "implement/GREEN"]
    assert lanes.asked("diagnose", task="3").document["question"] == "amend"
    again = lanes.asked("implement", 2, task="3")
    assert {"path": "m30.py", "action": "modify"} in again.document["write"]
    assert "m30.py" in again.text("task")
    assert "return 2" in lanes.project.git("show", f"{again.result['base_tree']}:m3.py")
    assert lanes.counters("diagnose/AMENDED") == {"scope_amend@task 3": 1}


def test_a_refused_file_costs_the_retry_and_is_explained(lanes: Played) -> None:
    assert lanes.rows_of("4")[1:] == ["implement/NEEDS_FILE", "diagnose/REFUSED", "implement/GREEN"]
    again = lanes.asked("implement", 2, task="4")
    assert "not needed: return 4" in again.text("diagnosis")
    assert {"path": "m40.py", "action": "modify"} not in again.document["write"]
    (paid,) = lanes.counters("diagnose/REFUSED")
    assert paid.startswith("make_retry@task 4 ")


def test_doubts_at_entry_are_diagnosed_and_the_tests_designed_again(lanes: Played) -> None:
    expected = ["implement/ENTRY_FLAG", "diagnose/TEST_DESIGN", "write-tests/RED", "implement/GREEN"]
    assert lanes.rows_of("5")[1:] == expected
    assert "fifty is not five" in lanes.asked("diagnose", task="5").text("report")


def test_a_broken_test_elsewhere_is_a_regression(lanes: Played) -> None:
    assert lanes.rows_of("6")[1:] == ["implement/REGRESSION", "diagnose/PRODUCTION_LOGIC", "implement/GREEN"]
    assert "breaks (2 of 2): tests/test_old6.py::test_helper_6" in lanes.asked("diagnose", task="6").text("test_output")


def test_a_strict_xfail_that_passes_now_goes_to_the_test_writer(lanes: Played) -> None:
    assert lanes.rows_of("7") == [
        "write-tests/RED",
        "implement/STALE_XFAIL",
        "write-tests/CHANGED_OLD_TEST",
        "check-tests/ACCEPTABLE",
        "implement/GREEN",
    ]
    assert len(lanes.dispatches("implement", task="7")) == 1, "the candidate is GREEN once the mark is gone"
    assert "strict xfail passes now" in lanes.asked("write-tests", 2, task="7").text("findings")


def test_a_test_that_breaks_only_in_company_is_a_regression_too(lanes: Played) -> None:
    assert lanes.rows_of("8")[1:] == ["implement/REGRESSION", "diagnose/PRODUCTION_LOGIC", "implement/GREEN"]


def test_complete_without_a_change_is_no_change(lanes: Played) -> None:
    assert lanes.rows_of("9")[1:] == ["implement/NO_CHANGE", "diagnose/PRODUCTION_LOGIC", "implement/GREEN"]


def test_a_diagnosis_may_let_an_old_test_change(lanes: Played) -> None:
    expected = ["implement/TEST_DESIGN", "diagnose/TEST_DESIGN", "write-tests/RED", "implement/GREEN"]
    assert lanes.rows_of("10")[1:] == expected
    assert "test `tests/test_old10.py::test_old_10` may change: pins zero" in lanes.artifact("task-10.md")
    granted = lanes.asked("write-tests", 2, task="10").document["write"]
    assert {"path": "tests/test_old10.py", "action": "modify"} in granted
    evidence = json.loads(lanes.artifact("evidence/task-10.json"))
    assert set(evidence["ledger"]["red"]) == {"tests/test_m10.py::test_value_10", "tests/test_old10.py::test_old_10"}


# --- back to the split, to the plan, to the user ----------------------------------------------------------------------

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
    """Return the same run after the user mended the environment."""
    more = [diagnoses(5, "production_logic", "the clock is right now"), makes(1, task="5"), *AFTER_MAKE]
    parked.project.script([*REWORK, *more])
    return go_on(parked, "resume")


def test_an_environment_at_fault_parks_the_run(parked: Played) -> None:
    assert (parked.document.get("outcome"), parked.document.get("reason")) == ("parked", "environment"), parked.document
    assert parked.document["_code"] == 4
    assert "set the clock" in parked.document["note"]


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


def test_a_new_plan_starts_over_and_gets_the_earlier_work_as_a_patch(parked: Played) -> None:
    again = parked.asked("plan", 2)
    assert "m3 is not the place" in again.text("findings")
    patch = again.text("previous_patch")
    assert all(line in patch for line in ("+    return 1", "+    return 2", "+    return 8"))
    assert again.result["base_tree"] == json.loads(parked.artifact("run.json"))["start_tree"]
    assert parked.counters("diagnose/PLAN") == {"plan_rework@run": 1}
    red = parked.asked("write-tests", task="5").result["base_tree"]
    assert red == json.loads(parked.artifact("run.json"))["start_tree"]


def test_a_resumed_run_asks_again_who_blamed_the_environment(resumed: Played) -> None:
    assert resumed.document.get("outcome") == "completed", resumed.document["_stderr"]
    assert resumed.rows_of("5") == [
        "write-tests/RED",
        "implement/INCOMPLETE",
        "diagnose/ENVIRONMENT",
        "diagnose/PRODUCTION_LOGIC",
        "implement/GREEN",
    ]
    assert resumed.subjects() == ["feat: let value 1 be right", "chore(todo): close GAL-1"]
    assert resumed.tasks() == {"5": "done"}
