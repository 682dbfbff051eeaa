"""Replaces the bodies of named symbols by `throw new Error("not implemented")`, leaving every other byte alone.

See `pytest.stubs` for what it is good for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pipeline.evidence.red_classes import Symbol
from pipeline.languages.javascript.definitions import Definition, definitions
from pipeline.languages.javascript.project import TYPED
from pipeline.languages.javascript.syntax import COMMENTS, parse
from pipeline.languages.named_definitions import is_same, parts_of
from pipeline.languages.protocol import Stubbed

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pipeline.languages.named_definitions import Parts

STUB: Final = 'throw new Error("not implemented")'
_BODY: Final = f"{{ {STUB}; }}"
_Edit = tuple[int, int, str]


def stub_symbols(files: Mapping[str, str], symbols: Sequence[Symbol]) -> Stubbed:
    """Return the files that change, and the symbols that no file defines.

    A function loses its body; a class those of all its functions, and gets a constructor that fails if it has none; an
    object or a namespace those of everything in it. A value has nothing to fail later: it is replaced by `undefined`,
    and only where no function was.
    """
    known = {path: list(definitions(parse(path, source.encode()))) for path, source in files.items()}
    bodies: dict[str, set[_Edit]] = {path: set() for path in files}
    values: dict[str, set[_Edit]] = {path: set() for path in files}
    unknown: list[Symbol] = []
    for symbol in symbols:
        wanted = parts_of(symbol.name)
        places = [path for path in files if symbol.path in {"", path}]
        found = [(path, one) for path in places for one in known[path] if _is_in(one.place, wanted, path)]
        for path, one in found:
            bodies[path].update(_bodies(one, known[path], path))
            values[path].update(_values(one, path))
        if not found:
            unknown.append(symbol)
    chosen = bodies if any(bodies.values()) else values
    return Stubbed({path: _apply(files[path], wanted) for path, wanted in chosen.items() if wanted}, tuple(unknown))


def introduced(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[Symbol, ...]:
    """Return what the files define at their top level that they did not define before; members are dotted."""
    found: list[Symbol] = []
    for path, source in after.items():
        known = {one.place for one in definitions(parse(path, before.get(path, "").encode()))}
        new = dict.fromkeys(one.place for one in definitions(parse(path, source.encode())) if one.place not in known)
        found += [Symbol(path, ".".join(place)) for place in new]
    return tuple(found)


def _is_in(place: Parts, wanted: Parts, path: str) -> bool:
    """Return whether a definition is what a name means, or a member of it."""
    return any(is_same(place[:length], wanted, path) for length in range(1, len(place) + 1))


def _bodies(one: Definition, known: Sequence[Definition], path: str) -> Iterator[_Edit]:
    if one.body is not None:
        yield one.body.start_byte, one.body.end_byte, _BODY
    elif one.kind == "class" and one.scope is not None:
        members = [other for other in known if other.place[:-1] == one.place and other.kind == "function"]
        if not members:
            arguments = "..._arguments: any[]" if path.endswith(TYPED) else ""
            yield one.scope.start_byte + 1, one.scope.start_byte + 1, f" constructor({arguments}) {_BODY}"


def _values(one: Definition, path: str) -> Iterator[_Edit]:
    if one.kind == "value" and one.value is not None and one.node.type not in COMMENTS:
        nothing = "undefined as never" if path.endswith(TYPED) else "undefined"
        yield one.value.start_byte, one.value.end_byte, nothing


def _apply(source: str, edits: set[_Edit]) -> str:
    encoded = source.encode()
    outermost = [one for one in edits if not any(_inside(one, other) for other in edits)]
    for start, end, replacement in sorted(outermost, reverse=True):
        encoded = encoded[:start] + replacement.encode() + encoded[end:]
    return encoded.decode()


def _inside(one: _Edit, other: _Edit) -> bool:
    return one != other and other[0] <= one[0] and one[1] <= other[1]
