"""Describes what is wrong with a recipe: a rule, where, a sentence, and what is accepted there."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong.

    Args:
        rule: A stable word for it.
        pointer: Where, as a JSON pointer into the file.
        message: A sentence.
        accepted: The words that are accepted there, where these are few.
        hint: The nearest of them, for a word that looks misspelt.
        line: Where in the file, from 1; 0 where nobody has looked yet.
        column: Where in the line, from 1.
        path: The file, where it is another one than the one that was looked at.
    """

    rule: str
    pointer: str
    message: str
    accepted: tuple[str, ...] = ()
    hint: str = ""
    line: int = 0
    column: int = 0
    path: str = ""

    def __str__(self) -> str:
        hint = f"; did you mean {self.hint!r}?" if self.hint else ""
        accepted = f" (accepted: {', '.join(self.accepted)})" if self.accepted and not self.hint else ""
        place = f"{self.line}:{self.column}: " if self.line else ""
        place = f"{self.path}:{place}" if self.path else place
        return f"{place}{self.message}{hint}{accepted} [{self.rule}]"


def misspelt(rule: str, pointer: str, message: str, word: str, accepted: Iterable[str]) -> Problem:
    """Return the problem of a word that is none of the accepted ones."""
    words = tuple(accepted)
    near = get_close_matches(word, words, n=1)
    return Problem(rule, pointer, message, words, near[0] if near else "")
