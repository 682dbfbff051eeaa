"""Waits for git's lock files, and removes those that a killed git process of ours left.

git writes no owner into a lock. One is taken for ours by its name (only this program has refs below `refs/redfirst/`)
or because it is younger than what we did there last; it is taken for dead when no git runs any more that may have made
it. A lock that is not both is never touched: git's own advice then holds, and is given.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

LOCK_LIMIT_S: Final = 3.0
WITHOUT_GIT_S: Final = 0.5
"""The seconds that a lock must exist with no git running: other programs write an index, too, and lock it briefly."""

_LOCKLESS: Final = frozenset({b"fsmonitor--daemon", b"cat-file"})
"""Long-running git commands that hold no lock."""

_PAUSE_S: Final = 0.02
_OLDEST: Final = 0.0


def await_lock(lock: Path) -> bool:
    """Wait until the file *lock* is gone, at most `LOCK_LIMIT_S`; return whether it is.

    When a driver is killed, its git process goes on for a moment: that lock is not stale, it is about to be let go.
    """
    deadline = time.monotonic() + LOCK_LIMIT_S
    while lock.exists():
        if time.monotonic() > deadline:
            return False
        time.sleep(_PAUSE_S)
    return True


def free(
    lock: Path, where: Iterable[Path], *, since: float = _OLDEST, contents: Collection[bytes] | None = None
) -> bool:
    """Wait for *lock*, remove it if a dead git of ours left it, and return whether it is gone.

    Args:
        lock: The lock file.
        where: A git that makes such a lock stands in one of these folders; read only where there is a lock.
        since: When we began what may have left it, in seconds since the epoch.
        contents: What ours can have in it, where that says something.
    """
    try:
        before = lock.lstat()
        ours = before.st_mtime >= since and (contents is None or lock.read_bytes() in contents)
        if not ours:
            return await_lock(lock)
        if not _is_abandoned(lock, where) or _identity(lock.lstat()) != _identity(before):
            return not lock.exists()
        lock.unlink()
    except FileNotFoundError:
        pass
    return True


def _is_abandoned(lock: Path, where: Iterable[Path]) -> bool:
    """Return whether the lock stays as it is for `WITHOUT_GIT_S`, with none of the gits that may have made it.

    Who made it runs when it is first seen: a git that begins later counts for nothing, however many do.
    """
    deadline = time.monotonic() + LOCK_LIMIT_S
    tops = tuple(folder.resolve() for folder in where)
    seen, makers, since = None, set[int](), 0.0
    while time.monotonic() < deadline:
        now, here = _identity(lock.lstat()), _gits_in(tops)
        makers = makers & here if now == seen else here
        if makers or now != seen:
            seen, since = now, time.monotonic()
        elif time.monotonic() - since > WITHOUT_GIT_S:
            return True
        time.sleep(_PAUSE_S)
    return False


def _identity(status: os.stat_result) -> tuple[int, int]:
    """Return what is another for another lock, and for one that is written to: numbers of files are used again."""
    return status.st_ino, status.st_ctime_ns


def _gits_in(tops: tuple[Path, ...]) -> set[int]:
    """Return the gits that may be running in one of the folders: one that does not say where it stands, too."""
    from pipeline.pids import pids  # noqa: PLC0415  (hardly ever needed)

    return {pid for pid in pids() if _is_git(pid) and _stands_in(pid, tops)}


def everywhere(common_dir: Path) -> Iterator[Path]:
    """Yield the folders where a git of the repository may stand: its git folder and its worktrees."""
    yield from (common_dir, common_dir.parent) if common_dir.name == ".git" else (common_dir,)
    for link in common_dir.glob("worktrees/*/gitdir"):
        yield (link.parent / os.fsdecode(link.read_bytes()).strip()).resolve().parent


def _is_git(pid: int) -> bool:
    folder = Path(f"/proc/{pid}")
    try:
        if not (folder / "comm").read_text(errors="replace").startswith("git"):
            return False
        return _LOCKLESS.isdisjoint((folder / "cmdline").read_bytes().split(b"\0"))
    except OSError:
        return False


def _stands_in(pid: int, tops: tuple[Path, ...]) -> bool:
    try:
        where = Path(f"/proc/{pid}/cwd").readlink()
    except FileNotFoundError:
        return False  # it has ended
    except OSError:
        return True
    return any(where.is_relative_to(top) for top in tops)
