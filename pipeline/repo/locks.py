"""Waits for git's lock files, and removes those that a killed git process of ours left.

git writes no owner into a lock. One is taken for ours by its name (only this program has refs below `refs/redfirst/`)
or because it is younger than what we did there last; it is taken for dead when no git is at work in the repository at
all. A lock that is not both is never touched: git's own advice then holds, and is given.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

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


def free(lock: Path, common_dir: Path, *, since: float = _OLDEST, contents: Collection[bytes] | None = None) -> bool:
    """Wait for *lock*, remove it if a dead git of ours left it, and return whether it is gone.

    Args:
        lock: The lock file.
        common_dir: The repository that it belongs to.
        since: When we began what may have left it, in seconds since the epoch.
        contents: What ours can have in it, where that says something.
    """
    try:
        before = lock.lstat()
        ours = before.st_mtime >= since and (contents is None or lock.read_bytes() in contents)
        if not ours:
            return await_lock(lock)
        if not _is_abandoned(lock, common_dir) or lock.lstat().st_ino != before.st_ino:
            return not lock.exists()
        lock.unlink()
    except FileNotFoundError:
        pass
    return True


def _is_abandoned(lock: Path, common_dir: Path) -> bool:
    """Return whether the lock exists for `WITHOUT_GIT_S` with no git running, within `LOCK_LIMIT_S`."""
    began = last_seen = time.monotonic()
    while lock.exists() and time.monotonic() - began < LOCK_LIMIT_S:
        if git_at_work(common_dir):
            last_seen = time.monotonic()
        elif time.monotonic() - last_seen > WITHOUT_GIT_S:
            return True
        time.sleep(_PAUSE_S)
    return False


def git_at_work(common_dir: Path) -> bool:
    """Return whether a git process may be running in a worktree of the repository or in its git folder.

    A process that does not say where it stands counts, and so does a system that does not say what runs.
    """
    from pipeline.pids import pids  # noqa: PLC0415  (hardly ever needed)

    if not Path("/proc/self/cwd").exists():
        return True
    tops = tuple(_tops(common_dir))
    return any(_stands_in(pid, tops) for pid in pids() if _is_git(pid))


def _tops(common_dir: Path) -> Iterator[Path]:
    yield common_dir.resolve()
    if common_dir.name == ".git":
        yield common_dir.parent.resolve()
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
