"""Reads JavaScript and TypeScript syntax trees of tree-sitter: names, definitions, places.

Importing this module, or one that does, loads the parsers; `node` does so when such a project is measured.

The region of a test is its whole statement, the loop or table around it included, and the hooks of the suites around
it: whoever changes one of these changes what the test says.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import PurePosixPath
from posixpath import normpath
from typing import TYPE_CHECKING, Final

import tree_sitter_javascript
import tree_sitter_typescript
from tree_sitter import Language, Node, Parser

from pipeline.testing.languages.sources.syntax_trees import (
    below,
    field_text,
    first_error,
    line_of,
    names_below,
    text,
    with_helpers,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Container, Iterator


FUNCTIONS: Final = frozenset(
    {
        "function_declaration", "generator_function_declaration", "function_expression", "generator_function",
        "arrow_function", "method_definition",
    }
)  # fmt: skip
CLASSES: Final = frozenset({"class_declaration", "abstract_class_declaration", "class"})
FIELDS: Final = frozenset({"field_definition", "public_field_definition"})
COMMENTS: Final = frozenset({"comment", "html_comment", "hash_bang_line"})
_TYPED: Final = frozenset({".ts", ".mts", ".cts"})
_NAMED: Final = frozenset(
    {"internal_module", "module", "enum_declaration", "interface_declaration", "type_alias_declaration"}
)
_WRAPPERS: Final = frozenset(
    {"parenthesized_expression", "as_expression", "satisfies_expression", "non_null_expression", "type_assertion"}
)


@cache
def language_of(ending: str) -> Language:
    """Return the grammar for a file ending."""
    if ending in _TYPED:
        return Language(tree_sitter_typescript.language_typescript())
    return Language(tree_sitter_typescript.language_tsx() if ending == ".tsx" else tree_sitter_javascript.language())


def parse(path: str, source: bytes) -> Node:
    """Return the syntax tree of a whole file by its ending; it may contain errors."""
    return Parser(language_of(PurePosixPath(path).suffix)).parse(source).root_node


def around(node: Node) -> Iterator[Node]:
    """Yield a node and all nodes that contain it, the innermost first."""
    at: Node | None = node
    while at is not None:
        yield at
        at = at.parent


def field(node: Node, *names: str) -> Node | None:
    """Return the node at a path of fields, None if one of them is missing."""
    at: Node | None = node
    for name in names:
        at = at.child_by_field_name(name) if at is not None else None
    return at


def bare(node: Node | None) -> Node | None:
    """Return an expression without parentheses and type assertions around it."""
    while node is not None and node.type in _WRAPPERS:
        node = next(iter(node.named_children), None)
    return node


def literal(node: Node | None) -> str | None:
    """Return the text of a string or template literal, None for other nodes."""
    if node is None or node.type not in {"string", "template_string"}:
        return None
    return text(node)[1:-1]


def at(top: Node, line: int, column: int | None) -> Node | None:
    """Return the innermost node at a place, None if there is none.

    Args:
        top: The file.
        line: From 1.
        column: From 1, in UTF-16 units as engines count; None for the first code of the line.
    """
    start = top.start_point  # the tree begins with the first code
    lines = (b"\n" * start.row + b" " * start.column + (top.text or b"")).split(b"\n")
    if not 1 <= line <= len(lines):
        return None
    content = lines[line - 1]
    if column is None:
        byte = len(content) - len(content.lstrip())
    else:
        byte = _bytes(content.decode("utf-8", "replace"), column - 1)
    point = (line - 1, min(byte, max(len(content) - 1, 0)))
    return top.named_descendant_for_point_range(point, point)


def _bytes(content: str, units: int) -> int:
    if content.isascii():
        return units
    return len(content.encode("utf-16-le")[: 2 * units].decode("utf-16-le", "ignore").encode())


def name_of(node: Node) -> str:
    """Return the name of a definition, which a function can get from its place; empty for other nodes."""
    if node.type in CLASSES or node.type in _NAMED or node.type in FUNCTIONS or node.type in FIELDS:
        own = field_text(node, "name") or (field_text(node, "property") if node.type in FIELDS else "")
        if own:
            return own.strip("'\"")
    if node.type not in FUNCTIONS | CLASSES:
        return ""
    return _name_by_place(node)


def _name_by_place(node: Node) -> str:
    holder = node.parent
    while holder is not None and holder.type in _WRAPPERS:
        holder = holder.parent
    if holder is None:
        return ""
    match holder.type:
        case "variable_declarator":
            return field_text(holder, "name")
        case "pair":
            return field_text(holder, "key").strip("'\"")
        case "assignment_expression":
            return assigned_name(field_text(holder, "left"))
        case "export_statement":
            return "default"
        case _:
            return ""


def assigned_name(target: str) -> str:
    """Return the name of an assignment's target: `exports.a` is `a`, `A.prototype.b` is `A.b`."""
    name = "".join(target.split())
    for prefix in ("module.exports.", "exports."):
        name = name.removeprefix(prefix)
    return name.replace(".prototype.", ".")


def qualname(node: Node) -> str:
    """Return the dotted name of the innermost definition around a node, `<module>` at the top of a file."""
    names = [name_of(one) for one in around(node)]
    return ".".join(name for name in reversed(names) if name) or "<module>"


ENDINGS: Final = (".ts", ".tsx", ".mts", ".cts", ".js", ".jsx", ".mjs", ".cjs", ".json")
_COMPILED: Final = {".js": (".ts", ".tsx"), ".jsx": (".tsx",), ".mjs": (".mts",), ".cjs": (".cts",)}
_ALIASES: Final = ("@/", "~/", "~~/", "#", "$lib/", "src/")
"""Prefixes that no package can have, and that bundlers and `imports` use for files of the project."""
EVERYTHING: Final = "*"


@dataclass(frozen=True)
class Binding:
    """A name in a file bound to a module's export: `name` is its name there, `*` for the whole module."""

    module: str
    name: str


def bindings_of(path: str, source: bytes) -> dict[str, Binding]:
    """Return the imported names of a file, by import, `require` and `await import`."""
    found: dict[str, Binding] = {}
    for node in below(_parsed(path, source)):
        if node.type == "import_statement" and (module := literal(field(node, "source"))) is not None:
            found.update(_imported(node, module))
        elif node.type == "variable_declarator" and (module := required(field(node, "value"))) is not None:
            name = field(node, "name")
            found.update(_destructured(name, module) if name is not None else ())
    return found


def _imported(node: Node, module: str) -> Iterator[tuple[str, Binding]]:
    for clause in below(node):
        if clause.type == "import_specifier":
            name = field_text(clause, "name")
            yield field_text(clause, "alias") or name, Binding(module, name.strip("'\""))
        elif clause.type == "namespace_import":
            yield from ((text(child), Binding(module, EVERYTHING)) for child in clause.named_children)
        elif clause.type == "import_clause":
            defaults = (child for child in clause.named_children if child.type == "identifier")
            yield from ((text(child), Binding(module, "default")) for child in defaults)


def required(value: Node | None) -> str | None:
    """Return the module in `require("m")` or `await import("m")`, None for other values."""
    value = bare(value)
    if value is not None and value.type == "await_expression":
        value = bare(next(iter(value.named_children), None))
    if value is None or value.type != "call_expression":
        return None
    function, arguments = field(value, "function"), field(value, "arguments")
    if function is None or arguments is None or text(function) not in {"require", "import"}:
        return None
    return literal(next(iter(arguments.named_children), None))


def _destructured(name: Node, module: str) -> Iterator[tuple[str, Binding]]:
    if name.type == "identifier":
        yield text(name), Binding(module, EVERYTHING)
        return
    for part in name.named_children:
        if part.type == "shorthand_property_identifier_pattern":
            yield text(part), Binding(module, text(part))
        elif part.type == "pair_pattern":
            yield field_text(part, "value"), Binding(module, field_text(part, "key"))


def is_own(module: str, packages: Collection[str]) -> bool:
    """Return whether a module belongs to the project: a path, an alias, or one of its packages by name."""
    if module.startswith((".", "/", "file:", *_ALIASES)):
        return True
    return any(module == name or module.startswith(f"{name}/") for name in packages)


def resolved(importer: str, module: str, files: Collection[str]) -> str | None:
    """Return the project's file that a relative import means, by the rules of node and bundlers; else None."""
    return file_at(str(PurePosixPath(importer).parent / module), files) if module.startswith(".") else None


def file_at(place: str, files: Container[str]) -> str | None:
    """Return the file that a path means: itself, its TypeScript source, one with an ending, or its index; else None."""
    place = normpath(place)
    ending = PurePosixPath(place).suffix
    candidates = [place, *(place.removesuffix(ending) + other for other in _COMPILED.get(ending, ()))]
    candidates += [*(place + other for other in ENDINGS), *(f"{place}/index{other}" for other in ENDINGS)]
    return next((path for path in candidates if path in files), None)


def stem(path: str) -> str:
    """Return a module's path without its ending and without `index`."""
    pure = PurePosixPath(path)
    whole = str(pure.with_suffix("")) if pure.suffix in ENDINGS else path
    return whole.removesuffix("/index")


def module_key(importer: str, module: str, files: Collection[str]) -> str:
    """Return a name for a module: the path, without ending, of its existing or future file; other names unchanged."""
    if not module.startswith("."):
        return module
    return stem(resolved(importer, module, files) or normpath(str(PurePosixPath(importer).parent / module)))


TESTS: Final = frozenset({"test", "it", "fit", "xit", "xtest", "ftest", "specify", "bench"})
SUITES: Final = frozenset({"describe", "suite", "context", "fdescribe", "xdescribe"})
HOOKS: Final = frozenset(
    {"before", "after", "beforeEach", "afterEach", "beforeAll", "afterAll", "onTestFinished", "onTestFailed"}
)
_ASSERTING: Final = frozenset({"assert", "expect", "chai", "t", "strict"})
_SAYS_NOTHING: Final = frozenset({"undefined", "NaN", "Infinity", "Error", "AssertionError", "TypeError", "RangeError"})
_NAMES: Final = frozenset({"identifier", "this", "shorthand_property_identifier"})


@dataclass(frozen=True)
class Region:
    """A test in its file. `function` is the part of the id that all tests of one table or loop share."""

    sha256: str
    function: str


def _call_at(top: Node, line: int, column: int | None) -> Node | None:
    start = at(top, line, column)
    for node in around(start) if start is not None else ():
        if node.type == "call_expression" and root_name(node) in TESTS:
            return _whole_call(node)
    # what a wrapper of the project's own defines: the first call on the way whose first argument is a title
    for node in around(start) if start is not None else ():
        if node.type == "call_expression" and _first(node) is not None and literal(_first(node)) is not None:
            return _whole_call(node)
    return None


def _whole_call(node: Node) -> Node:
    """Return the whole call `test.each(table)("name", body)` for its inner `test.each(table)`."""
    while node.parent is not None and node.parent.type == "call_expression" and field(node.parent, "function") == node:
        node = node.parent
    return node


def root_name(node: Node) -> str:
    """Return the first name of a called expression: `test` of `test.each(table)("name", body)`."""
    root: Node | None = node
    while root is not None and root.type in {"call_expression", "member_expression", "parenthesized_expression"}:
        root = field(root, "function") or field(root, "object") or bare(root)
    return text(root) if root is not None and root.type == "identifier" else ""


def _first(call: Node) -> Node | None:
    arguments = field(call, "arguments")
    return next(iter(arguments.named_children), None) if arguments is not None else None


def _title(call: Node) -> str:
    first = _first(call)
    found = literal(first)
    if found is not None:
        return " ".join(found.split())
    return " ".join(text(first).split())[:200] if first is not None and first.type not in FUNCTIONS else ""


def _statement(call: Node) -> tuple[Node, list[Node]]:
    """Return the statement of a test in its suite, and the bodies of the suites around it, the file's own last."""
    statement = call
    while statement.parent is not None and not _is_container(statement.parent):
        statement = statement.parent
    return statement, [node for node in around(statement) if node != statement and _is_container(node)]


def _is_container(node: Node) -> bool:
    return node.type == "program" or _suite_of(node) is not None


def _suite_of(body: Node) -> Node | None:
    """Return the `describe` call whose function has this body, None if it is none."""
    function = body.parent
    if body.type != "statement_block" or function is None or function.type not in FUNCTIONS:
        return None
    arguments = function.parent
    call = arguments.parent if arguments is not None and arguments.type == "arguments" else None
    return call if call is not None and root_name(call) in SUITES else None


def _hooks(container: Node) -> Iterator[Node]:
    for statement in container.named_children:
        call = next(iter(statement.named_children), None) if statement.type == "expression_statement" else None
        if call is not None and call.type == "call_expression" and root_name(call) in HOOKS:
            yield statement


def is_bare_at(path: str, source: bytes, line: int, column: int | None) -> bool:
    """Return whether the statement at a place fails unconditionally: it looks only at literals."""
    node = at(_parsed(path, source), line, column)
    if node is None:
        return False
    statement = next((one for one in around(node) if one.type in {"expression_statement", "throw_statement"}), None)
    statement = statement or next((one for one in around(node) if one.type == "call_expression"), None)
    if statement is None:
        return False
    calls = {root_name(node) for node in below(statement) if node.type == "call_expression"}
    if statement.type != "throw_statement" and calls.isdisjoint({*_ASSERTING, "fail"}):
        return False
    return not any(_looks(part) for part in below(statement) if part.type in _NAMES)


def _looks(name: Node) -> bool:
    """Return whether a name is more than an assertion's or an error class's."""
    word = text(name)
    if word in _SAYS_NOTHING or word == "fail":
        return False
    if word not in _ASSERTING:
        return True
    # `assert`, `expect.fail`, `t.assert`: what is called, not what is looked at
    holder = name.parent
    return holder is None or holder.type not in {"call_expression", "member_expression"}


_parsed = lru_cache(maxsize=8)(parse)  # many places of one file are asked about in a row


@dataclass(frozen=True)
class Looked:
    """An expression that was undefined: its kind, its last name, and its root.

    `root` and `root_kind` are what its members are read from, empty where that is nothing.
    """

    kind: str
    name: str
    root: str = ""
    root_kind: str = ""


def functions_of(path: str, source: bytes) -> tuple[str, ...]:
    """Return the dotted names of all named functions of a file, methods and constructors among them."""
    named = (node for node in below(_parsed(path, source)) if node.type in FUNCTIONS and name_of(node))
    return tuple(dict.fromkeys(map(qualname, named)))


def function_at(path: str, source: bytes, line: int, column: int | None) -> str:
    """Return the dotted name of the definition around a place, empty if there is none."""
    node = at(_parsed(path, source), line, column)
    return qualname(node) if node is not None else ""


def region_at(path: str, source: bytes, line: int, column: int | None) -> Region | None:
    """Return the test that is defined at a place of a file, None if no test function is called there."""
    call = _call_at(_parsed(path, source), line, column)
    if call is None:
        return None
    statement, containers = _statement(call)
    digest = hashlib.sha256()
    for part in (statement, *(hook for container in containers for hook in _hooks(container))):
        digest.update((part.text or b"") + b"\0")
    titles = [_title(call)]
    for container in containers:
        suite = _suite_of(container)
        if suite is not None:
            titles.append(_title(suite))
            digest.update((field_text(suite, "function") + titles[-1]).encode() + b"\0")
    return Region(digest.hexdigest(), f"{path}::{' > '.join(reversed(titles))}")


_DEFINED: Final = frozenset({"function_declaration", "generator_function_declaration", "class_declaration"})
_DECLARED: Final = frozenset({"lexical_declaration", "variable_declaration"})
_SET_UPS: Final = frozenset({"before", "beforeAll", "beforeEach", "setup", "suiteSetup"})


def names_at(path: str, source: bytes, line: int, column: int | None) -> frozenset[str]:
    """Return the names in the test that is defined at a place, and in what it uses of its file and of its set-ups."""
    tree = _parsed(path, source)
    call = _call_at(tree, line, column)
    statement = _statement(call)[0] if call is not None else None
    if statement is None:
        return frozenset()
    helpers: dict[str, set[str]] = {}
    for name, names in _helpers(tree):
        helpers.setdefault(name, set()).update(names)
    return with_helpers(names_below(statement, {"identifier"}), helpers)


def _helpers(tree: Node) -> Iterator[tuple[str, frozenset[str]]]:
    """Yield the names that a file gives at its top or in a set-up of tests, with those that it mentions for each."""
    for node in tree.named_children:
        if node.type in _DEFINED:
            yield field_text(node, "name"), names_below(node, {"identifier"})
        for part in node.named_children if node.type in _DECLARED else ():
            given = field(part, "name")
            kinds = {"identifier", "shorthand_property_identifier_pattern"}
            for name in names_below(given, kinds) if given is not None else ():
                yield name, names_below(part, {"identifier"})
    for node in below(tree):
        if node.type == "call_expression" and field_text(node, "function") in _SET_UPS:
            names = names_below(node, {"identifier"})
            yield from ((name, names) for name in names)


def has_markup(path: str, source: bytes) -> bool:
    """Return whether a file contains JSX."""
    return any(node.type.startswith("jsx_") for node in below(_parsed(path, source)))


def error_in(path: str, source: bytes) -> int | None:
    """Return the line of the first syntax error, None if there is none."""
    error = first_error(_parsed(path, source))
    return line_of(error) if error is not None else None


def looked_at(path: str, source: bytes, line: int, name: str, called: bool) -> Looked | None:
    """Return the undefined expression near a line (what is called, or read a property of), None if it is not found."""
    best: Node | None = None
    for node in below(_parsed(path, source)):
        start, end = node.start_point.row + 1, node.end_point.row + 1
        if not start <= line <= end:
            continue
        if called and node.type in {"call_expression", "new_expression"}:
            function = bare(field(node, "function") or field(node, "constructor"))
            is_member = function is not None and function.type == "member_expression"
            if function is not None and name == (field_text(function, "property") if is_member else text(function)):
                best = function
        elif not called and node.type == "member_expression" and field_text(node, "property") == name:
            best = bare(field(node, "object"))
    return _looked(best) if best is not None else None


def _looked(expression: Node) -> Looked:
    if expression.type == "identifier":
        return Looked(expression.type, text(expression))
    if expression.type != "member_expression":
        return Looked(expression.type, "")
    root = bare(field(expression, "object"))
    while root is not None and root.type in {"member_expression", "subscript_expression", "call_expression"}:
        root = bare(field(root, "object") or field(root, "function"))
    wanted = field_text(expression, "property")
    if root is None:
        return Looked(expression.type, wanted)
    return Looked(expression.type, wanted, text(root) if root.type == "identifier" else "", root.type)
