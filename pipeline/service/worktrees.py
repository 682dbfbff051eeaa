"""`run --worktree`: a branch and a linked worktree for the issue, outside the checkout."""

from __future__ import annotations

import fcntl
import os
import re
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from pipeline.errors import UserError
from pipeline.git import GitError, Repository
from pipeline.outcomes import Reason
from pipeline.runs import tracker

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

    from pipeline.service.run_config import RunOptions

_SLUG_LIMIT = 40


def create(repository: Repository, options: RunOptions) -> tuple[Repository, RunOptions]:
    """Return the repository as seen from a new linked worktree on a new branch, and the options for it.

    Raises:
        UserError: the issue is missing, or branch or folder exist already.
    """
    base = options.base or next((n for n in ("main", "master") if repository.resolve(f"refs/heads/{n}")), None)
    tip = repository.resolve(base) if base else None
    if base is None or tip is None:
        raise UserError("Name the base branch: --base REF.", Reason.USAGE, actions=("redfirst run ISSUE --base REF",))
    with tracker.as_user_errors():
        title = tracker.in_tree(repository, repository.tree_of(tip)).read(options.issue).title
    slug = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")[:_SLUG_LIMIT].strip("-")
    branch = f"{options.issue.lower()}-{slug}" if slug else options.issue.lower()
    main = repository.main_checkout
    folder = main.parent / f"{main.name}-{options.issue.lower()}"
    if repository.resolve(f"refs/heads/{branch}") or folder.exists():
        raise UserError(
            f"The branch {branch} or the folder {folder} exists already. Go on there, or remove them: "
            f"git worktree remove {folder}; git branch -D {branch}",
            Reason.USAGE,
            path=str(folder),
        )
    # `git worktree add` is not safe in parallel: one at a time.
    with _locked(repository.common_dir):
        try:
            repository.add_worktree(folder, branch, tip)
        except GitError as error:
            raise UserError(f"The worktree could not be made: {error.stderr.strip()}", Reason.USAGE) from error
    return Repository.find(folder), replace(options, base=base)


@contextmanager
def _locked(folder: Path) -> Generator[None]:
    """Hold a flock on a folder: no file is made, so none can be left."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
