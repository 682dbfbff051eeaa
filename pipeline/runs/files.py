"""Writing so that a crash leaves the old file or the new one, and a full disk leaves a sentence that helps."""

from __future__ import annotations

import errno
import json
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pipeline.errors import UserError
from pipeline.policy.characters import HIDDEN
from pipeline.routing.vocabulary import Reason

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EFBIG}
_DISK_FAULTS = {
    *(*_NO_ROOM, errno.EACCES, errno.EPERM, errno.EIO),
    *(errno.ENOTDIR, errno.EEXIST, errno.EISDIR),  # something else of that name is in the way
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
        actions=("free disk space",),
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


def write_atomic(path: Path, content: bytes | str, *, mode: int | None = None, staging: Path | None = None) -> None:
    """Write *content* to *path* by way of a temporary file: written, fsynced, renamed, folder fsynced.

    Args:
        path: The file.
        content: Its new content.
        mode: Its permissions; by default those of a new file.
        staging: A folder of the same file system for the temporary file, where one that a crash leaves does no harm;
            by default the folder of the file.

    Raises:
        UserError: the disk does not take it.
    """
    data = content.encode("utf-8", errors="surrogateescape") if isinstance(content, str) else content
    temporary = (staging or path.parent) / f".{path.name}.{os.getpid()}.tmp"
    with disk(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            temporary.unlink(missing_ok=True)
            with temporary.open("xb") as stream:  # never through a link that somebody put there
                stream.write(data)
                stream.flush()
                if mode is not None:
                    os.fchmod(stream.fileno(), mode)
                os.fsync(stream.fileno())
            temporary.replace(path)
        except OSError:
            temporary.unlink(missing_ok=True)
            raise
        sync_folder(path.parent)


def remove_temporaries(folder: Path) -> None:
    """Remove what writers that were killed left anywhere below *folder*; nobody else may be writing there."""
    for path in folder.rglob(".*.tmp"):
        if path.is_file() and not path.is_symlink():
            path.unlink()


def sync_folder(folder: Path) -> None:
    """Make a rename in *folder* survive a power cut."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
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
