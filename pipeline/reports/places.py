"""Finds paths of a plan or task that no agent could write where they are named: behind a link, or one name twice.

The gate refuses both when they are handed in (a change under a link is one of another path), so the draft is told.
"""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING, Final

from pipeline.policy.paths import collision_key
from pipeline.reports.problems import Problem
from pipeline.reports.tasks import MAKING

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator

    from pipeline.reports.fields import FileChange

_MOST_LINKS: Final = 40


def misplaced(
    changes: Iterable[FileChange], existing: Collection[str], links: Collection[str], target: Callable[[str], str]
) -> Iterator[tuple[str, Problem]]:
    """Yield what is wrong with the places that *changes* name, by the path.

    Args:
        changes: Of a plan, or of all its tasks.
        existing: Every path of the tree, links too.
        links: Those that are symbolic links.
        target: Returns where a link points, as it is written there.
    """
    changes = tuple(changes)
    gone = {path for one in changes for path in (one.origin, one.path if one.action == "delete" else None) if path}
    known = {collision_key(way): way for path in existing if path not in gone for way in _ways(path)}
    for change in dict.fromkeys(changes):
        for path in filter(None, (change.origin, change.path)):
            if (link := next((way for way in _ways(path) if way in links), None)) is not None:
                yield path, Problem(1, "H023", _behind(path, link, existing, _end(path, links, target)))
        if change.action not in MAKING:
            continue
        for way in _ways(change.path):
            other = known.setdefault(collision_key(way), way)
            if other != way:
                why = f"{change.path}: {way} and {other} are one name where upper and lower case are the same"
                yield change.path, Problem(1, "H024", f"{why}; write {other}, or choose another name")
                break


def _ways(path: str) -> tuple[str, ...]:
    """Return the folders above a path, the outermost first, and the path itself."""
    parts = path.split("/")
    return tuple("/".join(parts[:end]) for end in range(1, len(parts) + 1))


def _end(path: str, links: Collection[str], target: Callable[[str], str]) -> str | None:
    """Return the path that *path* leads to; None where that is outside of the tree, or nowhere."""
    for _ in range(_MOST_LINKS):
        link = next((way for way in _ways(path) if way in links), None)
        if link is None:
            return path
        led = target(link)
        path = posixpath.normpath(posixpath.join(posixpath.dirname(link), led) + path.removeprefix(link))
        if led.startswith("/") or path == ".." or path.startswith("../"):
            return None
    return None


def _behind(path: str, link: str, existing: Collection[str], end: str | None) -> str:
    what = f"{path} is a symbolic link" if link == path else f"{path} lies behind {link}, which is a symbolic link"
    if end is None:
        return f"{what} that leads out of the repository: nothing can be changed there; choose another path"
    fits = "which is there: modify it, or delete it" if end in existing else "which is not there yet: create it"
    return f"{what}; files are changed where they are, so name {end}, {fits}"
