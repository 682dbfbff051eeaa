"""Which definition does a task name, what is left of it without its body, and what of a stub pass is no stub?

One engine for all languages: each reads a file into one shape, `Content`, and says in its `Rules` what a stub is.

A test in a new file may be RED because its import fails, which says nothing about its assertions. After GREEN the
task's symbols are stubbed, and every such test must fail then (matrix 5). And @make's stub pass may add no more than
stubs of what the task names (ADR-7).
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Final, Literal

from pipeline.judge.evidence.red_classes import Symbol
from pipeline.testing.languages.sources.syntax_trees import first_error, line_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from tree_sitter import Node

Parts = tuple[str, ...]
Edit = tuple[int, int, str]
"""The start and end of a replacement, in bytes, and the new text."""

_OTHER: Final = "a statement, a macro or a directive"
REST: Final = "\0"
"""In a rule: what a body was from its second character on. No source has it."""
WAS: Final = "\1"
"""In a rule: the body that a function had before."""
_LITERAL: Final = re.compile(
    r"""(?:\b[rbc]+\#*)?"(?:\\.|[^"\\])*"\#*|(?:\bb)?'(?:\\.|[^'\\])*'|`[^`$]*`|\b\d[\w.]*|\b(?:true|false|null|nil)\b""",
    re.DOTALL,
)


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
class OldBodies:
    """Files with signatures as they are and bodies as they were.

    `changed` are functions whose body was another one.
    """

    files: Mapping[str, str]
    changed: tuple[Symbol, ...]


@dataclass(frozen=True)
class Definition:
    """A definition in a file; its code is kept as tokens, without comments and layout.

    Args:
        place: Its name, below those of what it is a member of.
        line: Where it begins.
        head: Its code without that of its members, and without its body; None if a stub pass is not judged by it.
        body: That of a function; None for what has none.
        fault: What else of it is more than a stub, `{name}` being what it is called.
        around: The head of a block that gives it members, where there may be several.
        is_free: Whether it may be added by whoever adds something: it does nothing.
        also: Other places of it: a function of a trait is found by its type and by its trait.
        name: The dotted name by which a file introduces it; empty for what comes with something else.
        span: The start and end of its body, in bytes.
        edits: What stubs it beside its body.
        value: The edit that replaces what it is, where it is a value.
    """

    place: Parts
    line: int
    head: str | None
    body: str | None = None
    fault: str = ""
    around: str = ""
    is_free: bool = False
    also: tuple[Parts, ...] = ()
    name: str = ""
    span: tuple[int, int] | None = None
    edits: tuple[Edit, ...] = ()
    value: Edit | None = None


@dataclass(frozen=True)
class Content:
    """The content of a file: its definitions, and other code with its lines (statements, macros, directives).

    `error` says why a stub pass cannot be judged by it. `package` is what all of it belongs to.
    """

    definitions: Sequence[Definition] = ()
    others: Sequence[tuple[str, int]] = ()
    error: str = ""
    error_line: int = 0
    package: str = ""

    @classmethod
    def of(
        cls, top: Node, definitions: Iterable[Definition], others: Iterable[tuple[str, int]], package: str = ""
    ) -> Content:
        """Return the content of a tree-sitter tree, which may contain errors."""
        error = first_error(top)
        why, line = ("cannot be parsed", line_of(error)) if error is not None else ("", 0)
        return cls([*definitions], [*others], why, line, package)


@dataclass(frozen=True)
class Rules:
    """The stubs of one language, and how it is read: `RULES` of its module `stubs`.

    Args:
        read: Reads a file, given its path and its text; an empty text is that of a file that is not there.
        stub: What a stub does, as a person writes it.
        stub_code: A pattern of the code of a body that is a stub.
        body: What a body becomes; it may have `REST` in it.
        old_body: What it becomes with the body that it had, `WAS`. Empty where nothing is compiled first: over code
            that lacks a name the tests of other files can be loaded, and one is told apart.
        separator: What stands in dotted names.
        scope: What files share their definitions, by their paths; else each has its own.
        modules: Which modules a name may have in front. `path`: the file's folders and its own name. `any`: a package
            goes by a name that need not be there, and types are told apart by their capitals. `inside`: the same, and
            the file may have modules in it, which the name may leave out.
        with_members: Whether what a new class has is introduced beside it.
    """

    read: Callable[[str, str], Content]
    stub: str
    stub_code: re.Pattern[str]
    body: str
    old_body: str = ""
    separator: str = "."
    scope: Callable[[str], str] = str
    modules: Literal["path", "any", "inside"] = "path"
    with_members: bool = True

    def is_same(self, place: Parts, symbol: Parts, path: str) -> bool:
        """Return whether a name in a task means a definition.

        Modules may be left out of the name. A class or an object may not, however it is spelled: `config.load` is not
        the function `load`.

        Args:
            place: What the file calls it.
            symbol: What the task calls it.
            path: The file.
        """
        short, long = sorted((place, symbol), key=len)
        left_out = long[: len(long) - len(short)]
        if not short or long[-len(short) :] != short:
            return False
        if not left_out:
            return True
        if not all(word[:1].islower() or word[:1] == "_" for word in left_out):
            return False
        if self.modules == "path":
            known = {_plain(word) for word in path.rpartition(".")[0].split("/")}
            return long is symbol and all(_plain(word) in known for word in left_out)
        return long is symbol or self.modules == "inside"

    def means(self, symbol: Parts, one: Definition, path: str) -> bool:
        """Return whether a task's name means a definition, or an owner of it."""
        places = (one.place, *one.also)
        return any(self.is_same(place[:size], symbol, path) for place in places for size in range(1, len(place) + 1))


def _plain(word: str) -> str:
    """Return a file's or module's name for comparison: `my-cart.ts` is imported as `myCart`."""
    return word.replace("-", "").replace("_", "").casefold()


def parts_of(name: str) -> Parts:
    """Return the words of a dotted name, with any language's separator: `A.b`, `A::b`, `(*A).b`, `crate::m::A::b`."""
    plain = re.sub(r"[(*)]", "", name).replace("::", ".").replace("#", ".")
    return tuple(word for word in plain.split(".") if word)


def _rules_of(package: str) -> Rules:
    """Return the rules of a language by the folder of its modules; most parsers are shared libraries."""
    return import_module(f"{package}.stubs").RULES


def stub_symbols(package: str, files: Mapping[str, str], symbols: Sequence[Symbol]) -> Stubbed:
    """Return the files with stubs in place of what the symbols mean and own, and the symbols that no file defines.

    Every other byte of a file is kept. A value has nothing to fail later: it is replaced only where no function was. A
    symbol without a path is looked for in every file.
    """
    rules = _rules_of(package)
    known = [(path, one) for path, text in files.items() for one in rules.read(path, text).definitions]
    bodies: dict[str, set[Edit]] = {path: set() for path in files}
    values: dict[str, set[Edit]] = {path: set() for path in files}
    unknown: list[Symbol] = []
    for symbol in symbols:
        wanted = parts_of(symbol.name)
        meant = [(path, one) for path, one in known if rules.means(wanted, one, path)]
        scopes = {rules.scope(path) for path, _ in meant if symbol.path in {"", path}}
        unknown += [] if scopes else [symbol]
        for path, one in meant:
            if rules.scope(path) in scopes:
                bodies[path] |= {*one.edits, *_body_edit(one, files[path].encode(), rules.body)}
                values[path] |= {one.value} if one.value is not None else set()
    chosen = bodies if any(bodies.values()) else values
    return Stubbed({path: _applied(files[path], edits) for path, edits in chosen.items() if edits}, tuple(unknown))


def _body_edit(one: Definition, source: bytes, new: str) -> Iterator[Edit]:
    if one.span is not None:
        start, end = one.span
        yield start, end, new.replace(REST, source[start + 1 : end].decode())


def introduced(package: str, before: Mapping[str, str], after: Mapping[str, str]) -> tuple[Symbol, ...]:
    """Return the symbols that the files newly define; members are dotted."""
    rules = _rules_of(package)
    known: dict[str, set[str]] = {}
    for path, text in before.items():
        known.setdefault(rules.scope(path), set()).update(one.name for one in rules.read(path, text).definitions)
    new = {
        path: [name for name in _names(rules, path, text) if name not in known.get(rules.scope(path), ())]
        for path, text in after.items()
    }
    return tuple(
        Symbol(path, name)
        for path, names in new.items()
        for name in names
        if rules.with_members or name.rpartition(".")[0] not in names
    )


def _names(rules: Rules, path: str, text: str) -> Iterable[str]:
    return dict.fromkeys(one.name for one in rules.read(path, text).definitions if one.name)


def with_old_bodies(package: str, before: Mapping[str, str], after: Mapping[str, str], kept: bool) -> OldBodies:
    """Return the files of *after* without what their functions do there: tests compile with them and find the old code.

    Args:
        package: The language's.
        before: The files as they were.
        after: As they are.
        kept: Whether a changed function has the body that it had; else it is a stub, as a new one is. A value that was
            declared in the same words then is what it was, where that is made of literals alone: names in it may be
            gone.
    """
    rules = _rules_of(package)
    files: dict[str, str] = {}
    changed: list[Symbol] = []
    for path, source in after.items() if rules.old_body else ():
        old, new = before.get(path, "").encode(), source.encode()
        had = rules.read(path, old.decode()).definitions if old else ()
        bodies: dict[str, list[str]] = {}
        for one, was in _blocks(had, old):
            bodies.setdefault(_called(one), []).append(was)
        definitions = rules.read(path, source).definitions
        edits: set[Edit] = set()
        for one, now in _blocks(definitions, new):
            was = bodies[_called(one)].pop(0) if bodies.get(_called(one)) else None
            if was != now:
                edits.update(_body_edit(one, new, rules.old_body.replace(WAS, was) if kept and was else rules.body))
                changed += [] if was is None else [Symbol(path, _called(one), new=False)]
        given = {_declared(old, one): old[one.value[0] : one.value[1]].decode() for one in had if one.value is not None}
        for one in definitions if kept else ():
            was = given.get(_declared(new, one)) if one.value is not None else None
            if was is not None and one.value is not None and not re.search(r"[^\W\d]", _LITERAL.sub("", was)):
                edits.add((one.value[0], one.value[1], was))
        files[path] = _applied(source, edits)
    return OldBodies(files, tuple(dict.fromkeys(changed)))


def _blocks(definitions: Iterable[Definition], source: bytes) -> Iterator[tuple[Definition, str]]:
    """Yield the functions whose body is a block, with it; one that is a mere expression stays."""
    for one in definitions:
        text = source[one.span[0] : one.span[1]].decode() if one.span is not None else ""
        if text.startswith("{"):
            yield one, text


def _called(one: Definition) -> str:
    return one.name or ".".join(one.place)


def _declared(source: bytes, one: Definition) -> tuple[str, bytes]:
    """Return the name of a value with the words before it in its line: modifiers and its type."""
    start = one.value[0] if one.value is not None else 0
    return _called(one), source[source.rfind(b"\n", 0, start) + 1 : start]


def _applied(source: str, edits: set[Edit]) -> str:
    encoded = source.encode()
    outermost = [one for one in edits if not any(_is_inside(one, other) for other in edits)]
    for start, end, replacement in sorted(outermost, reverse=True):
        encoded = encoded[:start] + replacement.encode() + encoded[end:]
    return encoded.decode()


def _is_inside(one: Edit, other: Edit) -> bool:
    return one != other and other[0] <= one[0] and one[1] <= other[1]


def stub_faults(
    package: str, before: Mapping[str, str], after: Mapping[str, str], symbols: Sequence[Symbol]
) -> tuple[StubFault, ...]:
    """Return the changes that are no stubs; see `toolchain.Toolchain.stub_faults`."""
    rules = _rules_of(package)
    faults = [StubFault(path, 0, "is gone") for path in before if path not in after]
    defined: dict[str, frozenset[Parts]] = {}
    for path, source in after.items():
        is_changed, new = before.get(path) != source, rules.read(path, source)
        defined[path] = frozenset(one.place for one in new.definitions if one.head is not None)
        if is_changed and new.error:
            faults.append(StubFault(path, new.error_line, new.error))
        elif is_changed:
            old = rules.read(path, before.get(path, ""))
            if old.package != new.package and path in before:
                faults.append(StubFault(path, 1, "is of another package now"))
            wanted = [parts_of(symbol.name) for symbol in symbols if symbol.path in {"", path}]
            faults += _definitions(rules, path, wanted, old.definitions, new.definitions)
            faults += _others(path, old.others, new.others)
    return (*faults, *_missing(rules, defined, symbols))


def _missing(rules: Rules, defined: Mapping[str, Collection[Parts]], symbols: Sequence[Symbol]) -> Iterator[StubFault]:
    """Yield a fault for each new symbol that no changed file defines which may.

    One in a file that was not changed is not there either.
    """
    for symbol in symbols:
        wanted = parts_of(symbol.name)
        places = ((path, place) for path in defined if symbol.path in {"", path} for place in defined[path])
        if symbol.new and not any(rules.is_same(place, wanted, path) for path, place in places):
            yield StubFault(symbol.path or next(iter(defined), ""), 0, f"does not define {symbol.name}")


def _definitions(
    rules: Rules, path: str, wanted: Sequence[Parts], old: Sequence[Definition], new: Sequence[Definition]
) -> Iterator[StubFault]:
    """Yield faults of definitions; several of one name, such as overloads, are compared one by one.

    Named is one of the wanted symbols, a member of one, or the owner of one.
    """
    owners = [symbol[:length] for symbol in wanted for length in range(1, len(symbol))]
    rest: dict[Parts, list[Definition]] = {}
    for one in old:
        if one.head is not None:
            rest.setdefault(one.place, []).append(one)
    names, added = set(rest), set[tuple[str, ...]]()
    for one in [one for one in new if one.head is not None and not _taken(rest.get(one.place, []), one)]:
        was = _nearest(rest.get(one.place, []), one)
        heads = [one.place[:size] for size in range(1, len(one.place) + 1)]
        is_named = (
            any(rules.is_same(head, symbol, path) for symbol in wanted for head in heads)
            or any(rules.is_same(one.place, owner, path) for owner in owners)
            or one.place[:-1] in added
        )
        added |= {one.place} if is_named and one.place not in names else set()
        what = _fault(rules, was, one, is_named=is_named)
        if what:
            yield StubFault(path, one.line, what.format(name=rules.separator.join(one.place)))
    for place, lost in rest.items():
        yield from (StubFault(path, 0, f"{rules.separator.join(place)} is gone") for _ in lost)


def _taken(rest: list[Definition], one: Definition) -> bool:
    """Remove the definition that equals *one*; return whether there is one."""
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
