"""PLAN, REVIEW_PLAN, SPLIT, REVIEW_SPLIT: every loop of the two drafts, by whole runs (matrix 1 and 2)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from e2e.lanes import Played, finding, go_on, play, resolved, review, split_into
from e2e.shapes import FAST, SUMS_HONEST, sums_project

if TYPE_CHECKING:
    from pathlib import Path

    from kit import Entry

pytestmark = pytest.mark.slow

PLAN, PLAN_ACCEPTED, PLAN_SIMPLE, SPLIT, *_ = SUMS_HONEST
TASK: dict[str, Any] = SPLIT["report"]["tasks"][0]
UNTIDY: Entry = {**PLAN, "report": {**PLAN["report"], "approach": "Should greet raise?"}}


def planned(approach: str) -> Entry:
    return {**PLAN, "report": {**PLAN["report"], "approach": approach}}


def reviewed(verdict: str, *findings: dict[str, object], **more: object) -> Entry:
    return review("review-plan", verdict, *findings, **more)


# --- the plan's loops -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def redrafted(tmp_path_factory: pytest.TempPathFactory) -> Played:
    """Return a run parked at the plan gate after a hygiene redraft, NEEDS WORK, BLOCK, and acceptance."""
    entries = [
        UNTIDY,
        planned("Raise ValueError early."),
        reviewed("NEEDS WORK", finding("No edge cases", location="plan.md:12")),
        {**PLAN_SIMPLE, "report": {"verdict": "TOO MUCH"}},
        {**PLAN_SIMPLE, "report": {"verdict": "TOO MUCH"}},
        planned("Raise ValueError early, for spaces too."),
        reviewed(
            "BLOCK",
            finding("The caller breaks", "BLOCK"),
            prior=[{"id": "plan-1-01", "status": "resolved", "note": "spaces are named"}],
        ),
        {
            **PLAN_SIMPLE,
            "report": {
                "verdict": "NEEDS SIMPLIFICATION",
                "findings": [{"title": "One check is enough", "simpler": "`if not name`", "check_conflict": True}],
            },
        },
        planned("Raise ValueError early, and tell the caller."),
        reviewed("ACCEPTABLE", prior=resolved("plan-2-01")),
        PLAN_SIMPLE,
    ]
    project = sums_project(tmp_path_factory.mktemp("redrafted"))
    return play(project, entries, "--approve", "plan", extra='sandbox = "none"\n')


def test_the_plan_loops_end_at_the_gate_with_every_row_in_order(redrafted: Played) -> None:
    assert redrafted.document["_code"] == 4, redrafted.document["_stderr"]
    assert redrafted.rows == [
        "sanity/OK",
        "issue/CLAIMED",
        "plan/HYGIENE",
        "plan/DRAFTED",
        "any/MALFORMED",
        "any/MALFORMED",
        "review-plan/NEEDS_WORK",
        "plan/DRAFTED",
        "review-plan/BLOCK",
        "plan/DRAFTED",
        "review-plan/ACCEPTABLE",
    ]
    assert redrafted.counters("plan/HYGIENE") == {"hygiene@draft 2": 1}
    assert redrafted.counters("review-plan/BLOCK") == {"plan_review@plan 1": 2}
    assert redrafted.document["blockers"] == []


def test_an_untidy_draft_is_drafted_again_with_the_list_of_problems(redrafted: Played) -> None:
    first, second = redrafted.asked("plan", 1), redrafted.asked("plan", 2)
    assert first.artifacts == {"issue", "baseline"}
    assert "H012" in second.text("findings")
    assert second.document["attempt"] == 2


def test_a_redraft_gets_the_review_that_sent_it_back(redrafted: Played) -> None:
    assert "No edge cases" in redrafted.asked("plan", 3).text("findings")
    after_block = redrafted.asked("plan", 4).text("findings")
    assert "The caller breaks" in after_block
    assert "No edge cases - resolved" in after_block
    assert "tell the caller" in redrafted.artifact("plan.md")


def test_a_redraft_gets_the_draft_that_came_back(redrafted: Played) -> None:
    assert "previous_plan" not in redrafted.asked("plan", 1).artifacts
    assert "Should greet raise?" in redrafted.asked("plan", 2).text("previous_plan")
    assert "Raise ValueError early." in redrafted.asked("plan", 3).text("previous_plan")
    assert "for spaces too" in redrafted.asked("plan", 4).text("previous_plan")


def test_a_rereview_is_shown_what_changed_in_the_draft(redrafted: Played) -> None:
    for role in ("check", "simplify"):
        assert "changes" not in redrafted.asked("review-plan", 1, role=role).artifacts
    changes = redrafted.asked("review-plan", 2, role="check").text("changes")
    assert "-Raise ValueError early." in changes
    assert "+Raise ValueError early, for spaces too." in changes
    assert "previous" not in changes
    assert "tell the caller" in redrafted.asked("review-plan", 4, role="simplify").text("changes")


def test_a_rereview_gets_the_open_findings_by_their_ids(redrafted: Played) -> None:
    assert "open_findings" not in redrafted.asked("review-plan", 1, role="check").artifacts
    assert "plan-1-01 [HIGH]" in redrafted.asked("review-plan", 2, role="check").text("open_findings")
    third = redrafted.asked("review-plan", 3, role="check").text("open_findings")
    assert "plan-2-01 [BLOCK]" in third
    assert "plan-1-01" not in third


def test_simplify_malformed_twice_is_left_out_of_that_review_only(redrafted: Played) -> None:
    asked = redrafted.dispatches("review-plan", role="simplify")
    assert len(asked) == 4
    assert asked[0].document["reask"] is None
    assert "verdict" in asked[1].document["reask"]
    assert len(redrafted.dispatches("review-plan", role="check")) == 3, "@check is not asked again for it"
    assert ("any/MALFORMED", "unusable") in redrafted.exhausted()
    assert "One check is enough" in redrafted.artifact("reviews/plan-2-simplify.md")


@pytest.fixture(scope="module")
def converged(redrafted: Played) -> Played:
    """Return the next run of the same issue, after abandoning the first: the same finding twice."""
    abandoned = go_on(redrafted, "abandon")
    assert abandoned.document["_code"] == 0
    same = finding("The message is unclear", location="plan.md:9")
    entries = [
        PLAN,
        reviewed("NEEDS WORK", same),
        planned("Raise ValueError with a message."),
        reviewed("NEEDS WORK", {**same, "location": "plan.md:12"}, prior=[{"id": "plan-1-01", "status": "open"}]),
        *SUMS_HONEST[3:],
    ]
    return play(redrafted.project, entries, extra=FAST, name="run-GAL-1@2")


@pytest.mark.broad
def test_a_review_that_finds_nothing_new_converges_and_leaves_a_blocker(converged: Played) -> None:
    assert converged.document.get("run_id") == "run-GAL-1@2", converged.document
    assert converged.rows[2:6] == [
        "plan/DRAFTED",
        "review-plan/NEEDS_WORK",
        "plan/DRAFTED",
        "review-plan/CONVERGED",
    ], converged.document["_stderr"]
    assert converged.document["blockers"] == ["plan-1-01"]
    assert (converged.document["outcome"], converged.document["_code"]) == ("completed_with_blockers", 3)


@pytest.mark.broad
def test_a_blocker_on_record_is_filed_as_a_followup_of_the_issue(converged: Played) -> None:
    assert converged.document["follow_ups"] == ["GAL-1.1"]
    child = converged.project.git("show", "work:TODO/GAL-1.1.md")
    assert "title: The message is unclear" in child
    assert "labels: [followup]" in child
    assert "parent: GAL-1" in child
    assert "Open finding plan-1-01 of run-GAL-1@2." in child
    assert "- [ ] [GAL-1.1](GAL-1.1.md) The message is unclear" in converged.project.git("show", "work:TODO/GAL-1.md")
    assert "plan-1-01 [HIGH] The message is unclear" in converged.artifact("summary.md")


@pytest.mark.broad
def test_simplify_that_is_off_is_never_asked(converged: Played) -> None:
    assert converged.dispatches("review-plan", role="simplify") == []
    assert converged.dispatches("final-review", role="simplify") == []
    assert len(converged.dispatches("final-review", role="check")) == 1


@pytest.mark.broad
def test_three_reviews_with_new_findings_each_go_on_with_the_blockers(tmp_path: Path) -> None:
    entries = [
        PLAN,
        reviewed("NEEDS WORK", finding("First"), finding("Small", "LOW")),
        planned("Second draft."),
        reviewed("NEEDS WORK", finding("Second"), prior=resolved("plan-1-01")),
        planned("Third draft."),
        reviewed("NEEDS WORK", finding("Third"), prior=resolved("plan-2-01")),
    ]
    played = play(sums_project(tmp_path), entries, "--approve", "plan", extra=FAST)
    assert played.rows[-1] == "review-plan/NEEDS_WORK", played.document["_stderr"]
    assert played.exhausted() == [("review-plan/NEEDS_WORK", "plan_review")]
    assert len(played.dispatches("plan")) == 3
    assert played.document["blockers"] == ["plan-3-01"]
    assert played.document["advisory"] == ["plan-1-02: Small"]
    assert played.document["reason"] == "approval", "the gate stands on the exhausted edge too"


# --- the split's loops ------------------------------------------------------------------------------------------------

SECOND = {
    **TASK,
    "title": "Reject spaces",
    "acceptance_criteria": ['greet(" ") raises ValueError'],
    "test_files": [{"path": "spaces.check", "action": "create"}],
}


@pytest.fixture(scope="module")
def resplit(tmp_path_factory: pytest.TempPathFactory) -> Played:
    """Return a run parked at the split gate after every way in which a split can be sent back."""
    vague = {**TASK, "acceptance_criteria": ["works"]}
    ahead = review("review-split", "ACCEPTABLE")
    entries = [
        PLAN,
        PLAN_ACCEPTED,
        split_into({**TASK, "depends_on": [2]}, {**SECOND, "depends_on": [1]}),
        split_into(*({**SECOND, "test_files": [{"path": f"c{n}.check", "action": "create"}]} for n in range(13))),
        split_into(vague),
        SPLIT,
        review("review-split", "NEEDS WORK", finding("Spaces are not covered")),
        split_into(TASK, SECOND),
        review("review-split", "BLOCK", finding("The plan does not decompose", "BLOCK")),
        planned("Raise ValueError for empty and blank names."),
        PLAN_ACCEPTED,
        split_into(TASK, SECOND),
        ahead,
    ]
    return play(sums_project(tmp_path_factory.mktemp("resplit")), entries, "--approve", "split", extra=FAST)


@pytest.mark.broad
def test_the_split_loops_end_at_the_gate_with_every_row_in_order(resplit: Played) -> None:
    assert resplit.rows[4:] == [
        "any/MALFORMED",
        "split/HYGIENE",
        "split/HYGIENE",
        "split/DRAFTED",
        "review-split/NEEDS_WORK",
        "split/DRAFTED",
        "review-split/BLOCK",
        "plan/DRAFTED",
        "review-plan/ACCEPTABLE",
        "split/DRAFTED",
        "review-split/ACCEPTABLE",
    ], resplit.document["_stderr"]
    assert resplit.document["_code"] == 4
    assert resplit.counters("review-split/BLOCK") == {"plan_rework@run": 1}


def test_tasks_that_wait_for_each_other_are_malformed_and_asked_again(resplit: Played) -> None:
    again = resplit.asked("split", 2).document
    assert "cycle" in again["reask"]


def test_too_many_tasks_and_a_criterion_that_cannot_fail_are_hygiene(resplit: Played) -> None:
    assert "13 tasks; accepted are 12 at most" in resplit.asked("split", 3).text("findings")
    assert "H009" in resplit.asked("split", 4).text("findings")


def test_a_split_is_revised_on_the_review_and_a_block_goes_to_the_plan(resplit: Played) -> None:
    assert "Spaces are not covered" in resplit.asked("split", 5).text("findings")
    assert "The plan does not decompose" in resplit.asked("plan", 2).text("findings")
    fresh = resplit.asked("split", 6)
    assert fresh.artifacts == {"issue", "plan", "baseline"}, "a new plan revision is split afresh"
    assert "blank names" in fresh.text("plan")


def test_tasks_that_have_not_begun_keep_their_numbers(resplit: Played) -> None:
    assert list(resplit.tasks()) == ["1", "2"]
    assert [path.name for path in sorted(resplit.folder.glob("task-*.md"))] == ["task-1.md", "task-2.md"]
    assert "Your tasks get the ids 1, 2, 3" in resplit.asked("split", 5).document["prompt"]


def test_a_split_that_is_done_again_gets_the_tasks_that_came_back(resplit: Played) -> None:
    assert "previous_tasks" not in resplit.asked("split", 1).artifacts
    untidy = resplit.asked("split", 3)
    assert "Reject spaces" in untidy.text("previous_tasks")
    assert "- [ ] C1: works" in resplit.asked("split", 4).text("previous_tasks")
    assert "raises ValueError" in resplit.asked("split", 5).text("previous_tasks")


def test_a_rereview_of_the_split_is_shown_what_changed(resplit: Played) -> None:
    assert "changes" not in resplit.asked("review-split", 1).artifacts
    assert "+# Task 2: Reject spaces" in resplit.asked("review-split", 2).text("changes")
    assert "changes" not in resplit.asked("review-split", 3).artifacts, "a new plan is reviewed afresh"


@pytest.mark.parametrize("answered", [True, False])
@pytest.mark.broad
def test_an_acceptance_that_forgets_an_open_finding_is_asked_again_and_once_more_leaves_it_open(
    tmp_path: Path, answered: bool
) -> None:
    """A finding without an answer stays open: the run would end with a blocker that its reviewer holds for mended."""
    entries = [
        planned("Raise ValueError early."),
        reviewed("NEEDS WORK", finding("No edge cases")),
        planned("Raise ValueError early, for spaces too."),
        reviewed("ACCEPTABLE"),
        reviewed("ACCEPTABLE", prior=resolved("plan-1-01") if answered else []),
    ]
    played = play(sums_project(tmp_path), entries, "--approve", "plan", extra=FAST)
    last = "review-plan/ACCEPTABLE" if answered else "review-plan/CONVERGED"
    assert played.rows[-2:] == ["any/MALFORMED", last], played.document["_stderr"]
    assert "plan-1-01 has no answer" in played.asked("review-plan", 2, role="check").result["complaint"]


def test_each_dispatch_is_given_what_its_prompt_names_and_nothing_else(redrafted: Played, resplit: Played) -> None:
    assert redrafted.assert_artifact_rule() > 3
    assert resplit.assert_artifact_rule() > 3
