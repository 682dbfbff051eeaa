"""Finds the tests of Go packages in their sources: names, places, bytes.

Which files belong to a package is asked of `go list`; which functions in them are tests follows the rule by which `go
test` writes its own main program. So nothing of the project has to run to know its tests, nor even to compile.

Importing this module, or one that does, loads the parser; `go` does so when a Go project is measured.
"""

from __future__ import annotations

import hashlib
import posixpath
import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from tree_sitter import Language, Node, Parser
from tree_sitter_go import language

from pipeline.sandbox.limited import UnreadableError, limited
from pipeline.testing.languages.go.toolchain import is_test_side
from pipeline.testing.languages.sources.syntax_trees import (
    below,
    field_text,
    line_of,
    named_children,
    names_below,
    text,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pipeline.trees import Files


_GO: Final = Language(language())
_KINDS: Final = {"Test": "T", "Fuzz": "F"}
_OUTPUT: Final = re.compile(r"(?i)\s*(?:unordered )?output:")
MENTIONED: Final = frozenset({"identifier", "type_identifier", "field_identifier"})
"""The types of nodes that are names."""
_HANDLES: Final = frozenset({"t", "tb", "f", "b"})
_LITERAL_NAMES: Final = frozenset({"true", "false", "nil"})
_FAILS: Final = frozenset({"Fatal", "Fatalf", "Error", "Errorf", "Fail", "FailNow", "Failf", "FailNowf"})
_LOGS: Final = frozenset({"Log", "Logf", "Skip", "Skipf", "SkipNow"})
_ASSERTS: Final = frozenset({"assert", "require", "is", "qt", "check"})
_BRANCHES: Final = frozenset(
    {
        "if_statement", "for_statement", "expression_switch_statement", "type_switch_statement", "select_statement",
        "expression_case", "default_case", "type_case", "communication_case",
    }
)  # fmt: skip


@dataclass(frozen=True)
class Item:
    """A top-level declaration of a file; a method is `Type.Method`. `node` holds all of it."""

    kind: str
    name: str
    node: Node


def parse(source: bytes) -> Node:
    """Return the syntax tree of a whole file, which may contain errors."""
    return Parser(_GO).parse(source).root_node


def items(top: Node) -> Iterator[Item]:
    """Yield the declarations of a file: `func`, `method`, `type`, `const` and `var`, one for each name."""
    for child in top.named_children:
        if child.type == "function_declaration":
            yield Item("func", field_text(child, "name"), child)
        elif child.type == "method_declaration":
            yield Item("method", f"{owner(child)}.{field_text(child, 'name')}", child)
        elif child.type in {"type_declaration", "const_declaration", "var_declaration"}:
            for spec in specs(child):
                kind = child.type.partition("_")[0]
                yield from (
                    Item(kind, text(name), spec) for name in spec.children_by_field_name("name") if name.is_named
                )


def specs(declaration: Node) -> Iterator[Node]:
    """Yield the single specs of a declaration, grouped or not."""
    for child in declaration.named_children:
        if child.type.endswith("_spec_list"):
            yield from specs(child)
        elif child.type.endswith("_spec") or child.type == "type_alias":
            yield child


def owner(method: Node) -> str:
    """Return the type of a method's receiver, without star and parameters."""
    receiver = method.child_by_field_name("receiver")
    kinds = (found for found in below(receiver) if found.type == "type_identifier") if receiver is not None else ()
    return text(next(iter(kinds), None))


def imports(top: Node) -> dict[str, str]:
    """Return the imported paths by their names in the file; without an alias, by the end of the path."""
    found: dict[str, str] = {}
    for declaration in top.named_children:
        if declaration.type != "import_declaration":
            continue
        for spec in (node for node in below(declaration) if node.type == "import_spec"):
            path = field_text(spec, "path").strip('"`')
            found[field_text(spec, "name") or package_name(path)] = path
    return found


def package_name(path: str) -> str:
    """Return the likely name of a package: the end of its path, without versions."""
    *_, before, last = ("", *path.split("/"))
    name = before if re.fullmatch(r"v\d+", last) and before else last
    return re.sub(r"\.v\d+$|^go-|-go$", "", name)


def test_kind(function: Node) -> str:
    """Return `Test`, `Fuzz` or `Example` if `go test` runs the function, else an empty text."""
    name = field_text(function, "name")
    parameters = function.child_by_field_name("parameters")
    given = parameters.named_children if parameters is not None else []
    for kind, letter in _KINDS.items():
        if is_name(name, kind) and len(given) == 1 and function.child_by_field_name("result") is None:
            return kind if _points_at(given[0], letter) else ""
    return "Example" if is_name(name, "Example") and not given and has_output(function) else ""


def is_name(name: str, prefix: str) -> bool:
    """Return whether a name is *prefix*, or continues after it with anything but a lower case letter."""
    rest = name.removeprefix(prefix)
    return name.startswith(prefix) and not rest[:1].islower()


def _points_at(parameter: Node, letter: str) -> bool:
    kind = parameter.child_by_field_name("type")
    if kind is None or kind.type != "pointer_type" or len(parameter.children_by_field_name("name")) > 1:
        return False
    inner = kind.named_children[-1]
    return (field_text(inner, "name") if inner.type == "qualified_type" else text(inner)) == letter


def has_output(example: Node) -> bool:
    """Return whether an example's last comment states its output; others are compiled and not run."""
    body = example.child_by_field_name("body")
    comments = [node for node in below(body) if node.type == "comment"] if body is not None else []
    group: list[Node] = []
    for comment in reversed(comments):
        if group and comment.end_point.row + 1 < group[0].start_point.row:
            break
        group.insert(0, comment)
    said = "\n".join(re.sub(r"^//|^/\*|\*/$", "", text(comment)) for comment in group)
    return _OUTPUT.match(said) is not None


def log_lines(top: Node) -> frozenset[int]:
    """Return the lines with a mere note, such as `t.Log`, and no failure."""
    lines: dict[bool, set[int]] = {True: set(), False: set()}
    for call in (node for node in below(top) if node.type == "call_expression"):
        name = _called(call)[1]
        if name in _LOGS or name in _FAILS:
            lines[name in _LOGS].add(line_of(call))
    return frozenset(lines[True] - lines[False])


def bare_lines(function: Node) -> frozenset[int]:
    """Return the lines that fail unconditionally, or on a condition of literals only."""
    found: set[int] = set()
    # from the top on: the way up from each call takes the square of the depth
    stack = [function]
    while stack:
        node = stack.pop()
        if node.type in _BRANCHES and node != function and _looks(node):
            continue
        stack += node.children
        if node.type == "expression_statement":
            found |= {line_of(call) for call in node.children if call.type == "call_expression" and _says(call)}
    return frozenset(found)


def _says(call: Node) -> bool:
    on, name = _called(call)
    if name in _FAILS or (not on and name == "panic"):
        return True
    given = named_children(call.child_by_field_name("arguments"))
    return on in _ASSERTS and not any(_names(argument) - _HANDLES for argument in given)


def _looks(branch: Node) -> bool:
    """Return whether a branch depends on anything but literals."""
    condition = branch.child_by_field_name("condition")
    return branch.type != "if_statement" or condition is None or bool(_names(condition))


def _called(call: Node) -> tuple[str, str]:
    """Return the receiver of a call, empty if it has none, and the called name."""
    function = call.child_by_field_name("function")
    if function is None or function.type != "selector_expression":
        return "", text(function)
    return field_text(function, "operand"), field_text(function, "field")


def _names(node: Node) -> frozenset[str]:
    return names_below(node, MENTIONED) - _LITERAL_NAMES


MAX_BYTES: Final = 8_000_000
MAX_FILES: Final = 100_000

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
        for written, own in part.tests:
            corpus = _corpus(files, folder, written.name) if written.kind == "Fuzz" else b""
            digest = hashlib.sha256(own + b"\0" + common + corpus).hexdigest()
            test = replace(written, sha256=digest)
            # `x` and `x_test` may both have it: they are one program, in which both run under the name
            known = found.tests.get(test.name)
            found.tests[test.name] = test if known is None else _both(known, test)
    return found


def read_file(path: str, source: bytes) -> Part:
    """Return the content of a test file; digests of its tests need the rest of the package."""
    top = parse(source)
    tests: list[tuple[TestFunction, bytes]] = []
    helpers: dict[str, frozenset[str]] = {}
    for item in items(top):
        kind = test_kind(item.node) if item.kind == "func" else ""
        if kind:
            tests.append((_test(path, item, kind), item.node.text or b""))
        else:
            helpers[item.name] = helpers.get(item.name, frozenset()) | names_below(item.node, MENTIONED)
    common = (item.node.text or b"" for item in items(top) if item.kind == "func" and item.name in _COMMON)
    return Part(tuple(tests), helpers, log_lines(top), imports(top), b"\0".join(common))


def _test(path: str, item: Item, kind: str) -> TestFunction:
    node = item.node
    return TestFunction(
        name=item.name,
        kind=kind,
        path=path,
        first=line_of(node),
        sha256="",
        mentions=names_below(node, MENTIONED),
        bare=bare_lines(node),
    )


def _both(one: TestFunction, other: TestFunction) -> TestFunction:
    digest = hashlib.sha256(f"{one.sha256}{other.sha256}".encode()).hexdigest()
    return replace(one, sha256=digest, mentions=one.mentions | other.mentions, bare=one.bare | other.bare)


def _corpus(files: Files, folder: str, name: str) -> bytes:
    """Return the stored inputs of a fuzz test, beside those that it adds itself."""
    place = posixpath.join(folder, "testdata", "fuzz", name)
    return b"\0".join(text_of(files, posixpath.join(place, entry)) or b"" for entry in files.names(place))


def digests_of(files: Files) -> dict[str, str]:
    """Return the sha256 of every test file of the project and of every file in a `testdata` folder, by path."""
    found: dict[str, str] = {}
    for path in filter(is_test_side, files.walk(_NOT_OURS)):
        source = text_of(files, path)
        if source is not None and len(found) < MAX_FILES:
            found[path] = hashlib.sha256(source).hexdigest()
    return found


@dataclass(frozen=True)
class Defined:
    """What a file of production code defines, with its first and last line; a method is `Type.Method`."""

    name: str
    first: int
    last: int
    is_function: bool


def defined_by(files: Files, path: str) -> tuple[Defined, ...]:
    """Return what a file defines, in order."""
    source = text_of(files, path)
    try:
        return limited(defined_in)(source) if source is not None else ()
    except UnreadableError:
        return ()


def defined_in(source: bytes) -> tuple[Defined, ...]:
    """Return what a source defines."""
    return tuple(
        Defined(item.name, line_of(item.node), item.node.end_point.row + 1, item.kind in {"func", "method"})
        for item in items(parse(source))
    )
