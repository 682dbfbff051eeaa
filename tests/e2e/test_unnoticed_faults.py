"""Tests that notice no fault in the code go back to @test once; what they still do not notice needs @check's reason."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from e2e.lanes import Played, finding, play
from kit import (
    MAKE,
    PLAN,
    PLAN_ACCEPTED,
    PLAN_SIMPLE,
    RESULT_ACCEPTED,
    RESULT_SIMPLE,
    SPLIT,
    SPLIT_ACCEPTED,
    TASK,
    TESTS,
    Entry,
    make_project,
)

if TYPE_CHECKING:
    from pathlib import Path

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
