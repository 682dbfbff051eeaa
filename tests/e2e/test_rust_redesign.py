"""Tests beside Rust code that are written again: what was implemented meanwhile is kept, and no RED borrows from it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from e2e.lanes import Played, finding, play
from e2e.shapes import answers
from e2e.test_rust_issue import BASE, GREET, GREET_DONE, REFUSED, beside, make
from kit import AFTER_MAKE, RESULT_ACCEPTED, RESULT_SIMPLE
from languages.crates import needs_cargo

if TYPE_CHECKING:
    from pathlib import Path

    from kit import Entry

pytestmark = [pytest.mark.slow, needs_cargo]

FILES = {**BASE, **beside(GREET)}
WRONG = REFUSED.replace("is_err()", 'unwrap_err() == "who?"')
NAMED = """
    #[test]
    fn a_name_is_asked_for() {
        assert_eq!(greet("").unwrap_err(), "a name is needed");
    }
"""
PART = GREET_DONE.replace("a name is needed", "no")
READY = {"verdict": "TESTS_READY"}
DOUBTS = {"result": "INCOMPLETE", "blocking_issue": "nobody asked for these words", "escalate": "test_design"}
REDESIGN: Entry = {
    "when": {"kind": "judge", "question": "diagnose"},
    "report": {"diagnosis": "test_design", "notes": "the words are not asked for"},
}


def writes(text: str) -> Entry:
    return {"when": {"kind": "write-tests"}, "files": beside(GREET, text), "report": READY}


def made(code: str, text: str, report: dict[str, Any] | None = None) -> Entry:
    said = report or {"result": "COMPLETE", "summary": "refuses"}
    return {"when": {"kind": "implement"}, "files": beside(code, text), "report": said}


def script(*middle: Entry) -> list[Entry]:
    """Return the answers of a run: up to the split, those given, the final review."""
    whole = answers(FILES, beside(GREET, REFUSED), beside(GREET_DONE, REFUSED))
    return [*whole[:5], *middle, *AFTER_MAKE]


def text_in(played: Played, tree: str) -> str:
    return played.project.git("show", f"{tree}:src/lib.rs") + "\n"


def completed(tmp_path: Path, entries: list[Entry]) -> Played:
    played = play(make(tmp_path, FILES), entries)
    assert played.document["outcome"] == "completed", (played.document["note"], played.rows)
    return played


@pytest.mark.broad
def test_who_implements_again_starts_from_the_own_work_with_the_new_tests_in_it(tmp_path: Path) -> None:
    redesigned = [writes(WRONG), made(PART, WRONG, DOUBTS), REDESIGN, writes(NAMED), made(GREET_DONE, NAMED)]
    played = completed(tmp_path, script(*redesigned))
    again = played.asked("implement", 2)
    assert text_in(played, again.result["base_tree"]) == beside(PART, NAMED)["src/lib.rs"]
    assert text_in(played, "HEAD") == beside(GREET_DONE, NAMED)["src/lib.rs"]


@pytest.mark.broad
def test_a_fix_of_the_tests_alone_is_red_over_the_start(tmp_path: Path) -> None:
    both = REFUSED + NAMED
    untested = finding("Its words are untested", concern="test")
    fix = {
        "title": "Test the words",
        "acceptance_criteria": ["the error says that a name is needed"],
        "files": [],
        "test_files": [{"path": "src/lib.rs", "action": "modify"}],
    }
    entries = [
        writes(REFUSED),
        made(GREET_DONE, REFUSED),
        {**RESULT_ACCEPTED, "report": {"verdict": "NEEDS WORK", "findings": [untested]}},
        RESULT_SIMPLE,
        {"when": {"kind": "split"}, "report": {"tasks": [fix]}},
        {"when": {"kind": "write-tests"}, "files": beside(GREET_DONE, both), "report": READY},
        {**RESULT_ACCEPTED, "report": {"verdict": "ACCEPTABLE", "prior": [{"id": "final-1-01", "status": "resolved"}]}},
        RESULT_SIMPLE,
    ]
    whole = script()[:5]
    played = completed(tmp_path, [*whole, *entries])
    assert played.rows_of("fix-1") == ["write-tests/RED", "implement/GREEN"]
    assert played.dispatches("implement", task="fix-1") == [], "GREEN over head needs no dispatch"
    found = json.loads(played.artifact("evidence/task-fix-1.json"))
    assert list(found["ledger"]["red"]) == ["greet::lib::tests::a_name_is_asked_for"]
    assert found["production"] == json.loads(played.artifact("run.json"))["start_tree"]
    assert text_in(played, "HEAD") == beside(GREET_DONE, both)["src/lib.rs"]
    checked = played.project.document("verify", "run-GAL-1")
    assert checked["_code"] == 0, checked
    assert [commit["status"] for commit in checked["commits"]][:2] == ["verified", "verified"]
    assert [commit["red_over"] for commit in checked["commits"]][:2] == ["parent", "start"]
