"""Sources of tracker files: a folder on disk, contents in memory, and layers over another source.

Nothing here writes; see `edits.py` for the one function that does.
"""

from __future__ import annotations

import errno
import os
import stat
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from todo.errors import ErrorKind, TrackerError, invalid

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
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
    """A cache over another source: each file is read once, so that edits can be compared with what they came from."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._names: frozenset[str] | None = None
        self._contents: dict[str, bytes | None] = {}

    def names(self) -> frozenset[str]:
        """Return the names of the files as they were at the first call."""
        if self._names is None:
            self._names = frozenset(self._source.names())
        return self._names

    def read(self, name: str) -> bytes | None:
        """Return the content of a file as it was at the first call for it."""
        if name not in self._contents:
            self._contents[name] = self._source.read(name)
        return self._contents[name]


@dataclass(frozen=True)
class Overlay:
    """A source over another one, with some files replaced or added."""

    base: Source
    contents: Mapping[str, bytes]

    def names(self) -> Iterable[str]:
        """Return the names of the base's files and of the added ones."""
        return {*self.base.names(), *self.contents}

    def read(self, name: str) -> bytes | None:
        """Return the replaced content of a file, else its content in the base."""
        return self.contents[name] if name in self.contents else self.base.read(name)
