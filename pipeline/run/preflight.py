"""Finds what of a repository no run can work with: `doctor`, `run --dry-run` and `run` all ask here.

Each fault is one sentence and what to do. What is not committed is the user's work, or what tools made that nobody told
git to ignore. Nothing is changed; of a partial clone one object may be fetched.
"""

from __future__ import annotations

import shlex
import shutil
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final

from pipeline.characters import visible
from pipeline.errors import UserError
from pipeline.judge.policy.paths import SCRATCH
from pipeline.outcomes import Reason
from pipeline.progress import counted
from pipeline.repo import REFETCH, Repository

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path


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


_UNDER_WAY: Final = (
    ("rebase-merge", "A rebase", "git rebase --continue", "git rebase --abort"),
    ("rebase-apply/applying", "A git am", "git am --continue", "git am --abort"),
    ("rebase-apply", "A rebase", "git rebase --continue", "git rebase --abort"),
    ("MERGE_HEAD", "A merge", "git merge --continue", "git merge --abort"),
    ("CHERRY_PICK_HEAD", "A cherry-pick", "git cherry-pick --continue", "git cherry-pick --abort"),
    ("REVERT_HEAD", "A revert", "git revert --continue", "git revert --abort"),
    ("BISECT_LOG", "A bisect", "", "git bisect reset"),
)
_LFS: Final = "git-lfs"


def _refuse_under_way(repository: Repository) -> None:
    """Refuse a worktree in which git waits for a person: until then it switches and commits nothing.

    Raises:
        UserError: something is under way.
    """
    for mark, what, on, back in _UNDER_WAY:
        if (repository.git_dir / mark).exists():
            ways = f"Finish it ({on}) or take it back ({back})" if on else f"End it ({back})"
            raise UserError(
                f"{what} is under way in this worktree, and a run could not commit here. {ways}.",
                Reason.DIRTY_TREE,
                path=str(repository.git_dir / mark),
                actions=tuple(filter(None, ("git status", on, back))),
            )


def refuse_unusable(repository: Repository) -> None:
    """Refuse a worktree in which git itself could not do what a run asks of it next.

    Raises:
        UserError: the first fault; the others could not be looked for without git.
    """
    _refuse_under_way(repository)
    _refuse_missing(repository)
    _refuse_filters(repository)


def _refuse_missing(repository: Repository) -> None:
    missing = repository.missing_objects()
    if not missing or repository.can_fetch(missing[0]):
        return
    raise UserError(
        f"This is a partial clone, {len(missing)} of the objects of HEAD are not here, and git cannot fetch them now. "
        f"Reach the remote again, then fetch them: {REFETCH}",
        Reason.ENVIRONMENT,
        details={"missing": len(missing)},
        actions=("git remote --verbose", REFETCH),
    )


def _refuse_filters(repository: Repository) -> None:
    """Refuse files that git cannot check out: their filter is required, and its program is not here."""
    for name, paths in repository.required_filters().items():
        for program in repository.filter_programs(name):
            if shutil.which(program) is not None:
                continue
            fetched = "Install it, then: git lfs install" if program == _LFS else "Install it, or put it on PATH"
            raise UserError(
                f"{visible(paths[0])} needs {visible(program)}, the program of the git filter {visible(name)!r}, and "
                f"it is not here. {fetched}",
                Reason.ENVIRONMENT,
                path=paths[0],
                details={"filter": name, "program": program, "paths": list(paths)},
                actions=("git lfs install" if program == _LFS else f"git config --get-regexp '^filter\\.{name}\\.'",),
            )


def refuse_hidden(repository: Repository) -> None:
    """Refuse changes that `git status` does not show: publication could not update such a file."""
    hidden = repository.hidden_changes()
    if not hidden:
        return
    them = " ".join(shlex.quote(path) for path in hidden)
    shown = f"git update-index --no-skip-worktree --no-assume-unchanged {them}"
    have = "have" if len(hidden) > 1 else "has"
    raise UserError(
        f"{listed(hidden)} {have} changes that git hides (skip-worktree or assume-unchanged), and a run starts from a "
        f"commit. Show them to git, then commit or stash them: {shown}. Or leave them, and run in a worktree of its "
        "own: redfirst run ISSUE --worktree",
        Reason.DIRTY_TREE,
        details={"paths": list(hidden)},
        actions=(shown, "git ls-files -v"),
    )


def closed_to_agents(repository: Repository, checkout: Path, tree: str) -> str:
    """Return in words which files no agent can change, before anybody is paid to plan with one; empty where none is.

    Args:
        repository: The user's.
        checkout: Where the attributes of the files are read.
        tree: The files.
    """
    paths = [entry.path for entry in repository.entries(tree)]
    if not any(path.rpartition("/")[2] == ".gitattributes" for path in paths):
        return ""
    found = repository.foreign_filters(checkout, paths)
    if not found:
        return ""
    first, why = next(iter(found.items()))
    verb = "does" if len(found) == 2 else "do"  # noqa: PLR2004  (one of them is named)
    more = f", and so {verb} {counted(len(found) - 1, 'other file')}" if len(found) > 1 else ""
    return f"no agent can change {visible(first)}, which {why}{more}"


def refuse_ignored(repository: Repository, path: str) -> None:
    """Refuse an issue, by its file's path, that no commit could ever hold.

    Raises:
        UserError: git ignores it.
    """
    rule = repository.ignored_by(path) if repository.blob(f"HEAD:{path}") is None else None
    if rule is not None:
        raise UserError(
            f"git ignores {visible(path)} ({visible(rule)}), and a run starts from issues that are committed. Take "
            "that line out, then commit the folder.",
            Reason.TRACKER_INVALID,
            path=path,
            actions=(f"git check-ignore -v -- {shlex.quote(path)}",),
        )
