"""Reads an overlay's upper layer: which paths were touched, with their entries before and after.

The work is proportional to the changes and the folders around them, not to the repository. The kernel writes the upper
layer as its documentation says: a removed name is a character device 0:0, a folder that replaces what lies below it is
marked opaque, everything else is the new file or a folder to merge.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from pipeline.trees import opened, opened_parent
from pipeline.views.manifest import Account, Entry, EntryKind, Limits, look, unreadable

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

_OPAQUE: Final = "user.overlay.opaque"


class Layered(Mapping[str, Entry]):
    """A manifest that lists the paths around changes; other paths are looked up in the lower layer when asked for."""

    def __init__(self, listed: dict[str, Entry], lower: int, gone: frozenset[str]) -> None:
        """Set the `listed` entries, the descriptor of the `lower` layer, and the paths that are `gone`."""
        self._listed = listed
        self._lower = lower
        self._gone = gone

    def __getitem__(self, path: str) -> Entry:
        if path in self._listed:
            return self._listed[path]
        found = None if path in self._gone else lower_entry(self._lower, path)
        if found is None:
            raise KeyError(path)
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self._listed)

    def __len__(self) -> int:
        return len(self._listed)


def lower_entry(lower: int, path: str) -> Entry | None:
    """Return the entry at `path` in the lower layer, None if there is none."""
    with contextlib.suppress(FileNotFoundError, NotADirectoryError), opened_parent(lower, path) as (parent, name):
        return look(parent, name, os.stat(name, dir_fd=parent, follow_symlinks=False))
    return None


@dataclass
class Touched:
    """The touched paths of a view's upper layer, read once with `read`.

    Args:
        lower: Descriptor of the layer below, which nobody changes.
        limits: What may have been added.
        before: The touched paths and their neighbours as they were.
        after: The same paths as they are now; what was removed is missing.
    """

    lower: int
    limits: Limits
    before: dict[str, Entry] = field(default_factory=dict[str, Entry])
    after: dict[str, Entry] = field(default_factory=dict[str, Entry])

    def __post_init__(self) -> None:
        self._account = Account(self.limits)

    def read(self, upper: int) -> None:
        """Read the upper layer behind the descriptor, without the `.git` at its top, which is the decoy's."""
        try:
            self._folder(upper, self.lower, "", 1)
        except OSError as error:
            self.after["."] = unreadable(error)

    @property
    def gone(self) -> frozenset[str]:
        """Return the paths that existed before and do not now."""
        return frozenset(self.before.keys() - self.after.keys())

    def _folder(self, upper: int, lower: int | None, path: str, depth: int) -> None:
        """Read one folder of the upper layer; `lower` is the folder it is merged with, None if it hides that."""
        if depth > self.limits.depth:
            raise OverflowError(f"more than {self.limits.depth} folders deep")
        names = sorted(name for name in os.listdir(upper) if path or name != ".git")
        if lower is not None:
            self._neighbours(lower, path, set(names))
        for name in names:
            self._entry(upper, lower, name, f"{path}/{name}" if path else name, depth)

    def _entry(self, upper: int, lower: int | None, name: str, path: str, depth: int) -> None:
        below = self._before(lower, name, path)
        try:
            status = os.stat(name, dir_fd=upper, follow_symlinks=False)
            if _is_whiteout(status):
                self._hidden(lower, name, path, below)
                return
            self._account.take(below, status)
            self.after[path] = look(upper, name, status)
            if self.after[path].kind is not EntryKind.FOLDER:
                self._hidden(lower, name, path, below)
                return
            with opened(name, upper) as folder:
                merged = below is not None and below.kind is EntryKind.FOLDER and not _is_opaque(folder)
                if not merged:
                    self._hidden(lower, name, path, below)
                with _opened_if(merged, name, lower) as under:
                    self._folder(folder, under, path, depth + 1)
        except (OSError, OverflowError) as error:
            self.after[path] = unreadable(error)

    def _before(self, lower: int | None, name: str, path: str) -> Entry | None:
        if lower is None:
            return None
        try:
            found = look(lower, name, os.stat(name, dir_fd=lower, follow_symlinks=False))
        except FileNotFoundError:
            return None
        self.before[path] = found
        return found

    def _hidden(self, lower: int | None, name: str, path: str, below: Entry | None) -> None:
        """Record the lower entries of a folder that is removed or replaced."""
        if lower is None or below is None or below.kind is not EntryKind.FOLDER:
            return
        with opened(name, lower) as folder:
            for inner in os.listdir(folder):  # noqa: PTH208  (a descriptor)
                inner_path = f"{path}/{inner}"
                self._hidden(folder, inner, inner_path, self._before(folder, inner, inner_path))

    def _neighbours(self, lower: int, path: str, touched: set[str]) -> None:
        """List the untouched names of a merged folder: names can collide, and three of them make a repository."""
        with os.scandir(lower) as entries:
            for entry in entries:
                if entry.name in touched or (not path and entry.name == ".git"):
                    continue
                kind = EntryKind.FOLDER if entry.is_dir(follow_symlinks=False) else EntryKind.FILE
                inner = f"{path}/{entry.name}" if path else entry.name
                self.before[inner] = self.after[inner] = Entry(kind)


def _is_whiteout(status: os.stat_result) -> bool:
    return stat.S_ISCHR(status.st_mode) and status.st_rdev == 0


def _is_opaque(folder: int) -> bool:
    try:
        return os.getxattr(folder, _OPAQUE) == b"y"
    except OSError:
        return False


@contextlib.contextmanager
def _opened_if(wanted: bool, name: str, parent: int | None) -> Generator[int | None]:
    if not wanted or parent is None:
        yield None
        return
    with opened(name, parent) as folder:
        yield folder
