"""The list of runs: all worktrees, and of runs that have ended nothing is opened but an index (checks 8 and 9)."""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from runs.real import alone, begin, git, make_repository

from pipeline.app.run_list import TICK_NS, Rest, RunsDocument, list_runs, newest, newest_runs, running_beside
from pipeline.faces.cli.runs import runs_text
from pipeline.repo import Repository
from pipeline.run.runs_of_repository import Roster

if TYPE_CHECKING:
    from collections.abc import Generator

    from pipeline.app.run_list import RunLine

pytestmark = pytest.mark.slow

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
