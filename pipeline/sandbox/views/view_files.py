"""Reads and writes files of a view for our tools: by folder descriptors, one name at a time, through no link.

Other than the gate, which works when everything is dead, this happens while commands of the agent may run.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
from typing import TYPE_CHECKING, Final

from pipeline.judge.policy.paths import malformed
from pipeline.trees import NotRegularError, opened, opened_parent, read_regular, write_new

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

_PLAIN: Final = 0o644
_EXECUTABLE: Final = 0o755


@contextlib.contextmanager
def opened_top(path: Path) -> Generator[int]:
    """Open the top folder of a view. The path to it may be a link in /proc; below it no link is followed."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def is_file(top: int, path: str) -> bool:
    """Return whether `path` is a regular file; False if it is missing or no valid path.

    Raises:
        NotRegularError: something else is there.
        OSError: a link or a file is on the way.
    """
    if malformed(path):
        return False
    try:
        with opened_parent(top, path) as (parent, name):
            mode = os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode
    except FileNotFoundError:
        return False
    if not stat.S_ISREG(mode):
        raise NotRegularError(errno.EINVAL, "not a regular file")
    return True


def read_file(top: int, path: str, limit: int) -> bytes:
    """Return a file's content, at most `limit + 1` bytes of it.

    Raises:
        NotRegularError: it is something else.
        OSError: it cannot be read, or a link or a file is on the way.
    """
    with opened_parent(top, path) as (parent, name):
        return read_regular(name, limit, parent)


def names_in(top: int, path: str) -> list[str] | None:
    """Return the sorted names in the folder `path`, folders with a final `/`; None if it is no folder.

    Raises:
        OSError: it is not there, or a link or a file is on the way.
    """
    with opened_parent(top, path) as (parent, name):
        if not stat.S_ISDIR(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode):
            return None
        with opened(name, parent) as folder, os.scandir(folder) as entries:
            return sorted(f"{entry.name}/" if entry.is_dir(follow_symlinks=False) else entry.name for entry in entries)


def put_file(top: int, path: str, content: bytes) -> None:
    """Write a file, with the folders above it; it gets the view's owner, and stays executable if it was.

    A new file takes the name: neither a link nor another name of the old one (a hard link) is written through.

    Raises:
        OSError: a link or a file is on the way, or there is no space.
    """
    owner = os.fstat(top)
    *folders, name = path.split("/")
    with contextlib.ExitStack() as stack:
        parent = top
        for folder in folders:
            with contextlib.suppress(FileExistsError):
                os.mkdir(folder, 0o755, dir_fd=parent)
                _give(folder, parent, owner)
            parent = stack.enter_context(opened(folder, parent))
        fresh = f".redfirst-{secrets.token_hex(8)}"
        try:
            write_new(parent, fresh, content, _mode(parent, name))
            _give(fresh, parent, owner)
            os.rename(fresh, name, src_dir_fd=parent, dst_dir_fd=parent)
        except OSError:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(fresh, dir_fd=parent)
            raise


def delete_file(top: int, path: str) -> None:
    """Remove a file or a link.

    Raises:
        OSError: it is a folder or not there, or a link or a file is on the way.
    """
    with opened_parent(top, path) as (parent, name):
        os.unlink(name, dir_fd=parent)


def _mode(parent: int, name: str) -> int:
    try:
        before = os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode
    except FileNotFoundError:
        return _PLAIN
    # Nothing but the execute bit is kept: an agent may have set others, and the driver may be root.
    return _EXECUTABLE if before & stat.S_IXUSR else _PLAIN


def _give(name: str, parent: int, owner: os.stat_result) -> None:
    # A driver started by root works for a box that runs as somebody else.
    mine = os.stat(name, dir_fd=parent, follow_symlinks=False)
    if (mine.st_uid, mine.st_gid) != (owner.st_uid, owner.st_gid):
        os.chown(name, owner.st_uid, owner.st_gid, dir_fd=parent, follow_symlinks=False)
