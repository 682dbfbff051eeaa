"""What a reading command loads, and that what it answers without the command line is what that would have said."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from cli.loading import HEAVY, loaded
from kit import FILES, REDFIRST, Project, make_project
from runs.real import begin, event

from pipeline.git import Repository
from pipeline.routing.vocabulary import Signal

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.runs.run import Run

pytestmark = pytest.mark.slow

WHOLE = "import sys; from pipeline.cli.main import run; sys.argv[0] = 'redfirst'; run()"


@pytest.fixture
def project(tmp_path: Path) -> Project:
    made = make_project(tmp_path)
    run_of(made, "run-GAL-2").decide(event(Signal.OK))
    made.write({"TODO/GAL-3.md": FILES["TODO/GAL-1.md"].replace("GAL-1", "GAL-3")})
    return made


def run_of(project: Project, name: str) -> Run:
    return begin(Repository.find(project.root), name, started_at="2026-11-20T14:00:00.000Z")


def whole(project: Project, *words: str) -> tuple[str, str]:
    argv = [sys.executable, "-c", WHOLE, *words]
    done = subprocess.run(argv, cwd=project.root, env=project.environment(), capture_output=True, text=True, check=True)
    return done.stdout, done.stderr


@pytest.mark.parametrize("words", [("runs",), ("runs", "--json"), ("issue", "ready"), ("issue", "ready", "--json")])
@pytest.mark.broad
def test_a_list_loads_neither_the_command_line_nor_what_reads_journals(
    project: Project, words: tuple[str, ...]
) -> None:
    first = project.redfirst(*words)
    assert not {module for module in loaded(project, *words) if module.startswith(HEAVY)}
    again = project.redfirst(*words)
    ages = ("age_s", "run-GAL-2")  # of a run that goes on getting older
    for mine, theirs in zip((again.stdout, again.stderr), whole(project, *words), strict=True):
        assert [line for line in mine.splitlines() if not any(age in line for age in ages)] == [
            line for line in theirs.splitlines() if not any(age in line for age in ages)
        ]
    assert (first.returncode, again.returncode) == (0, 0)


def test_show_loads_nothing_that_asks_measures_or_isolates(project: Project) -> None:
    acting = ("pipeline.dispatch", "pipeline.views", "pipeline.boxes", "pipeline.backends", "pipeline.gateway", "anyio")
    assert not {module for module in loaded(project, "show") if module.startswith(acting)}


@pytest.mark.broad
def test_a_line_is_kept_until_the_run_changes(project: Project) -> None:
    run = run_of(project, "run-GAL-4")
    assert "pipeline.runs.run" in loaded(project, "runs")
    assert "pipeline.runs.run" not in loaded(project, "runs")
    run.decide(event(Signal.OK))
    line = next(each for each in project.document("runs")["runs"] if each["name"] == "run-GAL-4")
    assert line["step"] == "issue"
    (run.folder / "journal.jsonl").write_text("gossip\n", encoding="utf-8")
    assert "damaged at line 1" in project.redfirst("runs").stdout
    for kept in (project.home / "state/redfirst/lists").iterdir():
        kept.write_text("{", encoding="utf-8")
    assert "damaged at line 1" in project.redfirst("runs").stdout


@pytest.mark.broad
def test_what_cannot_be_answered_at_once_is_left_to_the_whole_program(project: Project, tmp_path: Path) -> None:
    elsewhere = tmp_path / "no repository"
    elsewhere.mkdir()
    for words in (["runs", "--json"], ["issue", "ready", "--json"]):
        done = project.redfirst(*words, cwd=elsewhere)
        assert (done.returncode, '"kind": "usage"' in done.stdout) == (2, True)


@pytest.mark.parametrize("words", [["runs"], ["config", "show"], ["issue", "list"]])
def test_a_reader_that_has_gone_is_no_error(project: Project, words: list[str]) -> None:
    read, write = os.pipe()
    os.close(read)
    argv = [sys.executable, str(REDFIRST), *words]
    done = subprocess.run(
        argv, cwd=project.root, env=project.environment(), stdout=write, stderr=subprocess.PIPE, check=False
    )
    os.close(write)
    assert (done.returncode, done.stderr) == (141, b"")
