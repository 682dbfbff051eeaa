"""The measured files: their paths, syntax trees and hashes."""

# os.path: resolving links is a decision here, not a habit
# ruff: noqa: PTH100, PTH113, PTH114, PTH118, PTH206

from __future__ import annotations

import ast
import hashlib
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    Part = tuple[str, Any, bool]  # a file, a class or function in it, and whether that class inherits the test


SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def first_line(node: Any) -> int:
    """Return the first line of a definition, decorators included."""
    return min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])


def _is_test(node: Any) -> bool:
    return isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name.startswith("test")


def nested(scope: ast.AST, names: list[str]) -> list[ast.AST]:
    """Return the definitions of nested names, each inside the one before; [] if one is missing."""
    found: list[ast.AST] = []
    for name in names:
        inner = _defined(found[-1] if found else scope, name)
        if inner is None:
            return []
        found.append(inner)
    return found


def _defined(scope: ast.AST, name: str) -> ast.AST | None:
    """Return the last definition of a name directly in a scope, looking into `if`, `try` and `with`."""
    found: ast.AST | None = None
    pending: list[ast.AST] = list(getattr(scope, "body", []))
    while pending:
        node = pending.pop(0)
        if isinstance(node, SCOPES):
            found = node if node.name == name else found
        elif isinstance(node, (ast.If, ast.Try, ast.With)):
            pending[:0] = [child for child in ast.iter_child_nodes(node) if isinstance(child, ast.stmt)]
    return found


_BY_NAME = {"import_module", "find_spec", "__import__", "importorskip", "run_module"}


def imports(node: ast.AST, package: str) -> Iterator[tuple[str, str]]:
    """Yield (local name, module) for an import statement, the imported name also as a possible submodule.

    A call that imports or looks for the module of a name that stands there is one, too: it has no local name.
    """
    if isinstance(node, ast.Call):
        called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        first = getattr(node.args[0], "value", None) if node.args else None
        if called in _BY_NAME and isinstance(first, str):
            yield "", first
    if isinstance(node, ast.Import):
        for alias in node.names:
            yield alias.asname or alias.name.partition(".")[0], alias.name
    elif isinstance(node, ast.ImportFrom):
        base = package.rsplit(".", node.level - 1)[0] if node.level and package else ""
        module = ".".join(filter(None, (base, node.module or "")))
        for alias in node.names:
            yield alias.asname or alias.name, module
            yield alias.asname or alias.name, module + "." + alias.name


_LONGEST_PATH = 300
NOT_OURS = {"site-packages", "dist-packages", "node_modules", ".tox", ".nox", "__pypackages__"}


class Workspace:
    """The measured files: their paths, syntax trees and hashes.

    `roots` are (folder, its path inside the workspace): the workspace itself first, then the places where editable
    installs see parts of it.
    """

    def __init__(self, roots: list[tuple[str, str]]) -> None:
        self._top = roots[0][0]
        places = {place: inside for root, inside in roots for place in (root, os.path.realpath(root))}
        self.roots = sorted(places.items(), key=lambda pair: -len(pair[0]))
        self._relative: dict[str, str] = {}
        self._folders: dict[str, str] = {}
        self._trees: dict[str, ast.Module | None] = {}
        self._lines: dict[str, list[str]] = {}
        self._functions: dict[str, dict[tuple[str, int], list[Any]]] = {}
        self._tops: tuple[tuple[str, ...], set[str]] = ((), set())

    def relative(self, name: str) -> str:
        """Return a path inside the workspace with `/`, "" for a file outside it or of an environment."""
        if name not in self._relative:
            self._relative[name] = self._find(name)
        return self._relative[name]

    def _find(self, name: str) -> str:
        if not name or name.startswith("<"):
            return ""
        for candidate in (os.path.abspath(name), self.real(name)):
            for root, inside in self.roots:
                if candidate.startswith(root + os.sep) and not self._in_environment(candidate):
                    parts = candidate[len(root) + 1 :].split(os.sep)
                    return "" if NOT_OURS.intersection(parts) else "/".join([*filter(None, [inside]), *parts])
        return ""

    def real(self, name: str) -> str:
        """Return the path with its links resolved; the result for each folder is cached."""
        folder, last = os.path.split(os.path.abspath(name))
        if folder not in self._folders:
            self._folders[folder] = os.path.realpath(folder)
        found = os.path.join(self._folders[folder], last)
        return os.path.realpath(found) if os.path.islink(found) else found

    def _in_environment(self, candidate: str) -> bool:
        """Return whether a file belongs to a virtual environment inside the workspace."""
        return any(
            candidate.startswith(prefix + os.sep)
            for prefix in (sys.prefix, sys.base_prefix)
            if any(prefix.startswith(root + os.sep) for root, _ in self.roots)
        )

    def absolute(self, relative: str) -> Path:
        """Return the absolute path of a file in the workspace."""
        return Path(self._top, relative)

    def file_of(self, module: str) -> str:
        """Return the file of a module that need not be loaded, "" if the workspace has none."""
        parts = module.split(".")
        if not all(part.isidentifier() for part in parts):
            return ""
        inside = [entry for entry in (os.path.abspath(part or ".") for part in sys.path) if self._is_inside(entry)]
        bases = [os.path.join(place, *parts) for place in [*inside, self._top]]
        files = (file for base in bases for file in (base + ".py", os.path.join(base, "__init__.py")))
        return next((file for file in files if os.path.isfile(file)), "")

    def file_at(self, text: str) -> str:
        """Return the path of a file of the workspace that a text is, seen from the top; "" if it is none."""
        if not text or "\0" in text or "\n" in text or len(text) > _LONGEST_PATH:
            return ""
        place = os.path.join(self._top, text)
        return self.relative(place) if os.path.isfile(place) else ""

    def sha256(self, relative: str) -> str:
        """Return the sha256 of a file's bytes, "" if it cannot be read."""
        try:
            return hashlib.sha256(self.absolute(relative).read_bytes()).hexdigest()
        except OSError:
            return ""

    def tree(self, relative: str) -> ast.Module | None:
        """Return a file's syntax tree, None if it is not valid Python."""
        if relative not in self._trees:
            try:
                source = self.absolute(relative).read_bytes()
                self._trees[relative] = ast.parse(source)
                text = source.decode("utf-8", "surrogateescape")
                self._lines[relative] = (text.rstrip("\n") + "\n").splitlines(True)  # a file may end in mid-line
            except (OSError, SyntaxError, ValueError):
                self._trees[relative] = None
        return self._trees[relative]

    def functions(self, relative: str) -> dict[tuple[str, int], list[Any]]:
        """Return the nodes around each function with its own, by its name and first line."""
        if relative not in self._functions:
            self._functions[relative] = found = {}
            pending: list[tuple[Any, list[Any]]] = [(self.tree(relative), [])]
            while pending:
                node, around = pending.pop()
                inside = [*around, node] if isinstance(node, SCOPES) else around
                if inside is not around and not isinstance(node, ast.ClassDef):
                    found[node.name, first_line(node)] = inside
                pending += [(child, inside) for child in ast.iter_child_nodes(node)] if node is not None else []
        return self._functions[relative]

    def region_sha256(self, relative: str, parts: list[Part]) -> str:
        """Return the hash of a test's lines with decorators, its own and its classes'; without parts, the file's.

        Of a class that inherits the test its bases and attributes count, too: they say what is tested.
        """
        if not parts:
            return self.sha256(relative)
        digest = hashlib.sha256()
        for path, owner, inherits in parts[:-1]:
            spans = list(owner.decorator_list)
            if inherits:
                own = [part for part in owner.body if not isinstance(part, SCOPES)]
                spans += [*owner.bases, *(keyword.value for keyword in owner.keywords), *own]
            for part in spans:
                self._feed(digest, self._lines[path], part.lineno, part.end_lineno)
        path, node, _ = parts[-1]
        self._feed(digest, self._lines[path], first_line(node), node.end_lineno)
        return digest.hexdigest()

    def made_sha256(self, relative: str, line: int) -> str:
        """Return the hash of what a test can depend on that code makes: the file without the tests written in it.

        Such a test is one of a class to which a loop adds methods. The function at *line*, whose code it runs, counts.
        """
        tree = self.tree(relative)
        if tree is None:
            return self.sha256(relative)
        digest = hashlib.sha256()
        pending = list(reversed(tree.body))
        while pending:
            node = pending.pop()
            spans: list[Any] = [node]
            if isinstance(node, ast.ClassDef):
                pending += reversed(node.body)
                spans = []
                if not any(map(_is_test, node.body)):
                    digest.update(node.name.encode("utf-8", "surrogateescape") + b"\0")
                    spans = [*node.decorator_list, *node.bases, *(keyword.value for keyword in node.keywords)]
            elif _is_test(node):
                spans = [node] if first_line(node) <= line <= (node.end_lineno or 0) else []
            for part in spans:
                first = first_line(part) if isinstance(part, SCOPES) else part.lineno
                self._feed(digest, self._lines[relative], first, part.end_lineno or first)
        return digest.hexdigest()

    @staticmethod
    def _feed(digest: Any, lines: list[str], first: int, last: int) -> None:
        digest.update("".join(lines[first - 1 : last]).encode("utf-8", "surrogateescape") + b"\0")

    def top_level_names(self) -> set[str]:
        """Return the modules and packages that the workspace offers for import at top level."""
        inside = [entry for entry in (os.path.abspath(part or ".") for part in sys.path) if self._is_inside(entry)]
        roots = [root for root, _ in self.roots]
        offered = [*roots, *(os.path.join(root, "src") for root in roots), *inside]
        places = tuple(dict.fromkeys(offered))
        if self._tops[0] != places:
            self._tops = (places, {name for place in places for name in _importable(place)})
        return self._tops[1]

    def _is_inside(self, place: str) -> bool:
        return any(place == root or place.startswith(root + os.sep) for root, _ in self.roots) and not (
            NOT_OURS.intersection(place.split(os.sep)) or self._in_environment(place)
        )


def _importable(place: str) -> Iterator[str]:
    try:
        entries = list(os.scandir(place))
    except OSError:
        return
    for entry in entries:
        if entry.name.endswith(".py") and entry.name not in ("conftest.py", "setup.py", "__init__.py"):
            yield entry.name[:-3]
        elif os.path.isfile(os.path.join(entry.path, "__init__.py")):  # is_dir() raises for a link to itself
            yield entry.name


def path_of(node: Any) -> str:
    """Return the path of a node's file; `path` exists from pytest 7 on, `fspath` before."""
    return str(getattr(node, "path", None) or getattr(node, "fspath", ""))
