"""Reads which files of their own project Python files import, from syntax trees.

A module is known by every name that it may have: below the top of its package, below `src` and the like, and below each
folder that holds it, since pytest puts folders of tests on the path. `from package import name` leads to the module in
which the package's `__init__` found the name, too. A test uses each `conftest.py` on its way to the top.
"""

from __future__ import annotations

import ast
import warnings
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

_ROOTS: Final = ("", "src", "lib", "python", "tests", "test")
_CONFTEST: Final = "conftest.py"
_IMPORTERS: Final = frozenset({"import_module", "__import__", "importorskip"})
_PATCHERS: Final = frozenset({"patch", "setattr", "delattr", "object", "dict", "multiple"})
_LITERALS: Final = "pytest_plugins"
_STEPS: Final = 256
"""The most re-exports that are followed for one name: they can form a cycle."""

_Naming = ast.Import | ast.ImportFrom | ast.Call | ast.Assign
"""The nodes that can name a module. Only these are kept: whole trees of a large project take gigabytes."""


def read(sources: Mapping[str, str]) -> Iterator[tuple[str, frozenset[str]]]:
    """Yield each parsable Python file with the project's files that it imports."""
    said = {path: _naming(text) for path, text in sources.items() if path.endswith(".py")}
    modules = _Modules(said)
    for path, nodes in said.items():
        if nodes is not None:
            yield path, frozenset({*modules.used(path, nodes), *_packages(path, said), *_conftests(path, said)})


def _naming(text: str) -> tuple[_Naming, ...] | None:
    """Return the nodes of a source that can name modules, None if it is no Python."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the project's own are none of the user's business here
            tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return tuple(node for node in ast.walk(tree) if isinstance(node, _Naming) and _names_modules(node))


def _names_modules(node: _Naming) -> bool:
    match node:
        case ast.Call():
            return bool(node.args) and _called(node) in _IMPORTERS | _PATCHERS
        case ast.Assign():
            return any(isinstance(target, ast.Name) and target.id == _LITERALS for target in node.targets)
        case _:
            return True


class _Modules:
    """The project's modules by name, with the names that their `__init__` files import."""

    def __init__(self, said: Mapping[str, tuple[_Naming, ...] | None]) -> None:
        self._said = said
        self._by_name: dict[str, set[str]] = {}
        self._names: dict[str, list[str]] = {}
        for path in said:
            self._names[path] = list(_module_names(path, said))
            for name in self._names[path]:
                self._by_name.setdefault(name, set()).add(path)

    def used(self, path: str, nodes: Iterable[_Naming]) -> set[str]:
        """Return the files that a module's statements load."""
        found: set[str] = set()
        for node in nodes:
            if isinstance(node, ast.Import):
                for alias in node.names:
                    found |= self._loaded(alias.name)
            elif isinstance(node, ast.ImportFrom):
                for base in self._bases(path, node):
                    found |= self._loaded(base)
                    for alias in node.names:
                        found |= self._named(base, alias.name, set())
            elif isinstance(node, ast.Call):
                found |= self._called(path, node)
            else:
                for text in _texts(ast.walk(node.value)):
                    found |= self._loaded(text)
        return found

    def _bases(self, path: str, node: ast.ImportFrom) -> Iterator[str]:
        if not node.level:
            yield node.module or ""
            return
        climb = node.level - (1 if PurePosixPath(path).name == "__init__.py" else 0)
        for name in self._names[path]:
            parts = name.split(".")
            if climb < len(parts):
                yield ".".join(filter(None, [*parts[: len(parts) - climb], node.module]))
        here = PurePosixPath(path).parent
        folders = [here, *here.parents][: node.level]
        if len(folders) == node.level:  # whatever the package is called
            yield ".".join(filter(None, [*folders[-1].parts, node.module]))

    def _loaded(self, name: str) -> set[str]:
        """Return the files that `import name` runs: the module, and the packages that contain it."""
        parts = name.split(".")
        prefixes = (".".join(parts[: end + 1]) for end in range(len(parts)))
        return {path for prefix in prefixes for path in self._by_name.get(prefix, ())}

    def _named(self, base: str, name: str, passed: set[tuple[str, str]]) -> set[str]:
        """Return the files behind `from base import name`: a module, or the source of a package's re-export."""
        found = set(self._by_name.get(f"{base}.{name}" if base else name, ()))
        if found or (base, name) in passed or len(passed) == _STEPS:
            return found
        passed.add((base, name))
        for path in self._by_name.get(base, ()):
            taken = [node for node in self._said[path] or () if isinstance(node, ast.ImportFrom)]
            offers = [(node, alias) for node in taken for alias in node.names]
            exact = [(node, alias.name) for node, alias in offers if (alias.asname or alias.name) == name]
            for node, original in exact or [(node, name) for node, alias in offers if alias.name == "*"]:
                for inner in self._bases(path, node):
                    found |= {*self._by_name.get(inner, ()), *self._named(inner, original, passed)}
        return found

    def _called(self, path: str, call: ast.Call) -> set[str]:
        """Return the modules that a call names in a string, to import them or to replace parts of them."""
        found: set[str] = set()
        for text in _texts(call.args[:1]):
            if text.startswith("."):
                node = ast.ImportFrom(module=text.lstrip("."), names=[], level=len(text) - len(text.lstrip(".")))
                found |= {at for base in self._bases(path, node) for at in self._loaded(base)}
            elif _called(call) in _IMPORTERS or "." in text:
                found |= self._loaded(text)
        return found


def _module_names(path: str, known: Mapping[str, object]) -> Iterator[str]:
    """Yield the names under which a file may be imported."""
    pure = PurePosixPath(path)
    inside = pure.parent if pure.name == "__init__.py" else pure.with_suffix("")
    top = pure.parent
    while top.parts and str(top / "__init__.py") in known:
        top = top.parent
    for root in dict.fromkeys((*_ROOTS, str(top))):
        folder = PurePosixPath(root)
        if inside != folder and inside.is_relative_to(folder):
            yield ".".join(inside.relative_to(folder).parts)


def _packages(path: str, known: Mapping[str, object]) -> Iterator[str]:
    """Yield the `__init__` files of the packages that contain a module, which run when it is imported."""
    for folder in PurePosixPath(path).parents:
        package = str(folder / "__init__.py")
        if package not in known:
            return
        yield package


def _conftests(path: str, known: Mapping[str, object]) -> Iterator[str]:
    """Yield the conftest files that pytest loads for a test at this path."""
    for folder in PurePosixPath(path).parents:
        conftest = str(folder / _CONFTEST)
        if conftest in known and conftest != path:
            yield conftest


def _called(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def _texts(nodes: Iterable[ast.AST]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
