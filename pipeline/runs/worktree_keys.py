"""Names worktrees. The name is kept where git keeps what it knows of the worktree, so it stays when that is moved.

A run's refs, its claim, its orders and its events go by that name.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from pipeline.runs.files import disk

if TYPE_CHECKING:
    from pathlib import Path

WORKFLOW: Final = ".workflow"
"""The folder of a worktree that has its runs."""
_KEPT: Final = "redfirst-key"
_KEY: Final = re.compile(rb"[A-Za-z0-9_-]{1,255}-[0-9a-f]{6}\n")
_LINKED: Final = b"gitdir: "
_MOST_BYTES: Final = 4096


def key_of_worktree(path: Path) -> str:
    """Return a short name of a worktree, safe in a ref: the one that is kept, else that of its path."""
    folder = _git_dir(path)
    kept = _read(folder / _KEPT) if folder is not None else None
    return kept.decode().strip() if kept is not None and _KEY.fullmatch(kept) else _key(path, b"")


def keep_key(path: Path) -> None:
    """Write down what a worktree is called, unless it is: by its path where it has runs of an older version.

    Else the name is one that no other worktree ever had at that place.

    Raises:
        UserError: the disk does not take it.
    """
    folder = _git_dir(path)
    if folder is None or os.path.lexists(folder / _KEPT):
        return
    records = path / WORKFLOW
    older = records.is_dir() and any(one.name.startswith("run-") for one in records.iterdir())
    key = _key(path.resolve(), b"" if older else secrets.token_bytes(16))
    with disk(folder / _KEPT):
        own = folder / f"{_KEPT}.{os.getpid()}"
        own.write_bytes(f"{key}\n".encode())
        try:
            with suppress(FileExistsError):  # another process was quicker
                os.link(own, folder / _KEPT)
        finally:
            own.unlink(missing_ok=True)


def _key(path: Path, salt: bytes) -> str:
    label = re.sub(r"[^A-Za-z0-9_-]+", "-", path.name).strip("-")[:255] or "worktree"
    return f"{label}-{hashlib.sha256(os.fsencode(path) + salt).hexdigest()[:6]}"


def _git_dir(path: Path) -> Path | None:
    """Return where git keeps what it knows of a worktree, None of what is none."""
    there = path / ".git"
    if there.is_dir():
        return there
    said = _read(there)
    if said is None or not said.startswith(_LINKED):
        return None
    folder = path / os.fsdecode(said.removeprefix(_LINKED).strip())
    return folder if folder.is_dir() else None


def _read(path: Path) -> bytes | None:
    """Return a small file, which may be a stranger's; None where there is none, or it is a link, or large."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        content = os.read(handle, _MOST_BYTES + 1)
    except OSError:
        return None
    finally:
        os.close(handle)
    return content if len(content) <= _MOST_BYTES else None
