"""What a worktree is called: kept with what git knows of it, so that its runs stay its own when it is moved."""

from __future__ import annotations

import hashlib
import multiprocessing
from typing import TYPE_CHECKING

import pytest
from people.ground import waiting
from runs.real import alone, begin, git, make_repository

from pipeline.repo import Repository
from pipeline.run.store import claims, keep_key, key_of_run, key_of_worktree, run_ref, state_of_run, take_claim

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow


@pytest.fixture
def main(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    alone(monkeypatch, tmp_path / "home")
    return make_repository(tmp_path / "project")


def linked(main: Repository, name: str) -> Repository:
    path = main.worktree.parent / name
    git(main.worktree, "worktree", "add", "--quiet", "-b", name, str(path), "main")
    return Repository.find(path)


def test_a_worktree_that_is_moved_is_called_as_before_and_another_in_its_place_is_not(
    main: Repository, tmp_path: Path
) -> None:
    there = linked(main, "gal-39")
    run = begin(there, "run-GAL-39")
    assert take_claim(there, "GAL-39", "run-GAL-39") is None
    before = key_of_run(run.folder), run_ref(there, "run-GAL-39"), state_of_run(tmp_path, there, "run-GAL-39")
    git(main.worktree, "worktree", "move", str(there.worktree), str(tmp_path / "elsewhere"))
    moved = Repository.find(tmp_path / "elsewhere")
    folder = moved.worktree / ".workflow" / "run-GAL-39"
    assert before == (key_of_run(folder), run_ref(moved, "run-GAL-39"), state_of_run(tmp_path, moved, "run-GAL-39"))
    assert take_claim(moved, "GAL-39", "run-GAL-39") is None
    (claim,) = claims(main).values()
    assert getattr(claim, "folder", None) == folder
    git(main.worktree, "worktree", "add", "--quiet", "-b", "gal-40", str(there.worktree), "main")
    new = begin(Repository.find(there.worktree), "run-GAL-39")
    assert key_of_run(new.folder) != before[0]


def test_where_an_older_version_ran_the_name_is_that_of_the_path(main: Repository) -> None:
    path = main.worktree
    (path / ".workflow" / "run-GAL-1").mkdir(parents=True)
    keep_key(path)
    assert key_of_worktree(path) == f"project-{hashlib.sha256(str(path).encode()).hexdigest()[:6]}"
    assert key_of_worktree(path / "gone") == f"gone-{hashlib.sha256(str(path / 'gone').encode()).hexdigest()[:6]}"


@pytest.mark.broad(but_first=1)
@pytest.mark.parametrize("content", [b"", b"../x-aaaaaa\n", b"x-aaaaaa", b"x" * 10_000, None])
def test_what_is_no_name_does_not_count(main: Repository, content: bytes | None) -> None:
    path = main.worktree
    kept = main.git_dir / "redfirst-key"
    kept.symlink_to("/etc/hostname") if content is None else kept.write_bytes(content)
    assert key_of_worktree(path) == f"project-{hashlib.sha256(str(path).encode()).hexdigest()[:6]}"


def _kept(path: Path) -> str:
    keep_key(path)
    return key_of_worktree(path)


def test_of_processes_that_begin_at_once_all_use_one_name(main: Repository) -> None:
    with multiprocessing.get_context("fork").Pool(4) as pool:
        assert len(set(pool.map(_kept, [main.worktree] * 16))) == 1
    assert [path.name for path in main.git_dir.glob("redfirst-key*")] == ["redfirst-key"]


@pytest.mark.broad
def test_a_project_that_is_moved_while_a_run_waits_goes_on(tmp_path: Path) -> None:
    project = waiting(tmp_path).project
    moved = project.root.rename(tmp_path / "moved")
    done = project.redfirst("approve", "--json", cwd=moved)
    assert '"outcome": "completed"' in done.stdout, done.stdout + done.stderr
