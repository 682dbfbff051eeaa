"""The entries of one tree, and a changed tree as input of one `git mktree --batch`: only changed folders are made."""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from typing import TYPE_CHECKING, Final

from pipeline.judge.policy.paths import is_git_folder

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pipeline.repo.values import Entry, TreeChange


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

_Folder = dict[str, "Child | _Folder"]
"""The entries of a folder by name; one that may have changed stands for itself."""


class NewTree:
    """An existing tree with changes that are not written yet."""

    def __init__(self, base: Listing) -> None:
        self._base = base
        self._top: _Folder = dict(base.children(""))

    def change(self, change: TreeChange) -> None:
        """Put an entry at its path, replacing what is there or above it; or remove a file, never a folder.

        A path that no checkout may have is left out, as an index leaves it out.
        """
        *above, name = change.path.split("/")
        if any(each in _NO_NAMES or is_git_folder(each) for each in (*above, name)):
            return
        folder = self._folder(above, create=change.entry is not None)
        if folder is None:
            return
        there = folder.get(name)
        if change.entry is not None:
            folder[name] = (change.entry.mode, change.entry.oid)
        elif isinstance(there, tuple) and there[0] != FOLDER:
            del folder[name]

    def lines(self) -> list[bytes]:
        """Return the input of `git mktree --batch -z`: subfolders first, the whole tree last."""
        found: list[bytes] = []
        if _write(self._top, found) is None:
            found.append(b"\0")
        return found

    def _folder(self, names: Sequence[str], *, create: bool) -> _Folder | None:
        """Return a folder of the new tree, to be changed; None where it is none and is not to be created."""
        here = self._top
        for depth, name in enumerate(names, start=1):
            child = here.get(name)
            if isinstance(child, tuple) and child[0] == FOLDER:
                child = here[name] = dict(self._base.children("/".join(names[:depth])))
            elif not isinstance(child, dict):
                if not create:
                    return None
                child = here[name] = {}
            here = child
        return here


def _write(folder: _Folder, lines: list[bytes]) -> str | None:
    """Add the lines of a folder and of those in it that may have changed; return its name, None of an empty one."""
    names = {name: _write(child, lines) if isinstance(child, dict) else child for name, child in folder.items()}
    children = {name: (FOLDER, child) if isinstance(child, str) else child for name, child in names.items() if child}
    if not children:
        return None
    lines.append(b"".join(_line(name, *child) for name, child in children.items()) + b"\0")
    return _name_of(children)


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
