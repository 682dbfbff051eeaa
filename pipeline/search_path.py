"""Takes from the caller's environment only what the repository, or a git that runs us as its hook, cannot control."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import MutableMapping

_USERS_OWN: Final = (
    *("GIT_SSH", "GIT_EXEC_PATH", "GIT_CEILING_DIRECTORIES"),
    *("GIT_CONFIG_", "GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL"),
)
"""Prefixes of the variables that name the user's identity and configuration files, which git gets."""


def clear_git(environment: MutableMapping[str, str]) -> None:
    """Remove the `GIT_*` variables that a hook or a wrapper has set: they lead git to another repository or index."""
    for name in [name for name in environment if name.startswith("GIT_") and not name.startswith(_USERS_OWN)]:
        del environment[name]


def without_the_repository(search_path: str, worktree: Path | None = None) -> str:
    """Return PATH without relative folders and without those that the repository around us (or *worktree*) tracks.

    A folder of the worktree that it does not track, such as the one of an environment that the user made, stays.
    """
    entries = [entry for entry in search_path.split(":") if entry.startswith("/")]
    try:
        tops = _checkouts(worktree or Path.cwd())
    except FileNotFoundError:  # the folder that we were started in is gone
        tops = ()
    inside = [entry for entry in entries if any(_is_below(entry, top) for top in tops)]
    if inside:
        from pipeline.repo.tracked_paths import TrackedFiles  # noqa: PLC0415  (hardly ever needed, and not for --help)

        tracked = TrackedFiles(tops, ":".join(entry for entry in entries if entry not in inside))
        theirs = {entry for entry in inside if tracked.lead_to(Path(entry)) or tracked.set_up(Path(entry))}
        entries = [entry for entry in entries if entry not in theirs]
    return ":".join(entries)


def _checkouts(here: Path) -> tuple[Path, ...]:
    """Return the top of the worktree around a folder, and of the main checkout of its repository; none outside of one.

    Git is not asked: it is looked up on the path that is looked at.
    """
    top = next((place for place in (here, *here.parents) if os.path.lexists(place / ".git")), None)
    if top is None:
        return ()
    try:
        own = top / (top / ".git").read_text(encoding="utf-8").removeprefix("gitdir:").strip()
        shared = own / (own / "commondir").read_text(encoding="utf-8").strip()
    except (OSError, ValueError):
        return (top,)
    main = shared.resolve()
    return (top, main.parent) if main.name == ".git" else (top,)


def _is_below(entry: str, top: Path) -> bool:
    real = os.path.realpath(top)
    return any(Path(path).is_relative_to(place) for path in (entry, os.path.realpath(entry)) for place in (top, real))
