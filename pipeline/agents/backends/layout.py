"""Copies code from a view to a desk and the work back, file by file, never through a link.

Nobody else is at work in the view meanwhile. What is at the desk is a person's, and theirs to change at any moment.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import stat
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Final, cast

from pipeline.judge.policy.paths import scratch_pattern
from pipeline.repo.tracked_paths import ignored_in
from pipeline.trees import opened_regular

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

Manifest = dict[str, str]
"""Entries by path: `file` or `exec` with a sha256, `link` with its target, or a word for an entry that is not
copied."""

_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_TAKEN: Final = ("file ", "exec ", "link ")
_LARGEST: Final = 256 << 20
"""The largest file that is read, and so copied back, in bytes; a sparse one of any size costs nothing to make."""
_CACHE: Final = b"Signature: 8a477f597d28d172789f06886806bc55"
"""The beginning of a CACHEDIR.TAG, by which a tool marks a folder that it can make again."""
_DEEPEST: Final = 300
"""The deepest folder that is read: a path can express it, and a process can follow it."""


@dataclass(frozen=True)
class Difference:
    """The difference of two trees, by path.

    Args:
        changed: Files and links that are new or other.
        removed: What is gone.
        strange: What cannot be taken over, with what it is.
        now: What is changed or new, as a manifest says it.
        left_out: What tools built, which counts as nobody's: folders, with a slash at the end, and files.
    """

    changed: tuple[str, ...]
    removed: tuple[str, ...]
    strange: Mapping[str, str]
    now: Manifest
    left_out: tuple[str, ...] = ()

    @classmethod
    def at(cls, files: Path, before: Manifest, named: Collection[str]) -> Difference:
        """Return the changes of *files* since *before*, without what tools built there.

        That is what is new and that the project's own ignore rules name, our list of scratch, or a cache's own mark.

        Args:
            files: A person's files.
            before: What they were.
            named: Paths that the person was asked for by name: they count in any case.

        Raises:
            OSError: a folder cannot be read, or is deeper than can be followed.
        """
        built = _Built(files, ignored_in(files), frozenset({*before, *named}))
        now = {path: _what(files / path, status) for path, status in _walk(files, built=built)}
        found = cls.of(before, now)
        return replace(found, left_out=tuple(built.found))

    @classmethod
    def of(cls, before: Manifest, now: Manifest) -> Difference:
        """Return the difference between two manifests."""
        other = [path for path, what in now.items() if before.get(path) != what]
        strange = {path: now[path] for path in other if not now[path].startswith(_TAKEN)}
        changed = tuple(path for path in other if path not in strange)
        removed = tuple(path for path in before if path not in now)
        return cls(changed, removed, strange, {path: now[path] for path in other})


def manifest_of(top: Path) -> Manifest:
    """Return the manifest of the files below *top*; folders and the `.git` at the top are left out.

    Raises:
        OSError: a folder cannot be read, or is deeper than can be followed.
    """
    return {path: _what(top / path, status) for path, status in _walk(top)}


def digest(manifest: Manifest) -> str:
    """Return one hash of a manifest."""
    return hashlib.sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()


def copy_out(view: Path, files: Path) -> None:
    """Copy the view into *files*, with its `.git`, so that the person can see their changes."""
    files.mkdir(mode=0o700)
    for path, _ in _walk(view):
        _carry(view, files, path)
    if (view / ".git").is_dir() and not (view / ".git").is_symlink():
        shutil.copytree(view / ".git", files / ".git", symlinks=True)


def copy_back(files: Path, view: Path, named: Collection[str] = ()) -> Difference:
    """Copy *files* into the view, without `.git` and what tools built; return the changes.

    Raises:
        OSError: a file of either cannot be read or written.
    """
    difference = Difference.at(files, manifest_of(view), named)
    for path in difference.removed:
        (view / path).unlink()
    for path in difference.changed:
        _make_way(view, path)
        _carry(files, view, path)
    for path in difference.removed:
        _close_up(view, files, path)
    return difference


def _walk(
    top: Path, below: str = "", *, built: _Built | None = None, inside: bool = False
) -> Iterator[tuple[str, os.stat_result]]:
    if below.count("/") >= _DEEPEST:
        raise OSError(errno.ENAMETOOLONG, "deeper than can be followed", str(top / below))
    with os.scandir(top / below) as entries:
        found = sorted(entries, key=lambda entry: entry.name)
    for entry in found:
        path = f"{below}/{entry.name}" if below else entry.name
        if path == ".git":
            continue
        is_folder = entry.is_dir(follow_symlinks=False)
        by_tools = built is not None and (inside or built.names(path, is_folder=is_folder))
        if by_tools and built is not None and built.leaves_out(path, is_folder=is_folder):
            continue
        if is_folder:
            yield from _walk(top, path, built=built, inside=by_tools)
        else:
            yield path, entry.stat(follow_symlinks=False)


class _Built:
    """Finds files among a person's that tools built.

    Args:
        top: The files.
        ignored: What the ignore rules name (`repo.tracked_paths.ignored_in`).
        kept: What counts in any case: what was there before, what the person was asked for.
    """

    def __init__(self, top: Path, ignored: frozenset[str], kept: frozenset[str]) -> None:
        self.top = top
        self.ignored = ignored
        self.kept = kept
        self.folders = {str(folder) for path in kept for folder in PurePosixPath(path).parents}
        self.found: list[str] = []

    def names(self, path: str, *, is_folder: bool) -> bool:
        """Return whether a rule says that tools made a file or folder."""
        if scratch_pattern(path) is not None:
            return True
        return (f"{path}/" in self.ignored or self._is_cache(path)) if is_folder else path in self.ignored

    def leaves_out(self, path: str, *, is_folder: bool) -> bool:
        """Record a path as left out and return True, unless it counts or contains a path that does."""
        if path in self.kept or (is_folder and path in self.folders):
            return False
        self.found.append(f"{path}/" if is_folder else path)
        return True

    def _is_cache(self, path: str) -> bool:
        try:
            with opened_regular(self.top / path / "CACHEDIR.TAG") as file:
                return file.read(len(_CACHE)) == _CACHE
        except OSError:
            return False


def _what(path: Path, status: os.stat_result) -> str:
    if stat.S_ISLNK(status.st_mode):
        return f"link {path.readlink()}"
    if not stat.S_ISREG(status.st_mode):
        return "no file, folder or link"
    try:
        with opened_regular(path) as file:
            if (size := os.fstat(file.fileno()).st_size) > _LARGEST:
                return f"{size} bytes; no more than {_LARGEST >> 20} MiB can be taken over"
            content = hashlib.file_digest(cast("Any", file), "sha256").hexdigest()
    except OSError as error:
        return f"unreadable: {error.strerror}"
    return f"{'exec' if status.st_mode & stat.S_IXUSR else 'file'} {content}"


def _carry(source: Path, target: Path, path: str) -> None:
    """Copy one file or link from below *source* to below *target*, where its path must be free."""
    there = target / path
    _make_folders(target, Path(path).parent)
    status = (source / path).lstat()
    if stat.S_ISLNK(status.st_mode):
        there.symlink_to((source / path).readlink())
    else:
        mode = 0o755 if status.st_mode & stat.S_IXUSR else 0o644
        with opened_regular(source / path) as old, os.fdopen(os.open(there, _NEW, mode), "wb") as new:
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
    """Remove the entry at *path*, and each file or link above it, so that nothing is written through a link."""
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
    """Remove folders that a removal left empty, unless the desk has them too."""
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
