"""The sources of a project as they were before its measurement, since a test may change its own files."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Final, TypeVar, cast

from pipeline.judge.evidence.observation import Missing
from pipeline.sandbox.limited import UnreadableError, limited
from pipeline.testing.languages.javascript import syntax
from pipeline.testing.languages.javascript.project import SOURCES
from pipeline.trees import Files

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from pipeline.testing.languages.javascript.syntax import Binding, Looked, Region


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
    _answers: dict[tuple[object, ...], object] = field(
        default_factory=dict[tuple[object, ...], object], compare=False, repr=False
    )

    @classmethod
    def read(cls, folder: Path, packages: frozenset[str] = frozenset()) -> Sources:
        """Return the present files of a folder; links are not followed. `packages` are the project's own, by name."""
        files = Files(folder)
        walked = (path for path in files.walk(_LEFT_OUT) if not (folder / path).is_symlink())
        paths = frozenset(islice(walked, _MOST))
        code = {path: files.read(path, _LARGEST) for path in paths if path.endswith(SOURCES)}
        return cls(paths, {path: text for path, text in code.items() if text is not None}, packages)

    def bindings(self, path: str) -> Mapping[str, Binding]:
        """Return the imported names of a file."""
        return self._asked(syntax.bindings_of, path) or {}

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
        asked = (query, path, *about)
        if path in self.code and path not in self._unread and asked not in self._answers:
            try:
                self._answers[asked] = limited(query)(path, self.code[path], *about)
            except UnreadableError:
                self._unread.add(path)
        return cast("_Found | None", self._answers.get(asked))

    def functions_named(self, path: str, name: str) -> tuple[str, ...]:
        """Return the dotted names of a file's functions that an engine calls *name*; none for names that tools add."""
        known = self._asked(syntax.functions_of, path) or ()
        wanted = name.removeprefix("get ").removeprefix("set ").removeprefix("static ").rpartition(".")[2]
        own = tuple(one for one in known if one == name or one.rpartition(".")[2] == wanted)
        return own or tuple(one for one in known if one.endswith(f"{wanted}.constructor"))

    def lacks(self, name: str, importer: str, module: str) -> Missing:
        """Return that a module, as a file names it, lacks a name."""
        owner = syntax.module_key(importer, module, self.files)
        return Missing(name=name, owner=owner, first_party=syntax.is_own(module, self.packages))

    def sha256(self, path: str) -> str:
        """Return the sha256 of a file's bytes, empty if it is unknown."""
        return hashlib.sha256(self.code[path]).hexdigest() if path in self.code else ""
