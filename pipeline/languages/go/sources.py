"""Finds the tests of Go packages in their sources: names, places, bytes.

Which files belong to a package is asked of `go list`; which functions in them are tests follows the rule by which `go
test` writes its own main program. So nothing of the project has to run to know its tests, nor even to compile.
"""

from __future__ import annotations

import hashlib
import posixpath
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from pipeline.languages.go import syntax
from pipeline.languages.sources.syntax_trees import line_of, names_below
from pipeline.limited import UnreadableError, limited

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tree_sitter import Node

    from pipeline.trees import Files

MAX_BYTES: Final = 8_000_000
MAX_FILES: Final = 100_000
TESTDATA: Final = "testdata"

_NOT_OURS: Final = frozenset({".git", "vendor", "node_modules"})
_COMMON: Final = frozenset({"TestMain", "init"})


@dataclass(frozen=True)
class TestFunction:
    """A test function as written. `mentions` are all names in it, `bare` the lines that fail unconditionally."""

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
    """The content of a folder's test files. `logs` are lines, by path, with a mere note such as `t.Log`.

    `helpers` are the functions and variables beside the tests, with what they mention; `imports` the paths that each
    file imports, by the name that it gives them. `unread` says of files that no reader gets through why not.
    """

    tests: dict[str, TestFunction] = field(default_factory=dict[str, TestFunction])
    helpers: dict[str, frozenset[str]] = field(default_factory=dict[str, frozenset[str]])
    logs: dict[str, frozenset[int]] = field(default_factory=dict[str, frozenset[int]])
    imports: dict[str, dict[str, str]] = field(default_factory=dict[str, dict[str, str]])
    unread: dict[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True)
class Part:
    """The content of one test file. `tests` come with their bytes; `common` runs before every test of the package."""

    tests: tuple[tuple[TestFunction, bytes], ...]
    helpers: dict[str, frozenset[str]]
    logs: frozenset[int]
    imports: dict[str, str]
    common: bytes


def text_of(files: Files, path: str) -> bytes | None:
    """Return a regular file's bytes, None for anything else: tested code may have created a link or a FIFO."""
    return files.read(path, MAX_BYTES)


def read_folder(files: Files, folder: str, names: Sequence[str]) -> Folder:
    """Return the content of a folder's test files.

    Args:
        files: Those of the project.
        folder: The package's folder, relative to it; empty for the root itself.
        names: The test files, as `go list` names them: build constraints are applied.
    """
    found = Folder()
    parts: dict[str, Part] = {}
    for name in sorted(names):
        path = posixpath.join(folder, name)
        source = text_of(files, path)
        if source is not None:
            try:
                parts[path] = limited(read_file)(path, source)
            except UnreadableError as error:
                found.unread[path] = str(error)
    common = b"\0".join(part.common for part in parts.values() if part.common)
    for path, part in parts.items():
        found.logs[path] = part.logs
        found.imports[path] = part.imports
        for name, mentions in part.helpers.items():
            found.helpers[name] = found.helpers.get(name, frozenset()) | mentions
        for written, text in part.tests:
            corpus = _corpus(files, folder, written.name) if written.kind == "Fuzz" else b""
            digest = hashlib.sha256(text + b"\0" + common + corpus).hexdigest()
            test = replace(written, sha256=digest)
            # `x` and `x_test` may both have it: they are one program, in which both run under the name
            known = found.tests.get(test.name)
            found.tests[test.name] = test if known is None else _both(known, test)
    return found


def read_file(path: str, source: bytes) -> Part:
    """Return the content of a test file; digests of its tests need the rest of the package."""
    top = syntax.parse(source)
    tests: list[tuple[TestFunction, bytes]] = []
    helpers: dict[str, frozenset[str]] = {}
    for item in syntax.items(top):
        kind = syntax.test_kind(item.node) if item.kind == "func" else ""
        if kind:
            tests.append((_test(path, item, kind), item.node.text or b""))
        else:
            helpers[item.name] = helpers.get(item.name, frozenset()) | names_below(item.node, syntax.MENTIONED)
    return Part(tuple(tests), helpers, syntax.log_lines(top), syntax.imports(top), _common(top))


def _common(top: Node) -> bytes:
    """Return the bytes of the functions that run before every test of a package."""
    functions = (item.node for item in syntax.items(top) if item.kind == "func" and item.name in _COMMON)
    return b"\0".join(node.text or b"" for node in functions)


def _test(path: str, item: syntax.Item, kind: str) -> TestFunction:
    node = item.node
    return TestFunction(
        name=item.name,
        kind=kind,
        path=path,
        first=line_of(node),
        last=node.end_point.row + 1,
        sha256="",
        mentions=names_below(node, syntax.MENTIONED),
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


def _corpus(files: Files, folder: str, name: str) -> bytes:
    """Return the stored inputs of a fuzz test, beside those that it adds itself."""
    place = posixpath.join(folder, TESTDATA, "fuzz", name)
    return b"\0".join(text_of(files, posixpath.join(place, entry)) or b"" for entry in files.names(place))


def digests_of(files: Files) -> dict[str, str]:
    """Return the sha256 of every test file of the project and of every file in a `testdata` folder, by path."""
    found: dict[str, str] = {}
    for path in files.walk(_NOT_OURS):
        folders = path.split("/")[:-1]
        if path.endswith("_test.go") or TESTDATA in folders:
            source = text_of(files, path)
            if source is not None and len(found) < MAX_FILES:
                found[path] = hashlib.sha256(source).hexdigest()
    return found


@dataclass(frozen=True)
class Function:
    """A function of production code, with its first and last line."""

    name: str
    first: int
    last: int


def functions_of(files: Files, path: str) -> tuple[Function, ...]:
    """Return the functions and methods of a file, in order."""
    source = text_of(files, path)
    try:
        return limited(functions_in)(source) if source is not None else ()
    except UnreadableError:
        return ()


def functions_in(source: bytes) -> tuple[Function, ...]:
    """Return the functions and methods of a source."""
    items = (item for item in syntax.items(syntax.parse(source)) if item.kind in {"func", "method"})
    return tuple(Function(item.name, line_of(item.node), item.node.end_point.row + 1) for item in items)


def names_of(files: Files, path: str) -> frozenset[str]:
    """Return the names that a file of production code defines; a method by its own name."""
    source = text_of(files, path)
    try:
        return limited(names_in)(source) if source is not None else frozenset()
    except UnreadableError:
        return frozenset()


def names_in(source: bytes) -> frozenset[str]:
    """Return the names that a source defines."""
    return frozenset(item.name.rpartition(".")[2] for item in syntax.items(syntax.parse(source))) - {"_", "init"}
