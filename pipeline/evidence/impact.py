"""Which tests a change touches, the nearest first: by what traced tests entered, then by imports, then by name.

It orders and it informs; it never decides. What cannot be read makes every test a suspect, after those that are known.
"""

from __future__ import annotations

import ast
from collections import deque
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final

from pipeline.evidence.import_graph import Graph, import_graph

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from pipeline.evidence.observation import Observation, Reach, TestRecord

_ENTERED, _TOUCHED, _IMPORTED = 0, 1, 2
_NAMED: Final = 1_000_000
_UNKNOWN: Final = 2_000_000
_SAYS_NOTHING: Final = frozenset({"", "index", "init", "lib", "main", "mod", "src", "test", "tests"})
"""Stems that say nothing about what a file is about."""


@dataclass(frozen=True)
class Impact:
    """Tests in the order in which a change is most likely to be noticed.

    `touched` are those that are known to have to do with it. `others` are all the rest, and are there only where
    something on the way could not be read, so that nobody can say what else is touched.
    """

    touched: tuple[str, ...] = ()
    others: tuple[str, ...] = ()

    @property
    def ids(self) -> tuple[str, ...]:
        """Return all of them, in order."""
        return self.touched + self.others


def impacted(
    changed: Collection[str],
    sources: Mapping[str, str] | Graph,
    observation: Observation,
    *,
    functions: Collection[str] = (),
) -> Impact:
    """Return the tests that the change may touch, the nearest first; no id comes twice.

    In this order: tests that stand in a changed file, and those that entered a changed function; those that entered or
    opened a changed file; those whose file imports it, by the length of the way; those whose path has its name.

    Args:
        changed: The paths that changed, or are to change.
        sources: The texts of the project's files by path (code and manifests), or their graph.
        observation: All tests, as collected; those that were traced say what they entered.
        functions: The changed functions, `path::qualname`, if they are known; a test that entered a changed file
            elsewhere comes after those that entered one of them.
    """
    graph = sources if isinstance(sources, Graph) else import_graph(sources)
    away = distances(graph, changed)
    ranked = sorted(
        (_rank(record, changed, functions, away), place, record.id)
        for place, record in enumerate(observation.records.values())
    )
    touched = tuple(entry for rank, _, entry in ranked if rank < _UNKNOWN)
    unread = bool(graph.unread) or any(path not in graph.uses for path in changed)
    return Impact(touched, tuple(entry for rank, _, entry in ranked if rank == _UNKNOWN) if unread else ())


def distances(graph: Graph, changed: Collection[str]) -> dict[str, int]:
    """Return how many imports lie between each file and the nearest changed one; what reaches none is left out."""
    users: dict[str, list[str]] = {}
    for path, used in graph.uses.items():
        for other in used:
            users.setdefault(other, []).append(path)
    away = dict.fromkeys(changed, 0)
    waiting = deque(away)
    while waiting:
        path = waiting.popleft()
        for user in users.get(path, ()):
            if user not in away:
                away[user] = away[path] + 1
                waiting.append(user)
    return away


def touched_functions(path: str, before: str, after: str) -> frozenset[str] | None:
    """Return which functions of a Python file differ, as `path::qualname`, removed and new ones included.

    None where that does not say it all: other statements differ too, or one of the texts cannot be parsed.
    """
    old, new = _functions(before), _functions(after)
    if old is None or new is None or old.pop("") != new.pop(""):
        return None
    return frozenset(f"{path}::{name}" for name in old.keys() | new.keys() if old.get(name) != new.get(name))


def _rank(record: TestRecord, changed: Collection[str], functions: Collection[str], away: Mapping[str, int]) -> int:
    if record.path in changed:
        return _ENTERED
    entered = _UNKNOWN if record.reach is None else _entered(record.reach, changed, functions)
    imported = _IMPORTED + away[record.path] if record.path in away else _UNKNOWN
    named = _NAMED if _is_named(record.path, changed) else _UNKNOWN
    return min(entered, imported, named)


def _entered(reach: Reach, changed: Collection[str], functions: Collection[str]) -> int:
    files = {name.partition("::")[0] for name in reach.functions}
    if any(name in functions for name in reach.functions):
        return _ENTERED
    if not files.isdisjoint(changed):
        return _TOUCHED if functions else _ENTERED
    return _UNKNOWN if {*reach.references, *reach.doors}.isdisjoint(changed) else _TOUCHED


def _is_named(path: str, changed: Iterable[str]) -> bool:
    """Return whether the path of a test has the name of a changed file, or of its folder where the file has none."""
    for other in map(PurePosixPath, changed):
        names = (other.name.partition(".")[0].strip("_"), other.parent.name)
        stem = next((name for name in names if name.casefold() not in _SAYS_NOTHING), "")
        if stem and stem in path:
            return True
    return False


def _functions(source: str) -> dict[str, str] | None:
    """Return each function without what it contains, by qualified name, and everything else under the empty name."""
    apart = _Apart()
    try:
        rest = apart.visit(ast.parse(source))
        return {**apart.found, "": ast.dump(rest)}
    except (SyntaxError, ValueError, RecursionError):
        return None


class _Apart(ast.NodeTransformer):
    """Puts functions aside and leaves a `pass` in the place of each."""

    def __init__(self) -> None:
        self.found: dict[str, str] = {}
        self._owners: tuple[str, ...] = ()

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        return self._within(node, node.name)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return self._aside(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        return self._aside(node)

    def _aside(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> ast.AST:
        self._within(node, node.name, "<locals>")
        name = ".".join((*self._owners, node.name))
        # one name may stand for several: a property and its setter
        self.found[name] = self.found.get(name, "") + ast.dump(node)
        return ast.Pass()

    def _within(self, node: ast.AST, *names: str) -> ast.AST:
        outside = self._owners
        self._owners = (*outside, *names)
        self.generic_visit(node)
        self._owners = outside
        return node
