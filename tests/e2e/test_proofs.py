"""Findings with a proof: it is measured, and a test that fails over the result is the fix task's (evidence.md)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from e2e.lanes import Played, go_on, play
from e2e.shapes import FAST
from kit import FILES, GREET, GREET_DONE, MAKE, TESTS, UNTIL_TESTS, make_project

if TYPE_CHECKING:
    from pathlib import Path

    from kit import Entry

pytestmark = pytest.mark.slow

BLANK = """import pytest

from greet import greet


def test_a_blank_name_is_refused():
    with pytest.raises(ValueError):
        greet("  ")


def test_others_are_greeted():
    assert greet("Bob") == "Hello, Bob!"
"""
STRIPPED = GREET_DONE.replace("if not name:", 'if not (name or "").strip():')
PROOF = {"test": {"path": "tests/test_blank.py", "content": BLANK}}


def finding(title: str = "A blank name is greeted", **more: Any) -> dict[str, Any]:
    """Return a finding of MEDIUM weight, as @check writes it."""
    return {
        "severity": "MEDIUM",
        "title": title,
        "location": "greet.py:5",
        "problem": f"{title}.",
        "concern": "production",
        **more,
    }


def result(verdict: str, *findings: dict[str, Any], **more: Any) -> Entry:
    """Return a final review of @check."""
    report = {"verdict": verdict, "findings": list(findings), **more}
    return {"when": {"kind": "review-result", "role": "check"}, "report": report}


def without_simplify(entries: list[Entry]) -> list[Entry]:
    return [entry for entry in entries if entry["when"].get("role") != "simplify"]


def reviewed(tmp_path: Path, *then: Entry, extra: str = "") -> Played:
    """Return the run in which the final review, and what follows it, answers *then*."""
    project = make_project(tmp_path)
    project.env["DB_PASSWORD"] = "test_a_blank_name_is_refused"  # what is a secret may stand in any text
    return play(project, without_simplify([*UNTIL_TESTS, TESTS, MAKE, *then]), extra=FAST + extra)


FIXED: Entry = {
    "when": {"kind": "implement", "task": "fix-1"},
    "files": {"greet.py": STRIPPED},
    "report": {"result": "COMPLETE", "summary": "blank names, too"},
}


def test_a_finding_that_is_proved_goes_straight_to_make(tmp_path: Path) -> None:
    played = reviewed(tmp_path, result("NEEDS WORK", finding(proof=PROOF)), FIXED, result("ACCEPTABLE"))
    assert played.document["outcome"] == "completed", (played.document["note"], played.rows)
    assert played.rows[-6:] == [
        "final-review/PROVED",
        "split/PROVED",
        "write-tests/RED",
        "implement/GREEN",
        "final-review/ACCEPTABLE",
        "publish/PUBLISHED",
    ]
    assert len(played.dispatches("split")) == 1
    assert "A blank name is greeted" in played.asked("implement", task="fix-1").text("remarks")
    assert len(played.dispatches("write-tests")) == 1, "@test is not asked for what is RED already"
    (found,) = json.loads(played.artifact("reviews/final-1.json"))["ledger"]["findings"]
    assert (found["severity"], found["measured"]["found"]) == ("HIGH", "proved")
    assert found["measured"]["tests"] == ["tests/test_blank.py::test_a_blank_name_is_refused"]
    (settled,) = json.loads(played.artifact("reviews/final-2.json"))["ledger"]["findings"]
    assert settled["status"] == "resolved", "what its proof shows is measured, not asked"
    evidence = json.loads(played.artifact("evidence/task-fix-1.json"))
    assert evidence["proved_by"] == "final-1-01"
    checked = played.project.document("verify", "run-GAL-1")
    assert {commit["status"] for commit in checked["commits"]} <= {"verified", "nothing_claimed"}, checked
    assert played.project.git("show", "work:tests/test_blank.py") + "\n" == BLANK


PASSES = BLANK.replace('greet("  ")', 'greet("")')
OTHER = {"proof": {"test": {"path": "tests/test_none.py", "content": PASSES}}}
CONTROLS = {"proof": {"test": {"path": "tests/conftest.py", "content": "raise SystemExit(1)\n"}}}
WORDS = {
    "title": "Say which name",
    "acceptance_criteria": ["the message has the name"],
    "files": [{"path": "greet.py", "action": "modify"}],
    "test_files": [{"path": "tests/test_words.py", "action": "create"}],
}
NAMED = STRIPPED.replace('"a name is needed"', 'f"a name is needed: {name!r}"')
WORD_TEST = BLANK.replace("pytest.raises(ValueError)", 'pytest.raises(ValueError, match="needed: ")')


def test_what_is_refuted_holds_nothing_up_and_what_is_unproved_is_drafted_beside_what_is_proved(tmp_path: Path) -> None:
    first = result(
        "NEEDS WORK",
        finding("The empty name is greeted", severity="BLOCK", evidence="greet.py:5", **OTHER),
        finding(proof=PROOF),
        finding("The message names nobody", **CONTROLS),
    )
    drafted: Entry = {"when": {"kind": "split"}, "report": {"tasks": [WORDS]}}
    words = {**TESTS, "when": {"kind": "write-tests", "task": "fix-2"}, "files": {"tests/test_words.py": WORD_TEST}}
    named = {**FIXED, "when": {"kind": "implement", "task": "fix-2"}, "files": {"greet.py": NAMED}}
    again = result(
        "ACCEPTABLE",
        prior=[{"id": "final-1-01", "status": "open"}, {"id": "final-1-03", "status": "resolved"}],
    )
    words = {
        **words,
        "report": {
            "verdict": "TESTS_READY",
            "tests": [{"id": "tests/test_words.py::test_others_are_greeted", "expected": "GUARD"}],
        },
    }
    played = reviewed(tmp_path, first, drafted, FIXED, words, named, again)
    assert played.document["outcome"] == "completed", (played.document["note"], played.rows)
    assert "final-review/FIX" in played.rows
    assert [task for task in played.tasks() if task.startswith("fix")] == ["fix-1", "fix-2"]
    assert played.rows_of("fix-1")[:2] == ["write-tests/RED", "implement/GREEN"]
    told = played.asked("write-tests", task="fix-2").text("remarks")
    assert "The message names nobody" in told
    assert "The empty name is greeted" not in told, "it is refuted"
    found = json.loads(played.artifact("reviews/final-1.json"))["ledger"]["findings"]
    assert [(one["status"], one["measured"]["found"]) for one in found] == [
        ("refuted", "refuted"),
        ("open", "proved"),
        ("open", "unproved"),
    ]
    assert "controls tests" in found[2]["measured"]["why"]
    told = played.asked("split", 2).text("findings")
    assert "names nobody" in told
    assert "blank name" not in told, "its task is there already"
    review = played.asked("final-review", 2)
    told, _, settled = review.text("open_findings").partition("# Settled")
    open_, _, refuted = told.partition("# Refuted")
    assert "final-1-02 A blank name is greeted" in settled
    assert "The message names nobody" in open_
    assert "blank name" not in open_, "its proof passes by now"
    assert "The empty name is greeted" in refuted
    (after,) = [
        one
        for one in json.loads(played.artifact("reviews/final-2.json"))["ledger"]["findings"]
        if one["id"] == "final-1-01"
    ]
    assert after["status"] == "refuted", "an answer does not bring it back"


@pytest.mark.broad
def test_a_criterion_that_is_not_met_is_a_finding_where_the_other_ones_are_refuted(tmp_path: Path) -> None:
    unmet = {"task": "1", "id": "C1", "met": False, "note": "the message does not say which name"}
    first = result("NEEDS WORK", finding("The empty name is greeted", **OTHER), criteria=[unmet])
    drafted: Entry = {"when": {"kind": "split"}, "report": {"tasks": [WORDS]}}
    guard = {"id": "tests/test_words.py::test_others_are_greeted", "expected": "GUARD"}
    words: Entry = {
        "when": {"kind": "write-tests", "task": "fix-1"},
        "files": {"tests/test_words.py": WORD_TEST},
        "report": {"verdict": "TESTS_READY", "tests": [guard]},
    }
    again = result("ACCEPTABLE", prior=[{"id": "final-1-02", "status": "resolved"}])
    played = reviewed(tmp_path, first, drafted, words, {**FIXED, "files": {"greet.py": NAMED}}, again)
    assert played.document["outcome"] == "completed", (played.document["note"], played.rows)
    assert "final-review/FIX" in played.rows
    found = json.loads(played.artifact("reviews/final-1.json"))["ledger"]["findings"]
    assert [(one["status"], one["severity"], one["title"]) for one in found] == [
        ("refuted", "MEDIUM", "The empty name is greeted"),
        ("open", "HIGH", "Criterion C1 of task 1 is not met"),
    ]
    assert "does not say which name" in played.asked("split", 2).text("findings")


@pytest.mark.broad
def test_a_proof_whose_path_a_fix_has_taken_is_run_again_as_it_was_given(tmp_path: Path) -> None:
    taken = {"path": "tests/test_blank.py", "action": "create"}
    first = result("NEEDS WORK", finding(proof=PROOF), finding("The message names nobody"))
    drafted: Entry = {"when": {"kind": "split"}, "report": {"tasks": [{**WORDS, "test_files": [taken]}]}}
    named_too = WORD_TEST.replace("def test_a_blank_name_is_refused", "def test_the_name_is_told")
    more = BLANK + named_too[named_too.index("\n\ndef test_the_name") : named_too.index("\n\ndef test_others")]
    words: Entry = {**TESTS, "when": {"kind": "write-tests", "task": "fix-2"}, "files": {"tests/test_blank.py": more}}
    words |= {"report": {"verdict": "TESTS_READY"}}
    named: Entry = {**FIXED, "when": {"kind": "implement", "task": "fix-2"}, "files": {"greet.py": NAMED}}
    again = result("ACCEPTABLE", prior=[{"id": "final-1-02", "status": "resolved"}])
    played = reviewed(tmp_path, first, drafted, FIXED, words, named, again)
    assert played.document["outcome"] == "completed", (played.document["note"], played.rows)
    found = json.loads(played.artifact("reviews/final-2.json"))["ledger"]["findings"]
    (settled,) = [one for one in found if one["id"] == "final-1-01"]
    assert settled["status"] == "resolved"
    assert settled["note"] == "its proof, run again: tests/test_blank.py passes over the result"
    assert played.project.git("show", "work:tests/test_blank.py") + "\n" == more, "nothing of it was put back"


DISPUTED: Entry = {**TESTS, "report": {**TESTS["report"], "escalate_to_check": True, "escalation_reason": "enough?"}}
BOTH = TESTS["files"]["tests/test_greet.py"].replace(
    'greet("")\n', 'greet("")\n    with pytest.raises(ValueError):\n        greet(None)\n'
)


@pytest.mark.broad
def test_an_edit_that_the_tests_of_a_task_accept_sends_them_back_and_a_person_proves_what_is_wrong(
    tmp_path: Path,
) -> None:
    edit = {
        "path": "greet.py",
        "old": "def greet(name):\n",
        "new": 'def greet(name):\n    if name == "":\n        raise ValueError\n',
    }
    judged = {
        "when": {"kind": "judge", "question": "tests"},
        "report": {"verdict": "ACCEPTABLE", "findings": [finding("None passes", concern="test", proof={"edit": edit})]},
    }
    again = {**TESTS, "files": {"tests/test_greet.py": BOTH}}
    script = without_simplify(
        [*UNTIL_TESTS, DISPUTED, judged, again, MAKE, result("ACCEPTABLE"), FIXED, result("ACCEPTABLE")]
    )
    project = make_project(tmp_path)
    played = play(project, script, "--approve", "commit", extra=FAST)
    assert played.document["reason"] == "approval", (played.document.get("note"), played.rows)
    assert [row for row in played.rows if "tests/" in row] == [
        "write-tests/DISPUTED",
        "check-tests/NEEDS_WORK",
        "write-tests/RED",
    ]
    told = played.asked("write-tests", 2).text("findings")
    assert "[HIGH] None passes" in told
    assert "proved: all 2 tests pass over the edit of greet.py" in told

    file = project.home / "test_blank.py"
    file.write_text(BLANK, encoding="utf-8")
    feedback = ("--feedback", "A blank name is greeted.", "--proof", str(file))
    refused = go_on(played, "reject", *feedback, "--to", "split").document
    assert "--to fix only" in refused["error"]["message"]
    (project.root / "tests/conftest.py").write_text("", encoding="utf-8")
    refused = go_on(played, "reject", *feedback[:3], str(project.root / "tests/conftest.py")).document
    assert "controls tests" in refused["error"]["message"]
    (project.root / "tests/conftest.py").unlink()
    refused = go_on(played, "reject", *feedback[:3], "nothing.py").document
    assert refused["error"]["message"] == "--proof nothing.py cannot be read: No such file or directory."
    fixed = go_on(played, "reject", *feedback)
    assert fixed.rows[-5:] == [
        "gate/REJECTED_TO_FIX",
        "split/PROVED",
        "write-tests/RED",
        "implement/GREEN",
        "final-review/ACCEPTABLE",
    ], (fixed.document.get("note"), fixed.rows)
    assert json.loads(fixed.artifact("evidence/task-fix-1.json"))["proved_by"] == "person-1"
    shown = project.redfirst("show", "run-GAL-1", "-v").stdout
    assert "tests: the proof of person-1" in shown
    published = go_on(fixed, "approve").document
    assert published["outcome"] == "completed"


@pytest.mark.broad
def test_a_proof_that_passes_since_another_fix_is_done_and_asks_nobody(tmp_path: Path) -> None:
    """And who doubts a proof is heard: its test is @test's from then on."""
    tab = {"test": {"path": "tests/test_tab.py", "content": BLANK.replace('greet("  ")', 'greet("\\t")')}}
    both = result("NEEDS WORK", finding(proof=PROOF), finding("A tab is greeted", proof=tab))
    doubt = {
        **FIXED,
        "files": {},
        "report": {"result": "INCOMPLETE", "blocking_issue": "why?", "escalate": "test_design"},
    }
    diagnosis = {"when": {"kind": "judge", "question": "diagnose"}, "report": {"diagnosis": "test_design"}}
    again: Entry = {
        "when": {"kind": "write-tests", "task": "fix-1"},
        "files": {"tests/test_blank.py": BLANK.replace("Bob", "Eve")},
        "report": {"verdict": "TESTS_READY", "tests": [{"id": "test_others_are_greeted", "expected": "GUARD"}]},
    }
    settles = result("ACCEPTABLE", prior=[{"id": "final-1-01", "status": "resolved"}])  # its proof is in no file now
    played = reviewed(tmp_path, both, doubt, diagnosis, again, FIXED, settles)
    assert played.document["outcome"] == "completed", (played.document["note"], played.rows)
    assert played.rows_of("fix-1")[:5] == [
        "write-tests/RED",
        "implement/TEST_DESIGN",
        "diagnose/TEST_DESIGN",
        "write-tests/RED",
        "implement/GREEN",
    ]
    assert played.rows_of("fix-2") == ["write-tests/PROOF_PASSES"]
    assert json.loads(played.artifact("evidence/task-fix-1.json"))["proved_by"] is None, "it is another test by now"
    settled = json.loads(played.artifact("reviews/final-2.json"))["ledger"]["findings"]
    assert [one["status"] for one in settled] == ["resolved", "resolved"]


MESSAGE = WORD_TEST.partition("\n\n\ndef test_others")[0].replace("needed: ", "needed").replace('"  "', '""') + "\n"


def with_examples(code: str) -> str:
    """Return the module with examples in its documentation, which the runner tests where it stands."""
    head, _, body = code.partition("def greet(name):\n")
    return f'{head}def greet(name):\n    """Greet.\n\n    >>> greet(\'Ada\')\n    \'Hello, Ada!\'\n    """\n{body}'


def test_a_module_whose_examples_are_tested_is_production(tmp_path: Path) -> None:
    addopts = "--disable-plugin-autoload --doctest-modules"
    pyproject = f'[tool.pytest.ini_options]\naddopts = "{addopts}"\npythonpath = ["."]\n'
    files = {**FILES, "greet.py": with_examples(GREET), "pyproject.toml": pyproject}
    wrong = {"edit": {"path": "greet.py", "old": '"a name is needed"', "new": '"?"'}}
    drafted = {**WORDS, "files": [], "test_files": [{"path": "tests/test_words.py", "action": "create"}]}
    played = play(
        make_project(tmp_path, files),
        without_simplify(
            [
                *UNTIL_TESTS,
                TESTS,
                {**MAKE, "files": {"greet.py": with_examples(GREET_DONE)}},
                result("NEEDS WORK", finding("No test reads the message", concern="test", proof=wrong)),
                {"when": {"kind": "split"}, "report": {"tasks": [drafted]}},
                {**TESTS, "files": {"tests/test_words.py": MESSAGE}, "report": {"verdict": "TESTS_READY"}},
                result("ACCEPTABLE"),
            ]
        ),
        extra=FAST,
    )
    assert played.document["outcome"] == "completed", (played.document["note"], played.rows)
    (found,) = json.loads(played.artifact("reviews/final-1.json"))["ledger"]["findings"]
    assert found["measured"]["found"] == "proved", found["measured"]
    assert played.rows_of("fix-1") == ["write-tests/RED", "implement/GREEN"], "the example is none of the fix's tests"
