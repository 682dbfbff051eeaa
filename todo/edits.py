"""The changes that a tracker operation returns, by file name; `write_edits` writes them, and nothing else writes."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from types import MappingProxyType
from typing import TYPE_CHECKING

from todo.errors import ErrorKind, TrackerError, invalid, usage
from todo.file_sources import FolderSource, check_folder

if TYPE_CHECKING:
    from pathlib import Path


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


def write_edits(folder: Path, edits: Edits, expected: Mapping[str, bytes | None] | None = None) -> None:
    """Write the edits: each new content is stored under a temporary name first, then all files are renamed.

    A file keeps its mode. No lock is taken: what changed since the edits were computed is found by comparison.

    Args:
        folder: The tracker folder.
        edits: What to write.
        expected: What the files must contain now (None: must not exist); by default what the edits were computed from.

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
    _compare(folder, edits.before if expected is None else expected, edits)
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


def _compare(folder: Path, expected: Mapping[str, bytes | None], edits: Edits) -> None:
    source = FolderSource(folder)
    for name in edits:
        if source.read(name) != expected.get(name):
            raise TrackerError(
                ErrorKind.WORKTREE_CHANGED,
                "The file was changed by someone else in the meantime; nothing was written. Try again.",
                path=name,
            )


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
