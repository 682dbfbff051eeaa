"""Lists the files that the list of runs follows from, and those of git that say which runs and claims there are.

An answer that was made from them is kept as long as they are the same.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pipeline.config.folders import config_folder, home
from pipeline.config.sources import OWN_FILE, SHARED_FILE
from pipeline.runs.store import RUN_REFS, WORKFLOW, Claim, claims
from pipeline.service.runs_document import RECORDS
from pipeline.service.text_cache import below

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pipeline.git import Repository

_OF_A_GIT_FOLDER: Final = ("HEAD", "commondir", "config", "config.worktree", "gitdir", "index", "locked", "packed-refs")
_LOCK: Final = "lock"
_MOST_RUNS: Final = 1000
"""An answer that follows from more runs is not kept: to look at all their files takes longer than to answer anew."""


def files_read(repository: Repository) -> tuple[list[str], list[str]]:
    """Return the files that are read, or looked for, to list the runs of a repository, and the locks of the runs.

    Raises:
        ValueError: they are too many.
    """
    worktrees = repository.worktrees()
    runs = [run for worktree in worktrees for run in _run_folders(worktree.path)]
    named = [claim.folder for claim in claims(repository).values() if isinstance(claim, Claim)]
    files = [*_settings(repository), *_of_git(repository)]
    for worktree in worktrees:
        files += [worktree.path / ".git", worktree.path / WORKFLOW]
    for run in (*runs, *named):
        files += [run, *(run / name for name in (*RECORDS, _LOCK))]
    return [*map(str, files)], [str(run / _LOCK) for run in runs]


def _run_folders(worktree: Path) -> list[Path]:
    folder = worktree / WORKFLOW
    names = os.listdir(folder) if folder.is_dir() else []  # noqa: PTH208  (names: they may be ten thousand)
    if len(names) > _MOST_RUNS:
        raise ValueError("too many runs for an answer to be kept")
    return [folder / name for name in names if name.startswith("run-")]


def _settings(repository: Repository) -> list[Path]:
    """Return the files with what the user has set, of git and of ours."""
    env = os.environ
    xdg = Path(env.get("XDG_CONFIG_HOME") or home(env) / ".config")
    named = [Path(env[name]) for name in ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM") if env.get(name)]
    gits = [Path("/etc/gitconfig"), home(env) / ".gitconfig", xdg / "git" / "config", *named]
    ours = [config_folder(env) / "config.toml", *(repository.worktree / name for name in (OWN_FILE, SHARED_FILE))]
    return [*gits, *ours]


def _of_git(repository: Repository) -> Iterator[Path | str]:
    """Return what git tells the repository, its worktrees and our refs from; of other refs nothing is read."""
    here = Path.cwd()
    above = (here, *here.parents)
    for folder in above[: above.index(repository.worktree) + 1]:
        yield folder / ".git"
    common = repository.common_dir
    for folder in {common, repository.git_dir, *(each.git_dir for each in repository.worktrees())}:
        yield from (folder / name for name in _OF_A_GIT_FOLDER)
    yield common / "worktrees"
    yield from below(str(common / "reftable"))
    yield from below(str(common / RUN_REFS).rpartition("/")[0])
