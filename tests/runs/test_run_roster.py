"""The runs of all worktrees of a repository: found, named, told apart."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest
from runs.real import alone, begin, git, make_repository

from pipeline.errors import UserError
from pipeline.repo import Repository
from pipeline.run.runs_of_repository import Roster, find_run, next_name

if TYPE_CHECKING:
    from collections.abc import Sequence

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
        find_run(main, "GAL-4")
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
