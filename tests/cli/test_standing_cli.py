"""`redfirst` without words: where you stand, and the command that comes next."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from cli import stories
from house.documents import whole_program
from runs.real import alone, git, make_repository

from pipeline.errors import UserError

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.repo import Repository

pytestmark = pytest.mark.slow
ISSUE = "---\nid: {}\ntitle: Greet\nstatus: Todo\ncreated: 2026-11-20\nupdated: 2026-11-20\n---\n\nText.\n"
INDEX = "# TODO\n\n## Work\n\n- [GAL-39](GAL-39.md)\n"


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    alone(monkeypatch, tmp_path / "home")
    made = make_repository(tmp_path / "project")
    monkeypatch.chdir(made.worktree)
    return made


def told(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    capsys.readouterr()
    whole_program().main([*words], prog_name="redfirst", standalone_mode=False)
    return capsys.readouterr().out


def document(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    return json.loads(told(capsys, "--json"))


def about(capsys: pytest.CaptureFixture[str]) -> list[tuple[str, str]]:
    return [(line["about"], line["next"]) for line in document(capsys)["lines"]]


def content(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_outside_of_a_repository_it_leads_to_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    text = told(capsys)
    assert "You are in no git repository" in text
    assert "redfirst demo" in text
    said = document(capsys)
    assert (said["repository"], [line["next"] for line in said["lines"]]) == (None, ["redfirst demo"])


def test_a_repository_that_git_refuses_is_not_said_to_be_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    git(tmp_path, "init", "--quiet", "--bare", "store.git")
    monkeypatch.chdir(tmp_path / "store.git")
    with pytest.raises(UserError, match="bare repository"):
        told(capsys)


def test_before_the_first_commit_it_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    alone(monkeypatch, tmp_path / "home")
    git(tmp_path, "init", "--quiet", "new")
    monkeypatch.chdir(tmp_path / "new")
    assert [kind for kind, _ in about(capsys)] == ["repository", "configuration", "tracker"]
    assert "git commit --allow-empty" in told(capsys)


def test_json_belongs_behind_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(UserError, match="behind the command"):
        told(capsys, "--json", "runs")


def test_nothing_of_the_repository_is_written(repository: Repository, capsys: pytest.CaptureFixture[str]) -> None:
    stories.at_a_gate(repository)
    before = content(repository.worktree)
    told(capsys)
    document(capsys)
    assert content(repository.worktree) == before


def test_a_new_repository_lacks_issues_and_agents(repository: Repository, capsys: pytest.CaptureFixture[str]) -> None:
    text = told(capsys)
    assert "redfirst issue new --title TEXT" in text
    assert "redfirst init" in text
    (repository.worktree / "redfirst.toml").write_text('[agents.make]\nbackend = "scripted"\n')
    text = told(capsys)
    assert "redfirst init" not in text
    assert "git add redfirst.toml && git commit -m 'configure redfirst'" in text
    git(repository.worktree, "add", "-A")
    git(repository.worktree, "commit", "-qm", "configure")
    assert about(capsys) == [("tracker", "redfirst issue new --title TEXT")]
    (repository.worktree / "redfirst.toml").write_text("")
    (repository.worktree / "pyproject.toml").write_text("[tool.redfirst]\n")
    assert ("configuration", "redfirst config show") in about(capsys)


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
    assert "waits for you, at plan (1 of 1), begun" in text
    assert about(capsys)[0] == ("run", f"redfirst show {run.folder.name}")


def test_a_broken_tracker_is_told_in_its_own_words(repository: Repository, capsys: pytest.CaptureFixture[str]) -> None:
    folder = repository.worktree / "TODO"
    folder.mkdir()
    (folder / "README.md").write_text(INDEX)
    (folder / "GAL-39.md").write_text("no header")
    assert "redfirst issue" in told(capsys)
