"""Finds the tests of a Rust project in its sources: names, places, bytes.

libtest says only names, and nothing at all about what does not compile. The modules of a crate are followed from its
root file as the compiler does; attributes and nesting come from tree-sitter. What a macro makes is not seen here.

Importing this module, or one that does, loads the parser; `cargo` does so when a Rust project is measured, and
`languages.rust.test_regions` only when a Rust file is judged.
"""

from __future__ import annotations

import hashlib
import posixpath
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from tree_sitter import Language, Node, Parser
from tree_sitter_rust import language

from pipeline.sandbox.limited import UnreadableError, limited
from pipeline.testing.languages.sources.syntax_trees import below, field_text, line_of, names_below, text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pipeline.trees import Files


_RUST: Final = Language(language())
_COMMENTS: Final = frozenset({"line_comment", "block_comment"})
_TEST_ATTRIBUTES: Final = frozenset({"test", "rstest", "test_case", "quickcheck", "bench"})
_CFG_TEST: Final = re.compile(r"cfg\((?:test|all\((?:.*,)?test(?:,.*)?\))\)")
_REASON: Final = re.compile(r'ignore\s*=\s*"((?:[^"\\]|\\.)*)"')
_SAYS: Final = frozenset({"panic", "unreachable"})
MENTIONED: Final = frozenset({"identifier", "type_identifier", "field_identifier", "shorthand_field_identifier"})
"""The types of nodes that are names; macro arguments contain them, too."""


def parse(source: bytes) -> Node:
    """Return the syntax tree of a whole file, which may contain errors."""
    return Parser(_RUST).parse(source).root_node


def items(body: Node) -> Iterator[tuple[Node, list[str], Node]]:
    """Yield each item with its attributes, without blanks, and the node at which it begins."""
    attributes: list[str] = []
    start: Node | None = None
    for child in body.named_children:
        if child.type == "attribute_item":
            start = start or child
            attributes.append(_squeezed(child).removeprefix("#[").removesuffix("]"))
        elif child.type not in _COMMENTS:
            yield child, attributes, start or child
            attributes, start = [], None


def is_file_for_tests(top: Node) -> bool:
    """Return whether an attribute at a file's top says that it is only compiled for tests."""
    inner = (child for child in top.named_children if child.type == "inner_attribute_item")
    return any(_CFG_TEST.search(_squeezed(child).replace(" ", "")) for child in inner)


def _squeezed(node: Node) -> str:
    return " ".join(text(node).split())


def is_for_tests(attribute: str) -> bool:
    """Return whether an attribute says that its item is only compiled for tests."""
    return is_test(attribute) or _CFG_TEST.fullmatch(attribute.replace(" ", "")) is not None


def is_test(attribute: str) -> bool:
    """Return whether an attribute makes a function a test."""
    last = word(attribute).rpartition("::")[2]
    return last in _TEST_ATTRIBUTES or last.endswith("_test")


def word(attribute: str) -> str:
    """Return the name of an attribute, as a path."""
    return re.split(r"[\s(=\[]", attribute, maxsplit=1)[0]


def bare_lines(function: Node) -> Iterator[int]:
    """Yield the lines of a test that fail unconditionally, without looking at any value."""
    for found in below(function):
        if found.type != "macro_invocation":
            continue
        macro = field_text(found, "macro")
        statement = found.parent if found.parent is not None and found.parent.type == "expression_statement" else found
        body = function.child_by_field_name("body")
        alone = statement.parent is not None and statement.parent == body
        arguments = found.named_children[-1]
        if (macro in _SAYS and alone) or (macro.startswith("assert") and not names_below(arguments, MENTIONED)):
            yield line_of(found)


def name_in_impl(item: Node, field: str) -> str:
    """Return the name of an impl's type or trait, without path and arguments; empty if it has none."""
    kind = item.child_by_field_name(field)
    while kind is not None and kind.type in {"generic_type", "scoped_type_identifier", "reference_type"}:
        kind = kind.child_by_field_name("name" if kind.type == "scoped_type_identifier" else "type")
    return text(kind)


def names_in(item: Node) -> Iterator[str]:
    """Yield the names that an item defines (without variants and fields), and the functions in an impl or trait."""
    name = field_text(item, "name").removeprefix("r#")
    if name:
        yield name
    body = item.child_by_field_name("body")
    if item.type in {"impl_item", "trait_item", "foreign_mod_item"} and body is not None:
        yield from (field_text(child, "name") for child in body.named_children if field_text(child, "name"))


MAX_BYTES: Final = 2_000_000

_PATH: Final = re.compile(r'path\s*=\s*"([^"]*)"')


@dataclass(frozen=True)
class TestFunction:
    """A test function as written in its source.

    `name` is what libtest calls it; `mentions` every name in it, resolved or not; `bare` are the lines that state
    failure without looking at anything: `panic!()` as a statement of its own, an assertion about literals.
    """

    __test__ = False

    name: str
    path: str
    first: int
    sha256: str
    ignored: str | None
    mentions: frozenset[str]
    bare: frozenset[int]


@dataclass
class Crate:
    """The content of one target: its tests by name, and the file of each module.

    `regions` are the lines of a file that are compiled for tests only, `files` the bytes of them; a file that is a test
    as a whole has one region, all of it. `helpers` are the functions of the test side with what they mention, `defined`
    the names that production code defines, with their file. Of a file in `unread`, which no reader gets through, there
    are the bytes alone.
    """

    root: str
    tests: dict[str, TestFunction] = field(default_factory=dict[str, TestFunction])
    modules: dict[str, str] = field(default_factory=dict[str, str])
    regions: dict[str, list[tuple[int, int]]] = field(default_factory=dict[str, list[tuple[int, int]]])
    whole: set[str] = field(default_factory=set[str])
    digests: dict[str, str] = field(default_factory=dict[str, str])
    helpers: dict[str, frozenset[str]] = field(default_factory=dict[str, frozenset[str]])
    defined: dict[str, str] = field(default_factory=dict[str, str])
    unread: set[str] = field(default_factory=set[str])

    def add(self, other: Crate) -> None:
        """Add the content of another file."""
        self.defined = other.defined | self.defined
        for name in ("tests", "modules", "regions", "whole", "digests", "helpers", "unread"):
            setattr(self, name, getattr(self, name) | getattr(other, name))

    def file_of(self, name: str) -> str:
        """Return the file of a test, by the innermost known module in its name."""
        if name in self.tests:
            return self.tests[name].path
        module = name.rpartition("::")[0]
        while module and module not in self.modules:
            module = module.rpartition("::")[0]
        return self.modules.get(module, self.root)


def read_crate(files: Files, source: str, *, is_test: bool) -> Crate:
    """Return the content of a target.

    Args:
        files: Those of the project.
        source: The target's root file, relative to it.
        is_test: The whole target is tests, as below `tests/`.
    """
    crate, seen = Crate(source), set[str]()
    waiting = [Place(source, "", posixpath.dirname(source), is_test)]
    while waiting:
        place = waiting.pop()
        text = text_of(files, place.path) if place.path not in seen else None
        if text is not None:
            seen.add(place.path)
            try:
                own, further = limited(read_file)(text, place)
            except UnreadableError:
                own, further = _unread(text, place), ()
            crate.add(own)
            waiting.extend(reversed(further))
    return crate


def _unread(text: bytes, place: Place) -> Crate:
    """Return what is known of a file that no reader gets through."""
    crate = Crate(place.path, modules={place.module: place.path}, unread={place.path})
    crate.digests[place.path] = hashlib.sha256(text).hexdigest()
    if place.is_test:
        crate.whole.add(place.path)
        crate.regions[place.path] = [(1, text.count(b"\n") + 1)]
    return crate


def text_of(files: Files, path: str) -> bytes | None:
    """Return a regular file's bytes, None for anything else: tested code may have created a link or a FIFO."""
    return files.read(path, MAX_BYTES)


@dataclass(frozen=True)
class Place:
    """The place of an item: file, module, the folder of its modules' files, and whether it is test code."""

    path: str
    module: str
    folder: str
    is_test: bool


def read_file(source: bytes, place: Place) -> tuple[Crate, tuple[Place, ...]]:
    """Return a file's share of its crate, and the possible files of its modules."""
    reader = _Reader(Crate(place.path))
    reader.file(source, place)
    return reader.crate, tuple(reader.files)


@dataclass
class _Reader:
    crate: Crate
    files: list[Place] = field(default_factory=list[Place])

    def file(self, source: bytes, place: Place) -> None:
        path, is_test = place.path, place.is_test
        self.crate.modules[place.module] = path
        top = parse(source)
        if is_test := is_test or is_file_for_tests(top):
            self.crate.whole.add(path)
            self.crate.regions[path] = [(1, source.count(b"\n") + 1)]
        pieces: list[bytes] = []
        self.items(top, Place(path, place.module, place.folder, is_test), pieces)
        if is_test:
            pieces = [source]
        if pieces:
            self.crate.digests[path] = hashlib.sha256(b"\0".join(pieces)).hexdigest()

    def items(self, body: Node, place: Place, pieces: list[bytes]) -> None:
        """Read the items of a body; `pieces` collects the bytes of test code among production."""
        for item, attributes, start in items(body):
            is_region = not place.is_test and any(is_for_tests(words) for words in attributes)
            if is_region:
                pieces.append((body.text or b"")[start.start_byte - body.start_byte : item.end_byte - body.start_byte])
                lines = (line_of(start), item.end_point.row + 1)
                self.crate.regions.setdefault(place.path, []).append(lines)
            inside = Place(place.path, place.module, place.folder, place.is_test or is_region)
            if item.type == "mod_item":
                self.module(item, attributes, inside, pieces)
            elif item.type == "function_item":
                self.function(item, attributes, start, inside)
            elif not inside.is_test:
                for name in names_in(item):
                    self.crate.defined.setdefault(name, place.path)
            else:
                self.crate.helpers |= {name: names_below(item, MENTIONED) for name in names_in(item)}

    def module(self, item: Node, attributes: list[str], place: Place, pieces: list[bytes]) -> None:
        name = field_text(item, "name").removeprefix("r#")
        module = f"{place.module}::{name}".removeprefix("::")
        body = item.child_by_field_name("body")
        named = next((found[1] for words in attributes if (found := _PATH.match(words))), None)
        if body is not None:
            self.crate.modules[module] = place.path
            folder = posixpath.join(place.folder, named or name)
            self.items(body, Place(place.path, module, folder, place.is_test), pieces)
            return
        if named is not None:
            path = posixpath.normpath(posixpath.join(posixpath.dirname(place.path), named))
            self.files.append(Place(path, module, posixpath.dirname(path), place.is_test))
            return
        folder = posixpath.join(place.folder, name)
        self.files += (Place(path, module, folder, place.is_test) for path in (f"{folder}.rs", f"{folder}/mod.rs"))

    def function(self, item: Node, attributes: list[str], start: Node, place: Place) -> None:
        name = field_text(item, "name").removeprefix("r#")
        if not any(is_test(words) for words in attributes):
            if place.is_test:
                self.crate.helpers[name] = names_below(item, MENTIONED)
            else:
                self.crate.defined.setdefault(name, place.path)
            return
        ignoring = next((words for words in attributes if word(words) == "ignore"), None)
        reason = _REASON.match(ignoring) if ignoring is not None else None
        parts = [*(words.encode() for words in attributes), item.text or b""]
        path = f"{place.module}::{name}".removeprefix("::")
        self.crate.tests[path] = TestFunction(
            name=path,
            path=place.path,
            first=line_of(start),
            sha256=hashlib.sha256(b"\0".join(parts)).hexdigest(),
            ignored=reason[1] if reason is not None else ignoring and "ignored",
            mentions=names_below(item, MENTIONED),
            bare=frozenset(bare_lines(item)),
        )


_TYPES: Final = frozenset({"struct_item", "enum_item", "union_item", "trait_item", "type_item"})


@dataclass(frozen=True)
class Inside:
    """The content of test modules.

    Args:
        tests: Test functions by their path from the test module on, such as `tests::deep::it`.
        ignored: Those of them that do not run by themselves.
        foreign_impls: Heads of `impl` items in which neither the type nor the trait was declared inside.
    """

    tests: frozenset[str] = frozenset()
    ignored: frozenset[str] = frozenset()
    foreign_impls: frozenset[str] = frozenset()


def modules(top: Node) -> dict[tuple[int, int], Node]:
    """Return the modules with a body, nested ones included, by the first and last byte of their inside."""
    found: dict[tuple[int, int], Node] = {}
    bodies = [top]
    while bodies:
        for child in bodies.pop().named_children:
            body = child.child_by_field_name("body") if child.type == "mod_item" else None
            if body is not None:
                found[body.start_byte + 1, body.end_byte - 1] = child
                bodies.append(body)
    return found


def look_inside(insides: Iterable[Node]) -> Inside:
    """Return the content of some modules, each one of `modules`."""
    tests: dict[str, bool] = {}
    foreign: set[str] = set()
    for module in insides:
        tests.update(_tests_in(module))
        own = {field_text(node, "name") for node in below(module) if node.type in _TYPES}
        impls = (node for node in below(module) if node.type == "impl_item")
        foreign.update(
            _impl_head(node) for node in impls if own.isdisjoint({_bare_name(node, "type"), _bare_name(node, "trait")})
        )
    ignored = frozenset(test for test, is_ignored in tests.items() if is_ignored)
    return Inside(frozenset(tests), ignored, frozenset(foreign))


def _tests_in(module: Node) -> Iterator[tuple[str, bool]]:
    """Yield the path of each test function, and whether it is ignored."""
    stack = [(field_text(module, "name"), module)]
    while stack:
        path, node = stack.pop()
        body = node.child_by_field_name("body")
        for item, attributes, _ in items(body) if body is not None else ():
            inside = f"{path}::{field_text(item, 'name')}"
            if item.type == "mod_item":
                stack.append((inside, item))
            elif item.type == "function_item" and any(map(is_test, attributes)):
                yield inside, any(word(attribute) == "ignore" for attribute in attributes)


def _impl_head(impl: Node) -> str:
    """Return `impl Trait for Type` of an impl, without its generics."""
    trait, kind = impl.child_by_field_name("trait"), impl.child_by_field_name("type")
    parts = ["impl", *([text(trait), "for"] if trait is not None else []), text(kind) if kind is not None else "?"]
    return " ".join(" ".join(parts).split())


def _bare_name(impl: Node, field: str) -> str:
    """Return the type or trait of an impl, without arguments."""
    kind = impl.child_by_field_name(field)
    return text(kind.child_by_field_name("type") if kind is not None and kind.type == "generic_type" else kind)
