"""`redfirst stop`: a run that another process drives is stopped, with everything kept so that it goes on."""

from __future__ import annotations

import json
import os
import subprocess
from typing import TYPE_CHECKING

import pytest
from crashes import Bell, processes_of, repeated_dispatches, spawn
from kit import PLAN, PLAN_ACCEPTED, PLAN_SIMPLE, make_project

from pipeline.app.drivers import stop
from pipeline.errors import UserError
from pipeline.outcomes import Reason
from pipeline.run.lease import FileLease, driver_of

if TYPE_CHECKING:
    from pathlib import Path

    from kit import Project

pytestmark = pytest.mark.slow


def driven(tmp_path: Path) -> tuple[Project, Bell]:
    """Return a project whose first agent rings, and then waits for `answer`; its runs wait at approval point plan."""
    project = make_project(tmp_path)
    bell = Bell(project.home)
    waits = f"echo > {bell.folder}/fifo; read line < {bell.folder}/answer"
    os.mkfifo(bell.folder / "answer", 0o666)
    project.use_script([{**PLAN, "run": ["sh", "-c", waits]}, PLAN_ACCEPTED, PLAN_SIMPLE])
    return project, bell


@pytest.mark.broad
def test_check_15_a_stopped_run_goes_on_and_repeats_no_answer(tmp_path: Path) -> None:
    project, bell = driven(tmp_path)
    with spawn(project, "run", "GAL-1", "--approve", "plan", "--json", *bell.flags) as driver:
        bell.wait(driver)
        first = project.document("stop")
        assert (first["_code"], first["stopped"]) == (0, False)
        assert "@orchestrator" in first["waits_for"][0]
        assert first["safe_next_actions"][0] == "redfirst stop run-GAL-1 --now"
        with (bell.folder / "answer").open("w", encoding="utf-8") as answer:
            answer.write("go on\n")
        driver.communicate(timeout=120)
    assert driver.returncode == 130
    refused = project.document("stop", "GAL-1")
    assert "Nobody drives run-GAL-1 (paused)" in refused["error"]["message"]
    done = project.document("resume", "GAL-1")
    assert (done["reason"], done["_code"]) == ("approval", 4), done["_stderr"]
    assert repeated_dispatches(project) == []


@pytest.mark.broad
def test_check_15_now_ends_what_agents_do_and_it_is_asked_again(tmp_path: Path) -> None:
    project, bell = driven(tmp_path)
    with spawn(project, "run", "GAL-1", "--approve", "plan", "--json", *bell.flags) as driver:
        bell.wait(driver)
        document = project.document("stop", "GAL-1", "--now")
        driver.communicate(timeout=120)
    assert (document["stopped"], document["outcome"], document["reason"]) == (True, "cancelled", "interrupted")
    assert document["safe_next_actions"][0] == "redfirst resume run-GAL-1"
    assert processes_of(project) == {}
    project.use_script([PLAN, PLAN_ACCEPTED, PLAN_SIMPLE])
    done = project.document("resume", "GAL-1")
    assert (done["reason"], done["_code"]) == ("approval", 4), done["_stderr"]


@pytest.mark.broad
def test_a_driver_whose_lock_was_removed_writes_nothing_more_once_another_has_taken_the_run(tmp_path: Path) -> None:
    project, bell = driven(tmp_path)
    with spawn(project, "run", "GAL-1", "--approve", "plan", "--json", *bell.flags) as first:
        bell.wait(first)
        (project.run_folder() / "lock").unlink()
        project.use_script([PLAN, PLAN_ACCEPTED, PLAN_SIMPLE])
        second = project.document("resume", "GAL-1")
        assert (second["reason"], second["_code"]) == ("approval", 4), second["_stderr"]
        files = {path: path.read_bytes() for path in project.run_folder().iterdir() if path.is_file()}
        refs = project.git("for-each-ref")
        said, _ = first.communicate(timeout=120)  # its agent was ended as one whose driver had died
        error = json.loads(said)["error"]
    assert (error["kind"], "took run-GAL-1 over" in error["message"]) == ("locked", True), said
    assert files == {path: path.read_bytes() for path in project.run_folder().iterdir() if path.is_file()}
    assert refs == project.git("for-each-ref")
    assert project.document("show", "GAL-1")["reason"] == "approval"


def test_a_process_that_only_has_the_number_is_left_alone(tmp_path: Path) -> None:
    folder = tmp_path / "run-GAL-1"
    folder.mkdir()
    held = FileLease.take(folder)
    driver = driver_of(folder)
    assert driver is not None
    assert driver.pid == os.getpid()
    with subprocess.Popen(["sleep", "60"]) as other:
        (folder / "lock").write_text(f"{other.pid} 1 {driver.boot_id}")
        assert driver_of(folder) is None
        with pytest.raises(UserError, match="cannot be seen from here") as caught:
            stop(folder)
        assert caught.value.reason is Reason.LOCKED
        assert other.poll() is None
        other.kill()
    held.release()
