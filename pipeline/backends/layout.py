"""Takes the code from a view to a desk and the work back, file by file, never through a link.

Nobody else is at work in the view meanwhile. What is at the desk is a person's, and theirs to change at any moment.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from io import BufferedReader

Manifest = dict[str, str]
"""Path -> what is there: `file` or `exec` with a sha256, `link` with its target, or a word for what cannot be taken."""

_FILE: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_TAKEN: Final = ("file ", "exec ", "link ")
_LARGEST: Final = 256 << 20
"""Of a file that is read, and so of one that can be taken over; a sparse one of any size costs nothing to make."""
_DEEPEST: Final = 300
"""Folders in each other, below what a path can say and a process can follow."""


@dataclass(frozen=True)
class Difference:
    """How two trees differ, by path.

    Args:
        changed: Files and links that are new or other.
        removed: What is gone.
        strange: What cannot be taken over, with what it is.
    """

    changed: tuple[str, ...]
    removed: tuple[str, ...]
    strange: Mapping[str, str]

    @classmethod
    def of(cls, before: Manifest, now: Manifest) -> Difference:
        """Return what became of *before*."""
        other = [path for path, what in now.items() if before.get(path) != what]
        strange = {path: now[path] for path in other if not now[path].startswith(_TAKEN)}
        changed = tuple(path for path in other if path not in strange)
        return cls(changed, tuple(path for path in before if path not in now), strange)


def manifest_of(top: Path) -> Manifest:
    """Return what is below *top*; folders count by what is in them, the `.git` at the top does not count.

    Raises:
        OSError: a folder cannot be read, or is deeper than can be followed.
    """
    return {path: _what(top / path, status) for path, status in _walk(top)}


def digest(manifest: Manifest) -> str:
    """Return one hash for all of it."""
    return hashlib.sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()


def copy_out(view: Path, files: Path) -> None:
    """Make *files* a copy of what is in the view, with its `.git`, so that a person sees what they change."""
    files.mkdir(mode=0o700)
    for path, _ in _walk(view):
        _carry(view, files, path)
    if (view / ".git").is_dir() and not (view / ".git").is_symlink():
        shutil.copytree(view / ".git", files / ".git", symlinks=True)


def copy_back(files: Path, view: Path) -> Difference:
    """Make the view hold what is in *files*, but for its `.git`; return what that changed.

    Raises:
        OSError: a file of either cannot be read or written.
    """
    difference = Difference.of(manifest_of(view), manifest_of(files))
    for path in difference.removed:
        (view / path).unlink()
    for path in difference.changed:
        _make_way(view, path)
        _carry(files, view, path)
    for path in difference.removed:
        _close_up(view, files, path)
    return difference


def _walk(top: Path, below: str = "") -> Iterator[tuple[str, os.stat_result]]:
    if below.count("/") >= _DEEPEST:
        raise OSError(errno.ENAMETOOLONG, "deeper than can be followed", str(top / below))
    with os.scandir(top / below) as entries:
        found = sorted(entries, key=lambda entry: entry.name)
    for entry in found:
        path = f"{below}/{entry.name}" if below else entry.name
        if path == ".git":
            continue
        if entry.is_dir(follow_symlinks=False):
            yield from _walk(top, path)
        else:
            yield path, entry.stat(follow_symlinks=False)


def _what(path: Path, status: os.stat_result) -> str:
    if stat.S_ISLNK(status.st_mode):
        return f"link {path.readlink()}"
    if not stat.S_ISREG(status.st_mode):
        return "no file, folder or link"
    try:
        with opened_file(path) as file:
            if (size := os.fstat(file.fileno()).st_size) > _LARGEST:
                return f"{size} bytes; no more than {_LARGEST >> 20} MiB can be taken over"
            content = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        return f"unreadable: {error.strerror}"
    return f"{'exec' if status.st_mode & stat.S_IXUSR else 'file'} {content}"


def opened_file(path: Path) -> BufferedReader:
    """Open a file to read, but no link; without blocking, since what was a file a moment ago may be a FIFO now."""
    return os.fdopen(os.open(path, _FILE), "rb")


def _carry(source: Path, target: Path, path: str) -> None:
    """Bring one file or link from below *source* to below *target*, where nothing is in its way."""
    there = target / path
    _make_folders(target, Path(path).parent)
    status = (source / path).lstat()
    if stat.S_ISLNK(status.st_mode):
        there.symlink_to((source / path).readlink())
    else:
        mode = 0o755 if status.st_mode & stat.S_IXUSR else 0o644
        with opened_file(source / path) as old, os.fdopen(os.open(there, _NEW, mode), "wb") as new:
            shutil.copyfileobj(old, new)
            os.fchmod(new.fileno(), mode)
    _give(there, target)


def _make_folders(top: Path, folder: Path) -> None:
    for part in reversed((folder, *folder.parents)):
        place = top / part
        if not place.is_dir():
            place.mkdir()
            _give(place, top)


def _give(path: Path, top: Path) -> None:
    # A driver that root started works for a box that runs as somebody else: what is in a view is theirs.
    mine, theirs = path.lstat(), top.stat()
    if (mine.st_uid, mine.st_gid) != (theirs.st_uid, theirs.st_gid):
        os.chown(path, theirs.st_uid, theirs.st_gid, follow_symlinks=False)


def _make_way(top: Path, path: str) -> None:
    """Take away what is at *path*, and each file or link on the way to it: no file is written through a link."""
    for part in reversed(Path(path).parents):
        place = top / part
        if part.parts and os.path.lexists(place) and (place.is_symlink() or not place.is_dir()):
            place.unlink()
    there = top / path
    if there.is_dir() and not there.is_symlink():
        shutil.rmtree(there)
    else:
        there.unlink(missing_ok=True)


def _close_up(view: Path, files: Path, path: str) -> None:
    """Remove the folders that a removal left empty, unless they are at the desk too."""
    for part in Path(path).parents:
        place = view / part
        if (
            not part.parts
            or (files / part).is_dir()
            or place.is_symlink()
            or not place.is_dir()
            or any(place.iterdir())
        ):
            return
        place.rmdir()
