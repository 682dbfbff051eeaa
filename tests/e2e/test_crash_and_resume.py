"""A driver may die at any instant: its run is resumed to the same commits, and nothing that had finished is redone."""

from __future__ import annotations

import os
import random
from itertools import cycle
from typing import TYPE_CHECKING

import pytest
from crashes import (
    KILLED,
    Bell,
    Result,
    await_end_of,
    die_at,
    going_on,
    kill_after,
    problems,
    processes_of,
    repeated_dispatches,
    spawn,
)
from demo_story import STORY, make_story
from kit import HONEST, PLAN, make_project

if TYPE_CHECKING:
    from pathlib import Path

    from kit import Project

pytestmark = pytest.mark.slow

DISPATCHES = len(STORY)
KILLS_OF_A_CHAIN, KILLS_OF_THE_FIRST, LEAST_KILLS = 10, 5, 3


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Result:
    """Return what the story comes to when nobody kills its driver."""
    project = make_story(tmp_path_factory.mktemp("undisturbed"))
    document = project.run()
    assert document["_code"] == 0, document["_stderr"]
    # the story is what the acceptance criterion asks for: revised plan, judged tests, refused write, fix task
    assert {
        "review-plan/NEEDS_WORK",
        "write-tests/DISPUTED",
        "any/VIOLATION",
        "split/DRAFTED[drafting fix tasks]",
    } <= set(project.rows())
    assert document["usage"]["dispatches"] == DISPATCHES
    assert (problems(project), repeated_dispatches(project)) == ([], [])
    return Result.of(project)


def check_end(project: Project, expected: Result) -> None:
    """Assert that a run was brought to the end that it has without any crash, and left nothing."""
    assert Result.of(project) == expected
    assert problems(project) == []
    assert repeated_dispatches(project) == []
    assert sum(line["kind"] == "dispatch_finished" for line in project.journal()) == DISPATCHES
    assert project.rows()[-1] == "publish/PUBLISHED"


def finish(project: Project) -> None:
    """Bring a run to its end as a user does."""
    done = project.redfirst(*going_on(project))
    assert done.returncode == 0, done.stderr


# --- kill -9 -------------------------------------------------------------------------------------------------------


def chain(project: Project, number: int) -> int:
    """Kill the drivers of one run one after another at random moments, each chain from another part of the run on."""
    rng = random.Random(number)  # noqa: S311  (a schedule, no secret; the folder of a failing chain has its number)
    kills = 0
    if number % 5:
        kills += die_at(project, "after journal dispatch_finished", number % 5 * 4, "run", "GAL-1") == KILLED
    most = KILLS_OF_A_CHAIN if number else KILLS_OF_THE_FIRST
    while kills < most and kill_after(project, rng.uniform(0.02, 1.0), *going_on(project)) == KILLED:
        kills += 1
    last = project.redfirst(*going_on(project))
    assert last.returncode == 0 or "has ended (completed, done)" in last.stderr, last.stderr
    return kills


def test_a_small_run_comes_to_the_same_commits_however_often_it_is_killed(tmp_path: Path) -> None:
    places = tmp_path / "undisturbed", tmp_path / "killed"
    for place in places:
        place.mkdir()
    undisturbed, killed = map(make_project, places)
    for project in (undisturbed, killed):
        project.use_script(HONEST)
    assert undisturbed.run()["_code"] == 0
    assert chain(killed, 0) >= LEAST_KILLS, "hardly any driver lives long enough to be killed"
    assert Result.of(killed) == Result.of(undisturbed)
    assert (problems(killed), repeated_dispatches(killed)) == ([], [])


@pytest.mark.broad
@pytest.mark.parametrize("number", range(4))
def test_kills_at_random_instants_change_nothing(number: int, tmp_path: Path, undisturbed: Result) -> None:
    place = tmp_path / f"chain-{number}"
    place.mkdir()
    project = make_story(place)
    kills = chain(project, number)
    assert kills >= LEAST_KILLS, "hardly any driver lives long enough to be killed"
    check_end(project, undisturbed)


def test_what_a_driver_leaves_that_dies_before_the_folder_of_runs_is_made_is_cleared(tmp_path: Path) -> None:
    project = make_story(tmp_path)
    folder = project.root / ".workflow"
    assert die_at(project, r"before replace \.gitignore", 1, *going_on(project)) == KILLED
    assert len(list(folder.glob(".*.tmp"))) == 1
    living = folder / f"..gitignore.{os.getpid()}.tmp"
    living.touch()
    assert die_at(project, r"after replace \.gitignore", 1, *going_on(project)) == KILLED
    assert list(folder.glob(".*.tmp")) == [living], "what a living process writes is its own"


@pytest.mark.broad
def test_death_around_each_write_of_journal_and_artifacts_changes_nothing(tmp_path: Path, undisturbed: Result) -> None:
    project = make_story(tmp_path)
    drivers = 0
    for number in cycle((61, 83, 107)):
        drivers += 1
        if die_at(project, "after journal|before replace|after replace", number, *going_on(project)) != KILLED:
            break
        assert drivers < 60, "the run makes no progress"
    assert drivers > 4
    check_end(project, undisturbed)


@pytest.mark.broad
def test_a_torn_last_line_is_cut_off_and_what_it_said_is_done_again(tmp_path: Path, undisturbed: Result) -> None:
    project = make_story(tmp_path)
    journal = project.run_folder() / "journal.jsonl"
    for instant, number, cut, added in (
        ("dispatch_finished", 3, 9, b""),
        ("decision", 4, 1, b""),
        ("tests_ran", 1, 0, b'{"schema":"redfirst.journal/1","seq":'),
        ("change_rejected", 1, 40, b""),
        ("task_done", 1, 0, b"\0" * 512),  # what some file systems leave after a power cut
    ):
        assert die_at(project, f"after journal {instant}", number, *going_on(project)) == KILLED
        raw = journal.read_bytes()
        journal.write_bytes(raw[: len(raw) - cut] + added)
    finish(project)
    check_end(project, undisturbed)


@pytest.mark.broad
def test_a_driver_that_dies_takes_the_agent_with_it(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    bell = Bell(project.home)
    project.use_script([bell.sleeper(PLAN), *HONEST[1:]])
    with spawn(project, "run", "GAL-1", *bell.flags) as driver:
        bell.wait(driver)
        children = processes_of(project)
        driver.kill()
        driver.communicate()
    assert any("sleep" in name for name in children.values())
    await_end_of(children)
    project.use_script(HONEST)
    finish(project)
    assert (problems(project), repeated_dispatches(project)) == ([], [])
    assert (project.run_folder() / "dispatches" / "001-plan-orchestrator.lost-1").is_dir()


# --- where nothing can be resumed ----------------------------------------------------------------------------------


@pytest.mark.broad
def test_run_again_on_a_crashed_issue_says_which_run_to_resume(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    project.use_script(HONEST)
    assert die_at(project, "after journal dispatch_started", 2, "run", "GAL-1") == KILLED
    before = project.journal()
    document = project.document("run", "GAL-1")
    assert (document["_code"], document["error"]["kind"]) == (75, "claimed_elsewhere")
    assert "redfirst resume run-GAL-1" in document["error"]["safe_next_actions"]
    assert project.journal() == before
    assert not project.run_folder("run-GAL-1@2").exists()
    finish(project)
    assert problems(project) == []


@pytest.mark.broad
def test_a_run_folder_that_never_became_a_run_is_used_by_the_next_run(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    project.use_script(HONEST)
    assert die_at(project, "before replace run.json", 1, "run", "GAL-1") == KILLED
    assert project.run_folder().is_dir()
    document = project.document("resume", "GAL-1")
    assert (document["_code"], document["error"]["kind"]) == (2, "usage")
    assert project.run()["run_id"] == "run-GAL-1"
    assert problems(project) == []


@pytest.mark.broad
def test_a_run_that_ended_while_its_driver_died_is_put_away_once(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    project.use_script(HONEST)
    assert die_at(project, "after journal run_finished", 1, "run", "GAL-1") == KILLED
    assert [line for line in problems(project) if line.startswith("state")]
    document = project.document("resume", "GAL-1")
    assert (document["_code"], document["outcome"]) == (0, "completed")
    assert problems(project) == []
    ref = project.git("for-each-ref", "--format=%(refname)", "refs/redfirst/runs")
    assert "run/summary.md" in project.files_at(ref)
    again = project.document("resume", "GAL-1")
    assert (again["_code"], again["error"]["kind"]) == (2, "usage")
    assert "redfirst show run-GAL-1" in again["error"]["safe_next_actions"]


@pytest.mark.parametrize("damage", ["journal", "result"])
@pytest.mark.broad
def test_a_damaged_run_is_refused_as_it_is_and_can_be_abandoned(tmp_path: Path, damage: str) -> None:
    project = make_project(tmp_path)
    project.use_script(HONEST)
    assert die_at(project, "after journal dispatch_finished", 4, "run", "GAL-1") == KILLED
    journal = project.run_folder() / "journal.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    if damage == "journal":
        journal.write_bytes(b"".join([*lines[:-5], b"rubbish\n", *lines[-4:]]))
    else:
        (project.run_folder() / "dispatches" / "002-review-plan-check" / "result.json").unlink()
    raw = journal.read_bytes()
    for command in (("resume", "GAL-1"), ("show", "GAL-1"), ("explain", "GAL-1")):
        document = project.document(*command)
        assert (document["_code"], document["error"]["kind"]) == (2, "usage")
        assert "redfirst abandon run-GAL-1" in document["error"]["safe_next_actions"]
    assert journal.read_bytes() == raw
    given_up = project.document("abandon", "GAL-1")
    assert (given_up["_code"], given_up["outcome"], given_up["reason"]) == (0, "cancelled", "abandoned")
    assert (project.run_folder() / "journal.damaged-1.jsonl").read_bytes() == raw
    assert problems(project) == []
    assert project.run()["run_id"] == "run-GAL-1@2"
