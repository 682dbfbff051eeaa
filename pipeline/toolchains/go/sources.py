"""Where the tests of Go packages are, read from their sources: names, places, bytes.

Which files belong to a package is asked of `go list`; which functions in them are tests follows the rule by which `go
test` writes its own main program. So nothing of the project has to run to know its tests, nor even to compile.
"""

from __future__ import annotations

import hashlib
import os
import posixpath
import stat
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pipeline.toolchains.go import syntax

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tree_sitter import Node

MAX_BYTES: Final = 8_000_000
MAX_FILES: Final = 100_000
TESTDATA: Final = "testdata"

_NOT_OURS: Final = frozenset({".git", "vendor", "node_modules"})
_COMMON: Final = frozenset({"TestMain", "init"})


@dataclass(frozen=True)
class TestFunction:
    """A test as it is written. `mentions` is every name in it, `bare` the lines that state failure without looking."""

    __test__ = False

    name: str
    kind: str
    path: str
    first: int
    last: int
    sha256: str
    mentions: frozenset[str]
    bare: frozenset[int]


@dataclass
class Folder:
    """What the test files of one folder hold. `logs` are lines (by path) on which something is only written down.

    `helpers` are the functions and variables beside the tests, with what they mention; `imports` the paths that each
    file imports, by the name that it gives them.
    """

    tests: dict[str, TestFunction] = field(default_factory=dict[str, TestFunction])
    helpers: dict[str, frozenset[str]] = field(default_factory=dict[str, frozenset[str]])
    logs: dict[str, frozenset[int]] = field(default_factory=dict[str, frozenset[int]])
    imports: dict[str, dict[str, str]] = field(default_factory=dict[str, dict[str, str]])


def text_of(root: Path, path: str) -> bytes | None:
    """Return a regular file's bytes, None for anything else: tested code may have put a link or a FIFO there."""
    place = root / path
    try:
        found = place.lstat()
        regular = stat.S_ISREG(found.st_mode) and found.st_size <= MAX_BYTES
        return place.read_bytes() if regular else None
    except OSError:
        return None


def read_folder(root: Path, folder: str, names: Sequence[str]) -> Folder:
    """Return what the test files of a folder hold.

    Args:
        root: The folder that holds the project.
        folder: The package's folder, relative to it; empty for the root itself.
        names: The test files, as `go list` names them: build constraints are applied.
    """
    found = Folder()
    parsed: list[tuple[str, Node]] = []
    for name in sorted(names):
        path = posixpath.join(folder, name)
        source = text_of(root, path)
        if source is not None:
            parsed.append((path, syntax.parse(source)))
    common = b"\0".join(filter(None, (_common(top) for _, top in parsed)))
    for path, top in parsed:
        found.logs[path] = syntax.log_lines(top)
        found.imports[path] = syntax.imports(top)
        for item in syntax.items(top):
            kind = syntax.test_kind(item.node) if item.kind == "func" else ""
            if kind:
                corpus = _corpus(root, folder, item.name) if kind == "Fuzz" else b""
                test = _test(path, item, kind, common + corpus)
                # `x` and `x_test` may both have it: they are one program, in which both run under the name
                known = found.tests.get(item.name)
                found.tests[item.name] = test if known is None else _both(known, test)
            else:
                found.helpers[item.name] = found.helpers.get(item.name, frozenset()) | syntax.mentions(item.node)
    return found


def _common(top: Node) -> bytes:
    """Return the bytes of what runs before every test of a package."""
    functions = (item.node for item in syntax.items(top) if item.kind == "func" and item.name in _COMMON)
    return b"\0".join(node.text or b"" for node in functions)


def _test(path: str, item: syntax.Item, kind: str, common: bytes) -> TestFunction:
    node = item.node
    return TestFunction(
        name=item.name,
        kind=kind,
        path=path,
        first=node.start_point.row + 1,
        last=node.end_point.row + 1,
        sha256=hashlib.sha256((node.text or b"") + b"\0" + common).hexdigest(),
        mentions=syntax.mentions(node),
        bare=syntax.bare_lines(node),
    )


def _both(one: TestFunction, other: TestFunction) -> TestFunction:
    return TestFunction(
        name=one.name,
        kind=one.kind,
        path=one.path,
        first=one.first,
        last=one.last,
        sha256=hashlib.sha256(f"{one.sha256}{other.sha256}".encode()).hexdigest(),
        mentions=one.mentions | other.mentions,
        bare=one.bare | other.bare,
    )


def _corpus(root: Path, folder: str, name: str) -> bytes:
    """Return the inputs that a fuzz test is run with, beside those that it adds itself."""
    place = posixpath.join(folder, TESTDATA, "fuzz", name)
    try:
        entries = sorted(entry.name for entry in (root / place).iterdir())
    except OSError:
        return b""
    return b"\0".join(text_of(root, posixpath.join(place, entry)) or b"" for entry in entries)


def digests_of(root: Path) -> dict[str, str]:
    """Return the sha256 of every test file of the project and of every file in a `testdata` folder, by path."""
    found: dict[str, str] = {}
    for path in _walk(root):
        folders = path.split("/")[:-1]
        if path.endswith("_test.go") or TESTDATA in folders:
            source = text_of(root, path)
            if source is not None and len(found) < MAX_FILES:
                found[path] = hashlib.sha256(source).hexdigest()
    return found


def _walk(root: Path) -> Iterator[str]:
    for place, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if name not in _NOT_OURS)
        relative = Path(place).relative_to(root).as_posix()
        for name in sorted(names):
            yield name if relative == "." else f"{relative}/{name}"


@dataclass(frozen=True)
class Function:
    """A function of production code, and the lines it stands on."""

    name: str
    first: int
    last: int


def functions_of(root: Path, path: str) -> tuple[Function, ...]:
    """Return the functions and methods of a file, in order."""
    source = text_of(root, path)
    if source is None:
        return ()
    items = (item for item in syntax.items(syntax.parse(source)) if item.kind in {"func", "method"})
    return tuple(Function(item.name, item.node.start_point.row + 1, item.node.end_point.row + 1) for item in items)


def names_of(root: Path, path: str) -> frozenset[str]:
    """Return what a file of production code defines; a method by its own name."""
    source = text_of(root, path)
    items = syntax.items(syntax.parse(source)) if source is not None else ()
    return frozenset(item.name.rpartition(".")[2] for item in items) - {"_", "init"}
