"""Reads the worktrees of a repository from git's administrative files, without starting a process."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Worktree:
    """A worktree of a repository; its folder may be missing.

    Attributes:
        path: Its folder.
        git_dir: Where git keeps what is its own.
        locked: Why git keeps it although its folder may be gone (a disk that is not mounted); None if it is not locked.
    """

    path: Path
    git_dir: Path
    locked: str | None = None

    @property
    def is_there(self) -> bool:
        """Return whether the worktree's folder exists and belongs to this repository."""
        place = self.path / ".git"
        said = _line(place)  # nothing of a folder
        own = place if said is None else self.path / said.removeprefix("gitdir:").strip()
        return os.path.lexists(place) and (not own.is_dir() or own.resolve() == self.git_dir.resolve())


def linked_in_files(common: Path) -> list[Worktree]:
    """Return the linked worktrees in the order of git's names; also those whose folder was removed.

    Args:
        common: The folder that the worktrees share.
    """
    folder = common / "worktrees"
    names = sorted(os.listdir(folder)) if folder.is_dir() else []  # noqa: PTH208  (names, sorted)
    return [found for name in names if (found := _linked(folder / name)) is not None]


def _linked(git_dir: Path) -> Worktree | None:
    """Return the worktree of an administrative folder, None if it has no valid one."""
    said = _line(git_dir / "gitdir")
    if not said:
        return None
    place = Path(os.path.normpath(git_dir / said)).parent
    return Worktree(place.resolve(), git_dir, _line(git_dir / "locked"))


def _line(file: Path) -> str | None:
    try:
        return file.read_text(encoding="utf-8", errors="surrogateescape").removesuffix("\n")
    except OSError:
        return None
