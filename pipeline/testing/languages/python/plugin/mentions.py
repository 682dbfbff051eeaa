"""Says which of the project's files a test mentions: it looks at production that it does not enter.

A test of an address that no view has yet enters no function of a web application. Its client comes of a fixture, a
set-up or a name of its file, which mention the application.
"""

from __future__ import annotations

import ast
import sys
from typing import TYPE_CHECKING, Any

from .workspace import imports

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from .workspace import Part, Workspace

_CHAIN_LIMIT = 20
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


class Mentions:
    """What tests mention, with what they use of their own file, of their class and of fixtures."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._imported: dict[str, list[tuple[int, str, str]]] = {}

    def of(self, item: Any, parts: list[Part]) -> dict[str, list[str]]:
        """Return the files whose imported names a test mentions, and those whose paths are texts in it.

        Args:
            item: The test.
            parts: Where it is written, with its classes; it is the last one.
        """
        if not parts or self._workspace.tree(parts[-1][0]) is None:
            return {"references": [], "named": []}
        path, node, _ = parts[-1]
        package = str(getattr(getattr(item, "module", None), "__package__", "") or "")
        begins = [(path, package, node)]
        begins += [(place, package, part) for place, owner, _ in parts[:-1] for part in _beside_tests(owner)]
        modules = {module for begin in (*begins, *self._fixtures(item)) for module in self._modules(*begin)}
        loaded = [getattr(sys.modules.get(name), "__file__", None) or self._workspace.file_of(name) for name in modules]
        references = sorted({self._workspace.relative(name) for name in loaded if name} - {""})
        texts = {
            part.value for part in ast.walk(node) if isinstance(part, ast.Constant) and isinstance(part.value, str)
        }
        named = sorted({self._workspace.file_at(text) for text in texts} - {""})
        return {"references": references, "named": named}

    def _fixtures(self, item: Any) -> Iterator[tuple[str, str, Any]]:
        definitions = getattr(getattr(item, "_fixtureinfo", None), "name2fixturedefs", {})
        for definition in (each for found in definitions.values() for each in found):
            function: Any = definition.func
            for _ in range(_CHAIN_LIMIT):
                function = getattr(function, "__wrapped__", function)
            code = getattr(function, "__code__", None)
            if code is not None and (path := self._workspace.relative(code.co_filename)):
                package = getattr(sys.modules.get(function.__module__), "__package__", "") or ""
                around = self._workspace.functions(path).get((code.co_name, code.co_firstlineno), [])
                yield from ((path, package, node) for node in around[-1:])

    def _modules(self, path: str, package: str, begin: Any) -> set[str]:
        """Return the modules that a part of a file imports itself, or names by what the file imports."""
        tree: Any = self._workspace.tree(path)
        if path not in self._imported:
            found = [(id(part), *pair) for part in ast.walk(tree) for pair in imports(part, package)]
            self._imported[path] = found
        names: set[str] = set()
        inside: set[int] = set()
        pending = [begin]
        while pending:
            within = list(ast.walk(pending.pop()))
            inside.update(map(id, within))
            new = {name for part in within if (name := _name(part)) and name not in names}
            names |= new
            pending += [part for part in tree.body if not new.isdisjoint(_given_by(part))]
        return {module for part, local, module in self._imported[path] if part in inside or local in names}


def _beside_tests(owner: Any) -> list[Any]:
    """Return the parts of a class that are no test: its bases, set-ups, helpers, attributes."""
    body = getattr(owner, "body", [])
    return [*getattr(owner, "bases", []), *(part for part in body if not _is_test(part))]


def _is_test(part: Any) -> bool:
    return isinstance(part, _FUNCTIONS) and part.name.startswith("test")


def _name(part: Any) -> str:
    """Return the name that a part of a file mentions; an argument of a test may be a fixture of its file."""
    return getattr(part, "id", "") if isinstance(part, ast.Name) else getattr(part, "arg", None) or ""


def _given_by(part: Any) -> Iterable[str]:
    """Return the names that a statement at the top of a file gives; imports are looked at by themselves."""
    if isinstance(part, (*_FUNCTIONS, ast.ClassDef)):
        return {part.name}
    if isinstance(part, (ast.Assign, ast.AnnAssign)):
        targets = part.targets if isinstance(part, ast.Assign) else [part.target]
        return {each.id for target in targets for each in ast.walk(target) if isinstance(each, ast.Name)}
    return set()
