"""Matches definitions with the names that a task writes, in any spelling: `A.b`, `A::b`, `crate::m::A::b`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from pipeline.evidence.red_classes import Symbol

Parts = tuple[str, ...]


def parts_of(name: str) -> Parts:
    """Return the words of a dotted name, with any language's separator."""
    return tuple(word for word in name.replace("::", ".").replace("#", ".").split(".") if word)


@dataclass(frozen=True)
class Wanted:
    """The symbols that a task names in one file."""

    symbols: tuple[Parts, ...]
    path: str
    everything: bool = False

    @classmethod
    def of(cls, path: str, symbols: Sequence[Symbol]) -> Wanted:
        """Return the *symbols* that may be defined at *path*."""
        return cls(tuple(parts_of(symbol.name) for symbol in symbols if symbol.path in {"", path}), path)

    def names(self, place: Parts) -> bool:
        """Return whether a definition is one of the symbols, a member of one, or the owner of one."""
        if self.everything:
            return True
        heads = [place[:length] for length in range(1, len(place) + 1)]
        owners = [symbol[:length] for symbol in self.symbols for length in range(1, len(symbol))]
        return any(is_same(head, symbol, self.path) for symbol in self.symbols for head in heads) or any(
            is_same(place, owner, self.path) for owner in owners
        )

    @staticmethod
    def missing(defined: Mapping[str, Collection[Parts]], symbols: Sequence[Symbol]) -> Iterator[tuple[str, str]]:
        """Yield path and name of each new symbol that no file defines which may.

        Args:
            defined: What each file that was changed defines.
            symbols: The task's; one in a file that was not changed is not there either.
        """
        for symbol in symbols:
            if not symbol.new:
                continue
            wanted = parts_of(symbol.name)
            files = [path for path in defined if symbol.path in {"", path}]
            if not any(is_same(place, wanted, path) for path in files for place in defined[path]):
                yield symbol.path or next(iter(defined), ""), symbol.name


def is_same(place: Parts, symbol: Parts, path: str) -> bool:
    """Return whether a name in a task means a definition.

    Modules may be left out of either: of the name, or, in Rust, where a file may have modules in it, of the place. A
    class or an object may not, however it is spelled: `config.load` is not the function `load`.

    Args:
        place: What the file calls it.
        symbol: What the task calls it.
        path: The file. In Python and JavaScript its folders and its own name are the modules that it is in; a crate or
            a package of Go goes by a name that need not be there, and its types are told apart by their capitals.
    """
    short, long = sorted((place, symbol), key=len)
    left_out = long[: len(long) - len(short)]
    if not short or long[-len(short) :] != short:
        return False
    if not left_out:
        return True
    if not all(word[:1].islower() or word[:1] == "_" for word in left_out):
        return False
    if path.endswith((".rs", ".go")):
        return long is symbol or path.endswith(".rs")
    modules = {_plain(word) for word in path.rpartition(".")[0].split("/")}
    return long is symbol and all(_plain(word) in modules for word in left_out)


def _plain(word: str) -> str:
    """Return a file's or module's name for comparison: `my-cart.ts` is imported as `myCart`."""
    return word.replace("-", "").replace("_", "").casefold()
