"""Reads which files of their own workspace Rust files use: declared modules, and modules that paths lead to.

Each target (library, binary, integration test ...) is a tree of modules that begins at its root file; `Cargo.toml` says
what a crate is called, and where its roots are. A name that a module only passes on (`pub use`) leads to its origin.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from posixpath import normpath
from typing import TYPE_CHECKING, Final

from pipeline.languages.rust.paths import Facts, Path, facts

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_DEPTH: Final = 32
_STEPS: Final = 256
"""The most re-exports that are followed for one path: they can form a cycle."""
_TARGETS: Final = ("src/bin", "tests", "benches", "examples")
_LISTED: Final = ("bin", "test", "bench", "example")
_OWN: Final = frozenset({"lib.rs", "main.rs", "mod.rs"})


@dataclass
class _Tree:
    """The modules of one target by module path; the root is the empty path."""

    files: dict[Path, str] = field(default_factory=dict[Path, str])

    def find(self, path: Path) -> tuple[Path, str]:
        """Return the innermost module of a path that has its own file, and that file."""
        for end in range(len(path), 0, -1):
            if path[:end] in self.files:
                return path[:end], self.files[path[:end]]
        return (), self.files[()]


def read(sources: Mapping[str, str]) -> Iterator[tuple[str, frozenset[str]]]:
    """Yield each Rust file that can be parsed, with the workspace's files that it uses."""
    known = {path: facts(text) for path, text in sources.items() if path.endswith(".rs")}
    workspace = _Workspace(sources, known)
    for path, said in known.items():
        if said is not None:
            yield path, frozenset(workspace.used(path, said))


def _table(manifest: Mapping[str, object], name: str) -> dict[str, str]:
    """Return the entries of a manifest's table that are texts; an agent may have written anything there."""
    table = manifest.get(name)
    entries: dict[str, object] = table if isinstance(table, dict) else {}  # pyright: ignore[reportUnknownVariableType]  of TOML
    return {key: value for key, value in entries.items() if isinstance(value, str)}


class _Workspace:
    def __init__(self, sources: Mapping[str, str], known: Mapping[str, Facts | None]) -> None:
        self._known = known
        self._libraries: dict[str, _Tree] = {}
        self._places: dict[str, list[tuple[_Tree, Path]]] = {}
        for path, text in sources.items():
            if PurePosixPath(path).name == "Cargo.toml":
                self._add_crate(PurePosixPath(path).parent, text)
        for path in known:  # what no manifest leads to stands for itself
            if path not in self._places:
                self._grow(path)

    def used(self, path: str, said: Facts) -> set[str]:
        """Return the files that a file's module declarations and paths lead to."""
        found: set[str] = set()
        for tree, module in self._places[path]:
            for declared in said.declared:
                child = (*module, *declared.inside, declared.name)
                found |= {tree.files[child]} if child in tree.files else set()
            for inside, written in said.paths:
                found |= self._led(tree, (*module, *inside), written)
        return found

    def _add_crate(self, folder: PurePosixPath, text: str) -> None:
        try:
            manifest = tomllib.loads(text)
        except tomllib.TOMLDecodeError:
            return
        package, library = _table(manifest, "package"), _table(manifest, "lib")
        root = self._grow(normpath(str(folder / library.get("path", "src/lib.rs"))))
        if root is not None and package.get("name"):
            self._libraries[library.get("name", package["name"]).replace("-", "_")] = root
        for path in self._roots(folder, manifest):
            self._grow(path)

    def _roots(self, folder: PurePosixPath, manifest: Mapping[str, object]) -> Iterator[str]:
        yield normpath(str(folder / "src/main.rs"))
        for kind in _LISTED:
            entries = manifest.get(kind)
            for entry in entries if isinstance(entries, list) else ():  # pyright: ignore[reportUnknownVariableType]  of TOML
                if isinstance(entry, dict) and isinstance(path := entry.get("path"), str):  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]  of TOML
                    yield normpath(str(folder / path))
        for place in _TARGETS:
            top = PurePosixPath(normpath(str(folder / place)))
            for path in map(PurePosixPath, self._known):
                if path.parent == top or (path.name == "main.rs" and path.parent.parent == top):
                    yield str(path)

    def _grow(self, root: str) -> _Tree | None:
        """Return the module tree below a root file, None if the file is unknown."""
        if root not in self._known:
            return None
        tree = _Tree()
        waiting: list[tuple[Path, str]] = [((), root)]
        while waiting:
            module, path = waiting.pop()
            if module in tree.files or len(module) > _DEPTH:
                continue
            tree.files[module] = path
            self._places.setdefault(path, []).append((tree, module))
            said = self._known[path]
            for declared in said.declared if said is not None else ():
                child = self._file(path, declared.inside, declared.name, declared.file, is_root=not module)
                if child is not None:
                    waiting.append(((*module, *declared.inside, declared.name), child))
        return tree

    def _file(self, path: str, inside: Path, name: str, named: str | None, *, is_root: bool) -> str | None:
        pure = PurePosixPath(path)
        own = pure.parent if is_root or pure.name in _OWN else pure.with_suffix("")
        if named is not None:
            candidates = [(pure.parent if not inside else own.joinpath(*inside)) / named]
        else:
            folder = own.joinpath(*inside)
            candidates = [folder / f"{name}.rs", folder / name / "mod.rs"]
        return next((found for found in (normpath(str(each)) for each in candidates) if found in self._known), None)

    def _led(self, tree: _Tree, module: Path, written: Path) -> set[str]:
        """Return the files that a path leads to: that of the module, and the sources of its re-exports."""
        found: set[str] = set()
        waiting = [(tree, module, written)]
        passed: set[tuple[int, Path, Path]] = set()
        while waiting and len(passed) < _STEPS:
            tree, module, written = waiting.pop()
            start = self._start(tree, module, written)
            if start is None or len(start[1]) > _DEPTH or (id(start[0]), module, written) in passed:
                continue
            passed.add((id(start[0]), module, written))
            tree, path = start
            at, file = tree.find(path)
            found.add(file)
            rest, said = path[len(at) :], self._known[file]
            for inside, name, source in said.brought if rest and said is not None else ():
                if not inside and name in {rest[0], "*"}:
                    waiting.append((tree, at, (*source, *(rest if name == "*" else rest[1:]))))
        return found

    def _start(self, tree: _Tree, module: Path, written: Path) -> tuple[_Tree, Path] | None:
        """Return the tree and the full path that a written path means; None for other crates."""
        first, rest = written[0], written[1:]
        if first == "crate":
            return tree, rest
        if first in {"self", "super"}:
            here = module if first == "self" else module[:-1]
            while rest and rest[0] == "super":
                here, rest = here[:-1], rest[1:]
            return tree, (*here, *rest)
        if (*module, first) in tree.files:
            return tree, (*module, *written)
        library = self._libraries.get(first)
        return None if library is None else (library, rest)
