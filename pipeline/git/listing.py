"""The entries of one tree, to be looked up by path."""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pipeline.git.values import Entry


class Listing:
    """The entries of one tree, to be looked up by path.

    Args:
        entries: Files and gitlinks.
        folders: The object name of each folder.
    """

    def __init__(self, entries: Sequence[Entry], folders: Mapping[str, str]) -> None:
        self.entries = tuple(entries)
        self._folders = folders
        self._children: dict[str, dict[str, tuple[str, str]]] = {}
        self._sorted = sorted(entries, key=lambda entry: entry.path)
        self._paths = [entry.path for entry in self._sorted]

    def below(self, paths: Iterable[str]) -> tuple[Entry, ...]:
        """Return the entries at or below *paths*; for `folder/` only those below it."""
        found: dict[int, Entry] = {}
        for path in paths:
            for beginning in {path, f"{path.rstrip('/')}/"}:
                found.update(self._beginning(beginning))
        return tuple(found[at] for at in sorted(found))

    def children(self, folder: str) -> Mapping[str, tuple[str, str]]:
        """Return mode and object name of the entries directly in a folder ("" = the top), by name."""
        if not self._children:
            found: dict[str, dict[str, tuple[str, str]]] = {"": {}}
            below = ((path, "040000", oid) for path, oid in self._folders.items())
            for path, mode, oid in (*below, *((entry.path, entry.mode, entry.oid) for entry in self.entries)):
                above, _, name = path.rpartition("/")
                found.setdefault(above, {})[name] = (mode, oid)
            self._children = found
        return self._children.get(folder, {})

    def _beginning(self, beginning: str) -> Iterator[tuple[int, Entry]]:
        at = bisect_left(self._paths, beginning)
        whole = not beginning.endswith("/")
        while at < len(self._paths) and self._paths[at].startswith(beginning):
            if whole and self._paths[at] != beginning:
                return
            yield at, self._sorted[at]
            at += 1
