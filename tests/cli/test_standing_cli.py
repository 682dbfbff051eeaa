"""`redfirst` without words: where you stand, and the command that comes next."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from cli import stories
from house.documents import whole_program
from runs.real import alone, git, make_repository

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.git import Repository

pytestmark = pytest.mark.slow
ISSUE = "---\nid: {}\ntitle: Greet\nstatus: Todo\ncreated: 2026-11-20\nupdated: 2026-11-20\n---\n\nText.\n"
INDEX = "# TODO\n\n## Work\n\n- [GAL-39](GAL-39.md)\n"


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    alone(monkeypatch, tmp_path / "home")
    made = make_repository(tmp_path / "project")
    monkeypatch.chdir(made.worktree)
    return made


def told(capsys: pytest.CaptureFixture[str]) -> str:
    capsys.readouterr()
    whole_program().main([], prog_name="redfirst", standalone_mode=False)
    return capsys.readouterr().out


def test_outside_of_a_repository_it_leads_to_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    text = told(capsys)
    assert "You are in no git repository" in text
    assert "redfirst demo" in text


def test_a_new_repository_lacks_issues_and_agents(repository: Repository, capsys: pytest.CaptureFixture[str]) -> None:
    text = told(capsys)
    assert "redfirst issue new --title TEXT" in text
    assert "redfirst init" in text
    (repository.worktree / "redfirst.toml").write_text('[agents.make]\nbackend = "scripted"\n')
    assert "redfirst init" not in told(capsys)


def test_ready_issues_runs_that_wait_and_results_that_may_land_are_told(
    repository: Repository, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = repository.worktree / "TODO"
    folder.mkdir()
    (folder / "README.md").write_text(INDEX)
    (folder / "GAL-39.md").write_text(ISSUE.format("GAL-39"))
    git(repository.worktree, "add", "-A")
    git(repository.worktree, "commit", "-qm", "an issue")
    assert "1 issue is ready. Take the first: redfirst run GAL-39 --worktree" in told(capsys)
    run = stories.at_a_gate(repository)
    text = told(capsys)
    assert f"redfirst show {run.folder.name}" in text
    assert "at gate" in text


def test_a_broken_tracker_is_told_in_its_own_words(repository: Repository, capsys: pytest.CaptureFixture[str]) -> None:
    folder = repository.worktree / "TODO"
    folder.mkdir()
    (folder / "README.md").write_text(INDEX)
    (folder / "GAL-39.md").write_text("no header")
    assert "redfirst issue" in told(capsys)
