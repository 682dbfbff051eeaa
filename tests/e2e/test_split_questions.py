"""The split review: an open question and files that only plan or tasks name are never taken for being in order."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import pytest
from e2e.lanes import finding, play
from kit import (
    AFTER_MAKE,
    ALL_WELL,
    MAKE,
    PLAN,
    PLAN_ACCEPTED,
    PLAN_SIMPLE,
    SPLIT,
    SPLIT_ACCEPTED,
    TESTS,
    Entry,
    make_project,
)

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.slow, pytest.mark.broad]

MORE = {"path": "pyproject.toml", "action": "modify", "why": "its version goes up"}
WIDER: Entry = {**PLAN, "report": {**PLAN["report"], "files": [*PLAN["report"]["files"], MORE]}}


def reviewed(*findings: dict[str, Any], **answers: Any) -> Entry:
    report = {"verdict": "ACCEPTABLE", "answers": answers, "findings": list(findings)}
    return {"when": {"kind": "review-split"}, "report": report}


@pytest.mark.parametrize(
    ("first", "said"),
    [
        (reviewed(), "there is no answer to coverage, overlap, single_purpose"),
        (
            reviewed(**{**ALL_WELL, "contracts": False}),
            "contracts is not answered with `true`, and no finding",
        ),
        (reviewed(**{**ALL_WELL, "testable": "two criteria are vague"}), "testable is not answered with `true`"),
    ],
    ids=["none", "no", "a sentence"],
)
@pytest.mark.broad(but_first=1)
def test_an_open_question_is_asked_again_once(tmp_path: Path, first: Entry, said: str) -> None:
    script = [PLAN, PLAN_ACCEPTED, PLAN_SIMPLE, SPLIT, first, first, TESTS, MAKE, *AFTER_MAKE]
    played = play(make_project(tmp_path), script)
    assert played.document["outcome"] == "completed", (played.document["note"], played.rows)
    assert [row for row in played.rows if row.startswith("any/")] == ["any/MALFORMED"]
    assert said in (played.asked("review-split", 2).folder / "prompt.md").read_text(encoding="utf-8")


@pytest.mark.broad
def test_what_a_finding_says_needs_no_second_question_and_differences_are_shown(tmp_path: Path) -> None:
    answers = {**ALL_WELL, "coverage": "the version is in no task"}
    accepted = reviewed(finding("The version stays", "LOW"), **answers)
    script = [WIDER, PLAN_ACCEPTED, PLAN_SIMPLE, SPLIT, accepted, TESTS, MAKE, *AFTER_MAKE]
    played = play(make_project(tmp_path), script)
    assert played.document["outcome"] == "completed", (played.document["note"], played.rows)
    assert "any/MALFORMED" not in played.rows
    shown = played.asked("review-split")
    assert shown.text("differences") == "- no task changes `pyproject.toml`, which the plan names\n"
    shown.assert_artifact_rule()


def test_a_split_that_leaves_the_plans_list_says_so_to_who_looks_at_it(tmp_path: Path) -> None:
    split = copy.deepcopy(SPLIT)
    split["report"]["tasks"][0]["files"].append({"path": "pyproject.toml", "action": "modify"})
    split["report"]["tasks"][0]["test_files"].append({"path": "tests/test_more.py", "action": "create"})
    tests = {"path": "tests/test_greet.py", "action": "modify", "why": "the tests stand there"}
    plan = {**PLAN, "report": {**PLAN["report"], "files": [*PLAN["report"]["files"], tests]}}
    played = play(
        make_project(tmp_path), [plan, PLAN_ACCEPTED, PLAN_SIMPLE, split, SPLIT_ACCEPTED], "--approve", "split"
    )
    assert played.document["reason"] == "approval", played.document
    assert "1 task; not in the plan: pyproject.toml, tests/test_more.py" in played.document["_stderr"]
    assert "task 1 changes `tests/test_more.py`, which the plan does not name" in played.asked("review-split").text(
        "differences"
    )
