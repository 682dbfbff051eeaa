"""What one role found reaches whoever goes on: remarks beside ACCEPTABLE, work that came back, the cause of a stop."""

from __future__ import annotations

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
    writes,
)
from kit import AFTER_MAKE

if TYPE_CHECKING:
    from kit import Entry

pytestmark = [pytest.mark.slow, pytest.mark.broad]

FAST = '[agents.simplify]\nbackend = "off"\n'
STUBS = "[stub_first]\npytest = true\n"


def symbol(number: int) -> list[dict[str, str]]:
    return [{"name": f"double_{number}", "path": f"m{number}.py", "signature": f"double_{number}(value)"}]


def stub(number: int, body: str) -> Entry:
    text = module(number) + f"\n\ndef double_{number}(value):\n    {body}\n"
    when = {"kind": "stub", "task": str(number)}
    return {"when": when, "files": {f"m{number}.py": text}, "report": {"result": "COMPLETE"}}


def judged(number: int, *findings: dict[str, Any]) -> Entry:
    when = {"kind": "judge", "question": "tests", "task": str(number)}
    return {"when": when, "report": {"verdict": "ACCEPTABLE", "findings": list(findings)}}


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
    makes(2),
    *AFTER_MAKE,
]


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Played:
    """Return a run in which every role says something to the next."""
    return play(modules_project(tmp_path_factory.mktemp("told"), range(1, 3)), STORY, extra=STUBS)


def test_the_story_ends_well(told: Played) -> None:
    assert told.document.get("outcome") == "completed", told.document["_stderr"]


def test_remarks_beside_acceptable_reach_the_splitter_tests_and_make(told: Played) -> None:
    assert "Name the overflow" in told.asked("split").text("remarks")
    for step in ("stub", "write-tests", "implement"):
        said = told.asked(step, task="1").text("remarks")
        assert "Name the overflow" in said, step
        assert "Say the unit" in said, step
        assert "A sum." in said, "the advice of @simplify"


def test_what_check_remarked_on_accepted_tests_reaches_make(told: Played) -> None:
    assert "One example only" in told.asked("implement", task="1").text("remarks")


@pytest.mark.parametrize("kind", ["review-plan", "review-split", "judge", "review-result"])
def test_what_the_plan_leaves_out_reaches_who_reviews(told: Played, kind: str) -> None:
    step = {"judge": "check-tests", "review-result": "final-review"}.get(kind, kind)
    asked = told.asked(step, role="check")
    assert "m2 rounds wrongly: also below zero" in asked.text("plan")
    assert "out of scope" in asked.document["prompt"]


def test_what_test_says_of_its_tests_reaches_make(told: Played) -> None:
    assert "the clock of m1 is left alone" in told.asked("implement", task="1").text("red")


def test_a_stub_that_came_back_is_on_the_desk(told: Played) -> None:
    base = told.asked("stub", 2, task="1").result["base_tree"]
    assert "return 2 * value" in told.project.git("show", f"{base}:m1.py")


def test_tests_that_came_back_unused_are_on_the_desk(told: Played) -> None:
    base = told.asked("write-tests", 2, task="2").result["base_tree"]
    assert "== 99" in told.project.git("show", f"{base}:tests/test_m2.py")


def test_the_cause_of_a_stop_stands_before_what_follows_from_it(told: Played) -> None:
    said = told.asked("diagnose", task="2").text("test_output")
    assert said.index("m2 has no clock") < said.index("not GREEN")
    assert "two clocks could be meant" in said
    refused = told.asked("diagnose", task="2").text("refusals")
    assert "tests/test_m2.py" in refused


def test_nothing_but_words_is_handed_over_as_findings(told: Played) -> None:
    again = told.asked("write-tests", 2, task="2")
    assert all(path.endswith(".md") for path in again.document["artifacts"]["findings"])
    assert "value_2 returns a number" in again.text("findings")


def test_each_dispatch_is_given_what_its_prompt_names_and_nothing_else(told: Played) -> None:
    assert told.assert_artifact_rule() > 3
