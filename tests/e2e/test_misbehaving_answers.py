"""Agents whose answers do not count: no JSON, hangs, exit codes, contradictions, paths that lead elsewhere.

Nor do claims about tests that the measurement does not bear out.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from e2e.misbehaviour import POISON, entry, last_rows, scene, shell
from kit import (
    AFTER_MAKE,
    GREET,
    GREET_DONE,
    HONEST,
    MAKE,
    PLAN,
    PLAN_ACCEPTED,
    PLAN_SIMPLE,
    SPLIT,
    SPLIT_ACCEPTED,
    TASK,
    TEST_GREET,
    TEST_GREET_NEW,
    TESTS,
    UNTIL_TESTS,
    judge,
)

if TYPE_CHECKING:
    from pathlib import Path

    from kit import Entry

pytestmark = pytest.mark.slow


def raw_report(kind: str, command: str, **words: Any) -> Entry:
    """Return an answer whose report file is what a shell command prints."""
    return entry(kind, run=shell(f'{{ {command}; }} > "$REDFIRST_REPORT"'), **words)


@pytest.mark.broad
def test_each_slot_is_asked_once_more_when_its_answer_is_no_report_and_told_why(tmp_path: Path) -> None:
    it = scene(tmp_path)
    with_nan = 'echo \'{"problem": "x", "files": [], "risks": [NaN]}\''
    huge = "printf '{\"verdict\": \"'; head -c 2000000 /dev/zero | tr '\\0' A; printf '\"}'"
    accepted = json.dumps(SPLIT_ACCEPTED["report"])
    two_lines = 'Thinking.\n{"verdict": "UNSURE"}\nOn second thoughts:\n' + accepted + "\nBye.\n"
    flood = shell("head -c 50000000 /dev/zero | tr '\\0' A; echo; echo '" + json.dumps(MAKE["report"]) + "'")
    it.project.use_script(
        [
            raw_report("plan", with_nan),
            PLAN,
            entry("review-plan", "check", stdout="My verdict is ACCEPTABLE.\n"),
            PLAN_ACCEPTED,
            entry("review-plan", "simplify", run=shell("echo 'no model today' >&2; exit 1")),
            entry("review-plan", "simplify", sleep_s=60),
            raw_report("split", 'echo \'{"tasks": [], "tasks": []}\''),
            SPLIT,
            raw_report("review-split", huge),
            entry("review-split", stdout=two_lines),
            {**TESTS, "report": None, "run": shell(f'ln -s {it.host}/secret.txt "$REDFIRST_REPORT"')},
            entry("write-tests", report=TESTS["report"]),
            {**MAKE, "report": None, "run": flood},
            entry("review-result", "check", report={"verdict": "NEEDS WORK", "summary": "I have a feeling"}),
            entry("review-result", "simplify", report={"verdict": "NEEDS SIMPLIFICATION"}),
        ],
        "[agents.simplify]\ntimeout_s = 1",
    )

    done = it.project.run()

    assert (done.get("outcome"), done["_code"]) == ("completed", 0), done
    assert it.project.rows()[2:] == [
        "any/MALFORMED",
        "plan/DRAFTED",
        "any/MALFORMED",
        "any/MALFORMED",
        "any/TIMED_OUT",
        "review-plan/ACCEPTABLE",
        "any/MALFORMED",
        "split/DRAFTED",
        "any/MALFORMED",
        "review-split/ACCEPTABLE",
        "any/MALFORMED",
        "write-tests/RED",
        "implement/GREEN",
        "final-review/ACCEPTABLE",
        "publish/PUBLISHED",
    ]
    decisions = [line["data"] for line in it.project.journal() if line["kind"] == "decision"]
    left_out = next(line for line in decisions if line["row"] == "any/TIMED_OUT")
    assert (left_out["action"]["do"], left_out["event"]["role"]) == ("LeaveOut", "simplify")
    started = [line["data"] for line in it.project.journal() if line["kind"] == "dispatch_started"]
    told = [line["reask"] for line in started if line["reask"]]
    expected = (
        "NaN is not a JSON number",
        "There was no report",
        "ended with exit code 1; the last line of its stderr is: no model today",
        "the key 'tasks' is given twice",
        "larger than 1000000 bytes",
        "is not a readable regular file",
    )
    assert len(told) == len(expected)
    assert [words for words, said in zip(expected, told, strict=True) if words not in said] == []
    it.assert_nothing_arrived()
    it.assert_explained("any/TIMED_OUT", "did not finish within 1 seconds", *expected)
    assert "NaN" in (it.project.run_folder() / "dispatches" / "001-plan-orchestrator" / "report.raw").read_text()


@pytest.mark.broad
def test_a_verdict_that_contradicts_its_findings_is_what_its_findings_say(tmp_path: Path) -> None:
    it = scene(tmp_path)
    finding = {"severity": "BLOCK", "title": "Loses data", "problem": "names are lost", "evidence": "greet.py:5"}
    it.project.use_script(
        [
            entry("review-plan", "check", report={"verdict": "ACCEPTABLE", "findings": [finding]}),
            PLAN,
            entry(
                "review-plan",
                "check",
                report={"verdict": "ACCEPTABLE", "prior": [{"id": "plan-1-01", "status": "resolved"}]},
            ),
            PLAN_SIMPLE,
            entry("review-split", report={"verdict": "BLOCK"}),
            *HONEST,
        ]
    )

    done = it.project.run()

    assert (done.get("outcome"), done["_code"]) == ("completed", 0), done
    assert it.project.rows()[2:8] == [
        "plan/DRAFTED",
        "review-plan/NEEDS_WORK",
        "plan/DRAFTED",
        "review-plan/ACCEPTABLE",
        "split/DRAFTED",
        "review-split/ACCEPTABLE",
    ]
    it.assert_explained("review-plan/NEEDS_WORK", "plan-1-01", "Loses data")


@pytest.mark.parametrize("path", [".git/hooks/post-checkout", "/etc/cron.d/x"])
@pytest.mark.broad(but_first=1)
def test_a_plan_that_names_files_outside_the_repository_never_counts(path: str, tmp_path: Path) -> None:
    it = scene(tmp_path)
    elsewhere = json.loads(json.dumps(PLAN))
    elsewhere["report"]["files"].append({"path": path, "action": "create", "why": POISON})
    it.project.use_script([elsewhere, elsewhere])

    parked = it.project.run()

    assert (parked.get("outcome"), parked.get("reason"), parked["_code"]) == ("parked", "agent_unusable", 4), parked
    assert it.project.rows()[2:] == ["any/MALFORMED", "any/MALFORMED"]
    reason = "is absolute" if path.startswith("/") else "goes into .git or .workflow"
    assert f"at /files/1/path: the path {reason}" in it.reask("002-plan-orchestrator")
    assert it.project.document("abandon", "GAL-1")["_code"] == 0
    it.assert_untouched()
    it.assert_explained("any/MALFORMED", reason)


@pytest.mark.broad
def test_a_pattern_in_a_file_list_grants_nothing_but_its_own_letters(tmp_path: Path) -> None:
    it = scene(tmp_path)
    everything = {**TASK, "files": [*TASK["files"], {"path": "**", "action": "modify"}]}
    literal = {**TASK, "files": [*TASK["files"], {"path": "lib/**", "action": "create"}]}
    grasping = {**MAKE, "run": shell("mkdir lib; echo POISON > lib/x.py; echo POISON > keep.py")}
    upwards = {"result": "INCOMPLETE", "blocking_issue": "more", "needs": [{"path": "../host/secret.txt", "why": "so"}]}
    it.project.use_script(
        [
            PLAN,
            PLAN_ACCEPTED,
            PLAN_SIMPLE,
            entry("split", report={"tasks": [everything]}),
            entry("split", report={"tasks": [literal]}),
            SPLIT_ACCEPTED,
            TESTS,
            grasping,
            entry("implement", report=upwards),
            entry("judge", report={"diagnosis": "production_logic", "notes": "ask for nothing"}),
            {**MAKE, "files": {"greet.py": GREET_DONE}},
            *AFTER_MAKE,
        ]
    )

    done = it.project.run()

    assert (done.get("outcome"), done["_code"]) == ("completed", 0), done
    assert it.project.rows()[4:] == [
        "split/HYGIENE",
        "split/DRAFTED",
        "review-split/ACCEPTABLE",
        "write-tests/RED",
        "any/VIOLATION",
        "any/MALFORMED",
        "diagnose/PRODUCTION_LOGIC",
        "implement/GREEN",
        "final-review/ACCEPTABLE",
        "publish/PUBLISHED",
    ]
    assert it.violations("008-implement-make") == {"keep.py": "outside-task", "lib/x.py": "outside-task"}
    assert last_rows(it.project, "split/HYGIENE")[0] == "split/DRAFTED"
    assert "contains '..'" in str(it.result("009-implement-make")["complaint"])
    it.assert_nothing_arrived()
    it.assert_explained("split/HYGIENE", "** does not exist")


# --- claims about tests -----------------------------------------------------------------------------------------------

SKIPS = TEST_GREET_NEW.replace("def test_an_empty", '@pytest.mark.skip(reason="later")\ndef test_an_empty')
IS_NO_PYTHON = TEST_GREET + "\n\ndef test_an_empty_name_is_refused(:\n    pass\n"
REWRITES_THE_TEST = (
    "import pathlib\n\nTESTS = pathlib.Path(__file__).parent / 'tests'\n"
    "(TESTS / 'test_greet.py').write_text('def test_an_empty_name_is_refused():\\n    pass  # POISON\\n')\n"
    "(TESTS / 'test_other.py').write_text('def test_is_kept():\\n    pass  # POISON\\n')\n" + GREET
)


def test_red_and_green_are_measured_whatever_the_agents_claim(tmp_path: Path) -> None:
    """What else @test and @make could claim is in `cheats`."""
    it = scene(tmp_path)
    wrong = judge("diagnose", diagnosis="production_logic", notes="raise ValueError")
    it.project.use_script(
        [
            *UNTIL_TESTS,
            {**TESTS, "files": {"tests/test_greet.py": SKIPS}},
            {**TESTS, "files": {"tests/test_greet.py": IS_NO_PYTHON}},
            TESTS,
            entry("implement", report=MAKE["report"]),  # no change at all
            wrong,
            {**MAKE, "files": {"greet.py": REWRITES_THE_TEST}},
            wrong,
            {**MAKE, "files": {"greet.py": GREET_DONE}},
            *AFTER_MAKE,
        ],
        '[limits]\nmake_retry = 5\n[agents.simplify]\nbackend = "off"\n',
    )

    done = it.project.run()

    assert (done.get("outcome"), done["_code"]) == ("completed", 0), done
    assert last_rows(it.project, "review-split/ACCEPTABLE") == [
        "write-tests/ILLEGAL_RED",
        "write-tests/ILLEGAL_RED",
        "write-tests/RED",
        "implement/NO_CHANGE",
        "diagnose/PRODUCTION_LOGIC",
        "implement/NOT_GREEN",
        "diagnose/PRODUCTION_LOGIC",
        "implement/GREEN",
        "final-review/ACCEPTABLE",
        "publish/PUBLISHED",
    ]
    assert it.project.git("show", "HEAD:tests/test_greet.py") == TEST_GREET_NEW.strip()
    assert it.project.git("show", "HEAD:greet.py") == GREET_DONE.strip()
    it.assert_nothing_arrived()
    it.assert_explained(
        "write-tests/ILLEGAL_RED", "skipped", "SyntaxError", "implement/NO_CHANGE", "implement/NOT_GREEN"
    )
