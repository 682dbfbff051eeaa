"""The rules for drafts by id, the problems that break them, and paths that no agent could write as they are named.

Behind a link, or where one name stands twice, the gate refuses what is handed in (a change under a link is one of
another path), so the draft is told.
"""

from __future__ import annotations

import posixpath
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from pipeline.judge.policy.paths import collision_key, ways
from pipeline.judge.reports.tasks import MAKING
from pipeline.vocabulary import Signal

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator

    from pipeline.judge.reports.fields import FileChange


RULES: Final[dict[str, str]] = {
    "H001": "unfinished text",
    "H002": "a code block of more than 5 lines",
    "H003": "a finished function body",
    "H004": "a command that hides in a shell",
    "H005": "an oversized snippet of code context",
    "H006": "the same thing twice, or in two versions",
    "H007": "a file that is not there, or is there already",
    "H008": "a test file where tests are not looked for",
    "H009": "acceptance criteria that are missing or cannot fail",
    "H010": "a behaviour without action and observable outcome",
    "H011": "a task that should be split",
    "H012": "an open question in the approach",
    "H013": "a file that controls tests or builds",
    "H014": "tasks that do not fit together",
    "H015": "a file whose content goes through a filter",
    "H016": "tests beside code that is not there when they are written",
    "H017": "a task that is named by a number which is no task's any more",
    "H018": "a title that a commit's subject has to cut",
    "H019": "an old test that nobody knows",
    "H020": "a part that no draft has",
    "H021": "a new file where the user has one that git does not know",
    "H022": "a title with which a commit's subject breaks the pattern of the repository",
    "H023": "a path that leads through a symbolic link",
    "H024": "a new name that differs from another in upper and lower case only",
    "H025": "a path in a submodule",
}
"""The rules by id. H015 to H017, H019 and H021 to H025 need more than the text:
`steps.asking.drafts` checks them. H020 is for a person's edits (`reports.edited`): our rendering makes no such part."""


class Weight(StrEnum):
    """The weight of a problem: an error sends the draft back, a note is for the reviewer."""

    ERROR = "error"
    NOTE = "note"


@dataclass(frozen=True, order=True)
class Problem:
    """A problem of a draft: the line (from 1), the rule, a sentence, and its weight."""

    line: int
    rule: str
    message: str
    severity: Weight = Weight.ERROR


def drafted(problems: Iterable[Problem]) -> Signal:
    """Return HYGIENE if a problem is an error, else DRAFTED (matrix 1)."""
    return Signal.HYGIENE if any(problem.severity is Weight.ERROR for problem in problems) else Signal.DRAFTED


_MOST_LINKS: Final = 40


def misplaced(
    changes: Iterable[FileChange],
    existing: Collection[str],
    links: Collection[str],
    target: Callable[[str], str],
    submodules: Collection[str] = (),
) -> Iterator[tuple[str, Problem]]:
    """Yield what is wrong with the places that *changes* name, by the path.

    Args:
        changes: Of a plan, or of all its tasks.
        existing: Every path of the tree, links too.
        links: Those that are symbolic links.
        target: Returns where a link points, as it is written there.
        submodules: The paths of submodules.
    """
    changes = tuple(changes)
    gone = {path for one in changes for path in (one.origin, one.path if one.action == "delete" else None) if path}
    known = {collision_key(way): way for path in existing if path not in gone for way in ways(path)}
    for change in dict.fromkeys(changes):
        for path in filter(None, (change.origin, change.path)):
            if (module := next((way for way in ways(path) if way in submodules), None)) is not None:
                why = f"{path}: {module} is a submodule, so a repository with issues of its own; plan without it"
                yield path, Problem(1, "H025", f"{why}, or say in the plan that the issue cannot be done here")
            if (link := next((way for way in ways(path) if way in links), None)) is not None:
                yield path, Problem(1, "H023", _behind(path, link, existing, _end(path, links, target)))
        if change.action not in MAKING:
            continue
        for way in ways(change.path):
            other = known.setdefault(collision_key(way), way)
            if other != way:
                why = f"{change.path}: {way} and {other} are one name where upper and lower case are the same"
                yield change.path, Problem(1, "H024", f"{why}; write {other}, or choose another name")
                break


def _end(path: str, links: Collection[str], target: Callable[[str], str]) -> str | None:
    """Return the path that *path* leads to; None where that is outside of the tree, or nowhere."""
    for _ in range(_MOST_LINKS):
        link = next((way for way in ways(path) if way in links), None)
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
