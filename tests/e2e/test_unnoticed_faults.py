"""Tests that notice no fault in the code go back to @test once; what they still do not notice needs @check's reason.

What a task adds may be tests alone: they pass over the code as it is, and notice faults; that is their RED.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from e2e.lanes import Played, diagnoses, finding, makes, module_task, plan_for, play, split_into, writes
from kit import (
    BARE_PYTEST,
    ISSUE,
    MAKE,
    PLAN,
    PLAN_ACCEPTED,
    PLAN_SIMPLE,
    README,
    RESULT_ACCEPTED,
    RESULT_SIMPLE,
    SPLIT,
    SPLIT_ACCEPTED,
    TASK,
    TESTS,
    Entry,
    make_project,
)

from pipeline.testing.measure.outcome_words import noticed_lines
from pipeline.testing.measure.task_evidence import NoticingEvidence

if TYPE_CHECKING:
    from pathlib import Path

    from kit import Entry

pytestmark = pytest.mark.slow

SHOP = '''"""Prices."""


def price(total, member):
    if member and total >= 100:
        return total - 10
    return total
'''
BLIND = """import shop


def test_price():
    shop.price(200, True)
"""
GOOD = """import shop


def test_members_get_ten_off_from_a_hundred_on():
    assert [shop.price(total, True) for total in (99, 100, 101)] == [99, 90, 91]


def test_others_pay_all():
    assert shop.price(200, False) == 200
"""
ONLY_FAULTS = {"REDFIRST_PROBES__REPEAT": "1", "REDFIRST_PROBES__REVERT": "false", "REDFIRST_PROBES__REACH": "false"}
SHOP_TASK = {
    **TASK,
    "files": [{"path": "shop.py", "action": "create"}],
    "test_files": [{"path": "tests/test_shop.py", "action": "create"}],
}
ACCEPTED = {"task": "1", "id": "faults", "met": True, "note": "the price is shown nowhere yet"}


PLAN_SHOP: Entry = {
    **PLAN,
    "report": {**PLAN["report"], "files": [{"path": "shop.py", "action": "create", "why": "it is new"}]},
}
UNTIL_SHOP = [PLAN_SHOP, PLAN_ACCEPTED, PLAN_SIMPLE, {**SPLIT, "report": {"tasks": [SHOP_TASK]}}, SPLIT_ACCEPTED]


def written(text: str, **more: Any) -> Entry:
    return {**TESTS, "files": {"tests/test_shop.py": text}, "report": {"verdict": "TESTS_READY", **more}}


def played(tmp_path: Path, *script: Entry) -> Played:
    project = make_project(tmp_path)
    project.probed = True
    project.env |= ONLY_FAULTS
    made = {**MAKE, "files": {"shop.py": SHOP}}
    return play(project, [*UNTIL_SHOP, *script, made, RESULT_SIMPLE])


@pytest.mark.broad
def test_tests_that_notice_nothing_are_written_again_with_the_list(tmp_path: Path) -> None:
    found = played(tmp_path, written(BLIND), written(GOOD), RESULT_ACCEPTED)
    assert found.document["outcome"] == "completed", (found.document["note"], found.rows)
    expected = ["write-tests/RED", "implement/UNNOTICED_FAULTS", "write-tests/RED", "implement/GREEN"]
    assert found.rows_of("1") == expected
    assert found.counters("implement/UNNOTICED_FAULTS") == {"unnoticed_faults@task 1": 1}
    told = found.asked("write-tests", 2, task="1").text("findings")
    assert "No test notices any fault that was tried in:\n\n- `shop.py: price`" in told
    assert "`>=` becomes `>`" in told
    assert len(found.dispatches("implement", task="1")) == 1, "the candidate is GREEN with the new tests"
    mutation = json.loads(found.artifact("evidence/task-1.json"))["probes"]["mutation"]
    assert mutation["unnoticed"] == []
    assert mutation["killed"] > 3
    assert found.assert_artifact_rule() > 3


@pytest.mark.broad
def test_what_stays_unnoticed_is_accepted_only_with_a_reason(tmp_path: Path) -> None:
    reasoned = {**RESULT_ACCEPTED, "report": {"verdict": "ACCEPTABLE", "criteria": [ACCEPTED]}}
    silent = {**RESULT_ACCEPTED, "report": {"verdict": "ACCEPTABLE", "criteria": [{**ACCEPTED, "note": " "}]}}
    found = played(tmp_path, written(BLIND), written(BLIND, notes="nobody reads it"), silent, reasoned)
    assert found.document["outcome"] == "completed", (found.document["note"], found.rows)
    again = ["write-tests/RED", "implement/UNNOTICED_FAULTS"]
    assert found.rows_of("1") == [*again, *again]
    assert [row for row in found.rows if row.startswith("any/")] == ["any/MALFORMED"]
    review = found.asked("final-review")
    assert "`shop.py: price`" in review.text("probes")
    assert f"task 1, faults: met. {ACCEPTED['note']}" in found.artifact("reviews/final-1.md"), "why stays on record"
    assert found.project.git("show", "HEAD~1:shop.py") == SHOP.strip()


def inside(tests: str) -> str:
    """Return the tests with the import in each of them: over the start of the run they can be collected."""
    return tests.removeprefix("import shop\n\n\n").replace("():\n", "():\n    import shop\n\n")


@pytest.mark.broad
def test_faults_for_a_fix_of_tests_alone_are_for_all_tests_of_the_run(tmp_path: Path) -> None:
    fix = {
        "title": "Test all",
        "acceptance_criteria": ["a member pays less"],
        "files": [],
        "test_files": [{"path": "tests/test_more.py", "action": "create"}],
    }
    settled = {"verdict": "ACCEPTABLE", "prior": [{"id": "final-1-01", "status": "resolved"}]}
    found = played(
        tmp_path,
        written(inside(GOOD)),
        {**RESULT_ACCEPTED, "report": {"verdict": "NEEDS WORK", "findings": [finding("untested", concern="test")]}},
        RESULT_SIMPLE,
        {"when": {"kind": "split"}, "report": {"tasks": [fix]}},
        {**written(""), "files": {"tests/test_more.py": inside(BLIND)}},
        {**RESULT_ACCEPTED, "report": settled},
    )
    assert found.document["outcome"] == "completed", (found.document["note"], found.rows)
    assert found.rows_of("fix-1") == ["write-tests/RED", "implement/GREEN"]
    mutation = json.loads(found.artifact("evidence/task-fix-1.json"))["probes"]["mutation"]
    assert (mutation["survivors"], mutation["unnoticed"]) == ([], [])
    assert mutation["killed"] > 3


# --- tests alone ------------------------------------------------------------------------------------------------------

PRICES = '''"""Prices."""


def price(total, member):
    if total < 0:
        raise ValueError(total)
    if member and total >= 100:
        return total - 10
    return total
'''
HEAD = "import pytest\n\nimport shop\n"
TEN_OFF = "\n\ndef test_members_get_ten_off():\n    assert [shop.price(n, True) for n in (99, 100)] == [99, 90]\n"
REFUSES = "\n\ndef test_less_than_nothing():\n    with pytest.raises(ValueError):\n        shop.price(-1, False)\n"
LOOKS_AWAY = "\n\ndef test_it_runs():\n    shop.price(200, True)\n"
OLD = "import shop\n\n\ndef test_others_pay_all():\n    assert shop.price(200, False) == 200\n"
NEW_FILE, OLD_FILE = "tests/test_price.py", "tests/test_shop.py"
FILES = {
    "pyproject.toml": BARE_PYTEST + 'pythonpath = ["."]\ntestpaths = ["tests"]\n',
    "shop.py": PRICES,
    OLD_FILE: OLD,
    "m2.py": "def value_2():\n    return 0\n",
    "aside.py": "def many(n):\n    return n > 1 and n < 9 and n != 7\n",
    "TODO/GAL-1.md": ISSUE,
    "TODO/README.md": README,
}
FEW_FAULTS = {
    "REDFIRST_PROBES__REPEAT": "1",
    "REDFIRST_PROBES__REVERT": "false",
    "REDFIRST_PROBES__REACH": "false",
    "REDFIRST_PROBES__MUTANTS": "4",
}
NO_SIMPLE = '[agents.simplify]\nbackend = "off"\n'


def only_tests(path: str = NEW_FILE, action: str = "create", **more: Any) -> dict[str, Any]:
    """Return a task that adds tests to what is there."""
    return {
        "title": "Test the prices",
        "acceptance_criteria": ["members get ten off from a hundred on"],
        "files": [],
        "test_files": [{"path": path, "action": action}],
        "evidence": "regression",
        **more,
    }


def adding(text: str, path: str = NEW_FILE, task: str = "1", **more: Any) -> Entry:
    return {
        "when": {"kind": "write-tests", "task": task},
        "files": {path: text},
        "report": {"verdict": "TESTS_READY", **more},
    }


def tried(tmp_path: Path, *script: Entry, tasks: tuple[dict[str, Any], ...], extra: str = "") -> Played:
    project = make_project(tmp_path, FILES)
    project.probed = True
    project.env |= FEW_FAULTS
    until = [plan_for("shop.py", "m2.py"), PLAN_ACCEPTED, PLAN_SIMPLE, split_into(*tasks), SPLIT_ACCEPTED]
    return play(project, [*until, *script, RESULT_ACCEPTED], extra=NO_SIMPLE + extra)


def committed(done: Played, path: str, text: str) -> None:
    """Assert that the run ended well, that the branch has the tests, and that others confirm its commits."""
    assert done.document["outcome"] == "completed", (done.document["note"], done.rows)
    assert text in done.project.git("show", f"work:{path}")
    checked = done.project.document("verify", done.name)
    assert {one["status"] for one in checked["commits"]} <= {"verified", "nothing_claimed"}, checked
    assert "verified" in {one["status"] for one in checked["commits"]}


def test_they_are_written_measured_and_committed_and_nobody_is_asked_for_code(tmp_path: Path) -> None:
    done = tried(tmp_path, adding(HEAD + TEN_OFF + REFUSES), tasks=(only_tests(),))
    assert done.rows_of("1") == ["write-tests/TESTS_KEPT", "implement/GREEN"]
    assert done.dispatches("implement") == []
    committed(done, NEW_FILE, "test_members_get_ten_off")
    assert done.subjects()[0] == "test: test the prices"
    assert "small faults in the code that they look at" in done.artifact("summary.md")
    assert "none: the tests pass over the code that the task began with" in done.artifact("evidence/task-1.md")
    done.project.env["REDFIRST_PROBES__SECONDS"] = "1"
    hurried = {one["task"]: one["status"] for one in done.project.document("verify", done.name)["commits"]}
    assert hurried["1"] in {"unchecked", "verified"}, "who had no time to try a fault refutes nothing"


@pytest.mark.broad
def test_those_that_notice_nothing_come_back_and_one_among_others_is_shown_to_check(tmp_path: Path) -> None:
    judged: Entry = {"when": {"kind": "judge", "question": "tests"}, "report": {"verdict": "ACCEPTABLE"}}
    script = (adding(HEAD + LOOKS_AWAY), adding(HEAD + TEN_OFF + LOOKS_AWAY), judged)
    done = tried(tmp_path, *script, tasks=(only_tests(),))
    assert done.rows_of("1") == [
        "write-tests/UNNOTICED_FAULTS",
        "write-tests/TESTS_DOUBTFUL",
        "check-tests/ACCEPTABLE",
        "implement/GREEN",
    ]
    came_back = done.asked("write-tests", 2).text("findings")
    assert "notices none of these" in came_back
    assert "no added test noticed these, and old ones were not tried: shop.py:" in came_back
    asked = done.asked("check-tests").text("test_output")
    assert "test_it_runs` notices none of these" in asked
    assert "test_members_get_ten_off` notices" not in asked
    committed(done, NEW_FILE, "test_it_runs")


@pytest.mark.broad
def test_an_old_file_that_is_added_to_beside_a_task_with_code_in_lanes(tmp_path: Path) -> None:
    other = module_task(2)
    tasks = (other, only_tests(OLD_FILE, "modify"))
    script = (writes(2, task="1"), makes(2, task="1"), adding(OLD + TEN_OFF, OLD_FILE, "2"))
    done = tried(tmp_path, *script, tasks=tasks, extra="[limits]\nparallel = 2\n")
    assert done.rows_of("1") == ["write-tests/RED", "implement/GREEN", "integrate/ACCEPTED"]
    assert done.rows_of("2") == ["write-tests/TESTS_KEPT", "implement/GREEN", "integrate/ACCEPTED"]
    committed(done, OLD_FILE, "test_members_get_ten_off")


@pytest.mark.broad
def test_where_code_was_to_change_and_need_not_they_are_kept_on_the_word_of_check(tmp_path: Path) -> None:
    task = only_tests(files=[{"path": "shop.py", "action": "modify"}], evidence="red")
    guard = {"id": f"{NEW_FILE}::test_members_get_ten_off", "expected": "GUARD"}
    done = tried(
        tmp_path, adding(HEAD + TEN_OFF, tests=[guard]), diagnoses(1, "already_done", "it is there"), tasks=(task,)
    )
    assert done.rows_of("1") == ["write-tests/PASSES_ALREADY", "diagnose/TESTS_KEPT", "implement/GREEN"]
    assert "they notice" in done.asked("diagnose").text("test_output")
    assert done.dispatches("implement") == []
    committed(done, NEW_FILE, "test_members_get_ten_off")


@pytest.mark.broad
def test_what_is_dropped_all_the_same_is_named_at_the_end(tmp_path: Path) -> None:
    task = only_tests(files=[{"path": "shop.py", "action": "modify"}], evidence="red")
    done = tried(tmp_path, adding(HEAD + LOOKS_AWAY), diagnoses(1, "already_done", "it is there"), tasks=(task,))
    assert done.rows_of("1") == ["write-tests/PASSES_ALREADY", "diagnose/ALREADY_DONE"]
    assert done.document["outcome"] == "completed"
    (line,) = done.document["dropped_tests"]
    assert "judgements/already-1.md" in line
    assert "test_it_runs" in done.artifact("judgements/already-1.md")
    assert line in done.artifact("summary.md")
    assert done.project.document("show", done.name)["dropped_tests"] == [line]
    assert "already-1.md" in done.project.redfirst("show", done.name).stdout


@pytest.mark.broad
@pytest.mark.parametrize("evidence", ["red", "regression"])
def test_a_fix_of_tests_alone_after_the_final_review(tmp_path: Path, evidence: str) -> None:
    missing = finding("What members pay is untested", concern="test")
    settled = {"verdict": "ACCEPTABLE", "prior": [{"id": "final-1-01", "status": "resolved"}]}
    fix = only_tests(evidence=evidence)
    script: tuple[Entry, ...] = (
        writes(2, task="1"),
        makes(2, task="1"),
        {**RESULT_ACCEPTED, "report": {"verdict": "NEEDS WORK", "findings": [missing]}},
        split_into(fix),
        adding(HEAD + TEN_OFF, task="fix-1"),
    )
    done = tried(tmp_path, *script, {**RESULT_ACCEPTED, "report": settled}, tasks=(module_task(2),))
    assert done.rows_of("fix-1") == ["write-tests/TESTS_KEPT", "implement/GREEN"]
    asked = done.asked("write-tests", task="fix-1")
    assert "findings" not in asked.artifacts, "nothing of it came back"
    evidence_kept = json.loads(done.artifact("evidence/task-fix-1.json"))
    assert evidence_kept["noticing"]["killed"] > 0
    committed(done, NEW_FILE, "test_members_get_ten_off")


@pytest.mark.broad
def test_of_a_fix_of_tests_those_that_fail_over_the_start_need_not_notice_a_fault(tmp_path: Path) -> None:
    settled = {"verdict": "ACCEPTABLE", "prior": [{"id": "final-1-01", "status": "resolved"}]}
    unseen = finding("Two is untested", concern="test")
    text = "import m2\n" + HEAD + TEN_OFF + "\n\ndef test_two():\n    assert m2.value_2() != 0\n"
    script: tuple[Entry, ...] = (
        writes(2, task="1"),
        makes(2, task="1"),
        {**RESULT_ACCEPTED, "report": {"verdict": "NEEDS WORK", "findings": [unseen]}},
        split_into(only_tests(evidence="red")),
        adding(text, task="fix-1"),
        {**RESULT_ACCEPTED, "report": settled},
    )
    done = tried(tmp_path, *script, tasks=(module_task(2),))
    assert done.rows_of("fix-1") == ["write-tests/TESTS_KEPT", "implement/GREEN"], done.rows
    noticing = json.loads(done.artifact("evidence/task-fix-1.json"))["noticing"]
    assert list(noticing["tests"]) == [f"{NEW_FILE}::test_members_get_ten_off"]
    words = [path.read_text() for path in (done.folder / "evidence").glob("red-*.md")]
    assert any(f"{NEW_FILE}::test_two: RED before the run: " in text for text in words), words
    committed(done, NEW_FILE, "test_two")


def test_a_fix_of_tests_is_held_to_the_edit_that_proved_its_finding(tmp_path: Path) -> None:
    made = "def value_2():\n    return 2\n\n\ndef twice(n):\n    return n * 2\n"
    edit = {"path": "m2.py", "old": "n * 2", "new": "n * 3"}
    unseen = finding("Twice is untested", concern="test", proof={"edit": edit})
    settled = {"verdict": "ACCEPTABLE", "prior": [{"id": "final-1-01", "status": "resolved"}]}
    twice = "import aside, m2\n\n\ndef test_twice():\n    aside.many(5)\n    assert m2.twice(5) == 10\n"
    script: tuple[Entry, ...] = (
        writes(2, task="1"),
        {**makes(2, task="1"), "files": {"m2.py": made}},
        {**RESULT_ACCEPTED, "report": {"verdict": "NEEDS WORK", "findings": [unseen]}},
        split_into(only_tests("tests/test_twice.py")),
        adding(twice, "tests/test_twice.py", "fix-1"),
    )
    script = (*script, {**RESULT_ACCEPTED, "report": settled})
    done = tried(tmp_path, *script, tasks=(module_task(2),), extra="[probes]\nmutants = 1\n")
    assert done.rows_of("fix-1") == ["write-tests/TESTS_KEPT", "implement/GREEN"], (done.document["note"], done.rows)
    noticing = json.loads(done.artifact("evidence/task-fix-1.json"))["noticing"]
    assert noticing["edits"] == {"final-1-01": edit}
    assert noticing["tests"]["tests/test_twice.py::test_twice"] > 0
    committed(done, "tests/test_twice.py", "test_twice")
    told = next(noticed_lines(NoticingEvidence.model_validate(noticing)))
    commits = done.project.document("verify", done.name)["commits"]
    assert any(told in note for one in commits for note in one["notes"]), (told, commits)
