"""Replaces the bodies of named symbols by `throw new Error("not implemented")` (see `sources.stubs`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pipeline.languages.javascript.definitions import Definition, definitions
from pipeline.languages.javascript.project import TYPED
from pipeline.languages.javascript.syntax import COMMENTS, parse
from pipeline.languages.named_definitions import is_same, parts_of
from pipeline.languages.sources import stubs
from pipeline.languages.sources.stubs import Target

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pipeline.evidence.red_classes import Symbol
    from pipeline.languages.named_definitions import Parts
    from pipeline.languages.sources.stubs import Body, Edit, OldBodies, Stubbed

STUB: Final = 'throw new Error("not implemented")'
_BODY: Final = f"{{ {STUB}; }}"


def stub_symbols(files: Mapping[str, str], symbols: Sequence[Symbol]) -> Stubbed:
    """Return the files with stubs, and the symbols that no file defines.

    A function loses its body; a class those of all its functions, and gets a constructor that fails if it has none; an
    object or a namespace those of everything in it. A value is replaced by `undefined`.
    """
    known = {path: list(definitions(parse(path, source.encode()))) for path, source in files.items()}
    return stubs.stubbed(files, symbols, lambda symbol: _targets(known, symbol))


def introduced(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[Symbol, ...]:
    """Return the symbols newly defined at the files' top level; members are dotted."""
    return stubs.introduced(before, after, _defined)


def with_old_bodies(before: Mapping[str, str], after: Mapping[str, str], kept: bool) -> OldBodies:
    """Return the files with the bodies that their functions had, or the stub."""

    def stub(_: str, was: str | None) -> str:
        return was if kept and was is not None else _BODY

    return stubs.with_old_bodies(before, after, _functions, _assigned if kept else stubs.no_values, stub)


def _functions(path: str, source: str) -> Iterator[Body]:
    for one in definitions(parse(path, source.encode())):
        if one.body is not None and one.body.type == "statement_block":
            yield ".".join(one.place), one.body.start_byte, one.body.end_byte


def _assigned(path: str, source: str) -> Iterator[Body]:
    for one in definitions(parse(path, source.encode())):
        if one.kind == "value" and one.value is not None and one.node.type not in COMMENTS:
            yield ".".join(one.place), one.value.start_byte, one.value.end_byte


def _defined(path: str, source: str) -> Iterator[str]:
    return (".".join(one.place) for one in definitions(parse(path, source.encode())))


def _targets(known: Mapping[str, Sequence[Definition]], symbol: Symbol) -> Iterator[Target]:
    wanted = parts_of(symbol.name)
    for path, each in known.items():
        for one in each if symbol.path in {"", path} else ():
            if _is_in(one.place, wanted, path):
                yield Target(path, _bodies(one, each, path), _values(one, path))


def _is_in(place: Parts, wanted: Parts, path: str) -> bool:
    """Return whether a name means a definition or an owner of it."""
    return any(is_same(place[:length], wanted, path) for length in range(1, len(place) + 1))


def _bodies(one: Definition, known: Sequence[Definition], path: str) -> Iterator[Edit]:
    if one.body is not None:
        yield one.body.start_byte, one.body.end_byte, _BODY
    elif one.kind == "class" and one.scope is not None:
        members = [other for other in known if other.place[:-1] == one.place and other.kind == "function"]
        if not members:
            arguments = "..._arguments: any[]" if path.endswith(TYPED) else ""
            yield one.scope.start_byte + 1, one.scope.start_byte + 1, f" constructor({arguments}) {_BODY}"


def _values(one: Definition, path: str) -> Iterator[Edit]:
    if one.kind == "value" and one.value is not None and one.node.type not in COMMENTS:
        nothing = "undefined as never" if path.endswith(TYPED) else "undefined"
        yield one.value.start_byte, one.value.end_byte, nothing
