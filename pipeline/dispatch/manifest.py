"""What is in a view, byte by byte, and how two such states differ.

An own walk over folder descriptors: ignore rules, attributes and an index are the agent's to write and are not asked.
Whatever cannot be read is an entry that says so; the gate refuses it (architecture 6, Gate).
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections import defaultdict
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Final, assert_never

from pipeline.dispatch.trees import opened, opened_regular
from pipeline.policy.paths import collision_key
from pipeline.policy.scope import Change, ChangeKind

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_CHUNK: Final = 1 << 20
_SET_BITS: Final = stat.S_ISUID | stat.S_ISGID | stat.S_ISVTX


class EntryKind(StrEnum):
    """What lstat calls it, and the case that it could not be looked into."""

    FILE = "a file"
    FOLDER = "a folder"
    LINK = "a symbolic link"
    SPECIAL = "a special file"
    UNREADABLE = "unreadable"


@dataclass(frozen=True)
class Entry:
    """One name in a tree.

    Args:
        kind: What it is.
        mode: A file's permission bits that count: the owner's execute bit, set-id and sticky bits.
        size: Of a file, in bytes.
        sha256: Of a file's raw bytes, in hexadecimal.
        links: How many names the file has.
        detail: A link's target; the sort of a special file; why it could not be read.
    """

    kind: EntryKind
    mode: int = 0
    size: int = 0
    sha256: str = ""
    links: int = 1
    detail: str = ""

    @property
    def executable(self) -> bool:
        """Return whether the owner may execute it."""
        return bool(self.mode & stat.S_IXUSR)


Manifest = dict[str, Entry]
"""Paths relative to the top, `/` between parts; folders are in it, the top and its `.git` are not."""


@dataclass(frozen=True)
class Limits:
    """What a dispatch may add; beyond it a file counts as unreadable. Sizes in bytes."""

    file_bytes: int = 32 << 20
    total_bytes: int = 256 << 20
    entries: int = 100_000
    depth: int = 128


def scan(root: Path, base: Manifest | None = None, limits: Limits | None = None) -> Manifest:
    """Return what is below `root`.

    Args:
        root: The top folder; its own `.git` is left out.
        base: An earlier state. What differs from it in size counts towards the limits; without it nothing does.
        limits: What may have been added since `base`.
    """
    walk = _Walk({} if base is None else base, limits or Limits(), bounded=base is not None)
    try:
        with opened(root) as top:
            walk.folder(top, "", 1)
    except OSError as error:
        walk.found["."] = unreadable(error)
    return walk.found


def compare(base: Manifest, after: Manifest) -> tuple[Change, ...]:
    """Return every difference, by path. Folders count only where something else was or is."""
    collisions = _collisions(after)
    found = {path: _difference(path, base.get(path), after.get(path)) for path in sorted(base.keys() | after.keys())}
    found |= {path: Change(path, ChangeKind.REPOSITORY) for path in _bare_repositories(base, after)}
    return tuple(
        replace(change, collides_with=_collision(change.path, collisions))
        if change.kind is ChangeKind.ADDED
        else change
        for change in found.values()
        if change is not None
    )


@dataclass
class _Walk:
    base: Manifest
    limits: Limits
    bounded: bool
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
            if self.bounded:
                self.account.take(self.base.get(path), status)
            self.found[path] = look(parent, name, status)
            if self.found[path].kind is EntryKind.FOLDER:
                with opened(name, parent) as folder:
                    self.folder(folder, path, depth + 1)
        except (OSError, OverflowError) as error:
            self.found[path] = unreadable(error)


def look(parent: int, name: str, status: os.stat_result) -> Entry:
    """Return what `name` in the folder `parent` is; `status` is its lstat.

    Raises:
        OSError: it cannot be read.
    """
    mode = status.st_mode
    if stat.S_ISDIR(mode):
        return Entry(EntryKind.FOLDER)
    if stat.S_ISLNK(mode):
        return Entry(EntryKind.LINK, detail=os.readlink(name, dir_fd=parent))
    if not stat.S_ISREG(mode):
        return Entry(EntryKind.SPECIAL, detail=_sort(mode))
    return Entry(
        EntryKind.FILE,
        mode=mode & (_SET_BITS | stat.S_IXUSR),
        size=status.st_size,
        sha256=_sha256(parent, name),
        links=status.st_nlink,
    )


@dataclass
class Account:
    """Counts what a dispatch added."""

    limits: Limits
    added_bytes: int = 0
    added_entries: int = 0

    def take(self, before: Entry | None, status: os.stat_result) -> None:
        """Count one entry, given what was there before.

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


def _difference(path: str, before: Entry | None, now: Entry | None) -> Change | None:
    if before == now:
        return None
    if now is None:
        return None if before is None or before.kind is EntryKind.FOLDER else Change(path, ChangeKind.DELETED)
    match now.kind:
        case EntryKind.UNREADABLE:
            return Change(path, ChangeKind.UNREADABLE, detail=now.detail)
        case EntryKind.LINK:
            return Change(path, ChangeKind.SYMLINK, detail=now.detail)
        case EntryKind.SPECIAL:
            return Change(path, ChangeKind.SPECIAL, detail=now.detail)
        case EntryKind.FILE | EntryKind.FOLDER:
            pass
        case _:
            assert_never(now.kind)
    if before is not None and before.kind is not now.kind:
        return Change(path, ChangeKind.TYPE, detail=before.kind.value)
    if now.links > (before.links if before else 1):
        return Change(path, ChangeKind.HARDLINK)
    if before is None:
        return None if now.kind is EntryKind.FOLDER else Change(path, ChangeKind.ADDED)
    if before.mode != now.mode:
        return Change(path, ChangeKind.MODE)
    return Change(path, ChangeKind.MODIFIED) if before.sha256 != now.sha256 else None


def _bare_repositories(base: Manifest, after: Manifest) -> Iterator[str]:
    """Yield what made a folder a repository without `.git`: git takes it for one when it stands in it."""
    for path, entry in after.items():
        folder = path.removesuffix("/HEAD")
        parts = (f"{folder}/HEAD", f"{folder}/objects", f"{folder}/refs")
        is_repository = folder != path and entry.kind is EntryKind.FILE and all(part in after for part in parts)
        if is_repository:
            yield from [part for part in parts if part not in base][:1]


def _collisions(after: Manifest) -> dict[str, set[str]]:
    groups: defaultdict[str, set[str]] = defaultdict(set)
    for path in after:
        groups[collision_key(path)].add(path)
    return {key: paths for key, paths in groups.items() if len(paths) > 1}


def _collision(path: str, collisions: dict[str, set[str]]) -> str | None:
    """Return another path that `path`, or a folder it lies in, falls together with."""
    parts = path.split("/")
    for end in range(1, len(parts) + 1):
        own = "/".join(parts[:end])
        if others := collisions.get(collision_key(own), set()) - {own}:
            return min(others)
    return None


def _sha256(parent: int, name: str) -> str:
    digest = hashlib.sha256()
    with opened_regular(name, parent) as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def unreadable(error: Exception) -> Entry:
    """Return the entry of what could not be looked into."""
    words = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return Entry(EntryKind.UNREADABLE, detail=words)


def _sort(mode: int) -> str:
    if stat.S_ISFIFO(mode):
        return "a FIFO"
    return "a socket" if stat.S_ISSOCK(mode) else "a device"
