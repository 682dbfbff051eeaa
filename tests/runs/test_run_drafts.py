"""Drafts of a run: versions that stay, edits that are put back, and what a crash between two writes leaves of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from runs.real import alone, begin, event, load, make_repository, to_first_task, to_split

from pipeline.matrix.routing.state import NewTask
from pipeline.run.drafts import edited, put_back, redraft, take_edits, undone_edits, without_effect, write_draft
from pipeline.vocabulary import Signal

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.repo import Repository
    from pipeline.run.run import Run


def names(folder: Path) -> set[str]:
    """Return the drafts, their versions and their copies on disk."""
    paths = [path.relative_to(folder).as_posix() for path in folder.rglob("*.md")]
    return {path for path in paths if not path.startswith("reviews/")}


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    alone(monkeypatch, tmp_path / "home")
    return make_repository(tmp_path / "project")


@pytest.fixture
def run(repository: Repository) -> Run:
    """Return a run at SPLIT, whose plan was drafted."""
    run = begin(repository)
    redraft(run, {"plan.md": "plan\n"})
    to_split(run)
    return run


def test_a_redraft_that_undoes_an_edit_says_so_at_its_gate(repository: Repository) -> None:
    run = begin(repository, gates=("plan",))
    redraft(run, {"plan.md": "one\ntwo\nthree\n"})
    to_split(run)
    (run.folder / "plan.md").write_text("one\nmine\nthree\nfour\n", encoding="utf-8")
    assert undone_edits(run) == ()
    redraft(run, {"plan.md": "one\ntwo\nthree\nfour\n"})
    assert undone_edits(run) == ("2 lines of your edit (plan-1-edited.md) are undone in plan.md",)
    redraft(run, {"plan.md": "zero\nmine\nfour\n"})
    assert undone_edits(run) == ()


def test_a_redraft_that_a_crash_repeats_keeps_each_version_once(run: Run) -> None:
    (run.folder / "plan.md").write_text("mine\n", encoding="utf-8")
    redraft(run, {"plan.md": "better\n"})
    redraft(load(run, driving=True), {"plan.md": "better\n"})
    texts = {name: (run.folder / name).read_text("utf-8") for name in ("plan-1.md", "plan-1-edited.md", "plan.md")}
    assert texts == {"plan-1.md": "plan\n", "plan-1-edited.md": "mine\n", "plan.md": "better\n"}
    assert names(run.folder) == {*texts, "counts/plan.md"}


def test_what_a_crash_left_of_a_draft_is_not_taken_for_an_edit_of_a_person(run: Run) -> None:
    run.store.write("counts/plan.md", b"better\n")  # and died before plan.md
    assert without_effect(run) == ()
    run.store.write("plan.md", b"better\n")  # and died before the journal
    assert without_effect(load(run)) == ()
    assert put_back(load(run, driving=True)) == {}


def test_an_edit_is_put_back_once_and_kept(run: Run) -> None:
    (run.folder / "plan.md").write_text("mine\n", encoding="utf-8")
    assert put_back(run) == {"plan.md": "edited/plan-1.md"}
    assert put_back(load(run, driving=True)) == {}
    (run.folder / "plan.md").unlink()
    assert put_back(run) == {"plan.md": None}
    assert (run.folder / "plan.md").read_text("utf-8") == "plan\n"
    assert (run.folder / "edited" / "plan-1.md").read_text("utf-8") == "mine\n"


def test_an_edit_that_is_approved_leaves_what_was_drafted(run: Run) -> None:
    (run.folder / "plan.md").write_text("mine\n", encoding="utf-8")
    assert take_edits(run, {"plan.md": b"mine\n"}) == {"plan.md": "plan-1.md"}
    assert (run.folder / "plan-1.md").read_text("utf-8") == "plan\n"
    assert take_edits(load(run, driving=True), {"plan.md": b"mine\n"}) == {}
    assert without_effect(run) == ()


def test_an_edit_counts_at_its_gate_alone(repository: Repository) -> None:
    run = begin(repository, gates=("plan",))
    redraft(run, {"plan.md": "plan\n"})
    to_split(run)
    (run.folder / "plan.md").write_text("mine\n", encoding="utf-8")
    assert (edited(run, ["plan.md"]), without_effect(run)) == (("plan.md",), ())
    run.resume()
    run.decide(event(Signal.APPROVED))
    assert without_effect(run) == ("plan.md",)


def test_a_second_split_moves_what_it_drops_and_leaves_what_is_done(run: Run) -> None:
    redraft(run, {"task-1.md": "one\n", "task-2.md": "two\n"})
    to = [NewTask(id="1", title="one"), NewTask(id="2", title="two", depends_on=("1",))]
    run.decide(event(Signal.DRAFTED, tasks=tuple(to)))
    redraft(run, {"task-1.md": "all\n"})
    assert names(run.folder) == {
        *("plan.md", "counts/plan.md", "task-1.md", "counts/task-1.md"),
        *("dropped/task-1-1.md", "dropped/task-2-1.md"),
    }
    redraft(run, {"task-2.md": "another\n"})
    assert (run.folder / "dropped" / "task-1-2.md").read_text("utf-8") == "all\n"


def test_a_run_of_an_older_version_is_left_alone(repository: Repository) -> None:
    run = begin(repository)
    to_first_task(run)
    run.write_artifact("plan.md", "plan\n")
    (run.folder / "plan.md").write_text("mine\n", encoding="utf-8")
    assert (without_effect(run), put_back(run)) == ((), {})
    write_draft(run, "plan.md", "plan\n")
    assert edited(run, ["plan.md"]) == ()
