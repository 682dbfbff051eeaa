"""Finding the repository around a folder."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline.errors import UserError
from pipeline.git.publishing import PublishDoor
from pipeline.routing.vocabulary import Reason

if TYPE_CHECKING:
    from git import Repo


def _common_dir(git_dir: Path) -> Path:
    """Return the directory that the worktrees share (GitPython would believe an inherited GIT_COMMON_DIR)."""
    shared = git_dir / "commondir"
    return (git_dir / os.fsdecode(shared.read_bytes()).strip()).resolve() if shared.is_file() else git_dir


def _worktree(repo: Repo, git_dir: Path, common_dir: Path) -> Path | None:
    """Return the top of the worktree that *repo* was found from; None where there is none."""
    linked = git_dir / "gitdir"
    if git_dir != common_dir and linked.is_file():
        # GitPython takes a linked worktree of a bare repository for bare itself
        return Path(os.path.normpath(git_dir / os.fsdecode(linked.read_bytes()).strip())).parent
    if repo.bare or repo.working_tree_dir is None:
        return None
    return Path(repo.working_tree_dir)


class Repository(PublishDoor):
    """A repository as seen from one worktree: found by GitPython, entered by the three doors."""

    @classmethod
    def find(cls, start: Path) -> Repository:
        """Return the repository around *start*.

        Raises:
            UserError: there is none, it is bare, git is missing, or git refuses to work there.
        """
        # loaded here, off the path of --help: it is slow, and importing it asks git for its version
        os.environ.setdefault("GIT_PYTHON_REFRESH", "quiet")  # else the import fails where git is not installed
        try:
            from git import InvalidGitRepositoryError, NoSuchPathError, Repo  # noqa: PLC0415
        except ImportError as error:
            said = str(error).strip().splitlines()[-1].strip()
            raise UserError(f"git does not work here: {said}", Reason.USAGE, path=str(start)) from error
        try:
            with Repo(start, search_parent_directories=True, expand_vars=False) as repo:
                git_dir = Path(repo.git_dir).resolve()
                common_dir = _common_dir(git_dir)
                worktree = _worktree(repo, git_dir, common_dir)
        except (InvalidGitRepositoryError, NoSuchPathError) as error:
            raise UserError(
                f"{start} is not inside a git repository. Change into one, or: git init",
                Reason.USAGE,
                path=str(start),
            ) from error
        if worktree is None:
            raise UserError(
                "This is a bare repository; redfirst needs a worktree. Create one: git worktree add ../work BRANCH",
                Reason.BARE_REPOSITORY,
                path=str(start),
                actions=("git worktree add ../work BRANCH",),
            )
        found = cls(worktree, git_dir, common_dir)
        found._require_git()
        return found

    def _require_git(self) -> None:
        """Ask git one question now, so that its refusals (another owner, a broken configuration) are told as such."""
        try:
            done = self._start(("rev-parse", "--git-dir"))
        except FileNotFoundError as error:
            raise UserError("git is not installed, or not on PATH.", Reason.USAGE) from error
        if done.returncode:
            said = done.stderr.decode(errors="replace").strip()
            raise UserError(f"git refuses to work in {self.worktree}: {said}", Reason.USAGE, path=str(self.worktree))

    @property
    def main_checkout(self) -> Path:
        """Return the checkout that owns the common dir (its parent), or the worktree itself where there is none."""
        return self.common_dir.parent if self.common_dir.name == ".git" else self.worktree
