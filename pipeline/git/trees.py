"""The entries of one tree, and a changed tree as input of one `git mktree --batch`: only changed folders are made."""

from __future__ import annotations

import hashlib
import posixpath
from bisect import bisect_left
from typing import TYPE_CHECKING, Final

from pipeline.policy.paths import is_git_folder

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pipeline.git.values import Entry, TreeChange


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


FOLDER: Final = "040000"
_GITLINK: Final = "160000"
_SHA1: Final = 40  # characters of an object name; the other kind has 64
_NO_NAMES: Final = frozenset({"", ".", ".."})

Child = tuple[str, str]
"""Mode and object name of an entry in a folder."""


class NewTree:
    """An existing tree with changes that are not written yet."""

    def __init__(self, base: Listing) -> None:
        self._base = base
        self._open: dict[str, dict[str, Child]] = {}

    def change(self, change: TreeChange) -> None:
        """Put an entry at its path, replacing what is there or above it; or remove a file, never a folder.

        A path that no checkout may have is left out, as an index leaves it out.
        """
        if any(name in _NO_NAMES or is_git_folder(name) for name in change.path.split("/")):
            return
        above, name = posixpath.split(change.path)
        if change.entry is None:
            if self._is_folder(above) and self._children(above).get(name, (FOLDER, ""))[0] != FOLDER:
                del self._children(above)[name]
            return
        for at in _ways(above):
            if not self._is_folder(at):
                parent, last = posixpath.split(at)
                self._children(parent).pop(last, None)
                self._open[at] = {}
                self._children(parent)[last] = (FOLDER, "")
        self._forget(change.path)
        self._children(above)[name] = (change.entry.mode, change.entry.oid)

    def lines(self) -> Iterator[bytes]:
        """Yield the input of `git mktree --batch -z`: subfolders first, the whole tree last."""
        written: dict[str, str] = {}
        for folder in sorted(self._open, key=lambda path: path.count("/") + bool(path), reverse=True):
            children = dict(self._open[folder])
            for name, (mode, _) in self._open[folder].items():
                path = posixpath.join(folder, name)
                if mode == FOLDER and path in self._open:
                    if path in written:
                        children[name] = (FOLDER, written[path])
                    else:  # nothing is left in it
                        del children[name]
            if children or not folder:
                written[folder] = _name_of(children) if children else ""
                yield b"".join(_line(name, *child) for name, child in children.items()) + b"\0"

    def _is_folder(self, path: str) -> bool:
        if not path or path in self._open:
            return True
        above, name = posixpath.split(path)
        return self._is_folder(above) and self._children(above).get(name, ("", ""))[0] == FOLDER

    def _children(self, folder: str) -> dict[str, Child]:
        """Return the entries of a folder of the new tree, to be changed; mark it and those above it for writing."""
        if folder not in self._open:
            self._open[folder] = dict(self._base.children(folder))
            if folder:
                self._children(posixpath.dirname(folder))
        return self._open[folder]

    def _forget(self, path: str) -> None:
        for folder in [known for known in self._open if known == path or known.startswith(f"{path}/")]:
            del self._open[folder]


def _ways(folder: str) -> Iterator[str]:
    """Yield a folder and those above it, the outermost first, without the top folder."""
    names = folder.split("/") if folder else []
    for count in range(1, len(names) + 1):
        yield "/".join(names[:count])


def _line(name: str, mode: str, oid: str) -> bytes:
    kind = {FOLDER: "tree", _GITLINK: "commit"}.get(mode, "blob")
    return f"{mode} {kind} {oid}\t".encode() + name.encode(errors="surrogateescape") + b"\0"


def _name_of(children: Mapping[str, Child]) -> str:
    """Return the object name of a tree with these entries (gitformat-pack(5): mode, name, zero, binary name)."""
    encoded = {name.encode(errors="surrogateescape"): child for name, child in children.items()}
    ordered = sorted(encoded, key=lambda name: name + b"/" if encoded[name][0] == FOLDER else name)
    body = b"".join(
        b"%s %s\0%s" % (encoded[name][0].lstrip("0").encode(), name, bytes.fromhex(encoded[name][1]))
        for name in ordered
    )
    content = b"tree %d\0%s" % (len(body), body)
    is_sha1 = len(next(iter(children.values()))[1]) == _SHA1
    return (hashlib.sha1(content, usedforsecurity=False) if is_sha1 else hashlib.sha256(content)).hexdigest()
