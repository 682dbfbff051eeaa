"""Names of refs that a remote chooses: git allows bytes that are no UTF-8, and line breaks that are not its own."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

import pytest
from kit import make_project

from pipeline.repo import Repository, UntouchedRepository
from pipeline.testing.verification.claims import known_runs

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

NAMES: Final = {
    "bytes": os.fsdecode(b"we\xffird"),
    "U+2028": "we\u2028ird\u2028",
    "U+0085": "we\x85ird",
    "a run of bytes": os.fsdecode(b"redfirst/runs/we\xffird/run-GAL-1"),
}


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
@pytest.mark.broad
def test_a_branch_of_any_name_hides_no_other(tmp_path: Path, name: str) -> None:
    project = make_project(tmp_path)
    project.git("branch", name)
    project.git("clone", "--quiet", "--branch", "work", str(project.root), str(tmp_path / "clone"))
    repository = Repository.find(tmp_path / "clone")
    assert repository.refs().keys() == {
        *(f"refs/{kind}/work" for kind in ("heads", "remotes/origin")),
        *(f"refs/remotes/origin/{one}" for one in ("HEAD", "main", name)),
    }
    known_runs(UntouchedRepository.of(repository, tmp_path / "objects"))
    for words, code in ((("verify", "HEAD"), 2), (("runs",), 0), (("issue", "list"), 0)):
        done = project.redfirst(*words, cwd=repository.worktree)
        assert done.returncode == code, (words, done.stdout, done.stderr)


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
@pytest.mark.broad
def test_a_run_on_a_branch_of_any_name_starts_or_says_why_not(tmp_path: Path, name: str) -> None:
    project = make_project(tmp_path)
    project.use_script([])
    project.git("switch", "--quiet", "--create", name)
    assert Repository.find(project.root).branch() == name
    done = project.redfirst("run", "GAL-1")
    assert done.returncode == 2, (done.stdout, done.stderr)
    assert "git branch -m" in done.stderr
    assert project.redfirst("doctor").returncode in {0, 1}
