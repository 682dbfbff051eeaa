"""Writes files so that a crash leaves the old one or the new one; a full disk gets a sentence that helps.

Whether a folder of ours is still as we left it is told by what lstat says of each name (`Seal`): no content is read
again. The change time is what makes that sound: a program can set a file's modification time back, but not this one,
short of setting the clock (ADR-R23).
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import stat
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pipeline.characters import HIDDEN
from pipeline.errors import UserError
from pipeline.outcomes import Reason
from pipeline.pids import ProcessId

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Mapping
    from pathlib import Path

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EFBIG}
_DISK_FAULTS = {
    *(*_NO_ROOM, errno.EACCES, errno.EPERM, errno.EIO),
    *(errno.ENOTDIR, errno.EEXIST, errno.EISDIR, errno.ELOOP),  # something else of that name is in the way
}


def full_disk(error: OSError, path: Path) -> UserError | None:
    """Return the user's error where *error* is a full or read-only disk, wherever it came up; None for any other."""
    if error.errno not in _NO_ROOM:
        return None
    return _cannot_write(str(error.filename2 or error.filename or path), error)


def _cannot_write(path: str, error: OSError) -> UserError:
    return UserError(
        f"Cannot write {path}: {os.strerror(error.errno or 0)}. Make room or mend the permissions, then try again.",
        Reason.DISK,
        path=path,
    )


@contextmanager
def disk(path: Path) -> Generator[None]:
    """Turn a full, read-only or forbidden disk into a `UserError`; everything else passes.

    Raises:
        UserError: reason `disk`.
    """
    try:
        yield
    except OSError as error:
        if error.errno not in _DISK_FAULTS:
            raise
        raise _cannot_write(str(path), error) from error


def write_atomic(
    path: Path,
    content: bytes | str,
    *,
    mode: int | None = None,
    staging: Path | None = None,
    below: Path | None = None,
    durable: bool = True,
) -> None:
    """Write *content* to *path* by way of a temporary file: written, fsynced, renamed, folder fsynced.

    Args:
        path: The file.
        content: Its new content.
        mode: Its permissions; by default those of a new file.
        staging: A folder of the same file system for the temporary file, where one that a crash leaves does no harm;
            by default the folder of the file.
        below: A folder above the file that is trusted: on the way from there no link is followed.
        durable: Wait until it is on the disk; not for what is worth nothing after a crash.

    Raises:
        UserError: the disk does not take it, or a link is in the way.
    """
    data = content.encode("utf-8", errors="surrogateescape") if isinstance(content, str) else content
    temporary = f".{path.name}.{os.getpid()}.tmp"
    with (
        disk(path),
        _opened_folder(path.parent, below) as folder,
        nullcontext(folder) if staging is None else _opened_folder(staging, None) as place,
    ):
        try:
            with suppress(FileNotFoundError):
                os.unlink(temporary, dir_fd=place)
            handle = os.open(temporary, _NEW, 0o666, dir_fd=place)  # never through a link that somebody put there
            with open(handle, "wb") as stream:  # noqa: PTH123  (a descriptor)
                stream.write(data)
                stream.flush()
                if mode is not None:
                    os.fchmod(handle, mode)
                if durable:
                    os.fsync(handle)
            os.replace(temporary, path.name, src_dir_fd=place, dst_dir_fd=folder)
        except OSError:
            with suppress(FileNotFoundError):
                os.unlink(temporary, dir_fd=place)
            raise
        if durable:
            os.fsync(folder)


@contextmanager
def locked(folder: Path) -> Generator[int]:
    """Hold a flock on a folder, and lend its handle: no file is made, so none can be left."""
    handle = os.open(folder, _FOLDER)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield handle
    finally:
        os.close(handle)


def remove_abandoned(path: Path) -> None:
    """Remove the temporary files that `write_atomic` of processes that are gone left beside *path*."""
    for left in path.parent.glob(f".{path.name}.*.tmp"):
        writer = left.name.removesuffix(".tmp").rpartition(".")[2]
        if writer.isdecimal() and ProcessId.of(int(writer)) is None:
            left.unlink(missing_ok=True)


@contextmanager
def _opened_folder(folder: Path, below: Path | None) -> Generator[int]:
    """Open a folder, made where it is missing."""
    top = folder if below is None else below
    top.mkdir(parents=True, exist_ok=True)
    handle = os.open(top, _FOLDER)
    try:
        for part in folder.relative_to(top).parts:
            with suppress(FileExistsError):
                os.mkdir(part, dir_fd=handle)
            inner = os.open(part, _FOLDER | os.O_NOFOLLOW, dir_fd=handle)
            os.close(handle)
            handle = inner
        yield handle
    finally:
        os.close(handle)


def to_json(value: object, *, pretty: bool = True) -> str:
    """Return *value* as JSON with sorted keys; pretty ends with a newline.

    The pretty form is read by people and agents: letters stay letters, but what is hidden or steers a terminal is
    escaped as JSON does it, so that the value is the same.
    """
    if pretty:
        text = json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False)
        return HIDDEN.sub(lambda found: found[0] if found[0] == "\n" else json.dumps(found[0])[1:-1], text) + "\n"
    return json.dumps(value, sort_keys=True, ensure_ascii=True, separators=(",", ":"))


Facts = tuple[int, ...]


@dataclass(frozen=True)
class Seal:
    """How everything in and below some places stood. Of a folder only its kind, permissions and names count."""

    places: tuple[Path, ...]
    facts: Mapping[str, Facts]

    @classmethod
    def of(cls, *places: Path) -> Seal:
        """Return how these folders and files stand now; a place may be missing."""
        return cls(places, dict(_facts(places)))

    def broken(self) -> tuple[str, ...]:
        """Return the paths that are not as they were, sorted; empty when nobody has touched anything."""
        now = dict(_facts(self.places))
        if now == self.facts:
            return ()
        return tuple(sorted(path for path in now.keys() | self.facts.keys() if now.get(path) != self.facts.get(path)))


def _facts(places: tuple[Path, ...]) -> Iterator[tuple[str, Facts]]:
    folders: list[str] = []
    for place in places:
        try:
            status = place.lstat()
        except OSError as error:
            yield str(place), _unseen(error)
            continue
        yield str(place), _of(status)
        if stat.S_ISDIR(status.st_mode):
            folders.append(str(place))
    while folders:
        folder = folders.pop()
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    yield entry.path, _of(entry.stat(follow_symlinks=False))
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(entry.path)
        except OSError as error:  # permissions taken away, a path beyond what the system accepts: not as we left it
            yield f"{folder}/", _unseen(error)


def _unseen(error: OSError) -> Facts:
    return (-(error.errno or 1),)


def _of(status: os.stat_result) -> Facts:
    if stat.S_ISDIR(status.st_mode):
        return (status.st_mode, status.st_uid)
    return (status.st_mode, status.st_uid, status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)
