"""A finished run is picked onto a base that others move meanwhile, or in whose worktree somebody works."""

from __future__ import annotations

import fcntl
import os
import time
from typing import TYPE_CHECKING

import anyio
import pytest
from landing.finished import make_fleet

from pipeline.app.land import chosen_runs
from pipeline.repo import Repository
from pipeline.run.store import is_on
from pipeline.steps.landing import (
    MOST_PICKS,
    Found,
    Landing,
    Picked,
    Result,
    Then,
    Train,
    move,
    now_signed,
    picked,
    settle,
)
from pipeline.testing.verification.results import CommitCheck, Status

if TYPE_CHECKING:
    from collections.abc import Callable

    from landing.finished import Fleet

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def landed_on(tmp_path_factory: pytest.TempPathFactory) -> Fleet:
    fleet = make_fleet(tmp_path_factory.mktemp("train"), 2)
    fleet.run(1)
    fleet.project.git("branch", "start")
    return fleet


@pytest.fixture
def fleet(landed_on: Fleet) -> Fleet:
    landed_on.project.git("reset", "--quiet", "--hard", "start")
    landed_on.project.git("clean", "--quiet", "-fd")
    return landed_on


def result_of(fleet: Fleet) -> tuple[Repository, Result]:
    repository = Repository.find(fleet.project.root)
    (candidate,) = chosen_runs(repository, (), None).candidates
    return repository, candidate.result


def others(fleet: Fleet, name: str, text: str = "of others\n") -> None:
    fleet.project.write({name: text})
    fleet.project.commit(f"work on {name}")


def land(fleet: Fleet, meanwhile: Callable[[int], None]) -> tuple[Landing, list[str]]:
    """Land the run; *meanwhile* is done while a commit is measured, which shows what it should."""
    repository, result = result_of(fleet)
    said: list[str] = []

    async def check(commit: str) -> CommitCheck:
        meanwhile(len(said))
        return CommitCheck(commit=commit, subject="feat: a", status=Status.VERIFIED)

    train = Train(repository, "main", check, said.append)
    who = now_signed(repository.identity(), "1767323045")

    async def landing() -> Landing:
        return await train.land(result, who, lambda base, commits: None, ordered=False)  # noqa: ARG005

    return anyio.run(landing), said


@pytest.mark.broad
def test_check_22_a_base_that_moved_once_is_picked_again(fleet: Fleet) -> None:
    landing, said = land(fleet, lambda told: others(fleet, "other.txt") if told == 1 else None)
    assert landing.then is Then.LAND
    assert len(said) == 3  # picked, moved, picked
    assert fleet.project.git("log", "--format=%s", "start..main").splitlines()[-1] == "work on other.txt"
    repository, _ = Repository.find(fleet.project.root), None
    assert landing.picked is not None
    assert repository.resolve("main") == landing.picked.commits[-1]
    assert fleet.project.git("status", "--porcelain") == ""


def test_check_22_a_base_that_moves_on_and_on_is_told(fleet: Fleet) -> None:
    landing, _ = land(fleet, lambda told: others(fleet, f"other-{told}.txt"))
    assert (landing.found, landing.then) == (Found.BASE_MOVED, Then.TELL)
    subjects = fleet.project.git("log", "--format=%s", "start..main").splitlines()
    assert len(subjects) == MOST_PICKS
    assert all(subject.startswith("work on other-") for subject in subjects)


def test_check_22_a_base_that_moved_into_the_way_is_a_conflict_with_its_reason(fleet: Fleet) -> None:
    landing, _ = land(fleet, lambda told: others(fleet, "f1.sum", "f1 n = n * 9\n") if told == 1 else None)
    assert (landing.found, landing.then) == (Found.CONFLICT, Then.ORDER_AGAIN)
    (why,) = landing.why
    assert why.startswith("f1.sum was changed by ")
    assert "(work on f1.sum) where run-GAL-1 changes it, too" in why
    assert fleet.project.git("show", "main:f1.sum") == "f1 n = n * 9"


def prepared(fleet: Fleet) -> tuple[Repository, str, str]:
    """Return the repository, the base's tip, and the last commit of the run on it."""
    others(fleet, "other.txt")
    repository, result = result_of(fleet)
    tip = fleet.project.git("rev-parse", "main")
    new = picked(repository, result, tip, now_signed(repository.identity(), "1767323045"), key=None)
    assert isinstance(new, Picked)
    return repository, tip, new.commits[-1]


def test_uncommitted_work_in_the_way_stays_and_other_work_does_not_matter(fleet: Fleet) -> None:
    repository, tip, new = prepared(fleet)
    mine = fleet.project.root / "f1.sum"
    mine.write_text("f1 n = n * 7\n")
    (fleet.project.root / "f2.sum").write_text("f2 n = n * 7\n")
    found, why = move(repository, "main", tip, new, time.time())
    assert found is Found.IN_THE_WAY
    assert "f1.sum" in why
    assert (mine.read_text(), repository.resolve("main")) == ("f1 n = n * 7\n", tip)
    mine.write_text("f1 n = n\nh1 n = n\n")
    assert move(repository, "main", tip, new, time.time()) == (Found.VERIFIED, "")
    assert fleet.project.git("status", "--porcelain") == "M f2.sum"
    assert mine.read_text() == "f1 n = n * 2\nh1 n = n\n"


def test_what_moved_since_it_was_looked_at_is_not_moved(fleet: Fleet) -> None:
    repository, tip, new = prepared(fleet)
    others(fleet, "late.txt")
    late = fleet.project.git("rev-parse", "main")
    assert move(repository, "main", tip, new, time.time())[0] is Found.BASE_MOVED
    assert repository.resolve("main") == late
    assert fleet.project.git("status", "--porcelain") == ""


def test_a_kill_between_files_and_branch_is_brought_to_its_end(fleet: Fleet) -> None:
    repository, tip, new = prepared(fleet)
    assert repository.move_worktree(tip, new) is None
    assert settle(repository, "main", tip, new, time.time())
    assert repository.resolve("main") == new
    assert fleet.project.git("status", "--porcelain") == ""


@pytest.mark.parametrize("is_half", [False, True])
def test_what_a_kill_left_is_taken_back_beside_what_the_user_has_staged(fleet: Fleet, is_half: bool) -> None:
    repository, tip, new = prepared(fleet)
    began = time.time()
    fleet.project.write({"f2.sum": "f2 n = n * 7\n"})
    fleet.project.git("add", "f2.sum")
    if is_half:
        whole = fleet.project.git("show", f"{new}:f1.sum")
        fleet.project.write({"f1.sum": whole[: len(whole) // 2]})
    else:
        assert repository.move_worktree(tip, new) is None
    assert not settle(repository, "main", tip, new, began)
    assert fleet.project.git("status", "--porcelain") == "M  f2.sum"
    assert move(repository, "main", tip, new, time.time()) == (Found.VERIFIED, "")
    assert fleet.project.git("status", "--porcelain") == "M  f2.sum"


def test_a_kill_before_the_files_leaves_nothing_to_do(fleet: Fleet) -> None:
    repository, tip, new = prepared(fleet)
    assert not settle(repository, "main", tip, new, time.time())
    assert repository.resolve("main") == tip
    assert fleet.project.git("status", "--porcelain") == ""


@pytest.mark.broad
def test_a_base_that_nobody_has_checked_out_moves_alone(fleet: Fleet) -> None:
    repository, tip, new = prepared(fleet)
    fleet.project.git("switch", "--quiet", "--detach")
    try:
        assert move(repository, "main", tip, new, time.time()) == (Found.VERIFIED, "")
        assert fleet.project.git("rev-parse", "HEAD", "main").splitlines() == [tip, new]
    finally:
        fleet.project.git("switch", "--quiet", "main")


@pytest.mark.broad
def test_what_is_on_the_base_is_known_by_its_copies(fleet: Fleet) -> None:
    repository, tip, new = prepared(fleet)
    _, result = result_of(fleet)
    start = fleet.project.git("rev-parse", "start")
    assert not is_on(repository, result.commits, start, tip)
    assert is_on(repository, result.commits, start, new)
    assert is_on(repository, result.commits, start, result.commits[-1])


def test_an_issue_that_others_have_filed_meanwhile_is_no_conflict(fleet: Fleet) -> None:
    readme = (fleet.project.root / "TODO/README.md").read_text()
    issue = (fleet.project.root / "TODO/GAL-2.md").read_text()
    others(fleet, "TODO/GAL-3.md", issue.replace("GAL-2", "GAL-3"))
    others(fleet, "TODO/README.md", readme.replace("- [ ] [GAL-2]", "- [ ] [GAL-3](GAL-3.md) A third\n- [ ] [GAL-2]"))
    landing, _ = land(fleet, lambda _: None)
    assert landing.then is Then.LAND
    assert fleet.boxes() == [
        "- [x] [GAL-1](GAL-1.md) Reject empty names",
        "- [ ] [GAL-3](GAL-3.md) A third",
        "- [ ] [GAL-2](GAL-2.md) Reject empty names",
    ]


def test_only_one_process_lands_at_a_time(fleet: Fleet) -> None:
    handle = os.open(fleet.project.root / ".git/refs", os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        told = fleet.project.document("land")
    finally:
        os.close(handle)
    assert (told["_code"], told["error"]["kind"]) == (75, "locked")
    assert fleet.project.git("rev-parse", "main", "start").splitlines()[0] == fleet.project.git("rev-parse", "start")
