"""Where the tests of a Rust project are, read from its sources: names, places, bytes.

libtest says only names, and nothing at all about what does not compile. The modules of a crate are followed from its
root file as the compiler does; attributes and nesting come from tree-sitter. What a macro makes is not seen here.
"""

from __future__ import annotations

import hashlib
import posixpath
import re
import stat
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from pipeline.toolchains.cargo import syntax

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from tree_sitter import Node

MAX_BYTES: Final = 2_000_000

_PATH: Final = re.compile(r'path\s*=\s*"([^"]*)"')


@dataclass(frozen=True)
class TestFunction:
    """A test as it is written.

    `name` is what libtest calls it; `mentions` every name in it, resolved or not; `bare` are the lines that state
    failure without looking at anything: `panic!()` as a statement of its own, an assertion about literals.
    """

    __test__ = False

    name: str
    path: str
    first: int
    last: int
    sha256: str
    ignored: str | None
    should_panic: bool
    mentions: frozenset[str]
    bare: frozenset[int]


@dataclass
class Crate:
    """What one target is made of: its tests by name, and the file of each module.

    `regions` are the lines of a file that are compiled for tests only, `files` the bytes of them; a file that is a test
    as a whole has one region, all of it. `helpers` are the functions of the test side with what they mention, `defined`
    the names that production code defines, with their file.
    """

    root: str
    tests: dict[str, TestFunction] = field(default_factory=dict[str, TestFunction])
    modules: dict[str, str] = field(default_factory=dict[str, str])
    regions: dict[str, list[tuple[int, int]]] = field(default_factory=dict[str, list[tuple[int, int]]])
    whole: set[str] = field(default_factory=set[str])
    digests: dict[str, str] = field(default_factory=dict[str, str])
    helpers: dict[str, frozenset[str]] = field(default_factory=dict[str, frozenset[str]])
    defined: dict[str, str] = field(default_factory=dict[str, str])

    def file_of(self, name: str) -> str:
        """Return the file of a test, by the innermost known module of its name."""
        if name in self.tests:
            return self.tests[name].path
        module = name.rpartition("::")[0]
        while module and module not in self.modules:
            module = module.rpartition("::")[0]
        return self.modules.get(module, self.root)


def read_crate(root: Path, source: str, *, is_test: bool) -> Crate:
    """Return what a target is made of.

    Args:
        root: The folder that holds the project.
        source: The target's root file, relative to it.
        is_test: The whole target is tests, as below `tests/`.
    """
    crate = Crate(source)
    _Reader(root, crate).file(source, "", posixpath.dirname(source), is_test=is_test)
    return crate


def text_of(root: Path, path: str) -> bytes | None:
    """Return a regular file's bytes, None for anything else: tested code may have put a link or a FIFO there."""
    place = root / path
    try:
        found = place.lstat()
        regular = stat.S_ISREG(found.st_mode) and found.st_size <= MAX_BYTES
        return place.read_bytes() if regular else None
    except OSError:
        return None


@dataclass(frozen=True)
class _Place:
    """Where an item stands: file, module, the folder that its modules' files are in, and whether it is test code."""

    path: str
    module: str
    folder: str
    is_test: bool


@dataclass
class _Reader:
    root: Path
    crate: Crate
    seen: set[str] = field(default_factory=set[str])

    def file(self, path: str, module: str, folder: str, *, is_test: bool) -> None:
        source = text_of(self.root, path) if path not in self.seen else None
        if source is None:
            return
        self.seen.add(path)
        self.crate.modules[module] = path
        top = syntax.parse(source)
        if is_test := is_test or syntax.is_file_for_tests(top):
            self.crate.whole.add(path)
            self.crate.regions[path] = [(1, source.count(b"\n") + 1)]
        pieces: list[bytes] = []
        self.items(top, _Place(path, module, folder, is_test), pieces)
        if is_test:
            pieces = [source]
        if pieces:
            self.crate.digests[path] = hashlib.sha256(b"\0".join(pieces)).hexdigest()

    def items(self, body: Node, place: _Place, pieces: list[bytes]) -> None:
        """Read the items of a body; `pieces` collects the bytes of what is test code among production."""
        for item, attributes, start in syntax.items(body):
            is_region = not place.is_test and any(syntax.is_for_tests(words) for words in attributes)
            if is_region:
                pieces.append((body.text or b"")[start.start_byte - body.start_byte : item.end_byte - body.start_byte])
                lines = (start.start_point.row + 1, item.end_point.row + 1)
                self.crate.regions.setdefault(place.path, []).append(lines)
            inside = _Place(place.path, place.module, place.folder, place.is_test or is_region)
            if item.type == "mod_item":
                self.module(item, attributes, inside, pieces)
            elif item.type == "function_item":
                self.function(item, attributes, start, inside)
            elif not inside.is_test:
                self.production(item, place.path)
            else:
                self.crate.helpers |= {name: syntax.mentions(item) for name in syntax.names_in(item)}

    def module(self, item: Node, attributes: list[str], place: _Place, pieces: list[bytes]) -> None:
        name = syntax.field_text(item, "name").removeprefix("r#")
        module = f"{place.module}::{name}".removeprefix("::")
        body = item.child_by_field_name("body")
        named = next((found[1] for words in attributes if (found := _PATH.match(words))), None)
        if body is not None:
            self.crate.modules[module] = place.path
            folder = posixpath.join(place.folder, named or name)
            self.items(body, _Place(place.path, module, folder, place.is_test), pieces)
            return
        if named is not None:
            path = posixpath.normpath(posixpath.join(posixpath.dirname(place.path), named))
            self.file(path, module, posixpath.dirname(path), is_test=place.is_test)
            return
        folder = posixpath.join(place.folder, name)
        for path in (f"{folder}.rs", f"{folder}/mod.rs"):
            self.file(path, module, folder, is_test=place.is_test)

    def function(self, item: Node, attributes: list[str], start: Node, place: _Place) -> None:
        name = syntax.field_text(item, "name").removeprefix("r#")
        if not any(syntax.is_test(words) for words in attributes):
            if place.is_test:
                self.crate.helpers[name] = syntax.mentions(item)
            else:
                self.crate.defined.setdefault(name, place.path)
            return
        ignored = next((syntax.ignored(words) for words in attributes if syntax.word(words) == "ignore"), None)
        parts = [*(words.encode() for words in attributes), item.text or b""]
        path = f"{place.module}::{name}".removeprefix("::")
        self.crate.tests[path] = TestFunction(
            name=path,
            path=place.path,
            first=start.start_point.row + 1,
            last=item.end_point.row + 1,
            sha256=hashlib.sha256(b"\0".join(parts)).hexdigest(),
            ignored=ignored,
            should_panic=any(syntax.word(words) == "should_panic" for words in attributes),
            mentions=syntax.mentions(item),
            bare=frozenset(syntax.bare_lines(item)),
        )

    def production(self, item: Node, path: str) -> None:
        for name in syntax.names_in(item):
            self.crate.defined.setdefault(name, path)


def is_in(lines: Iterable[tuple[int, int]], line: int) -> bool:
    """Return whether a line lies in one of the regions."""
    return any(first <= line <= last for first, last in lines)
