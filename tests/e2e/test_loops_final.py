"""FINAL_REVIEW and `[checks]`: fix tasks, plan findings, cosmetic edits, blockers, by whole runs (matrix 1 to 4)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from e2e.lanes import (
    Played,
    finding,
    go_on,
    makes,
    module_task,
    module_test,
    modules_project,
    plan_for,
    play,
    review,
    split_into,
    until_tests,
    writes,
)
from kit import PLAN_ACCEPTED, SPLIT_ACCEPTED

if TYPE_CHECKING:
    from kit import Entry

pytestmark = [pytest.mark.slow, pytest.mark.broad]

FAST = '[agents.simplify]\nbackend = "off"\n'
TIDY = (
    "import pathlib, sys; [p.write_text(p.read_text().replace('  #', ' #')) for p in map(pathlib.Path, sys.argv[1:])]"
)
FORBIDDEN = (
    "import pathlib, sys; "
    "sys.exit(any('FORBIDDEN' in p.read_text() for p in pathlib.Path().glob('*.py')) and 'a forbidden word')"
)
CHECKS = f"""
[checks]
fix = [["python", "-c", "{TIDY}", "{{files}}"]]
commands = [
  ["python", "-c", "import sys; sys.exit('an old failure')"],
  ["python", "-c", "{FORBIDDEN}"],
]
[final_review]
on_blockers = "park"
"""


def result(verdict: str, *findings: dict[str, Any], **more: Any) -> Entry:
    return review("review-result", verdict, *findings, **more)


def resolved(*ids: str) -> list[dict[str, str]]:
    return [{"id": id_, "status": "resolved"} for id_ in ids]


NEW = {"path": "n1.py", "action": "create"}
NEW_TEST = {"path": "tests/test_n1.py", "action": "create"}
SIGN = "\n\ndef test_is_positive():\n    assert value_1() > 0\n"


def new_module(comment: str = "") -> str:
    return f"def value_1():\n    return 1{comment}\n"


def new_test(more: str = "") -> dict[str, str]:
    """Return the tests of the new module; the file cannot be imported before that is there."""
    return {"tests/test_n1.py": module_test(1, more=more).replace("from m1", "from n1")}


FIXES: list[Entry] = [
    plan_for("m1.py", files=[NEW]),
    PLAN_ACCEPTED,
    split_into(module_task(1, files=[NEW], test_files=[NEW_TEST])),
    SPLIT_ACCEPTED,
    {**writes(1), "files": new_test()},
    {**makes(1), "files": {"n1.py": new_module("  # FORBIDDEN")}},
    # the check fails newly: a production finding although @check is content
    result("ACCEPTABLE", finding("A nit", "LOW", concern="production")),
    split_into(
        module_task(
            1,
            title="Remove the forbidden word",
            files=[{**NEW, "action": "modify"}],
            test_files=[],
            evidence="regression",
        ),
    ),
    {"when": {"kind": "judge", "question": "not_testable"}, "report": {"accepted": True, "notes": "a comment"}},
    {**makes(1, task="fix-1"), "files": {"n1.py": new_module()}},
    # a finding on the tests alone
    result("NEEDS WORK", finding("The sign is untested", concern="test"), prior=resolved("final-1-01", "final-1-02")),
    split_into(module_task(1, title="Test the sign", files=[], test_files=[{**NEW_TEST, "action": "modify"}])),
    {**writes(1, task="fix-2"), "files": new_test(SIGN)},
    # the third review: no cycle is left
    result("NEEDS WORK", finding("The name is bad", concern="production"), prior=resolved("final-2-01")),
]


@pytest.fixture(scope="module")
def parked(tmp_path_factory: pytest.TempPathFactory) -> Played:
    """Return a run parked with a blocker after three final reviews."""
    return play(modules_project(tmp_path_factory.mktemp("fixes"), range(1, 2)), FIXES, extra=FAST + CHECKS)


@pytest.fixture(scope="module")
def published(parked: Played) -> Played:
    """Return the same run, approved."""
    return go_on(parked, "approve")


def test_three_final_reviews_are_all_and_open_blockers_park_if_asked(parked: Played) -> None:
    assert parked.document.get("outcome") == "parked", parked.document["_stderr"]
    assert (parked.document["reason"], parked.document["_code"]) == ("approval", 4)
    assert [row for row in parked.rows if row.startswith("final-review")] == ["final-review/FIX"] * 3
    assert parked.exhausted() == [("final-review/FIX", "final_review")]
    assert parked.document["blockers"] == ["final-3-01"]
    assert parked.project.git("rev-parse", "work") == parked.document["start_commit"]


def test_a_check_that_fails_newly_is_a_finding_and_one_that_failed_before_is_not(parked: Played) -> None:
    must_fix = parked.asked("split", 2).text("findings")
    assert "a forbidden word" in must_fix
    assert "an old failure" not in must_fix
    assert json.loads(parked.artifact("evidence/baseline.json"))["failing_checks"]


def test_fix_tasks_are_drafted_from_the_findings_beside_the_done_tasks(parked: Played) -> None:
    again = parked.asked("split", 2)
    assert again.artifacts == {"issue", "plan", "baseline", "findings", "done_tasks"}
    assert "Draft fix tasks for these findings only" in again.document["prompt"]
    assert "title: Let value 1 be right" in again.text("done_tasks")
    assert parked.rows.count("split/DRAFTED[drafting fix tasks]") == 2
    assert len(parked.dispatches("review-split")) == 1, "fix tasks get no split review"
    assert parked.tasks() == {"1": "done", "fix-1": "done", "fix-2": "done"}


def test_later_final_reviews_see_what_changed_and_the_open_findings(parked: Played) -> None:
    first, second, third = (parked.asked("final-review", n) for n in (1, 2, 3))
    assert first.artifacts == {"issue", "plan", "tasks", "evidence", "diff", "probes"}
    assert {"changes", "open_findings", "not_testable"} <= second.artifacts
    assert "-    return 1 # FORBIDDEN" in second.text("changes")
    for again in (second, third):
        again.assert_artifact_rule()
        assert again.known >= {"issue/issue.md", "plan/plan.md", "tasks/task-1.md", "evidence/task-1.md"}
        assert any(name.startswith("diff/") for name in again.known), "what is new of it stands in `changes`"
        assert not again.known & {"changes/final-2-changes.patch", "changes/final-3-changes.patch"}
    assert "tasks/task-fix-1.md" not in second.known, "it is new"
    assert "tasks/task-fix-1.md" in third.known
    assert first.known == set()
    assert "final-1-01 [HIGH] check fails" in second.text("open_findings")
    assert "test_is_positive" in third.text("changes")


def test_the_formatter_runs_over_what_make_changed(parked: Played) -> None:
    assert "return 1  # FORBIDDEN" in parked.project.git("show", f"{parked.asked('implement').result['tree']}:n1.py")
    assert "return 1 # FORBIDDEN" in parked.asked("final-review").text("diff")


def test_tests_alone_are_red_over_the_production_of_the_start(parked: Played) -> None:
    assert parked.rows_of("fix-2") == ["write-tests/RED", "implement/GREEN"]
    assert parked.dispatches("implement", task="fix-2") == [], "GREEN over head needs no dispatch"
    evidence = json.loads(parked.artifact("evidence/task-fix-2.json"))
    assert list(evidence["ledger"]["red"]) == ["tests/test_n1.py"], "the module was not there at the start"
    assert evidence["green"]["stub_failures"] == ["tests/test_n1.py::test_is_positive"], "only what is new counts"
    assert evidence["production"] == json.loads(parked.artifact("run.json"))["start_tree"]


def test_an_approved_run_with_blockers_is_published_with_fix_commits(published: Played) -> None:
    assert (published.document["outcome"], published.document["_code"]) == ("completed_with_blockers", 3)
    assert published.subjects() == [
        "feat: let value 1 be right",
        "fix: remove the forbidden word",
        "test: test the sign",
        "chore(todo): close GAL-1",
    ]
    last = published.project.git("show", "--no-patch", "--format=%B", "work~1")
    assert f"Red-Base: {published.document['start_commit']}" in last
    assert published.project.git("show", "work:n1.py") == new_module().strip()
    assert published.document["follow_ups"] == ["GAL-1.1"]
    assert "title: The name is bad" in published.project.git("show", "work:TODO/GAL-1.1.md")


# --- plan findings, cosmetic findings ---------------------------------------------------------------------------------

COMMENTED = "# returns won\ndef value_2():\n    return 2\n"
REPLANNED: list[Entry] = [
    *until_tests(module_task(1)),
    writes(1),
    makes(1),
    result("NEEDS WORK", finding("Both values are wrong", concern="plan"), finding("A typo", concern="production")),
    plan_for("m1.py", "m2.py"),
    PLAN_ACCEPTED,
    split_into(module_task(2)),
    SPLIT_ACCEPTED,
    writes(2, task="2"),
    {**makes(2, task="2"), "files": {"m2.py": COMMENTED}},
    # the edit would change the code: a fix task instead
    result(
        "NEEDS WORK",
        finding("Say it better", concern="cosmetic", edit={"path": "m2.py", "old": "return 2", "new": "return 1 + 1"}),
    ),
    split_into(module_task(1, title="Say it better")),
    writes(1, task="fix-1"),
    makes(1, task="fix-1"),
    # this one is a comment: our code applies it
    result(
        "NEEDS WORK",
        finding("A typo", concern="cosmetic", edit={"path": "m2.py", "old": "won", "new": "two"}),
        prior=resolved("final-2-01"),
    ),
    result("ACCEPTABLE", prior=resolved("final-3-01")),
]


@pytest.fixture(scope="module")
def replanned(tmp_path_factory: pytest.TempPathFactory) -> Played:
    """Return a finished run whose first result was sent back to the plan, and whose second was edited."""
    return play(modules_project(tmp_path_factory.mktemp("replanned"), range(1, 3)), REPLANNED, extra=FAST)


def test_a_plan_finding_goes_to_the_plan_before_anything_else(replanned: Played) -> None:
    assert replanned.document.get("outcome") == "completed", replanned.document["_stderr"]
    again = replanned.asked("plan", 2)
    assert "Both values are wrong" in again.text("findings")
    assert "A typo" not in again.text("findings")
    assert "+    return 1" in again.text("previous_patch")
    assert replanned.counters("final-review/PLAN") == {"plan_rework@run": 1}


def test_a_cosmetic_edit_that_changes_the_code_becomes_a_fix_task(replanned: Played) -> None:
    assert "Say it better" in replanned.asked("split", 3).text("findings")
    assert replanned.tasks() == {"2": "done", "fix-1": "done"}


def test_a_cosmetic_edit_that_keeps_the_code_is_applied_by_our_code(replanned: Played) -> None:
    reviews = [row for row in replanned.rows if row.startswith("final-review")]
    assert reviews == ["final-review/PLAN", "final-review/FIX", "final-review/COSMETIC", "final-review/ACCEPTABLE"]
    assert replanned.subjects() == [
        "feat: let value 2 be right",
        "fix: say it better",
        "style: apply cosmetic findings of the final review",
        "chore(todo): close GAL-1",
    ]
    assert replanned.project.git("show", "work:m2.py").startswith("# returns two\n")
    assert replanned.counters("final-review/COSMETIC") == {"cosmetic@run": 1}
    assert "-# returns won" in replanned.asked("final-review", 4).text("changes")


def test_each_dispatch_is_given_what_its_prompt_names_and_nothing_else(parked: Played) -> None:
    assert parked.assert_artifact_rule() > 3
