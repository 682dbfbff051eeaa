"""The runs of all worktrees of a repository: found, named, told apart, listed."""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import shutil
import sys
import time
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest
from people.ground import waiting
from runs.real import alone, begin, git, make_repository

from pipeline.app.answer import free_orphan
from pipeline.app.run_list import TICK_NS, Rest, RunsDocument, list_runs, newest, newest_runs, running_beside
from pipeline.errors import UserError
from pipeline.faces.cli.runs import runs_text
from pipeline.repo import Repository
from pipeline.run.run_ref import keep
from pipeline.run.runs_of_repository import Roster, find_run, next_name
from pipeline.run.store import claims, keep_key, key_of_run, key_of_worktree, run_ref, state_of_run, take_claim

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from pipeline.app.run_list import RunLine

pytestmark = pytest.mark.slow


@pytest.fixture
def main(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    alone(monkeypatch, tmp_path / "home")
    return make_repository(tmp_path / "shop")


def add(main: Repository, name: str, *options: str) -> Repository:
    folder = main.worktree.parent / name
    git(main.worktree, *options, "worktree", "add", "--quiet", "--detach", str(folder))
    return Repository.find(folder)


def found(repository: Repository, names: Sequence[str]) -> list[str]:
    top = repository.main_checkout.parent
    return [str(find_run(repository, name).relative_to(top)).replace("/.workflow", "") for name in names]


def test_the_worktrees_are_those_that_git_lists_wherever_it_is_asked(main: Repository) -> None:
    other = add(main, "a linked one")
    add(main, "relative", "-c", "worktree.useRelativePaths=true")
    shutil.rmtree(add(main, "gone").worktree)
    locked = add(main, "locked").worktree
    git(main.worktree, "worktree", "lock", "--reason", "a disk", str(locked))
    shutil.rmtree(locked)
    git(main.worktree, "worktree", "move", str(other.worktree), str(main.worktree.parent / "moved"))
    moved = Repository.find(main.worktree.parent / "moved")
    said = git(main.worktree, "worktree", "list", "--porcelain").splitlines()
    listed = {Path(line.removeprefix("worktree ")) for line in said if line.startswith("worktree ")}
    for repository in (main, moved):
        known = {each.path: each for each in repository.worktrees()}
        assert known.keys() == listed
        assert [each.path.name for each in known.values() if not each.is_there] == ["gone", "locked"]
        assert known[locked].locked == "a disk"
        assert repository.at(known[moved.worktree]).git_dir == moved.git_dir


def test_a_run_is_named_from_any_worktree(main: Repository) -> None:
    other = add(main, "shop-gal-41")
    begin(main, "run-GAL-40", started_at="2026-11-21T09:00:00.000Z")
    begin(main, "run-GAL-41", started_at="2026-11-22T09:00:00.000Z")
    begin(other, "run-GAL-41@2", started_at="2026-11-23T09:00:00.000Z")
    names = ("run-GAL-41@2", "GAL-41", "GAL-40", "run-gal-41", "shop-gal-41/gal", "shop/GAL-41")
    there, here = "shop-gal-41/run-GAL-41@2", "shop/run-GAL-41"
    for repository in (main, other):
        assert found(repository, names) == [there, there, "shop/run-GAL-40", here, there, here]
    with pytest.raises(UserError, match="fits more than one run") as refused:
        find_run(main, "GAL")
    assert refused.value.details == {"runs": ["run-GAL-40", "run-GAL-41", "run-GAL-41@2"]}


def test_two_runs_of_one_name_are_told_apart_by_their_worktrees(main: Repository, tmp_path: Path) -> None:
    one, two, three = add(main, "one"), add(main, "two"), add(main, "deep/one")
    for repository in (one, two, three):
        begin(repository, "run-GAL-40")
    with pytest.raises(UserError, match="fits more than one run") as refused:
        find_run(main, "run-GAL-40")
    names = cast("list[str]", refused.value.details["runs"])
    assert "two/run-GAL-40" in names
    assert {find_run(main, name) for name in names} == {run.folder for run in Roster(main).runs}
    assert find_run(two, "run-GAL-40") == two.worktree / ".workflow/run-GAL-40"
    assert find_run(main, f"{three.worktree}/run-GAL-40") == tmp_path / "deep/one/.workflow/run-GAL-40"


def test_a_new_run_takes_no_name_that_another_worktree_has_or_had(main: Repository) -> None:
    other = add(main, "other")
    begin(other, "run-GAL-40")
    assert next_name(main, "GAL-40") == "run-GAL-40@2"
    git(main.worktree, "update-ref", "refs/redfirst/runs/lost-abcdef/run-GAL-40@2", "HEAD")
    assert next_name(main, "GAL-40") == "run-GAL-40@3"


def test_another_repository_in_the_place_of_a_worktree_has_no_runs_of_this_one(main: Repository) -> None:
    place = add(main, "linked").worktree
    shutil.rmtree(place)
    begin(make_repository(place), "run-GAL-40")
    assert Roster(main).runs == []
    with pytest.raises(UserError, match="is not a run of this repository"):
        find_run(main, "run-GAL-40")


def test_the_name_of_a_run_that_is_gone_means_no_later_one(main: Repository) -> None:
    begin(main, "run-GAL-39@2")
    assert find_run(main, "GAL-39").name == find_run(main, "run-GAL-39@").name == "run-GAL-39@2"
    with pytest.raises(UserError, match="is not a run of this repository"):
        find_run(main, "run-GAL-39")


@pytest.mark.parametrize("name", ["GLA-39", "rnu-gal-39"])
def test_a_name_that_is_nearly_one_is_answered_with_it(main: Repository, name: str) -> None:
    begin(main, "run-GAL-39")
    with pytest.raises(UserError, match=r"Did you mean run-GAL-39\?"):
        find_run(main, name)
    for other in ("something-else", "GAL-38", "run-GAL-39@2"):  # another number is another issue, or another run
        with pytest.raises(UserError) as caught:
            find_run(main, other)
        assert "Did you mean" not in caught.value.message


# --- what a worktree is called: its runs stay its own when it is moved ------------------------------------------------


@pytest.fixture
def top(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    alone(monkeypatch, tmp_path / "home")
    return make_repository(tmp_path / "project")


def linked(top: Repository, name: str) -> Repository:
    path = top.worktree.parent / name
    git(top.worktree, "worktree", "add", "--quiet", "-b", name, str(path), "main")
    return Repository.find(path)


def test_a_worktree_that_is_moved_is_called_as_before_and_another_in_its_place_is_not(
    top: Repository, tmp_path: Path
) -> None:
    there = linked(top, "gal-39")
    run = begin(there, "run-GAL-39")
    assert take_claim(there, "GAL-39", "run-GAL-39") is None
    before = key_of_run(run.folder), run_ref(there, "run-GAL-39"), state_of_run(tmp_path, there, "run-GAL-39")
    git(top.worktree, "worktree", "move", str(there.worktree), str(tmp_path / "elsewhere"))
    moved = Repository.find(tmp_path / "elsewhere")
    folder = moved.worktree / ".workflow" / "run-GAL-39"
    assert before == (key_of_run(folder), run_ref(moved, "run-GAL-39"), state_of_run(tmp_path, moved, "run-GAL-39"))
    assert take_claim(moved, "GAL-39", "run-GAL-39") is None
    (claim,) = claims(top).values()
    assert getattr(claim, "folder", None) == folder
    git(top.worktree, "worktree", "add", "--quiet", "-b", "gal-40", str(there.worktree), "main")
    new = begin(Repository.find(there.worktree), "run-GAL-39")
    assert key_of_run(new.folder) != before[0]


def test_where_an_older_version_ran_the_name_is_that_of_the_path(top: Repository) -> None:
    path = top.worktree
    (path / ".workflow" / "run-GAL-1").mkdir(parents=True)
    keep_key(path)
    assert key_of_worktree(path) == f"project-{hashlib.sha256(str(path).encode()).hexdigest()[:6]}"
    assert key_of_worktree(path / "gone") == f"gone-{hashlib.sha256(str(path / 'gone').encode()).hexdigest()[:6]}"


@pytest.mark.broad(but_first=1)
@pytest.mark.parametrize("content", [b"", b"../x-aaaaaa\n", b"x-aaaaaa", b"x" * 10_000, None])
def test_what_is_no_name_does_not_count(top: Repository, content: bytes | None) -> None:
    path = top.worktree
    kept = top.git_dir / "redfirst-key"
    kept.symlink_to("/etc/hostname") if content is None else kept.write_bytes(content)
    assert key_of_worktree(path) == f"project-{hashlib.sha256(str(path).encode()).hexdigest()[:6]}"


def _kept(path: Path) -> str:
    keep_key(path)
    return key_of_worktree(path)


def test_of_processes_that_begin_at_once_all_use_one_name(top: Repository) -> None:
    with multiprocessing.get_context("fork").Pool(4) as pool:
        assert len(set(pool.map(_kept, [top.worktree] * 16))) == 1
    assert [path.name for path in top.git_dir.glob("redfirst-key*")] == ["redfirst-key"]


@pytest.mark.broad
def test_a_project_that_is_moved_while_a_run_waits_goes_on(tmp_path: Path) -> None:
    project = waiting(tmp_path).project
    moved = project.root.rename(tmp_path / "moved")
    done = project.redfirst("approve", "--json", cwd=moved)
    assert '"outcome": "completed"' in done.stdout, done.stdout + done.stderr


# --- of runs that have ended nothing is opened but an index (checks 8 and 9) ------------------------------------------

_opened: list[str] | None = None


def _hook(event: str, arguments: tuple[object, ...]) -> None:
    if _opened is not None and event == "open":
        _opened.append(str(arguments[0]))


sys.addaudithook(_hook)


@contextmanager
def opens() -> Generator[list[str]]:
    """Collect what is opened."""
    global _opened  # noqa: PLW0603  (a hook cannot be taken away)
    _opened = []
    try:
        yield _opened
    finally:
        _opened = None


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    alone(monkeypatch, tmp_path / "home")
    made = make_repository(tmp_path / "project")
    for number in range(1, 13):
        run = begin(made, f"run-GAL-{number}")
        if number > 2:
            run.abandon()
    settle()
    return made


def settle() -> None:
    """Let the clock of the file system go on: what is so new is not kept."""
    until = time.time_ns() + 2 * TICK_NS
    while time.time_ns() < until:
        os.sched_yield()


def listed(repository: Repository) -> dict[str, RunLine]:
    return {line.name: replace(line, age_s=0) for line in list_runs(repository).runs}


def test_check_8_six_worktrees_and_runs_shows_six(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    alone(monkeypatch, tmp_path / "home")
    main = make_repository(tmp_path / "project")
    begin(main, "run-GAL-1")
    for number in range(2, 7):
        git(main.worktree, "worktree", "add", "--quiet", "-b", f"gal-{number}", f"../project-gal-{number}", "main")
        begin(Repository.find(tmp_path / f"project-gal-{number}"), f"run-GAL-{number}")
    for seen_from in (main, Repository.find(tmp_path / "project-gal-4")):
        assert sorted(listed(seen_from)) == [f"run-GAL-{number}" for number in range(1, 7)]


def test_check_9_runs_that_have_ended_are_read_once(repository: Repository) -> None:
    first = listed(repository)
    assert {line.status for line in first.values()} == {"interrupted", "cancelled"}
    with opens() as found:
        again = listed(repository)
    assert again == first
    folders = {part for name in found for part in Path(name).parts if part.startswith("run-")}
    assert folders == {"run-GAL-1", "run-GAL-2"}, "these two have not ended"


def test_the_newest_is_found_without_opening_runs_that_have_ended(repository: Repository) -> None:
    listed(repository)
    roster = Roster(repository)
    with opens() as found:
        shown = newest(roster)
        beside = running_beside(roster, repository.worktree / ".workflow/run-GAL-1")
    folders = {Path(name).name for name in found if Path(name).name.startswith("run-")}
    assert shown is not None
    assert shown == roster.newest()[0].folder
    assert (folders - {shown.name}, beside) == ({"run-GAL-1", "run-GAL-2"} - {shown.name}, [])


def test_the_newest_are_listed_and_the_rest_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    alone(monkeypatch, tmp_path / "home")
    made = make_repository(tmp_path / "project")
    for number in range(1, 13):
        run = begin(made, f"run-GAL-{number}", started_at=f"2026-11-{number:02}T09:00:00.000Z")
        if number > 2:
            run.abandon()
    settle()
    for _ in range(2):  # without an index, and with it
        document, rest = newest_runs(made, 3)
        assert [line.name for line in document.runs] == [f"run-GAL-{number}" for number in (12, 11, 10, 2, 1)]
        whole = list_runs(made).runs
        assert rest == Rest(runs=7, driven_s=sum(line.driven_s or 0 for line in whole[3:10]))
        *_, left_out, total = runs_text(document, rest=rest).splitlines()
        assert left_out == "7 older ones have ended: redfirst runs --all"
        assert total == runs_text(RunsDocument(runs=whole)).splitlines()[-1]
    assert newest_runs(made, 50)[1] == Rest()


def test_an_ended_run_that_changed_is_read_again(repository: Repository) -> None:
    listed(repository)
    folder = repository.worktree / ".workflow"
    with (folder / "run-GAL-3/journal.jsonl").open("a") as file:
        file.write("nothing\n")
    shutil.rmtree(folder / "run-GAL-4")
    begin(repository, "run-GAL-4")
    shutil.rmtree(folder / "run-GAL-5")
    now = listed(repository)
    assert (now["run-GAL-3"].status, now["run-GAL-4"].status) == ("damaged", "interrupted")
    assert "run-GAL-5" not in now
    assert now["run-GAL-6"].status == "cancelled"


@pytest.mark.broad(but_first=1)
@pytest.mark.parametrize("content", [b"", b"nothing", b"[]", b'{"form": 1}', b"spoilt rows"])
def test_an_index_that_somebody_spoilt_is_made_again(repository: Repository, content: bytes) -> None:
    first = listed(repository)
    (index,) = (repository.worktree.parent / "home").rglob("runs/*.json")
    spoilt: dict[str, object] = {**json.loads(index.read_text()), "runs": {"run-GAL-3": 1, "run-GAL-4": [[1], {}]}}
    index.write_bytes(json.dumps(spoilt).encode() if content == b"spoilt rows" else content)
    assert listed(repository) == first
    index.unlink()
    assert listed(repository) == first


def test_the_start_of_a_name_ends_in_no_number_and_is_not_empty(main: Repository) -> None:
    begin(main, "run-GAL-12")
    for name in ("GAL-1", "run-GAL-1", ""):
        with pytest.raises(UserError, match="is not a run of this repository"):
            find_run(main, name)
    assert find_run(main, "GA").name == find_run(main, "run-GAL-").name == "run-GAL-12"


def test_an_issue_whose_run_is_gone_is_freed_and_no_run_whose_name_begins_so(main: Repository) -> None:
    lost = begin(add(main, "lost"), "run-GAL-1")
    take_claim(Repository.find(lost.folder.parents[1]), "GAL-1", "run-GAL-1")
    other = begin(main, "run-GAL-12")
    shutil.rmtree(lost.folder)
    freed = free_orphan(main, "GAL-1")
    assert freed is not None
    assert freed.issue == "GAL-1"
    assert claims(main) == {}
    assert other.state.outcome is None


def test_a_name_whose_record_a_ref_keeps_is_taken_when_gc_has_the_folder(main: Repository) -> None:
    run = begin(main, "run-GAL-40")
    keep(main, run, whole=True)
    shutil.rmtree(run.folder)
    assert next_name(main, "GAL-40") == "run-GAL-40@2"


def test_a_bare_repository_has_no_checkout_whatever_it_is_called(main: Repository, tmp_path: Path) -> None:
    bare = tmp_path / "project/.git"
    git(tmp_path, "clone", "--quiet", "--bare", str(main.worktree), str(bare))
    git(bare, "worktree", "add", "--quiet", str(tmp_path / "linked"), "main")
    linked = Repository.find(tmp_path / "linked")
    assert [each.path for each in linked.worktrees()] == [tmp_path / "linked"]
    assert linked.unseen_branch() is None
