"""Reads, repairs and removes folders that an agent could write to, without following a link out of them.

Everything goes by folder descriptors, one name at a time: paths may be longer than the system accepts, parents may have
become links, folders may have lost their permissions.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import stat
from dataclasses import dataclass
from pathlib import Path  # noqa: TC003  (dataclasses read it at run time)
from typing import TYPE_CHECKING, BinaryIO, Final

if TYPE_CHECKING:
    from collections.abc import Collection, Generator, Iterator

_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_OWNER_ALL: Final = 0o700


class NotRegularError(OSError):
    """A file to be read is a link, a folder, a device or a FIFO."""


@contextlib.contextmanager
def opened(name: str | Path, dir_fd: int | None = None) -> Generator[int]:
    """Yield the descriptor of a folder that is no link."""
    descriptor = os.open(name, _FOLDER, dir_fd=dir_fd)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def opened_parent(top: int, path: str, *, create: bool = False) -> Generator[tuple[int, str]]:
    """Yield a descriptor of the folder that contains `path` below `top`, opened part by part, and the last name.

    Args:
        top: Descriptor of the folder that `path` is relative to.
        path: With `/` between its parts.
        create: Put a folder where there is none, taking away a file or link that is in the way.
    """
    *parents, name = path.split("/")
    current = os.dup(top)
    try:
        for part in parents:
            if create:
                make_folder(current, part)
            following = os.open(part, _FOLDER, dir_fd=current)
            os.close(current)
            current = following
        yield current, name
    finally:
        os.close(current)


@contextlib.contextmanager
def opened_regular(name: str | Path, dir_fd: int | None = None) -> Generator[BinaryIO]:
    """Yield a regular file opened for reading; a link is not followed and a FIFO is not waited for.

    Raises:
        NotRegularError: it is something else.
        OSError: it cannot be opened.
    """
    try:
        descriptor = os.open(name, _FILE, dir_fd=dir_fd)
    except OSError as error:
        if stat.S_ISREG(os.stat(name, dir_fd=dir_fd, follow_symlinks=False).st_mode):
            raise
        raise NotRegularError(error.errno, "not a regular file") from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise NotRegularError(errno.EINVAL, "not a regular file")
    with open(descriptor, "rb") as file:  # noqa: PTH123  (a descriptor)
        yield file


def read_regular(name: str | Path, limit: int, dir_fd: int | None = None) -> bytes:
    """Return a regular file's content, at most `limit + 1` bytes of it.

    Raises:
        NotRegularError: it is something else.
        OSError: it cannot be read.
    """
    with opened_regular(name, dir_fd) as file:
        return file.read(limit + 1)


@dataclass(frozen=True)
class Files:
    """The files of a folder that a box may have written: `inner` below `top`, which is ours.

    Links are followed as long as they stay below `top`: the kernel sees to that (openat2).
    """

    top: Path
    inner: str = ""

    def below(self, folder: str) -> Files:
        """Return the files of a subfolder."""
        return Files(self.top, os.path.normpath(os.path.join(self.inner, folder)))  # noqa: PTH118  (a text)

    @contextlib.contextmanager
    def opened(self, path: str) -> Generator[BinaryIO]:
        """Yield a regular file opened for reading; a FIFO is not waited for.

        Raises:
            NotRegularError: it is something else.
            OSError: it cannot be opened, or lies elsewhere.
        """
        descriptor = self._descriptor(path, os.O_NONBLOCK | os.O_NOCTTY)
        with open(descriptor, "rb") as file:  # noqa: PTH123  (a descriptor)
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise NotRegularError(errno.EINVAL, "not a regular file", path)
            yield file

    def read(self, path: str, limit: int) -> bytes | None:
        """Return a regular file's content; None for anything else, and for more than `limit` bytes."""
        try:
            with self.opened(path) as file:
                content = file.read(limit + 1)
        except OSError:
            return None
        return content if len(content) <= limit else None

    def names(self, path: str) -> list[str]:
        """Return the sorted names in a folder; none if it does not exist."""
        try:
            folder = self._descriptor(path, os.O_DIRECTORY)
        except OSError:
            return []
        try:
            return sorted(os.listdir(folder))  # noqa: PTH208  (a descriptor)
        finally:
            os.close(folder)

    def walk(self, left_out: Collection[str] = ()) -> Iterator[str]:
        """Yield the paths of everything but folders, sorted; folders named `left_out` are skipped, links included."""
        waiting = [""]
        while waiting:
            at = waiting.pop()
            try:
                folder = self._descriptor(at or ".", os.O_DIRECTORY)
            except OSError:  # deeper than a path can say
                continue
            try:
                with os.scandir(folder) as found:
                    entries = sorted((entry.name, entry.is_dir(follow_symlinks=False)) for entry in found)
            finally:
                os.close(folder)
            prefix = f"{at}/" if at else ""
            yield from (f"{prefix}{name}" for name, is_folder in entries if not is_folder)
            waiting += [
                f"{prefix}{name}" for name, is_folder in reversed(entries) if is_folder and name not in left_out
            ]

    def _descriptor(self, path: str, flags: int) -> int:
        if "\0" in path:
            raise NotRegularError(errno.EINVAL, "no path has a zero byte", path)
        from pipeline.openat2 import open_below  # noqa: PLC0415  (slow to load; what only reads records asks for none)

        where = os.fsencode(os.path.join(self.inner, path))  # noqa: PTH118  (it may be no text)
        top = os.open(self.top, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            return open_below(top, where, os.O_RDONLY | os.O_CLOEXEC | flags)
        except OSError as error:
            raise OSError(error.errno, error.strerror, path) from None
        finally:
            os.close(top)


def remove_entry(parent: int, name: str) -> None:
    """Remove the entry `name` of the folder `parent` with everything below it; it may be missing."""
    try:
        is_folder = stat.S_ISDIR(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode)
    except FileNotFoundError:
        return
    if not is_folder:
        os.unlink(name, dir_fd=parent)
        return
    with _forced(parent, name) as top:
        _flatten(top)
    os.rmdir(name, dir_fd=parent)


def remove_tree(path: Path) -> None:
    """Remove a folder of ours; it is renamed first, so that nobody sees it half removed.

    Raises:
        OSError: something in it belongs to somebody else.
    """
    with opened(path.parent) as parent:
        aside = f".{path.name}.removed-{os.getpid()}"
        try:
            os.rename(path.name, aside, src_dir_fd=parent, dst_dir_fd=parent)
        except FileNotFoundError:
            return
        remove_entry(parent, aside)


def _flatten(top: int) -> None:
    """Empty a folder of any depth with two descriptors, by moving each subfolder up before it is read."""
    fresh = _unused_names(top)
    pending = _take_files(top, top, fresh)
    while pending:
        name = pending.pop()
        with _forced(top, name) as folder:
            pending += _take_files(folder, top, fresh)
        os.rmdir(name, dir_fd=top)


def _take_files(folder: int, top: int, fresh: Iterator[str]) -> list[str]:
    """Remove the files of `folder` and move its folders into `top`; return the folders' new names."""
    moved: list[str] = []
    for name in os.listdir(folder):
        if stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
            _permit(folder, name)
            moved.append(next(fresh))
            os.rename(name, moved[-1], src_dir_fd=folder, dst_dir_fd=top)
        else:
            os.unlink(name, dir_fd=folder)
    return moved


@contextlib.contextmanager
def _forced(parent: int, name: str) -> Generator[int]:
    """Yield a folder opened for changes, whatever its permissions are."""
    _permit(parent, name)
    with opened(name, parent) as folder:
        yield folder


def _permit(parent: int, name: str) -> None:
    # Only called for what lstat calls a folder, when nobody else is at work there.
    if os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode & _OWNER_ALL != _OWNER_ALL:
        os.chmod(name, _OWNER_ALL, dir_fd=parent)


def make_folder(parent: int, name: str) -> None:
    """Create a folder `name` that its owner can use, replacing a file or link; an existing folder's content stays."""
    try:
        mode = os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode
    except FileNotFoundError:
        os.mkdir(name, dir_fd=parent)
        return
    if stat.S_ISDIR(mode):
        _permit(parent, name)
    else:
        os.unlink(name, dir_fd=parent)
        os.mkdir(name, dir_fd=parent)


def write_new(parent: int, name: str, content: bytes, mode: int) -> None:
    """Create a file, which may not exist yet, with exactly this mode."""
    descriptor = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, mode, dir_fd=parent)
    with open(descriptor, "wb") as file:  # noqa: PTH123  (a descriptor)
        file.write(content)
        os.fchmod(descriptor, mode)


def _unused_names(folder: int) -> Iterator[str]:
    taken = set(os.listdir(folder))
    yield from (name for number in itertools.count() if (name := f".removed-{number}") not in taken)
