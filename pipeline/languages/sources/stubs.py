"""Replaces the bodies of named symbols by stubs, and finds what of a stub pass is no stub (ADR-7).

A test in a new file may be RED because its import fails, which says nothing about its assertions. After GREEN the
task's symbols are stubbed, and every such test must fail then (matrix 5). Each language says where the
bodies are.

Each language reads its files into one shape, `Content`; how they are compared is the same for all.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pipeline.evidence.red_classes import Symbol
from pipeline.languages.named_definitions import Wanted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from pipeline.languages.named_definitions import Parts


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


_OTHER: Final = "a statement, a macro or a directive"


@dataclass(frozen=True)
class Definition:
    """A definition in a file; its code is kept as tokens, without comments and layout.

    Args:
        place: Its name, below those of what it is a member of.
        line: Where it begins.
        head: Its code without that of its members, and without its body.
        body: That of a function; None for what has none.
        fault: What else of it is more than a stub, `{name}` being what it is called.
        around: The head of a block that gives it members, where there may be several.
        is_free: Whether it may be added by whoever adds something: it does nothing.
    """

    place: Parts
    line: int
    head: str
    body: str | None = None
    fault: str = ""
    around: str = ""
    is_free: bool = False


@dataclass(frozen=True)
class Content:
    """The content of a file: its definitions, and other code with its lines (statements, macros, directives).

    Where `error` says why it cannot be read, nothing else is known. `package` is what all of it belongs to.
    """

    definitions: Sequence[Definition] = ()
    others: Sequence[tuple[str, int]] = ()
    error: str = ""
    error_line: int = 0
    package: str = ""


@dataclass(frozen=True)
class Rules:
    """The stubs of one language, and how it is read.

    Args:
        read: Reads a file, given its path and its text; an empty text is that of a file that is not there.
        stub: What a stub does, as a person writes it.
        stub_code: A pattern of the code of a body that is a stub.
        separator: What stands in dotted names.
    """

    read: Callable[[str, str], Content]
    stub: str
    stub_code: re.Pattern[str]
    separator: str = "."


def stub_faults(
    rules: Rules, before: Mapping[str, str], after: Mapping[str, str], symbols: Sequence[Symbol]
) -> tuple[StubFault, ...]:
    """Return the changes that are no stubs; see `protocol.Toolchain.stub_faults`."""
    faults = [StubFault(path, 0, "is gone") for path in before if path not in after]
    defined: dict[str, frozenset[Parts]] = {}
    for path, source in after.items():
        is_changed, new = before.get(path) != source, rules.read(path, source)
        defined[path] = frozenset(one.place for one in new.definitions)
        if is_changed and new.error:
            faults.append(StubFault(path, new.error_line, new.error))
        elif is_changed:
            old = rules.read(path, before.get(path, ""))
            if old.package != new.package and path in before:
                faults.append(StubFault(path, 1, "is of another package now"))
            faults += _definitions(rules, Wanted.of(path, symbols), old.definitions, new.definitions)
            faults += _others(path, old.others, new.others)
    faults += [StubFault(path, 0, f"does not define {name}") for path, name in Wanted.missing(defined, symbols)]
    return tuple(faults)


def _definitions(
    rules: Rules, wanted: Wanted, old: Sequence[Definition], new: Sequence[Definition]
) -> Iterator[StubFault]:
    """Yield faults of definitions; several of one name, such as overloads, are compared one by one."""
    rest: dict[Parts, list[Definition]] = {}
    for one in old:
        rest.setdefault(one.place, []).append(one)
    names, added = set(rest), set[tuple[str, ...]]()
    for one in [one for one in new if not _taken(rest.get(one.place, []), one)]:
        was = _nearest(rest.get(one.place, []), one)
        is_named = wanted.names(one.place) or one.place[:-1] in added
        added |= {one.place} if is_named and one.place not in names else set()
        what = _fault(rules, was, one, is_named=is_named)
        if what:
            yield StubFault(wanted.path, one.line, what.format(name=rules.separator.join(one.place)))
    for place, lost in rest.items():
        yield from (StubFault(wanted.path, 0, f"{rules.separator.join(place)} is gone") for _ in lost)


def _taken(rest: list[Definition], one: Definition) -> bool:
    """Remove and return the definition that equals *one*, None if there is none."""
    same = next((old for old in rest if (old.around, old.head, old.body) == (one.around, one.head, one.body)), None)
    if same is not None:
        rest.remove(same)
    return same is not None


def _nearest(rest: list[Definition], one: Definition) -> Definition | None:
    """Remove and return the definition that is most similar to *one*, None if there is none."""
    if not rest:
        return None
    was = max(rest, key=lambda old: (old.head == one.head and old.body == one.body, old.around == one.around))
    rest.remove(was)
    return was


def _fault(rules: Rules, was: Definition | None, one: Definition, *, is_named: bool) -> str:
    """Return the fault of a new or changed definition; empty if there is none."""
    if was is None and one.is_free:
        return ""
    if was is not None and (was.head, was.body) == (one.head, one.body):
        return ""
    if not is_named:
        return f"{'adds' if was is None else 'changes'} {{name}}, which the task does not name"
    if one.body is not None and (was is None or was.body != one.body) and not rules.stub_code.fullmatch(one.body):
        is_change = was is not None and was.body is not None
        return "changes the body of {name}" if is_change else f"gives {{name}} a body that is more than `{rules.stub}`"
    return one.fault


def _others(path: str, old: Iterable[tuple[str, int]], new: Iterable[tuple[str, int]]) -> Iterator[StubFault]:
    """Yield faults for other code that was added or removed."""
    rest = Counter(code for code, _ in old)
    for code, line in new:
        if not rest[code]:
            yield StubFault(path, line, f"adds {_OTHER}")
        rest[code] -= 1
    yield from (StubFault(path, 0, f"has lost {_OTHER}") for _ in (+rest).elements())
