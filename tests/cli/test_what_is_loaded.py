"""What a reading command loads."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from cli.loading import loaded
from kit import FILES, REDFIRST, Project, make_project
from runs.real import begin, event

from pipeline.repo import Repository
from pipeline.vocabulary import Signal

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.run.run import Run

pytestmark = pytest.mark.slow


@pytest.fixture
def project(tmp_path: Path) -> Project:
    made = make_project(tmp_path)
    run_of(made, "run-GAL-2").decide(event(Signal.OK))
    made.write({"TODO/GAL-3.md": FILES["TODO/GAL-1.md"].replace("GAL-1", "GAL-3")})
    return made


def run_of(project: Project, name: str) -> Run:
    return begin(Repository.find(project.root), name, started_at="2026-11-20T14:00:00.000Z")


def test_show_loads_nothing_that_asks_measures_or_isolates(project: Project) -> None:
    acting = (
        "pipeline.agents.dispatch",
        "pipeline.sandbox.views",
        "pipeline.sandbox.boxes",
        "pipeline.agents.backends",
        "pipeline.agents.gateway",
        "anyio",
    )
    assert not {module for module in loaded(project, "show") if module.startswith(acting)}


@pytest.mark.broad
@pytest.mark.parametrize("words", [["runs"], ["show"], ["config", "show"], ["issue", "list"]])
def test_a_reader_that_has_gone_is_no_error(project: Project, words: list[str]) -> None:
    read, write = os.pipe()
    os.close(read)
    argv = [sys.executable, str(REDFIRST), *words]
    done = subprocess.run(
        argv, cwd=project.root, env=project.environment(), stdout=write, stderr=subprocess.PIPE, check=False
    )
    os.close(write)
    assert (done.returncode, done.stderr) == (141, b"")
