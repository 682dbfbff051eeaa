"""A copy of a tree that can be restored after an agent changed it, or moved to another tree: for shadow views.

Beside it, out of an agent's reach, lies the decoy with all of its content, and in our memory the stamp of every entry.
What an agent did is what a stamp does not agree with, so putting back costs what it did, and not what the tree holds.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, assert_never

from pipeline.judge.policy.paths import ways
from pipeline.process import BoxError
from pipeline.run.files import disk
from pipeline.sandbox.views.decoy_repository import NOTHING, Decoy, DecoyCopy, ShownHistory, Source
from pipeline.sandbox.views.manifest import Entry, EntryKind, Limits, Manifest, Stamp, look_at, scan
from pipeline.trees import make_folder, opened, opened_parent, remove_entry, write_new

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable
    from pathlib import Path


DECOY: Final = "decoy"
"""The folder of the decoy beside the files."""
TOP: Final = "."
"""The path of the folder itself in a scan."""
_NEVER: Final = -1
_TICKS: Final = 2000
"""The most readings of the clock in a wait for it to tick: some milliseconds."""
_GIVEN: Final = ("user.", "system.posix_acl_")
"""Prefixes of the extended attributes that the owner of a file may set."""


@dataclass
class Shadow:
    """A folder that holds a tree and can be restored. Create it with `make`.

    Args:
        files: The folder.
        beside: Where its decoy is kept; no agent reaches it.
        trusting: Whether an unchanged stamp means an unchanged file (`stamps_hold`).
        top: The stamp of the folder itself.
        base: What is in the folder before an agent has it, but for `over`.
        over: Files that were laid over it: they belong to no tree.
        shown: What its decoy tells beside the files.
    """

    files: Path
    beside: Path
    trusting: bool
    top: Stamp
    base: Manifest
    over: Manifest = field(default_factory=dict[str, Entry])
    shown: ShownHistory = NOTHING
    _unsettled: Manifest = field(default_factory=dict[str, Entry])

    def __post_init__(self) -> None:
        self.decoy = Decoy(self.beside / DECOY, self.files, self.shown)
        self._shown = DecoyCopy(self.decoy, self.files, trusting=self.trusting)

    @classmethod
    def make(
        cls,
        files: Path,
        beside: Path,
        fill: Callable[[Path], None],
        *,
        trusting: bool,
        source: Source | None = None,
        shown: ShownHistory = NOTHING,
    ) -> Shadow:
        """Return a copy of what `fill` writes into the empty folder `files`; it may be the tree of a `source`.

        Raises:
            BoxError: the decoy could not be made.
        """
        fill(files)
        base = scan(files)
        shadow = cls(files, beside, trusting, Stamp.of(files.lstat()), base, shown=shown, _unsettled=dict(base))
        shadow.decoy.make(source)
        return shadow

    def hand_over(self, *, with_decoy: bool = True) -> None:
        """Prepare the copy for an agent: files written from now on get a later time stamp than all before.

        Raises:
            UserError: the disk does not take the decoy.
        """
        clock = self.beside / "clock"
        with disk(self.beside):
            if with_decoy:
                self._shown.renew()
            else:
                with opened(self.files) as top:
                    remove_entry(top, ".git")
            now = self._next_tick(clock)
        for path, entry in self._unsettled.items():
            self.base[path] = entry if _stamp(entry).changed_ns < now else _doubtful(entry)
        self._unsettled.clear()
        self._shown.settle(now)

    def lay_over(self, paths: Collection[str], put: Callable[[Path], None]) -> None:
        """Add files that no tree has, written by *put*; they do not count as changes."""
        self.over.clear()
        if paths:
            put(self.files)
            with opened(self.files) as top:
                found = {path: look_at(top, path) for path in paths}
            self.over |= {path: entry for path, entry in found.items() if entry is not None}

    def _next_tick(self, clock: Path) -> int:
        """Return a file system time later than all new stamps here, if its clock ticks soon."""
        newest = max((_stamp(entry).changed_ns for entry in self._unsettled.values()), default=0)
        now = -1
        for _ in range(_TICKS):
            clock.touch()
            now = clock.lstat().st_ctime_ns
            if now > newest:
                break
        return now

    def scan(self, limits: Limits) -> Manifest:
        """Return the folder's present manifest; untouched entries are the same objects as the base's."""
        known = self.base | self.over if self.over else self.base
        return scan(self.files, known, limits, trusting=self.trusting)

    @property
    def folders(self) -> tuple[str, ...]:
        """Return the folders of the tree, the top included."""
        return (TOP, *(path for path, entry in self.base.items() if entry.kind is EntryKind.FOLDER))

    def touched(self, after: Manifest) -> frozenset[str]:
        """Return the files written, created or removed since the copy was handed over, even if put back."""
        written = {path for path, entry in after.items() if _is_written(self.base.get(path), entry)}
        gone = (path for path in self.base.keys() - after.keys() if self.base[path].kind is not EntryKind.FOLDER)
        return frozenset({*written, *gone} - self.over.keys())

    def clean(self, after: Manifest) -> None:
        """Restore everything, given the folder's present manifest.

        Raises:
            BoxError, OSError: that cannot be done; the folder is to be thrown away.
        """
        unreadable = next((path for path, entry in after.items() if entry.kind is EntryKind.UNREADABLE), None)
        if unreadable is not None:
            raise BoxError(f"{unreadable!r} cannot be put back: it could not be looked into")
        touched = [path for path, entry in after.items() if not _is_same(self.base.get(path), entry)]
        self.restore([*touched, *(self.base.keys() - after.keys())])

    def restore(self, paths: Iterable[str]) -> None:
        """Restore these paths to the base: content, type, permissions, modification time.

        Raises:
            BoxError: the folder was replaced, or its decoy does not have the content.
            OSError: an entry belongs to somebody else.
        """
        wanted = sorted(set(paths) - {TOP})
        now = self.files.lstat()
        if not stat.S_ISDIR(now.st_mode) or (now.st_ino, now.st_dev) != (self.top.inode, self.top.device):
            raise BoxError(f"{self.files} was replaced by something else")
        self.files.chmod(stat.S_IMODE(self.top.mode) | stat.S_IRWXU)
        with opened(self.files) as top:
            _strip(top)
            for path in wanted:  # folders come before what is in them
                self._clear(top, path)
            files = [path for path in wanted if (entry := self.base.get(path)) and entry.kind is EntryKind.FILE]
            for path, content in self.decoy.contents(files):
                self._write(top, path, content)
            self._finish(top, {*wanted, *(folder for path in wanted for folder in ways(path)[:-1])})

    def moved(self, paths: Iterable[str]) -> None:
        """Record that the content of these paths is now another tree's.

        Raises:
            BoxError: the decoy cannot follow.
        """
        moved = tuple(paths)
        self.decoy.advance(moved)
        with opened(self.files) as top:
            for path in {*moved, *(folder for one in moved for folder in ways(one)[:-1])}:
                self._note(path, look_at(top, path))

    def _clear(self, top: int, path: str) -> None:
        """Remove the entry at `path`; if a folder belongs there, create it or keep its content."""
        entry = self.base.get(path)
        if entry is None:
            with contextlib.suppress(FileNotFoundError, NotADirectoryError), opened_parent(top, path) as (parent, name):
                remove_entry(parent, name)
            return
        with opened_parent(top, path, create=True) as (parent, name):
            match entry.kind:
                case EntryKind.FOLDER:
                    make_folder(parent, name)
                    with opened(name, parent) as folder:
                        _strip(folder)  # now: what is made in it would inherit an access list
                case EntryKind.FILE:
                    remove_entry(parent, name)
                case EntryKind.LINK:
                    remove_entry(parent, name)
                    os.symlink(entry.detail, name, dir_fd=parent)
                case EntryKind.SPECIAL | EntryKind.UNREADABLE:
                    raise BoxError(f"{path!r} cannot be put back: it was {entry.kind} from the start")
                case _:
                    assert_never(entry.kind)

    def _write(self, top: int, path: str, content: bytes) -> None:
        entry = self.base[path]
        if hashlib.sha256(content).hexdigest() != entry.sha256:
            raise BoxError(f"{path!r} cannot be put back: its decoy holds something else")
        with opened_parent(top, path) as (parent, name):
            write_new(parent, name, content, stat.S_IMODE(_stamp(entry).mode))

    def _finish(self, top: int, paths: Iterable[str]) -> None:
        """Restore permissions and times, those of a folder after its content, and record the new stamps."""
        for path in sorted(paths, reverse=True):
            entry = self.base.get(path)
            if entry is None:
                continue
            then = _stamp(entry)
            with opened_parent(top, path) as (parent, name):
                if entry.kind is EntryKind.FOLDER:
                    os.chmod(name, stat.S_IMODE(then.mode), dir_fd=parent)
                times = (then.modified_ns, then.modified_ns)
                os.utime(name, ns=times, dir_fd=parent, follow_symlinks=False)
                status = os.stat(name, dir_fd=parent, follow_symlinks=False)
            self._note(path, replace(entry, stamp=Stamp.of(status)))

    def _note(self, path: str, entry: Entry | None) -> None:
        if entry is None:
            self.base.pop(path, None)
            self._unsettled.pop(path, None)
        else:
            self.base[path] = _doubtful(entry)
            self._unsettled[path] = entry


def stamps_hold(folder: Path) -> bool:
    """Return whether the file system of `folder` records a change time that nobody can set: it is tried."""
    probe = folder / "probe"
    probe.touch()
    before = probe.lstat().st_ctime_ns
    os.utime(probe, ns=(0, 0))
    after = probe.lstat()
    probe.unlink()
    return after.st_mtime_ns == 0 and after.st_ctime_ns >= before


def _is_same(before: Entry | None, now: Entry) -> bool:
    if before is now:
        return True
    return before == now and before is not None and before.stamp == now.stamp


def _is_written(before: Entry | None, now: Entry) -> bool:
    """Return whether a file was written, also if its old content was put back: its change time tells."""
    if before is now or now.kind is EntryKind.FOLDER:
        return False
    if before is None or before != now or before.stamp is None or now.stamp is None:
        return True
    known = before.stamp.changed_ns if before.stamp.changed_ns != _NEVER else now.stamp.changed_ns
    return now.stamp != before.stamp._replace(changed_ns=known)


def _doubtful(entry: Entry) -> Entry:
    """Return the entry with a stamp that equals no other, but keeps its permissions."""
    return replace(entry, stamp=_stamp(entry)._replace(changed_ns=_NEVER))


def _stamp(entry: Entry) -> Stamp:
    if entry.stamp is None:
        raise BoxError(f"a copy holds what could not be looked at: {entry.detail}")
    return entry.stamp


def _strip(folder: int) -> None:
    for name in os.listxattr(folder):
        if name.startswith(_GIVEN):
            os.removexattr(folder, name)
