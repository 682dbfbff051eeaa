"""A repository that is only looked at: its worktree is what git itself would say."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from runs.real import alone, git, make_repository

from pipeline.repo import UntouchedRepository

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_a_change_in_the_second_of_the_last_commit_is_seen(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """git tells such files by the time of its index; a copy of the index that is younger would hide them."""
    alone(monkeypatch, tmp_path / "home")
    repository = make_repository(tmp_path / "project")
    app, index = repository.worktree / "app.py", repository.git_dir / "index"
    git(repository.worktree, "config", "core.trustctime", "false")
    os.utime(app, (10**9, 10**9))
    git(repository.worktree, "add", "--refresh", "app.py")
    os.utime(index, (10**9, 10**9))
    app.write_text("two\n")
    os.utime(app, (10**9, 10**9))
    untouched = UntouchedRepository.of(repository, tmp_path / "objects")
    assert untouched.blob(f"{untouched.worktree_tree()}:app.py") == b"two\n"
