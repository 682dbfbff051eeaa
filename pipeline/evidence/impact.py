"""Finds the tests that a change touches, the nearest first: by traced reach, then by imports, then by name.

It orders and it informs; it never decides.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from pipeline.evidence.observation import Reach, TestRecord

Graph = Mapping[str, frozenset[str]]
"""The files that each source imports directly; an unreadable source has no entry."""

_ENTERED, _OPENED, _IMPORTED = 0, 1, 2
_NAMED: Final = 1_000_000
_UNTOUCHED: Final = 2_000_000
_SAYS_NOTHING: Final = frozenset({"", "index", "init", "lib", "main", "mod", "src", "test", "tests"})
"""File names without meaning, for which the folder's name is taken."""


def impacted(
    changed: Collection[str], graph: Graph, tests: Iterable[TestRecord], reach: Mapping[str, Reach]
) -> tuple[str, ...]:
    """Return the ids of the tests that the change touches, as far as is known, the nearest first.

    In this order: tests that stand in a changed file or entered one; those that opened one or mention it; those whose
    file imports one, by the length of the way; those whose path has its name. Otherwise in the order of *tests*.

    Args:
        changed: The paths that changed, or are to change.
        graph: What the project's files use.
        tests: All tests, as collected.
        reach: What those entered that were traced, by id.
    """
    away = distances(graph, changed)
    names = _names(changed)
    ranked = sorted(
        (_rank(test, reach.get(test.id), changed, away, names), place, test.id) for place, test in enumerate(tests)
    )
    return tuple(entry for rank, _, entry in ranked if rank < _UNTOUCHED)


def distances(graph: Graph, changed: Iterable[str]) -> dict[str, int]:
    """Return the number of imports between each file and the nearest changed one; unconnected files are left out."""
    users: dict[str, list[str]] = {}
    for path, used in graph.items():
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


def _rank(
    test: TestRecord,
    reach: Reach | None,
    changed: Collection[str],
    away: Mapping[str, int],
    names: re.Pattern[str] | None,
) -> int:
    if test.path in changed:
        return _ENTERED
    if reach is not None:
        if any(name.partition("::")[0] in changed for name in reach.functions):
            return _ENTERED
        if any(path in changed for path in (*reach.references, *reach.doors)):
            return _OPENED
    if test.path in away:
        return _IMPORTED + away[test.path]
    return _NAMED if names is not None and names.search(test.path) else _UNTOUCHED


def _names(changed: Iterable[str]) -> re.Pattern[str] | None:
    """Return a pattern for the changed files' names in a path, or their folders' where the file name says nothing."""
    stems = ((path.name.partition(".")[0].strip("_"), path.parent.name) for path in map(PurePosixPath, changed))
    found = {next((stem for stem in pair if stem.casefold() not in _SAYS_NOTHING), "") for pair in stems} - {""}
    if not found:
        return None
    return re.compile(rf"(?<![^\W_])(?:{'|'.join(map(re.escape, sorted(found)))})(?![^\W_])", re.IGNORECASE)
