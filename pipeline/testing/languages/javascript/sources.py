"""The sources of a project as they were before its measurement, since a test may change its own files."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeVar

from pipeline.sandbox.limited import UnreadableError, limited
from pipeline.testing.languages.javascript import syntax
from pipeline.testing.languages.javascript.project import SOURCES
from pipeline.testing.languages.javascript.syntax import Binding, Looked, Region

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path


_Found = TypeVar("_Found")

_LEFT_OUT: Final = frozenset({"node_modules", ".git", ".hg", ".yarn", ".pnpm-store"})
_LARGEST: Final = 2_000_000
_MOST: Final = 50_000


@dataclass(frozen=True)
class Sources:
    """The files of a project by path, with the content of code files."""

    files: frozenset[str]
    code: Mapping[str, bytes]
    packages: frozenset[str] = frozenset()
    _unread: set[str] = field(default_factory=set[str], compare=False, repr=False)
    _bindings: dict[str, dict[str, Binding]] = field(
        default_factory=dict[str, dict[str, Binding]], compare=False, repr=False
    )
    _functions: dict[str, tuple[str, ...]] = field(
        default_factory=dict[str, tuple[str, ...]], compare=False, repr=False
    )

    @classmethod
    def read(cls, folder: Path, packages: frozenset[str] = frozenset()) -> Sources:
        """Return the present files of a folder; links are not followed. `packages` are the project's own, by name."""
        files: list[str] = []
        code: dict[str, bytes] = {}
        for path, size in _files(folder):
            files.append(path)
            if path.endswith(SOURCES) and size <= _LARGEST:
                code[path] = (folder / path).read_bytes()
        return cls(frozenset(files), code, packages)

    def bindings(self, path: str) -> Mapping[str, Binding]:
        """Return the imported names of a file."""
        if path not in self._bindings:
            self._bindings[path] = self._asked(syntax.bindings_of, path) or {}
        return self._bindings[path]

    def function_at(self, path: str, line: int, column: int | None) -> str:
        """Return the dotted name of the definition around a place, empty if it is unknown."""
        return self._asked(syntax.function_at, path, line, column) or ""

    def region_of(self, path: str, line: int, column: int | None) -> Region | None:
        """Return the test that is defined at a place, None if no test function is called there."""
        return self._asked(syntax.region_at, path, line, column)

    def names_at(self, path: str, line: int, column: int | None) -> frozenset[str]:
        """Return the names in the test that is defined at a place."""
        return self._asked(syntax.names_at, path, line, column) or frozenset()

    def is_bare(self, path: str, line: int, column: int | None) -> bool:
        """Return whether the statement at a place fails unconditionally; in an unreadable file it may."""
        return self._asked(syntax.is_bare_at, path, line, column) or path in self._unread

    def looked_at(self, path: str, line: int, name: str, *, called: bool) -> Looked | None:
        """Return the undefined expression near a line, None if it is not found."""
        return self._asked(syntax.looked_at, path, line, name, called) if line else None

    def has_markup(self, path: str) -> bool:
        """Return whether a file contains JSX."""
        return self._asked(syntax.has_markup, path) or False

    def error_in(self, path: str) -> int | None:
        """Return the line of a file's first syntax error, None if there is none; 0 if it cannot be read."""
        found = self._asked(syntax.error_in, path)
        return 0 if path in self._unread else found

    def _asked(self, query: Callable[..., _Found], path: str, *about: object) -> _Found | None:
        """Return the answer of a query, None if there is no such code file or it cannot be read."""
        if path not in self.code or path in self._unread:
            return None
        try:
            return limited(query)(path, self.code[path], *about)
        except UnreadableError:
            self._unread.add(path)
            return None

    def functions_named(self, path: str, name: str) -> tuple[str, ...]:
        """Return the dotted names of a file's functions that an engine calls *name*; none for names that tools add."""
        if path not in self._functions:
            self._functions[path] = self._asked(syntax.functions_of, path) or ()
        wanted = name.removeprefix("get ").removeprefix("set ").removeprefix("static ").rpartition(".")[2]
        own = [one for one in self._functions[path] if one == name or one.rpartition(".")[2] == wanted]
        return tuple(own) or tuple(one for one in self._functions[path] if one.endswith(f"{wanted}.constructor"))

    def sha256(self, path: str) -> str:
        """Return the sha256 of a file's bytes, empty if it is unknown."""
        return hashlib.sha256(self.code[path]).hexdigest() if path in self.code else ""


def _files(folder: Path) -> Iterator[tuple[str, int]]:
    waiting, count = [""], 0
    while waiting:
        inside = waiting.pop()
        with os.scandir(folder / inside) as entries:
            for entry in sorted(entries, key=lambda one: one.name):
                path = f"{inside}{entry.name}"
                if entry.is_dir(follow_symlinks=False):
                    waiting += [f"{path}/"] if entry.name not in _LEFT_OUT else []
                elif entry.is_file(follow_symlinks=False) and count < _MOST:
                    count += 1
                    yield path, entry.stat(follow_symlinks=False).st_size
