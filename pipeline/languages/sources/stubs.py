"""Replaces the bodies of named symbols by stubs and keeps every other byte of a file.

A test in a new file may be RED because its import fails, which says nothing about its assertions. After GREEN the
task's symbols are stubbed, and every such test must fail then (matrix 5). Each language says where the
bodies are.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pipeline.evidence.red_classes import Symbol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

Edit = tuple[int, int, str]
"""The start and end of a replacement, in bytes, and the new text."""


@dataclass(frozen=True)
class Stubbed:
    """The stubbed files, and the symbols that were not found."""

    files: Mapping[str, str]
    unknown: tuple[Symbol, ...]


@dataclass(frozen=True)
class StubFault:
    """A change of a stub pass that is no stub. `line` is in the new text, 0 for the whole file."""

    path: str
    line: int
    what: str

    def __str__(self) -> str:
        where = f"{self.path}:{self.line}" if self.line else self.path
        return f"{where} {self.what}"


@dataclass(frozen=True)
class Target:
    """A definition of a symbol, with the edits that stub it: of bodies, and of values."""

    path: str
    bodies: Iterable[Edit] = ()
    values: Iterable[Edit] = ()


def stubbed(
    files: Mapping[str, str], symbols: Sequence[Symbol], targets: Callable[[Symbol], Iterable[Target]]
) -> Stubbed:
    """Return the files with stubs, and the symbols that no file defines.

    A value has nothing to fail later: it is replaced only where no function was.
    """
    bodies: dict[str, set[Edit]] = {path: set() for path in files}
    values: dict[str, set[Edit]] = {path: set() for path in files}
    unknown: list[Symbol] = []
    for symbol in symbols:
        meant = list(targets(symbol))
        for target in meant:
            bodies[target.path].update(target.bodies)
            values[target.path].update(target.values)
        unknown += [] if meant else [symbol]
    chosen = bodies if any(bodies.values()) else values
    return Stubbed({path: _applied(files[path], edits) for path, edits in chosen.items() if edits}, tuple(unknown))


def introduced(
    before: Mapping[str, str], after: Mapping[str, str], defined: Callable[[str, str], Iterable[str]]
) -> tuple[Symbol, ...]:
    """Return the symbols that the files newly define; *defined* lists those of a path and its text."""
    symbols: list[Symbol] = []
    for path, source in after.items():
        known = set(defined(path, before.get(path, "")))
        symbols += [Symbol(path, name) for name in dict.fromkeys(defined(path, source)) if name not in known]
    return tuple(symbols)


Body = tuple[str, int, int]
"""The name of a function or of a value, and the start and end in bytes of its body or of what it is."""

_LITERAL: Final = re.compile(
    r"""(?:\b[rbc]+\#*)?"(?:\\.|[^"\\])*"\#*|(?:\bb)?'(?:\\.|[^'\\])*'|`[^`$]*`|\b\d[\w.]*|\b(?:true|false|null|nil)\b""",
    re.DOTALL,
)


@dataclass(frozen=True)
class OldBodies:
    """Files with signatures as they are and bodies as they were.

    `changed` are functions whose body was another one.
    """

    files: Mapping[str, str]
    changed: tuple[Symbol, ...]


def with_old_bodies(
    before: Mapping[str, str],
    after: Mapping[str, str],
    bodies: Callable[[str, str], Iterable[Body]],
    values: Callable[[str, str], Iterable[Body]],
    stub: Callable[[str, str | None], str],
) -> OldBodies:
    """Return the files of *after* without what their functions do there: tests compile with them and find the old code.

    Args:
        before: The files as they were.
        after: As they are.
        bodies: Lists the functions of a path and its text, each with its body.
        values: Lists the constants and variables of a path and its text. One that was declared in the same words has
            the value that it had, where that is made of literals alone: names in it may be gone.
        stub: What a body becomes, given it as it is, and as it was if there was one.
    """
    files: dict[str, str] = {}
    changed: list[Symbol] = []
    for path, source in after.items():
        old, new = before.get(path, "").encode(), source.encode()
        had: dict[str, list[str]] = {}
        for name, start, end in bodies(path, old.decode()) if old else ():
            had.setdefault(name, []).append(old[start:end].decode())
        edits: set[Edit] = set()
        for name, start, end in bodies(path, source):
            now = new[start:end].decode()
            was = had[name].pop(0) if had.get(name) else None
            if was != now:
                edits.add((start, end, stub(now, was)))
                changed += [] if was is None else [Symbol(path, name, new=False)]
        given = (
            {_declared(old, one): old[one[1] : one[2]].decode() for one in values(path, old.decode())} if old else {}
        )
        for one in values(path, source):
            was = given.get(_declared(new, one))
            if was is not None and not re.search(r"[^\W\d]", _LITERAL.sub("", was)):
                edits.add((one[1], one[2], was))
        files[path] = _applied(source, edits)
    return OldBodies(files, tuple(dict.fromkeys(changed)))


def no_values(_: str, __: str) -> tuple[Body, ...]:
    """Return nothing: values stay as they are."""
    return ()


def _declared(source: bytes, value: Body) -> tuple[str, bytes]:
    """Return the name of a value with the words before it in its line: modifiers and its type."""
    name, start, _ = value
    return name, source[source.rfind(b"\n", 0, start) + 1 : start]


def _applied(source: str, edits: set[Edit]) -> str:
    encoded = source.encode()
    outermost = [one for one in edits if not any(_is_inside(one, other) for other in edits)]
    for start, end, replacement in sorted(outermost, reverse=True):
        encoded = encoded[:start] + replacement.encode() + encoded[end:]
    return encoded.decode()


def _is_inside(one: Edit, other: Edit) -> bool:
    return one != other and other[0] <= one[0] and one[1] <= other[1]
