"""Folders of the host that commands in a box may write into, handled without following links.

What lies in it is theirs: links, FIFOs, devices, a thousand nested folders. So this process never opens anything in it
by name. It fills the folder before the first command starts, takes over what it wants to keep when all of them are
dead, and removes the rest: by descriptors, following nothing. No other module touches such a folder (ADR-R95).
"""

from __future__ import annotations

import contextlib
import os
import stat
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pipeline.process import BoxError, Mount
from pipeline.trees import NotRegularError, opened, opened_regular, remove_entry, remove_tree

if TYPE_CHECKING:
    import re
    from collections.abc import Callable, Generator, Sequence
    from pathlib import Path

_OPEN_TO_ALL: Final = 0o777
_READ_BY_ALL: Final = 0o644
"""The box may run as another user than the one who wrote there."""
_CHUNK: Final = 1 << 22
_DEPTH: Final = 64
_ENTRIES: Final = 500_000
_BYTES: Final = 8 << 30


def _nothing(name: str) -> bool:  # noqa: ARG001  (what `leave_out` is given)
    return False


class TooLargeError(Exception):
    """A folder has more content than is copied."""


@dataclass(frozen=True)
class BoxFolder:
    """A host folder writable from a box. `path` is for mounts alone; the parent is private: nobody can replace it."""

    path: Path
    identity: tuple[int, int]

    @classmethod
    def made(cls, parent: Path, name: str) -> BoxFolder:
        """Create the folder in a private parent; it is writable for all, since the box may run as another user."""
        path = parent / name
        path.mkdir()
        with opened(path) as folder:
            os.fchmod(folder, _OPEN_TO_ALL)
            return cls(path, _identity(folder))

    def mount(self, target: Path, *, writable: bool = True) -> Mount:
        """Return the mount that shows the folder in a box.

        Raises:
            BoxError: another folder has come into its place.
        """
        with self._opened():
            return Mount(self.path, target, writable=writable)

    def add(self, name: str) -> Path:
        """Create a subfolder, writable for all, before any command has run; return its path for commands.

        Raises:
            BoxError: another folder has come into its place.
        """
        with self._opened() as folder:
            _make(folder, name)
        return self.path / name

    def fill(self, source: Path) -> None:
        """Copy the kept content *source* into the folder before any command has run; nothing if it is missing.

        Raises:
            BoxError: another folder has come into its place.
        """
        if source.is_dir():
            with opened(source) as kept, self._opened() as folder:
                _copy(kept, folder, _Budget(_nothing))

    def keep(
        self, target: Path, *, inside: str = "", links: bool = False, leave_out: Callable[[str], bool] = _nothing
    ) -> bool:
        """Replace the folder *target* of ours by this folder's content; no command may be running in it.

        Regular files and folders are taken, and links as they are if they are wanted: nobody follows them here.

        Args:
            target: The folder to replace; its parent is ours.
            inside: A folder inside to take instead of the whole.
            links: Whether links are taken.
            leave_out: Whether an entry of this name is left out, at any depth.

        Returns:
            Whether it was replaced; where there is too much, it is empty instead.

        Raises:
            BoxError: another folder has come into its place.
        """
        remove_tree(target)
        target.mkdir(parents=True)
        try:
            with self._opened() as folder, opened(target) as kept, opened(inside or ".", folder) as source:
                _copy(source, kept, _Budget(leave_out, links=links))
        except (TooLargeError, OSError):
            remove_tree(target)
            target.mkdir()
            return False
        return True

    def collect(self, target: Path, inside: str, names: Sequence[re.Pattern[str]], *, entries: int, size: int) -> None:
        """Add files from the folder *inside* to a folder of ours; no command may be running in it.

        Only regular files are taken, exactly as deep as there are *names*, each part of which has to match its own;
        what is there already stays. Where more would come together than is allowed, the folder begins anew.

        Args:
            target: The folder to add to; its parent is ours.
            inside: The folder to take from; nothing is taken if there is none.
            names: What the parts of a file's path look like.
            entries: How many files and folders there may be.
            size: How many bytes they may hold.

        Raises:
            BoxError: another folder has come into its place.
        """
        target.mkdir(parents=True, exist_ok=True)
        budget = _Budget(_nothing, links=False, entries=entries, size=size)
        with self._opened() as folder, contextlib.ExitStack() as held:
            source = folder
            try:
                for part in inside.split("/"):
                    source = held.enter_context(opened(part, source))
                kept = held.enter_context(opened(target))
                _measure(kept, budget)
                _collect(source, kept, names, budget)
            except TooLargeError:
                remove_tree(target)
            except OSError:  # nothing was found, or a link is in the way
                return

    @contextlib.contextmanager
    def _opened(self) -> Generator[int]:
        with opened(self.path) as folder:
            if _identity(folder) != self.identity:
                raise BoxError(f"{self.path} is another folder than the one that was made for the box")
            yield folder


def _identity(folder: int) -> tuple[int, int]:
    status = os.fstat(folder)
    return status.st_dev, status.st_ino


def _make(folder: int, name: str) -> None:
    os.mkdir(name, dir_fd=folder)
    with opened(name, folder) as made:
        os.fchmod(made, _OPEN_TO_ALL)


@dataclass
class _Budget:
    """The number of entries and bytes that may still be copied."""

    leave_out: Callable[[str], bool]
    links: bool = True
    entries: int = _ENTRIES
    size: int = _BYTES

    def take(self, size: int) -> None:
        self.entries -= 1
        self.size -= size
        if self.entries < 0 or self.size < 0:
            raise TooLargeError


def _copy(source: int, target: int, budget: _Budget, depth: int = 0) -> None:
    """Copy the content of an open folder into another, without devices, FIFOs and sockets, to a limited depth."""
    if depth > _DEPTH:
        raise TooLargeError
    for name in os.listdir(source):
        if budget.leave_out(name):
            continue
        status = os.stat(name, dir_fd=source, follow_symlinks=False)
        budget.take(status.st_size)
        if stat.S_ISDIR(status.st_mode):
            _make(target, name)
            with opened(name, source) as inner, opened(name, target) as copied:
                _copy(inner, copied, budget, depth + 1)
        elif stat.S_ISLNK(status.st_mode) and budget.links:
            os.symlink(os.readlink(name, dir_fd=source), name, dir_fd=target)
        elif stat.S_ISREG(status.st_mode):
            _copy_file(source, target, name)


def _measure(folder: int, budget: _Budget) -> None:
    """Take what a folder of ours holds from the budget."""
    for name in os.listdir(folder):
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
        budget.take(status.st_size)
        if stat.S_ISDIR(status.st_mode):
            with opened(name, folder) as inner:
                _measure(inner, budget)


def _collect(source: int, target: int, names: Sequence[re.Pattern[str]], budget: _Budget) -> None:
    """Copy the regular files of this form that *target* does not have yet."""
    known = set(os.listdir(target))
    for name in filter(names[0].fullmatch, os.listdir(source)):
        status = os.stat(name, dir_fd=source, follow_symlinks=False)
        there = name in known
        if stat.S_ISDIR(status.st_mode) and len(names) > 1:
            if not there:
                budget.take(0)
                _make(target, name)
            with opened(name, source) as inner, opened(name, target) as kept:
                _collect(inner, kept, names[1:], budget)
        elif stat.S_ISREG(status.st_mode) and len(names) == 1 and not there:
            budget.take(status.st_size)
            _copy_file(source, target, name, _READ_BY_ALL)


def _copy_file(source: int, target: int, name: str, wanted: int | None = None) -> None:
    with contextlib.suppress(NotRegularError), opened_regular(name, source) as file:
        status = os.fstat(file.fileno())
        mode = stat.S_IMODE(status.st_mode) & _OPEN_TO_ALL if wanted is None else wanted
        copied = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, mode, dir_fd=target)
        try:
            left = status.st_size
            while left and (sent := os.sendfile(copied, file.fileno(), None, min(left, _CHUNK))):
                left -= sent
            os.fchmod(copied, mode)
            os.utime(copied, ns=(status.st_atime_ns, status.st_mtime_ns))
        finally:
            os.close(copied)


def remove_below(top: Path, path: str) -> None:
    """Remove an entry and everything below it from a folder that a box wrote, without following links."""
    *parents, name = path.split("/")
    with contextlib.ExitStack() as held:
        folder = held.enter_context(opened(top))
        for part in parents:
            folder = held.enter_context(opened(part, folder))
        remove_entry(folder, name)
