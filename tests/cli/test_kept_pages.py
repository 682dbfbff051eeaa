"""What `show` prints of a run that rests is kept, and is what the journal says, whatever changes."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

import pytest
from cli import stories
from cli.loading import HEAVY, loaded
from kit import HONEST, Project, make_project
from terminals import on_terminal

from pipeline.git import Repository
from pipeline.runs.lease import FileLease
from pipeline.service.text_cache import TICK_NS

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pipeline.runs.run import Run

pytestmark = pytest.mark.slow


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return make_project(tmp_path)


def settled(run: Run) -> Path:
    """Return the folder of a run once the clock of the file system has gone on: what is so new is not kept."""
    newest = max(path.lstat().st_ctime_ns for path in (run.folder, *run.folder.rglob("*")))
    while time.time_ns() <= newest + 2 * TICK_NS:
        os.sched_yield()
    return run.folder


def forget(project: Project) -> None:
    for kind in ("answers", "pages"):
        for kept in (project.home / "state/redfirst" / kind).glob("*"):
            kept.unlink()


def shown(project: Project, *words: str, cwd: Path | None = None) -> str:
    """Return what `show` prints, which is what it prints where nothing is kept."""
    done = project.redfirst("show", *words, cwd=cwd)
    forget(project)
    anew = project.redfirst("show", *words, cwd=cwd)
    assert (done.returncode, done.stdout) == (anew.returncode, anew.stdout)
    return anew.stdout


@pytest.mark.parametrize("ending", stories.ENDINGS)
@pytest.mark.broad
def test_a_kept_page_is_what_the_journal_says(project: Project, ending: Callable[[Repository], Run]) -> None:
    settled(ending(Repository.find(project.root)))
    folded = project.redfirst("show")
    assert not {module for module in loaded(project, "show") if module.startswith(HEAVY)}
    narrow = on_terminal("show", cwd=project.root, env=project.environment(), columns=50)
    assert shown(project, "gal-39") == shown(project) == folded.stdout
    forget(project)
    assert on_terminal("show", cwd=project.root, env=project.environment(), columns=50) == narrow


@pytest.mark.broad
def test_a_page_is_of_its_files_and_of_where_it_is_read(project: Project) -> None:
    run = stories.finished(Repository.find(project.root))
    first = shown(project)
    issue = run.folder / "issue.md"
    issue.write_text(issue.read_text(encoding="utf-8").replace("Reject", "Accept"), encoding="utf-8")
    settled(run)
    assert shown(project) == first.replace("run-GAL-39: Reject", "run-GAL-39: Accept") != first
    project.git("worktree", "add", "--quiet", "--detach", "../other")
    assert f"git -C {project.root} log" in shown(project, cwd=project.root.parent / "other")
    assert "git log" in shown(project)


@pytest.mark.broad
def test_a_run_that_is_driven_is_never_shown_as_it_was(project: Project) -> None:
    folder = settled(stories.interrupted(Repository.find(project.root)))
    assert "interrupted" in project.redfirst("show").stdout
    lease = FileLease.take(folder)
    assert "running" in project.redfirst("show").stdout
    lease.release()
    assert "interrupted" in shown(project)
    project.git("worktree", "add", "--quiet", "--detach", "../other")
    beside = FileLease.take(stories.interrupted(Repository.find(project.root.parent / "other")).folder)
    for _ in range(2):
        assert project.redfirst("show").stderr.startswith("also running: other/run-GAL-39")
    beside.release()
    assert project.redfirst("show").stderr == ""


@pytest.mark.broad
def test_who_drove_a_run_leaves_its_page(project: Project) -> None:
    project.use_script(HONEST)
    project.run()
    assert "pydantic" not in loaded(project, "show")
    assert "completed (done)" in shown(project)


def test_a_kept_page_that_was_spoilt_costs_nothing(project: Project) -> None:
    settled(stories.interrupted(Repository.find(project.root)))
    first = project.redfirst("show").stdout
    project.redfirst("show")
    (answer,) = (project.home / "state/redfirst/answers").iterdir()
    answer.write_text("gossip", encoding="utf-8")
    (kept,) = (project.home / "state/redfirst/pages").iterdir()
    kept.write_text(kept.read_text(encoding="utf-8").replace('"groups"', '"gossip"', 1), encoding="utf-8")
    assert project.redfirst("show").stdout == first
