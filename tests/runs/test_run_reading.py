"""`pipeline.run.summary_facts`, `next_actions`: the facts of a run for people, programs and summary.md."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from runs.real import alone, begin, event, load, make_repository, to_first_task, to_split, tree_with

from pipeline.matrix.routing.state import NewTask
from pipeline.outcomes import EXIT_CODES, Outcome, Reason, exit_code
from pipeline.run.gates import ACTIONS, gate_of, safe_next_actions
from pipeline.run.info import RecipeFacts
from pipeline.run.journal_kinds import Published, PublishIntended
from pipeline.run.summary_facts import (
    box_facts_of,
    commits_of,
    counters_of,
    place_of,
    progress_of,
    work_tree,
)
from pipeline.vocabulary import Loop, Role, Signal

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.repo import Repository
    from pipeline.run.run import Run

CONTRACT = {
    "completed": "done nothing_to_do",
    "completed_with_blockers": "blockers",
    "parked": "approval worktree_changed branch_moved signing regression environment agent_unusable budget "
    "agent_unavailable",
    "failed": "escape loops_exhausted evidence_not_reached cleanup_needed",
    "rejected": "usage config bare_repository detached_head branch_is_base dirty_tree untrusted disk tracker_missing "
    "tracker_invalid issue_not_found issue_not_todo dependency_unmet dependency_missing baseline_impossible "
    "claimed_elsewhere locked",
    "cancelled": "interrupted abandoned",
}
"""Contract 2, in words of its own."""


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    alone(monkeypatch, tmp_path / "home")
    return make_repository(tmp_path / "project")


@pytest.fixture
def run(repository: Repository) -> Run:
    return begin(repository)


def test_every_way_to_stand_has_something_safe_to_do() -> None:
    for outcome, reasons in CONTRACT.items():
        for reason in reasons.split():
            actions = ACTIONS[Outcome(outcome)][Reason(reason)]
            assert actions, (outcome, reason)
            for action in actions:
                words = action.format_map(
                    dict(zip(("run", "issue", "branch", "start", "limit", "own"), "RIBSLO", strict=True))
                    | {"again": "redfirst run I"}
                )
                assert re.match(r"(redfirst|git) ", words), action
    assert set(ACTIONS) == set(EXIT_CODES)


def test_what_can_go_on_may_be_resumed_and_what_has_ended_may_not() -> None:
    for outcome, reasons in ACTIONS.items():
        for reason, actions in reasons.items():
            resumes = any(action.startswith("redfirst resume") for action in actions)
            goes_on = outcome is Outcome.PARKED and reason not in {Reason.APPROVAL, Reason.INPUT, Reason.LOCKED}
            goes_on |= outcome is Outcome.PARTIAL
            assert resumes is (goes_on or reason is Reason.INTERRUPTED), (outcome, reason)
            assert exit_code(outcome, reason) >= 0


def test_actions_name_the_run_its_issue_and_its_commits(run: Run) -> None:
    run.decide(event(Signal.OK))
    run.decide(event(Signal.NOT_TODO, reason=Reason.ISSUE_NOT_TODO))
    assert safe_next_actions(run) == (
        "redfirst issue show GAL-39",
        "redfirst issue status GAL-39 todo",
        "redfirst run GAL-39",
    )


def test_a_run_of_another_recipe_is_begun_anew_by_that_recipe(repository: Repository) -> None:
    quick = RecipeFacts(name="quick", version=1, sha256="0" * 64, path="quick.yaml")
    run = begin(repository, recipe=quick)
    run.decide(event(Signal.OK))
    run.decide(event(Signal.NOT_TODO, reason=Reason.ISSUE_NOT_TODO))
    assert safe_next_actions(run)[-1] == "redfirst run GAL-39 --recipe quick"


def test_a_run_without_outcome_is_watched_or_resumed(run: Run) -> None:
    assert safe_next_actions(run, live=True) == ("redfirst show run-GAL-39 --log --follow",)
    assert safe_next_actions(run) == ("redfirst resume run-GAL-39", "redfirst abandon run-GAL-39")


def test_tasks_are_listed_with_their_states_and_dropped_ones_do_not_count(run: Run) -> None:
    to_first_task(run, NewTask(id="1", title="One"), NewTask(id="2", title="Two"))
    tree = tree_with(make(run), run.state.head, {"one.py": "1\n"})
    run.decide(event(Signal.RED, tree=tree))
    run.decide(event(Signal.GREEN, tree=tree))
    run.decide(event(Signal.BLOCKED))
    run.decide(event(Signal.SPEC))
    run.decide(event(Signal.DRAFTED, tasks=(NewTask(id="3", title="Three"),)))
    assert [(task.id, task.status.value) for task in run.state.tasks.values()] == [
        ("1", "done"),
        ("2", "dropped"),
        ("3", "waiting"),
    ]
    assert progress_of(run) == (1, 2)


def make(run: Run) -> Repository:
    from pipeline.repo import Repository

    return Repository.find(run.folder)


def test_the_place_names_step_phase_task_and_gate(repository: Repository) -> None:
    run = begin(repository, "run-A", gates=("split",))
    assert place_of(run) == "sanity (phase 1)"
    to_split(run)
    run.decide(event(Signal.DRAFTED, tasks=(NewTask(id="1"),)))
    run.decide(event(Signal.ACCEPTABLE))
    assert (gate_of(run), place_of(run)) == ("split", "at approval point split (1 of 1)")
    run.decide(event(Signal.APPROVED))
    assert (gate_of(run), place_of(run)) == (None, "write-tests (phase 6), task 1")


def test_the_furthest_tree_is_what_the_step_works_on(run: Run) -> None:
    repository = make(run)
    to_first_task(run)
    assert work_tree(run) == run.state.start
    tests = tree_with(repository, run.state.head, {"test_x.py": "t\n"})
    run.decide(event(Signal.ILLEGAL_RED, tree=tests))
    assert work_tree(run) == tests
    run.decide(event(Signal.RED, tree=tests))
    candidate = tree_with(repository, tests, {"app.py": "c\n"})
    run.decide(event(Signal.NOT_GREEN, tree=candidate))
    assert work_tree(run) == candidate
    run.decide(event(Signal.PLAN))
    assert work_tree(run) == candidate


def test_counters_of_closed_scopes_come_last(run: Run) -> None:
    for signal in (Signal.OK, Signal.CLAIMED, Signal.HYGIENE, Signal.DRAFTED, Signal.NEEDS_WORK, Signal.HYGIENE):
        run.decide(event(signal))
    assert [str(counter) for counter in counters_of(run)] == [
        "dispatches 0 of 30",
        "plan_review 1 of 2 (plan revision 1)",
        "hygiene 1 of 2 (draft 3)",
        "hygiene 1 of 2 (draft 2)",
    ]
    assert [counter.holds for counter in counters_of(run)] == [True, True, True, False]


def test_a_configured_limit_is_the_one_that_is_shown(repository: Repository) -> None:
    run = begin(repository, limits={Loop.REASK: 3})
    to_first_task(run)
    run.decide(event(Signal.MALFORMED, role=Role.TEST))
    assert "reask 1 of 3 (@test)" in {str(counter) for counter in counters_of(run)}


def test_the_box_is_the_one_of_the_last_driver_that_said_so(run: Run) -> None:
    assert (box_facts_of(run).backend, box_facts_of(run).network) == ("bubblewrap", "none")
    run.decide(event(Signal.OK))
    run.decide(event(Signal.CANCELLED))
    run.resume(sandbox={"sandbox": "none", "network": "open"})
    run.decide(event(Signal.CANCELLED))
    run.resume()
    assert (box_facts_of(load(run)).backend, box_facts_of(load(run)).network) == ("none", "open")


def test_commits_count_only_when_they_are_published(run: Run) -> None:
    run.journal.append(PublishIntended(commits=("a",)))
    assert commits_of(run) == ()
    run.journal.append(Published(branch="work", commits=("a", "b")))
    assert commits_of(run) == ("a", "b")
