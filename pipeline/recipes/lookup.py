"""Says what a recipe may name: others, by their names. Whoever finds files stands elsewhere."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class Source:
    """A recipe as it was found.

    Args:
        name: What it is called there; a name inside that differs is a mistake. Empty for a file that was named itself.
        path: Where it is, as a person finds it; no two recipes have one.
        text: What it says.
    """

    name: str
    path: str
    text: str


class Library(Protocol):
    """Finds recipes by name."""

    def find(self, name: str) -> Source | None:
        """Return the recipe that is called so, also as `builtin:NAME`; None if there is none."""
        ...

    def names(self) -> tuple[str, ...]:
        """Return every name, for a hint."""
        ...


class NoLibrary:
    """Knows no recipe."""

    def find(self, name: str) -> Source | None:  # noqa: ARG002  (the protocol's)
        """Return None."""
        return None

    def names(self) -> tuple[str, ...]:
        """Return nothing."""
        return ()
