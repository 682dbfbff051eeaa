"""Acceptance criteria have ids, and each is answered for: by @test with a test or a reason, by the final review."""

from __future__ import annotations

import pytest
from evidence.observed import observed

from pipeline.judge.evidence.observation import Ended
from pipeline.judge.reports.decode import Malformed
from pipeline.judge.reports.parse import parse_report
from pipeline.judge.reports.tasks import Task
from pipeline.steps.asking.criteria import to_answer, unanswered, unshown, wrong_ids
from pipeline.vocabulary import Role

BODY = "# Task 1: greet\n\n## Acceptance Criteria\n\n- [ ] C1: greets by name\n- [ ] refuses an empty name\n"
TASK = Task(id="1", title="greet", files=(), test_files=(), body=BODY)
ONE = TASK.model_copy(update={"body": BODY.rpartition("- [ ]")[0]})
SHOWN = [{"id": "C1", "tests": ["test_greets"]}, {"id": "C2", "reason": "no test reads the log"}]
MET = [{"task": "1", "id": "C1", "met": True}, {"task": "1", "id": "C2", "met": True}]


def ready(criteria: object, task: Task = TASK) -> Malformed | None:
    report = parse_report("write-tests", Role.TEST, None, {"verdict": "TESTS_READY", "criteria": criteria})
    assert not isinstance(report, Malformed), report
    return unshown(task, report)


def review(criteria: object, verdict: str = "ACCEPTABLE", task: Task = TASK) -> Malformed | None:
    report = parse_report("review-result", Role.CHECK, None, {"verdict": verdict, "criteria": criteria})
    assert not isinstance(report, Malformed), report
    return unanswered(to_answer([task], {}), report)


def test_criteria_count_whoever_wrote_them() -> None:
    assert [(one.id, one.text) for one in TASK.criteria] == [("C1", "greets by name"), ("C2", "refuses an empty name")]
    assert TASK.acceptance_criteria == ("greets by name", "refuses an empty name")


@pytest.mark.parametrize(
    ("criteria", "said"),
    [
        (SHOWN, None),
        ([], "C1 (greets by name); C2 (refuses an empty name)"),
        (SHOWN[:1], "given for C2 (refuses an empty name)"),
        ([SHOWN[0], {"id": "C2"}], "C2"),
        ([SHOWN[0], {"id": "C2", "reason": " "}], "C2"),
        ([{"id": "AC1", "tests": ["test_more"]}], "'AC1' is no criterion; accepted: C1, C2, the ids of the list"),
        ([*SHOWN, {"id": "C3", "tests": ["test_more"]}], "'C3' is no criterion; accepted: C1, C2"),
    ],
)
def test_a_criterion_without_a_test_or_a_reason_goes_back(criteria: object, said: str | None) -> None:
    found = ready(criteria)
    assert (found is None) if said is None else (found is not None and said in found.sentence)


SUITE = observed(
    {f"tests/test_{file}.py::test_{name}": Ended.PASSED for file in "ab" for name in ("both", f"only_{file}")}
)


@pytest.mark.parametrize(
    ("named", "is_changed", "said"),
    [
        ({"criteria": [{"id": "C1", "tests": ["test_only_a", "test_b.py::test_both"]}]}, True, None),
        (
            {"criteria": [{"id": "C1", "tests": ["test_both"]}]},
            True,
            "2 tests end in it: tests/test_a.py::test_both, tests/",
        ),
        (
            {"criteria": [{"id": "C1", "tests": ["tests/test_a.py::test_only_c"]}]},
            True,
            "near it: tests/test_a.py::test_on",
        ),
        (
            {"tests": [{"id": "test_none", "expected": "GUARD"}]},
            True,
            "At /tests/0/id 'test_none': there is no such test",
        ),
        ({"tests": [{"id": "test_none"}]}, True, None),
        ({"tests": [{"id": "test_none"}]}, False, "At /tests/0/id 'test_none': there is no such test"),
        ({"tests": [{"id": "test_none", "origin": "removed"}]}, False, None),
    ],
)
def test_a_wrong_id_is_told_with_the_tests_that_could_be_meant(
    named: dict[str, object], is_changed: bool, said: str | None
) -> None:
    report = parse_report("write-tests", Role.TEST, None, {"verdict": "TESTS_READY", **named})
    assert not isinstance(report, Malformed), report
    found = wrong_ids(report, SUITE, is_changed=is_changed)
    assert (found is None) if said is None else (found is not None and said in found.sentence)


def test_one_criterion_needs_no_list() -> None:
    assert ready([], ONE) is None
    assert review([], task=ONE) is None


def test_the_final_review_answers_for_each_criterion() -> None:
    assert review(MET) is None
    found = review(MET[:1])
    assert found is not None
    assert "task 1, C2 (refuses an empty name)" in found.sentence


def test_what_is_not_met_is_not_acceptable() -> None:
    unmet = [MET[0], {**MET[1], "met": False}]
    found = review(unmet)
    assert found is not None
    assert "Criterion C2 of task 1 is not met" in found.sentence
    assert review(unmet, "NEEDS WORK") is None
