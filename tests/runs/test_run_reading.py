"""`pipeline.run.summary_facts`, `next_actions`: the facts of a run for people, programs and summary.md."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from runs.real import alone, begin, event, load, make_repository, to_first_task, to_split, tree_with

from pipeline.matrix.routing.state import NewTask
from pipeline.outcomes import EXIT_CODES, Outcome, Reason, exit_code
from pipeline.run.drafts import edited, put_back, redraft, take_edits, undone_edits, without_effect, write_draft
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


# --- drafts: versions that stay, edits that are put back, what a crash between two writes leaves ----------------------


def names(folder: Path) -> set[str]:
    """Return the drafts, their versions and their copies on disk."""
    paths = [path.relative_to(folder).as_posix() for path in folder.rglob("*.md")]
    return {path for path in paths if not path.startswith("reviews/")}


@pytest.fixture
def drafted(repository: Repository) -> Run:
    """Return a drafted at SPLIT, whose plan was drafted."""
    drafted = begin(repository)
    redraft(drafted, {"plan.md": "plan\n"})
    to_split(drafted)
    return drafted


def test_a_redraft_that_undoes_an_edit_says_so_at_its_gate(repository: Repository) -> None:
    drafted = begin(repository, gates=("plan",))
    redraft(drafted, {"plan.md": "one\ntwo\nthree\n"})
    to_split(drafted)
    (drafted.folder / "plan.md").write_text("one\nmine\nthree\nfour\n", encoding="utf-8")
    assert undone_edits(drafted) == ()
    redraft(drafted, {"plan.md": "one\ntwo\nthree\nfour\n"})
    assert undone_edits(drafted) == ("2 lines of your edit (plan-1-edited.md) are undone in plan.md",)
    redraft(drafted, {"plan.md": "zero\nmine\nfour\n"})
    assert undone_edits(drafted) == ()


def test_a_redraft_that_a_crash_repeats_keeps_each_version_once(drafted: Run) -> None:
    (drafted.folder / "plan.md").write_text("mine\n", encoding="utf-8")
    redraft(drafted, {"plan.md": "better\n"})
    redraft(load(drafted, driving=True), {"plan.md": "better\n"})
    texts = {name: (drafted.folder / name).read_text("utf-8") for name in ("plan-1.md", "plan-1-edited.md", "plan.md")}
    assert texts == {"plan-1.md": "plan\n", "plan-1-edited.md": "mine\n", "plan.md": "better\n"}
    assert names(drafted.folder) == {*texts, "counts/plan.md"}


def test_what_a_crash_left_of_a_draft_is_not_taken_for_an_edit_of_a_person(drafted: Run) -> None:
    drafted.store.write("counts/plan.md", b"better\n")  # and died before plan.md
    assert without_effect(drafted) == ()
    drafted.store.write("plan.md", b"better\n")  # and died before the journal
    assert without_effect(load(drafted)) == ()
    assert put_back(load(drafted, driving=True)) == {}


def test_an_edit_is_put_back_once_and_kept(drafted: Run) -> None:
    (drafted.folder / "plan.md").write_text("mine\n", encoding="utf-8")
    assert put_back(drafted) == {"plan.md": "edited/plan-1.md"}
    assert put_back(load(drafted, driving=True)) == {}
    (drafted.folder / "plan.md").unlink()
    assert put_back(drafted) == {"plan.md": None}
    assert (drafted.folder / "plan.md").read_text("utf-8") == "plan\n"
    assert (drafted.folder / "edited" / "plan-1.md").read_text("utf-8") == "mine\n"


def test_an_edit_that_is_approved_leaves_what_was_drafted(drafted: Run) -> None:
    (drafted.folder / "plan.md").write_text("mine\n", encoding="utf-8")
    assert take_edits(drafted, {"plan.md": b"mine\n"}) == {"plan.md": "plan-1.md"}
    assert (drafted.folder / "plan-1.md").read_text("utf-8") == "plan\n"
    assert take_edits(load(drafted, driving=True), {"plan.md": b"mine\n"}) == {}
    assert without_effect(drafted) == ()


def test_an_edit_counts_at_its_gate_alone(repository: Repository) -> None:
    drafted = begin(repository, gates=("plan",))
    redraft(drafted, {"plan.md": "plan\n"})
    to_split(drafted)
    (drafted.folder / "plan.md").write_text("mine\n", encoding="utf-8")
    assert (edited(drafted, ["plan.md"]), without_effect(drafted)) == (("plan.md",), ())
    drafted.resume()
    drafted.decide(event(Signal.APPROVED))
    assert without_effect(drafted) == ("plan.md",)


def test_a_second_split_moves_what_it_drops_and_leaves_what_is_done(drafted: Run) -> None:
    redraft(drafted, {"task-1.md": "one\n", "task-2.md": "two\n"})
    to = [NewTask(id="1", title="one"), NewTask(id="2", title="two", depends_on=("1",))]
    drafted.decide(event(Signal.DRAFTED, tasks=tuple(to)))
    redraft(drafted, {"task-1.md": "all\n"})
    assert names(drafted.folder) == {
        *("plan.md", "counts/plan.md", "task-1.md", "counts/task-1.md"),
        *("dropped/task-1-1.md", "dropped/task-2-1.md"),
    }
    redraft(drafted, {"task-2.md": "another\n"})
    assert (drafted.folder / "dropped" / "task-1-2.md").read_text("utf-8") == "all\n"


def test_a_run_of_an_older_version_is_left_alone(repository: Repository) -> None:
    drafted = begin(repository)
    to_first_task(drafted)
    drafted.write_artifact("plan.md", "plan\n")
    (drafted.folder / "plan.md").write_text("mine\n", encoding="utf-8")
    assert (without_effect(drafted), put_back(drafted)) == ((), {})
    write_draft(drafted, "plan.md", "plan\n")
    assert edited(drafted, ["plan.md"]) == ()
