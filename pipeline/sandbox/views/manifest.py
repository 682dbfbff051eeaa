"""Records the files of a view with their hashes, so that two states can be compared.

An own walk over folder descriptors: ignore rules, attributes and an index are the agent's to write and are not asked.
Whatever cannot be read is an entry that says so; the gate refuses it. A file need not be read
again while its stamp is the one that it had when it was: the kernel puts the time of each change into it.

Two states are compared for the changes that the gate judges: the work is proportional to what differs where both share
the entries that do not.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import stat
from collections import defaultdict
from dataclasses import dataclass, field, replace
from enum import StrEnum
from operator import attrgetter
from typing import TYPE_CHECKING, Final, NamedTuple

from pipeline.judge.policy.paths import collision_key, ways
from pipeline.judge.policy.rights import Change, ChangeKind
from pipeline.trees import opened, opened_parent, opened_regular, read_regular

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping
    from pathlib import Path

_CHUNK: Final = 1 << 20
_SET_BITS: Final = stat.S_ISUID | stat.S_ISGID | stat.S_ISVTX


_STAMPED: Final = attrgetter(
    *("st_mode", "st_ino", "st_dev", "st_nlink", "st_uid", "st_gid", "st_size", "st_mtime_ns", "st_ctime_ns")
)


class EntryKind(StrEnum):
    """The type of an entry by lstat, or UNREADABLE."""

    FILE = "a file"
    FOLDER = "a folder"
    LINK = "a symbolic link"
    SPECIAL = "a special file"
    UNREADABLE = "unreadable"


class Stamp(NamedTuple):
    """The result of lstat for an entry; any change to the entry changes it, as `changed_ns` cannot be set."""

    mode: int
    inode: int
    device: int
    links: int
    owner: int
    group: int
    size: int
    modified_ns: int
    changed_ns: int

    @classmethod
    def of(cls, status: os.stat_result) -> Stamp:
        """Return the stamp of an lstat result."""
        return cls(*_STAMPED(status))


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry at a path in a tree.

    Args:
        kind: What it is.
        mode: A file's permission bits that count: the owner's execute bit, set-id and sticky bits.
        size: Of a file, in bytes.
        sha256: Of a file's raw bytes, in hexadecimal.
        links: How many names the file has.
        detail: A link's target; the sort of a special file; why it could not be read.
        stamp: As it was just before it was looked at; no part of what it is. None if it tells nothing.
    """

    kind: EntryKind
    mode: int = 0
    size: int = 0
    sha256: str = ""
    links: int = 1
    detail: str = ""
    stamp: Stamp | None = field(default=None, compare=False, repr=False)

    @property
    def executable(self) -> bool:
        """Return whether the owner may execute the file."""
        return bool(self.mode & stat.S_IXUSR)


Manifest = dict[str, Entry]
"""Entries by path relative to the top, `/` between parts; folders are included, the top and its `.git` are not."""


@dataclass(frozen=True)
class Limits:
    """The amount that a dispatch may add; a file beyond it counts as unreadable. Sizes in bytes."""

    file_bytes: int = 32 << 20
    total_bytes: int = 256 << 20
    entries: int = 100_000
    depth: int = 128


def scan(root: Path, base: Manifest | None = None, limits: Limits | None = None, *, trusting: bool = False) -> Manifest:
    """Return the manifest of everything below `root`.

    Args:
        root: The top folder; its own `.git` is left out.
        base: An earlier state. What differs from it in size counts towards the limits; without it nothing does.
        limits: What may have been added since `base`.
        trusting: Take over the entries of `base` whose stamps have not changed, the same objects, instead of reading.
    """
    walk = _Walk({} if base is None else base, limits or Limits(), bounded=base is not None, trusting=trusting)
    try:
        with opened(root) as top:
            walk.folder(top, "", 1)
    except OSError as error:
        walk.found["."] = unreadable(error)
    return walk.found


@dataclass
class _Walk:
    base: Manifest
    limits: Limits
    bounded: bool
    trusting: bool
    found: Manifest = field(default_factory=dict[str, Entry])

    def __post_init__(self) -> None:
        self.account = Account(self.limits)

    def folder(self, descriptor: int, path: str, depth: int) -> None:
        if depth > self.limits.depth:
            raise OverflowError(f"more than {self.limits.depth} folders deep")
        for name in sorted(os.listdir(descriptor)):
            if path or name != ".git":
                self.entry(descriptor, name, f"{path}/{name}" if path else name, depth)

    def entry(self, parent: int, name: str, path: str, depth: int) -> None:
        try:
            status = os.stat(name, dir_fd=parent, follow_symlinks=False)
            before = self.base.get(path)
            if self.trusting and before is not None and before.stamp == Stamp.of(status):
                self.found[path] = before
            else:
                if self.bounded:
                    self.account.take(before, status)
                self.found[path] = look(parent, name, status)
            if self.found[path].kind is EntryKind.FOLDER:
                with opened(name, parent) as folder:
                    self.folder(folder, path, depth + 1)
        except (OSError, OverflowError) as error:
            self.found[path] = unreadable(error)


def look(parent: int, name: str, status: os.stat_result) -> Entry:
    """Return the entry of `name` in the folder `parent`; `status` is its lstat.

    Raises:
        OSError: it cannot be read.
    """
    mode, stamp = status.st_mode, Stamp.of(status)
    if stat.S_ISDIR(mode):
        return Entry(EntryKind.FOLDER, stamp=stamp)
    if stat.S_ISLNK(mode):
        return Entry(EntryKind.LINK, detail=os.readlink(name, dir_fd=parent), stamp=stamp)
    if not stat.S_ISREG(mode):
        return Entry(EntryKind.SPECIAL, detail=_sort(mode), stamp=stamp)
    return Entry(
        EntryKind.FILE,
        mode=mode & (_SET_BITS | stat.S_IXUSR),
        size=status.st_size,
        sha256=_sha256(parent, name),
        links=status.st_nlink,
        stamp=stamp,
    )


def look_at(top: int, path: str) -> Entry | None:
    """Return the entry at `path` below the folder `top`, None if there is none.

    Raises:
        OSError: it cannot be read.
    """
    with contextlib.suppress(FileNotFoundError, NotADirectoryError), opened_parent(top, path) as (parent, name):
        return look(parent, name, os.stat(name, dir_fd=parent, follow_symlinks=False))
    return None


def read_at(top: int, path: str, limit: int) -> bytes:
    """Return the content of the regular file at `path` below the folder `top`.

    Raises:
        OSError: it is no regular file, is larger than *limit* bytes or cannot be read.
    """
    with opened_parent(top, path) as (parent, name):
        content = read_regular(name, limit, parent)
    if len(content) > limit:
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))
    return content


@dataclass
class Account:
    """Counts the bytes and entries that a dispatch added."""

    limits: Limits
    added_bytes: int = 0
    added_entries: int = 0

    def take(self, before: Entry | None, status: os.stat_result) -> None:
        """Count one entry, given the one that was there before.

        Raises:
            OverflowError: it is too much to be an agent's work; it is not read then.
        """
        self.added_entries += before is None
        if self.added_entries > self.limits.entries:
            raise OverflowError(f"more than {self.limits.entries} new files")
        if stat.S_ISREG(status.st_mode) and (before is None or before.size != status.st_size):
            # What is too large by itself is not read, so it must not make the files after it unreadable.
            if status.st_size > self.limits.file_bytes:
                raise OverflowError(f"larger than {self.limits.file_bytes} bytes")
            self.added_bytes += status.st_size
            if self.added_bytes > self.limits.total_bytes:
                raise OverflowError(f"the new files together are larger than {self.limits.total_bytes} bytes")


def _sha256(parent: int, name: str) -> str:
    digest = hashlib.sha256()
    with opened_regular(name, parent) as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def unreadable(error: Exception) -> Entry:
    """Return an entry for a file or folder that could not be read."""
    words = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return Entry(EntryKind.UNREADABLE, detail=words)


def _sort(mode: int) -> str:
    if stat.S_ISFIFO(mode):
        return "a FIFO"
    return "a socket" if stat.S_ISSOCK(mode) else "a device"


_REPOSITORY: Final = ("/HEAD", "/objects", "/refs")
_REFUSED: Final = {
    EntryKind.UNREADABLE: ChangeKind.UNREADABLE,
    EntryKind.LINK: ChangeKind.SYMLINK,
    EntryKind.SPECIAL: ChangeKind.SPECIAL,
}


def compare(base: Mapping[str, Entry], after: Mapping[str, Entry], ignored: Collection[str] = ()) -> tuple[Change, ...]:
    """Return every difference by path. A folder counts only where something else was or is.

    Args:
        base: The one state.
        after: The other.
        ignored: Files that every copy gets beside its tree (`run.ignored`): they are no change.
    """
    touched = {path for path, entry in after.items() if base.get(path) is not entry} | (base.keys() - after.keys())
    found = {path: _difference(path, base.get(path), after.get(path)) for path in sorted(touched)}
    found |= {path: Change(path, ChangeKind.REPOSITORY) for path in _bare_repositories(base, after, touched)}
    changes = [change for change in found.values() if change is not None and change.path not in ignored]
    if not any(change.kind is ChangeKind.ADDED for change in changes):
        return tuple(changes)
    collisions = _collisions(after)
    return tuple(
        replace(change, collides_with=_collision(change.path, collisions))
        if change.kind is ChangeKind.ADDED
        else change
        for change in changes
    )


def _difference(path: str, before: Entry | None, now: Entry | None) -> Change | None:
    if before == now:
        return None
    if now is None:
        return None if before is None or before.kind is EntryKind.FOLDER else Change(path, ChangeKind.DELETED)
    if refused := _REFUSED.get(now.kind):
        return Change(path, refused, detail=now.detail)
    if before is not None and before.kind is not now.kind:
        return Change(path, ChangeKind.TYPE, detail=before.kind.value)
    if now.links > (before.links if before else 1):
        return Change(path, ChangeKind.HARDLINK)
    if before is None:
        return None if now.kind is EntryKind.FOLDER else Change(path, ChangeKind.ADDED)
    if before.mode != now.mode:
        return Change(path, ChangeKind.MODE)
    return Change(path, ChangeKind.MODIFIED) if before.sha256 != now.sha256 else None


def _bare_repositories(base: Mapping[str, Entry], after: Mapping[str, Entry], touched: set[str]) -> Iterator[str]:
    """Yield the changes that make a folder a repository without `.git`: git takes it for one from inside."""
    for folder in {path.rpartition("/")[0] for path in touched if path.endswith(_REPOSITORY)}:
        parts = [folder + part for part in _REPOSITORY]
        if all(part in after for part in parts) and after[parts[0]].kind is EntryKind.FILE:
            yield from [part for part in parts if part not in base][:1]


def _collisions(after: Mapping[str, Entry]) -> dict[str, set[str]]:
    groups: defaultdict[str, set[str]] = defaultdict(set)
    for path in after:
        groups[collision_key(path)].add(path)
    return {key: paths for key, paths in groups.items() if len(paths) > 1}


def _collision(path: str, collisions: dict[str, set[str]]) -> str | None:
    """Return another path that some file system takes for `path` or a folder above it; None if there is none."""
    for own in ways(path):
        if others := collisions.get(collision_key(own), set()) - {own}:
            return min(others)
    return None
