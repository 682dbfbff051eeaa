"""Tests whose cases are written in another module: whoever may change that one decides what is tested.

Ids pin a case only as far as they show its values. Where cases are objects, or have names of their own, others could
stand under the same ids at GREEN; so it is told where they come from. Nothing here performs I/O.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol, cast

from pipeline.languages.sources.weakening import MAX_BYTES
from pipeline.languages.table import part_for

if TYPE_CHECKING:
    from collections.abc import Iterable

SHOWN: Final = 60


@dataclass(frozen=True)
class Borrowed:
    """A test, the source of its cases, the modules that names in it come from, and the line."""

    test: str
    cases: str
    modules: tuple[str, ...]
    line: int


def borrowed_in(path: str, source: bytes) -> tuple[Borrowed, ...]:
    """Return the tests of a file whose cases are made of what it imports; none where its language is not read."""
    part = part_for(path, "borrowed_cases") if len(source) <= MAX_BYTES else None
    return tuple(cast("_Reader", part).read(source, path)) if part is not None else ()


class _Reader(Protocol):
    """A language's module `borrowed_cases`."""

    def read(self, source: bytes, path: str) -> Iterable[Borrowed]: ...
