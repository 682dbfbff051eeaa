"""Lists what of a worktree is not committed: the user's work, and what tools made that nobody told git to ignore."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final

from pipeline.policy.paths import SCRATCH

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from pipeline.git import Repository

_SHOWN: Final = 5
_MADE: Final = (
    *SCRATCH, ".venv", "venv", ".tox", ".nox", "node_modules", "target", ".gradle", ".next", ".nyc_output", ".turbo",
)  # fmt: skip
_MARKS: Final = ("pyvenv.cfg", "CACHEDIR.TAG")
"""What environments and caches have in them, whatever they are called."""
_UNTRACKED: Final = "?? "
EXCLUDE: Final = "git rev-parse --git-path info/exclude"


@dataclass(frozen=True)
class Uncommitted:
    """What `git status` shows.

    Args:
        work: Paths that a person changed or added, a file or a folder each.
        made: Untracked paths that tools make; a line of `.gitignore` is missing.
        patterns: These lines.
    """

    work: tuple[str, ...]
    made: tuple[str, ...]
    patterns: tuple[str, ...]

    @property
    def paths(self) -> tuple[str, ...]:
        """Return all of it."""
        return (*self.work, *self.made)

    def advice(self) -> str:
        """Return what to do about what tools made, as a sentence; empty where there is nothing."""
        if not self.made:
            return ""
        them, are = ("them", "are") if len(self.made) > 1 else ("it", "is")
        return (
            f"{listed(self.made)} {are} made by tools and not ignored: add {them} to .gitignore and commit that, or to "
            ".git/info/exclude."
        )

    def actions(self) -> tuple[str, ...]:
        """Return what to type to have what tools made ignored here; nothing where there is nothing."""
        if not self.patterns:
            return ()
        lines = " ".join(map(shlex.quote, self.patterns))
        return (f"printf '%s\\n' {lines} >> \"$({EXCLUDE})\"",)


def uncommitted(repository: Repository, *exempt: str) -> Uncommitted:
    """Return what is uncommitted in the worktree, but for paths at or below *exempt*."""
    work: list[str] = []
    made: dict[str, str] = {}
    for line in repository.status(*exempt):
        path = line[3:]
        pattern = _pattern(repository.worktree, path) if line.startswith(_UNTRACKED) else None
        if pattern is None:
            work.append(path)
        else:
            made[path] = pattern
    return Uncommitted(tuple(work), tuple(made), tuple(dict.fromkeys(made.values())))


def _pattern(worktree: Path, path: str) -> str | None:
    """Return the line of an ignore file for an untracked path that tools make, or None for a person's own."""
    folder = "/" if path.endswith("/") else ""
    for part in path.rstrip("/").split("/"):
        known = next((name for name in _MADE if fnmatchcase(part, name)), None)
        if known is not None:
            return known + (folder if part == path.rstrip("/").rpartition("/")[2] else "/")
    if folder and any((worktree / path / mark).is_file() for mark in _MARKS):
        return f"/{path}"
    return None


def listed(paths: Sequence[str] | Iterable[str]) -> str:
    """Return the first paths, and that there are more."""
    every = list(paths)
    return ", ".join(every[:_SHOWN]) + (" ..." if len(every) > _SHOWN else "")
