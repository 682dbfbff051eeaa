"""The files of a tracker: sources to read them from, and the edits that operations return, by file name.

A source is a folder on disk, contents in memory, or a cache over another source. `write_edits` writes edits, and
nothing else here writes.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Protocol

from todo.errors import ErrorKind, TrackerError, invalid, usage

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

MAX_FILE_BYTES: Final = 4 * 1024 * 1024


class Source(Protocol):
    """Access to the files directly in a tracker folder."""

    def names(self) -> Iterable[str]:
        """Return the names of the files, in any order."""
        ...

    def read(self, name: str) -> bytes | None:
        """Return the content of a file, None when there is none of that name."""
        ...


def check_folder(folder: Path) -> None:
    """Check that the path is a directory and no symbolic link; raise TrackerError if not.

    Raises:
        TrackerError: tracker_missing or tracker_invalid.
    """
    try:
        mode = folder.lstat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        raise TrackerError(
            ErrorKind.TRACKER_MISSING,
            f"There is no folder {folder.name}/ here, and so no issue. File the first one, or go to the repository "
            "that has them.",
        ) from None
    if stat.S_ISLNK(mode):
        raise invalid(f"{folder.name} is a symbolic link. The tracker must be a real folder of the repository.")
    if not stat.S_ISDIR(mode):
        raise invalid(
            f"{folder.name} is a file. The tracker is a folder with one file per issue: rename this file, or keep the "
            "issues in another folder."
        )


@dataclass(frozen=True)
class FolderSource:
    """The tracker files of a folder on disk."""

    folder: Path

    def names(self) -> Iterable[str]:
        """Return the names of all entries of the folder that are no folders.

        Raises:
            TrackerError: tracker_missing or tracker_invalid.
        """
        check_folder(self.folder)
        try:
            with os.scandir(self.folder) as entries:
                return [entry.name for entry in entries if not entry.is_dir(follow_symlinks=False)]
        except OSError as error:
            raise invalid(f"{self.folder.name}/ cannot be read: {error.strerror}.") from error

    def read(self, name: str) -> bytes | None:
        """Return the content of a regular file of at most `MAX_FILE_BYTES`, None when there is none.

        Raises:
            TrackerError: tracker_missing or tracker_invalid.
        """
        try:
            # A link could lead out of the repository, a pipe would never answer.
            handle = os.open(f"{self.folder}/{name}", os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except FileNotFoundError:
            check_folder(self.folder)
            return None
        except OSError as error:
            check_folder(self.folder)
            if error.errno == errno.ELOOP:
                raise invalid("A symbolic link is not an issue file. Replace it by the file.", path=name) from None
            raise invalid(f"The file cannot be read: {error.strerror}.", path=name) from error
        try:
            found = os.fstat(handle)
            if not stat.S_ISREG(found.st_mode):
                raise invalid("This is not a regular file.", path=name)
            if found.st_size > MAX_FILE_BYTES:
                raise invalid(f"The file is larger than {MAX_FILE_BYTES} bytes.", path=name)
            with os.fdopen(handle, "rb", closefd=False) as file:
                return file.read()
        finally:
            os.close(handle)


@dataclass(frozen=True)
class MappingSource:
    """Tracker files from a mapping of names to contents, for instance the blobs of a git tree."""

    contents: Mapping[str, bytes]

    def names(self) -> Iterable[str]:
        """Return the names."""
        return self.contents.keys()

    def read(self, name: str) -> bytes | None:
        """Return the content of a file, None when there is none of that name."""
        return self.contents.get(name)


class Snapshot:
    """A cache over another source: each file is read once, so that edits can be compared with what they came from.

    Args:
        source: The files.
        edited: Contents that count in place of theirs, or beside them.
    """

    def __init__(self, source: Source, edited: Mapping[str, bytes]) -> None:
        self._source = source
        self._edited = edited
        self._names: frozenset[str] | None = None
        self._contents: dict[str, bytes | None] = {**edited}

    def names(self) -> frozenset[str]:
        """Return the names of the files as they were at the first call."""
        if self._names is None:
            self._names = frozenset((*self._source.names(), *self._edited))
        return self._names

    def read(self, name: str) -> bytes | None:
        """Return the content of a file as it was at the first call for it."""
        if name not in self._contents:
            self._contents[name] = self._source.read(name)
        return self._contents[name]


class Edits(Mapping[str, bytes]):
    """An immutable mapping from file name (relative to the tracker folder) to the new content.

    Args:
        contents: The new contents.
        before: The old contents, None for a file that did not exist; a name left out means None. A file whose
            content stays the same is no edit and is dropped.
    """

    def __init__(self, contents: Mapping[str, bytes], before: Mapping[str, bytes | None]) -> None:
        changed = {name: content for name, content in contents.items() if before.get(name) != content}
        self._contents: Mapping[str, bytes] = MappingProxyType(changed)
        self.before: Mapping[str, bytes | None] = MappingProxyType({name: before.get(name) for name in changed})

    def __getitem__(self, name: str) -> bytes:
        return self._contents[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._contents)

    def __len__(self) -> int:
        return len(self._contents)

    def __repr__(self) -> str:
        return f"Edits({', '.join(sorted(self._contents)) or 'none'})"

    def then(self, following: Edits) -> Edits:
        """Return these edits followed by `following`, which was computed from a tracker that has these already."""
        return Edits({**self, **following}, {**following.before, **self.before})


NO_EDITS = Edits({}, {})


def write_edits(folder: Path, edits: Edits) -> None:
    """Write the edits: each new content is stored under a temporary name first, then all files are renamed.

    A file keeps its mode. No lock is taken: what changed since the edits were computed is found by comparison.

    Args:
        folder: The tracker folder.
        edits: What to write; the files must contain now what these were computed from.

    Raises:
        TrackerError: nothing was written. worktree_changed when a file is not as expected; tracker_missing,
            tracker_invalid when the folder or a file is not what it should be or cannot be written.
    """
    if not edits:
        return
    check_folder(folder)
    for name in edits:
        if not name or name != os.path.basename(name) or name.startswith("."):  # noqa: PTH119  (a name, not a path: Path("a/") drops the slash)
            raise usage(f"{name!r} is not the name of a tracker file.")
    source = FolderSource(folder)
    for name in edits:
        if source.read(name) != edits.before[name]:
            raise TrackerError(
                ErrorKind.WORKTREE_CHANGED,
                "The file was changed by someone else in the meantime; nothing was written. Try again.",
                path=name,
            )
    staged: dict[Path, Path] = {}
    try:
        for name, content in edits.items():
            target = folder / name
            import secrets  # noqa: PLC0415  (slow to load, and most commands write nothing)

            temporary = folder / f".{name}.{secrets.token_hex(6)}.tmp"
            staged[target] = temporary
            _write(temporary, content, mode_of=target)
        for target, temporary in staged.items():
            temporary.replace(target)
        _flush_folder(folder)
    except OSError as error:
        raise invalid(f"{folder.name}/ cannot be written: {error.strerror}.") from error
    finally:
        for temporary in staged.values():
            with suppress(OSError):
                temporary.unlink()


def _write(path: Path, content: bytes, *, mode_of: Path) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
    with os.fdopen(handle, "wb") as file:
        with suppress(FileNotFoundError):
            os.fchmod(handle, mode_of.stat().st_mode & 0o7777)
        file.write(content)
        file.flush()
        os.fsync(handle)


def _flush_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
