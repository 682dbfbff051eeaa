"""Which definitions a task names, however it spells them: `A.b`, `A::b`, `crate::m::A::b`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from pipeline.evidence.classify import Symbol

Parts = tuple[str, ...]


def parts_of(name: str) -> Parts:
    """Return the words of a dotted name, whichever separator the language has."""
    return tuple(word for word in name.replace("::", ".").replace("#", ".").split(".") if word)


@dataclass(frozen=True)
class Wanted:
    """The symbols that a task names in one file."""

    symbols: tuple[Parts, ...]
    everything: bool = False

    @classmethod
    def of(cls, path: str, symbols: Sequence[Symbol]) -> Wanted:
        """Return those of *symbols* that may be defined at *path*."""
        return cls(tuple(parts_of(symbol.name) for symbol in symbols if symbol.path in {"", path}))

    def names(self, place: Parts) -> bool:
        """Return whether a definition is one of the symbols, a member of one, or the owner of one."""
        if self.everything:
            return True
        heads = [place[:length] for length in range(1, len(place) + 1)]
        owners = [symbol[:length] for symbol in self.symbols for length in range(1, len(symbol))]
        return any(is_same(head, symbol) for symbol in self.symbols for head in heads) or any(
            is_same(place, owner) for owner in owners
        )

    @staticmethod
    def missing(defined: Mapping[str, Collection[Parts]], symbols: Sequence[Symbol]) -> Iterator[tuple[str, str]]:
        """Yield path and name of each new symbol that none of the files that may have it defines.

        Args:
            defined: What each file that was changed defines.
            symbols: The task's; one in a file that was not changed is not there either.
        """
        for symbol in symbols:
            if not symbol.new:
                continue
            places = (
                defined.get(symbol.path, ()) if symbol.path else [one for names in defined.values() for one in names]
            )
            if not any(is_same(place, parts_of(symbol.name)) for place in places):
                yield symbol.path or next(iter(defined), ""), symbol.name


def is_same(place: Parts, symbol: Parts) -> bool:
    """Return whether two names mean the same; the leading modules, which are in lower case, may be left out of one."""
    short, long = sorted((place, symbol), key=len)
    left_out = long[: len(long) - len(short)]
    return (
        bool(short) and long[-len(short) :] == short and all(word[:1].islower() or word[:1] == "_" for word in left_out)
    )
