"""Finds the tests that a change touches, the nearest first: by what it is about, by traced reach, text and names.

It orders and it informs; it never decides.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter, defaultdict, deque
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pipeline.judge.evidence.observation import Reach, TestRecord

Graph = Mapping[str, frozenset[str]]
"""The files that each source mentions."""

_ENTERED, _OPENED, _MENTIONED = 0, 1, 2
_NAMED: Final = 1_000_000
_UNTOUCHED: Final = 2_000_000
_SAYS_NOTHING: Final = frozenset({"", "index", "init", "lib", "main", "mod", "src", "test", "tests"})
"""File names without meaning, for which the folder's name is taken."""


_LONG_PART: Final = 4
"""Of a name with underscores a part so long says something."""
_WORD: Final = re.compile(r"[^\W\d]\w{2,}")


@dataclass(frozen=True)
class Subject:
    """What a change is about: names of the code that it changes, and the sources of the tests, by path."""

    names: frozenset[str] = frozenset()
    texts: Mapping[str, str] = field(default_factory=dict[str, str])


def impacted(
    changed: Collection[str],
    graph: Graph,
    tests: Iterable[TestRecord],
    reach: Mapping[str, Reach],
    subject: Subject | None = None,
) -> tuple[str, ...]:
    """Return the ids of the tests that the change touches, as far as is known, the nearest first.

    Tests that stand in a changed file or entered one come first, as those beside the new tests. Among these, and among
    the others, what a test says of the subject counts. Then this order holds: those that opened a changed file or name
    it; those whose file mentions one, by the length of the way; those whose path has its name. Among equals those come
    first whose file is called like a changed one, then in the order of *tests*.

    Args:
        changed: The paths that changed, or are to change.
        graph: What the project's files mention.
        tests: All tests, as collected.
        reach: What those entered that were traced, by id.
        subject: What the change is about; without it only files count.
    """
    away = distances(graph, changed)
    names = _names(changed)
    ranks = {test: _rank(test, reach.get(test.id), changed, away, names) for test in tests}
    touched = [test for test, rank in ranks.items() if rank < _UNTOUCHED]
    about = mentions(touched, subject) if subject is not None else {}
    like = {test.path: names is not None and names.search(test.path) is not None for test in touched}
    ranked = sorted(
        (
            ranks[test] > _ENTERED,
            -about.get(test.function, 0.0),
            ranks[test],
            ranks[test] >= _MENTIONED and not like[test.path],
            place,
            test.id,
        )
        for place, test in enumerate(touched)
    )
    return tuple(entry for *_, entry in ranked)


def mentions(tests: Iterable[TestRecord], subject: Subject) -> dict[str, float]:
    """Return how much each test function says of the subject: names in its own text, the rarer the more, and in its id.

    The text of a test reaches from its name to that of the next one of its file. That needs no parser, and is right
    wherever tests stand one below the other.
    """
    functions: dict[str, dict[str, TestRecord]] = defaultdict(dict)
    for test in tests:
        functions[test.path].setdefault(test.function, test)
    said: dict[str, frozenset[str]] = {}
    for path, here in functions.items():
        said.update(_said(subject.texts.get(path, ""), here.values(), subject.names))
    users = Counter(name for names in said.values() for name in names)
    parts = {part for name in subject.names for part in name.split("_") if len(part) >= _LONG_PART}
    titles = sorted({re.sub(r"[\W_]", "", name).casefold() for name in subject.names | parts} - _SAYS_NOTHING)
    found: dict[str, float] = {}
    for path, here in functions.items():
        for function in here:
            title = re.sub(r"[\W_]", "", function.removeprefix(path)).casefold()
            rare = sum(1 / users[name] for name in said.get(function, ()))
            named = sum(len(short) / len(title) for short in titles if title and short in title)
            if rare or named:
                found[function] = rare + named
    return found


def _said(text: str, tests: Iterable[TestRecord], names: Collection[str]) -> dict[str, frozenset[str]]:
    """Return which of the names each test of a file mentions."""
    places: list[tuple[int, str]] = []
    first: dict[str, int] = {}
    words = [(match[0], match.start()) for match in _WORD.finditer(text)]
    for word, place in words:
        first.setdefault(word, place)
    for test in tests:
        last = test.last_name
        place = first.get(last, text.find(last) if last not in first and not _WORD.fullmatch(last) else -1)
        if place >= 0:
            places.append((place, test.function))
    places.sort()
    starts = [place for place, _ in places]
    found: dict[str, set[str]] = {function: set() for _, function in places}
    for word, place in words:
        if word in names and (at := bisect_right(starts, place)):
            found[places[at - 1][1]].add(word)
    return {function: frozenset(said) for function, said in found.items()}


def distances(graph: Graph, changed: Iterable[str]) -> dict[str, int]:
    """Return the number of mentions between each file and the nearest changed one; unconnected files are left out."""
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
        return _MENTIONED + away[test.path]
    return _NAMED if names is not None and names.search(test.path) else _UNTOUCHED


def _names(changed: Iterable[str]) -> re.Pattern[str] | None:
    """Return a pattern for the changed files' names in a path."""
    found = set(map(telling_name, changed)) - {""}
    if not found:
        return None
    return re.compile(rf"(?<![^\W_])(?:{'|'.join(map(re.escape, sorted(found)))})(?![^\W_])", re.IGNORECASE)


def telling_name(path: str) -> str:
    """Return a file's name without endings, or the nearest folder's where it says nothing; empty if none says more."""
    names = (own_name(path), *(folder.name for folder in PurePosixPath(path).parents))
    return next((name for name in names if name.casefold() not in _SAYS_NOTHING), "")


def own_name(path: str) -> str:
    """Return a file's name without endings and outer underscores."""
    return PurePosixPath(path).name.partition(".")[0].strip("_")
