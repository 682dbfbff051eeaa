"""The sources of a measurement as they were before it: what is run may change its own files."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from pipeline.toolchains.node.imports import Binding, bindings
from pipeline.toolchains.node.project import SOURCES
from pipeline.toolchains.node.syntax import at, functions, parse, qualname

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from tree_sitter import Node

_LEFT_OUT: Final = frozenset({"node_modules", ".git", ".hg", ".yarn", ".pnpm-store"})
_LARGEST: Final = 2_000_000
_MOST: Final = 50_000


@dataclass(frozen=True)
class Sources:
    """The files of a project by path, with the content of those that are code."""

    files: frozenset[str]
    code: Mapping[str, bytes]
    packages: frozenset[str] = frozenset()
    _trees: dict[str, Node] = field(default_factory=dict[str, "Node"], compare=False, repr=False)
    _bindings: dict[str, dict[str, Binding]] = field(
        default_factory=dict[str, dict[str, Binding]], compare=False, repr=False
    )

    _functions: dict[str, tuple[str, ...]] = field(
        default_factory=dict[str, tuple[str, ...]], compare=False, repr=False
    )

    @classmethod
    def read(cls, folder: Path, packages: frozenset[str] = frozenset()) -> Sources:
        """Return what is in a folder now; links are not followed. `packages` are the project's own, by name."""
        files: list[str] = []
        code: dict[str, bytes] = {}
        for path, size in _files(folder):
            files.append(path)
            if path.endswith(SOURCES) and size <= _LARGEST:
                code[path] = (folder / path).read_bytes()
        return cls(frozenset(files), code, packages)

    def tree(self, path: str) -> Node | None:
        """Return the syntax of a file, None where there is none."""
        if path not in self.code:
            return None
        if path not in self._trees:
            self._trees[path] = parse(path, self.code[path])
        return self._trees[path]

    def bindings(self, path: str) -> Mapping[str, Binding]:
        """Return what the names of a file stand for."""
        tree = self.tree(path)
        if tree is None:
            return {}
        if path not in self._bindings:
            self._bindings[path] = bindings(tree)
        return self._bindings[path]

    def node_at(self, path: str, line: int, column: int | None) -> Node | None:
        """Return the innermost code at a place; see `node.syntax.at`."""
        tree = self.tree(path)
        return at(tree, line, column) if tree is not None else None

    def function_at(self, path: str, line: int, column: int | None) -> str:
        """Return the dotted name of the definition around a place, empty where that is not known."""
        node = self.node_at(path, line, column)
        return qualname(node) if node is not None else ""

    def functions_named(self, path: str, name: str) -> tuple[str, ...]:
        """Return the dotted names of a file's functions that an engine calls by this name; none for what tools add."""
        if path not in self._functions:
            tree = self.tree(path)
            self._functions[path] = tuple(dict.fromkeys(functions(tree))) if tree is not None else ()
        wanted = name.removeprefix("get ").removeprefix("set ").removeprefix("static ").rpartition(".")[2]
        own = [one for one in self._functions[path] if one == name or one.rpartition(".")[2] == wanted]
        return tuple(own) or tuple(one for one in self._functions[path] if one.endswith(f"{wanted}.constructor"))

    def sha256(self, path: str) -> str:
        """Return the hash of a file's bytes, empty for what is not there."""
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
