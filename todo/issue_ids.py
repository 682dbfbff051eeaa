"""Finds the issue id that a person's text means, and the next free id."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Final

from todo.errors import usage

if TYPE_CHECKING:
    from collections.abc import Sequence

_NUMBER: Final = re.compile(r"[0-9]{1,64}")
_NUMBERED: Final = re.compile(rf"([A-Za-z][A-Za-z0-9_-]*-)({_NUMBER.pattern})")
_NEAREST: Final = 3
_NEAR: Final = 0.8


def named(ids: Sequence[str], text: str) -> str:
    """Return the id that equals *text* but for case if there is exactly one, else *text* itself."""
    same = [issue_id for issue_id in ids if issue_id.casefold() == text.casefold()]
    return same[0] if len(same) == 1 else text


def nearest(ids: Sequence[str], text: str) -> tuple[str, ...]:
    """Return the ids that are spelt like *text*, the most similar first."""
    from difflib import get_close_matches  # noqa: PLC0415  (only for who has mistyped an id)

    by_word = {issue_id.casefold(): issue_id for issue_id in ids}
    return tuple(by_word[word] for word in get_close_matches(text.casefold(), by_word, n=_NEAREST, cutoff=_NEAR))


def next_sub_id(parent: str, ids: Sequence[str]) -> str:
    """Return the next free id for a sub-issue of *parent*; *ids* are taken."""
    numbers = [
        int(number)
        for other in ids
        if other.startswith(f"{parent}.") and _NUMBER.fullmatch(number := other.removeprefix(f"{parent}."))
    ]
    return f"{parent}.{max(numbers, default=0) + 1}"


def next_id(ids: Sequence[str], prefix: str | None) -> str:
    """Return the next free id with the most common prefix of *ids*, which are taken, and their zero padding.

    Args:
        ids: Ids that may repeat.
        prefix: Of the first one, where none has a number.

    Raises:
        TrackerError: usage, where there is nothing to count on from.
    """
    numbered = [found for found in map(_NUMBERED.fullmatch, dict.fromkeys(ids)) if found is not None]
    if not numbered and prefix is not None:
        return f"{prefix}-1"
    if not numbered:
        raise usage("There is no numbered issue yet to count on from. Give an id, such as GAL-1.")
    most = min(Counter(found[1] for found in numbered).items(), key=lambda counted: (-counted[1], counted[0]))[0]
    last = max((found[2] for found in numbered if found[1] == most), key=int)
    return f"{most}{str(int(last) + 1).zfill(len(last))}"
