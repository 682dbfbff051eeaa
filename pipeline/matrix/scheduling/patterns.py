"""Path patterns: which paths one covers, and whether two have a path in common.

A plain path is the file, or all that lies below the folder. In a pattern `?` is one character, `*` any number of them
within one part, and a part `**` any number of parts. Upper and lower case, and the Unicode forms of a name, are one.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from functools import lru_cache
from itertools import takewhile
from typing import TYPE_CHECKING, Final

from pipeline.judge.policy.paths import TRACKER, canonical, collision_key, is_git_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

EVERYTHING: Final = "**/*"
LONGEST: Final = 400
"""The longest pattern, in characters; comparing two takes time with the product of their lengths."""
_ANY_PARTS: Final = "**"
_WILD: Final = frozenset("*?")


@dataclass(frozen=True)
class Pattern:
    """A path pattern in parts; `text` is how its author wrote it."""

    text: str
    parts: tuple[str, ...]

    @property
    def folder(self) -> tuple[str, ...]:
        """Return the parts before the first wildcard: every covered path lies at or below this folder."""
        return tuple(takewhile(lambda part: not _WILD & set(part), self.parts))

    def meets(self, other: Pattern) -> bool:
        """Return whether both patterns cover a common path."""
        return _meet(self.parts, other.parts)

    def covers(self, path: str) -> bool:
        """Return whether the pattern covers a file's path."""
        return _meet(self.parts, _parts(path))


@lru_cache(maxsize=4_096)
def fault(text: str, tracker: str = TRACKER) -> str | None:
    """Return why *text* is no pattern, None if it is one; *tracker* is the folder of the issues."""
    if not text or len(text) > LONGEST:
        return f"a pattern has between 1 and {LONGEST} characters"
    if text.startswith("/"):
        return "a pattern begins at the top of the repository, without a slash"
    if "[" in text or "\\" in text:
        return "of patterns only `*`, `?` and `**` are known"
    for part in text.removesuffix("/").split("/"):
        if part in {"", ".", ".."}:
            return "a pattern has no empty part, `.` or `..`"
        if _ANY_PARTS in part and part != _ANY_PARTS:
            return "`**` stands for whole parts: write `a/**/b`"
        if is_git_folder(part):
            return "nobody writes or reads git's own folder"
    first = canonical(text.split("/", 1)[0])
    if first == canonical(tracker):
        return f"{first} is the tracker's folder, which only redfirst writes"
    return ".workflow is the run's own folder" if first == ".workflow" else None


@lru_cache(maxsize=4_096)
def parsed(text: str) -> Pattern:
    """Return the pattern in a text.

    Raises:
        ValueError: it is none; `fault` says why.
    """
    why = fault(text)
    if why is not None:
        raise ValueError(why)
    parts = _parts(text.removesuffix("/"))
    return Pattern(text, parts if _WILD & set(text) else (*parts, _ANY_PARTS))


def of_file(path: str) -> Pattern:
    """Return a pattern that covers a file with exactly this path, or all files below it, wildcards taken as letters."""
    return Pattern(path, (*_parts(path), _ANY_PARTS))


def _parts(path: str) -> tuple[str, ...]:
    """Return the parts of a path in composed Unicode (NFC), so that `?` matches a letter with its marks."""
    return tuple(unicodedata.normalize("NFC", collision_key(path)).split("/"))


@lru_cache(maxsize=65_536)
def _meet(left: tuple[str, ...], right: tuple[str, ...]) -> bool:
    """Return whether two lists of parts have a path in common."""
    return _have_common(left, right, _ANY_PARTS, _names_meet)


@lru_cache(maxsize=65_536)
def _names_meet(left: str, right: str) -> bool:
    """Return whether two patterns for a single path part match a common name."""
    if not _WILD & (set(left) | set(right)):
        return left == right
    return _have_common(left, right, "*", lambda one, other: one == other or "?" in {one, other})


def _have_common(left: Sequence[str], right: Sequence[str], many: str, fit: Callable[[str, str], bool]) -> bool:
    """Return whether two patterns match a common sequence, without recursion: they may be long.

    Args:
        left: Its elements.
        right: Those of the other one.
        many: The element that stands for any number of others.
        fit: Whether two other elements match a common one.
    """
    reached = [[False] * (len(right) + 1) for _ in range(len(left) + 1)]
    reached[0][0] = True
    for at, row in enumerate(reached):
        for beside, here in enumerate(row):
            if not here:
                continue
            one = left[at] if at < len(left) else None
            other = right[beside] if beside < len(right) else None
            if one == many or (other == many and one is not None):
                reached[at + 1][beside] = True
            if other == many or (one == many and other is not None):
                row[beside + 1] = True
            if one is not None and other is not None and many not in {one, other} and fit(one, other):
                reached[at + 1][beside + 1] = True
    return reached[-1][-1]
