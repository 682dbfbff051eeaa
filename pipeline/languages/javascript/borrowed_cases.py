"""JavaScript and TypeScript tests whose cases are imported: see `borrowed_cases`.

Importing this module loads the parsers.
"""

from __future__ import annotations

import posixpath
import re
from typing import TYPE_CHECKING, Final

from pipeline.languages.javascript.tree import root_of
from pipeline.languages.sources.borrowed_cases import SHOWN, Borrowed
from pipeline.languages.sources.suite_walk import below, line_of, text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tree_sitter import Node

_TESTS: Final = re.compile(
    r"(?:test|it|describe|suite|context|specify|t)(?:\.(?:only|skip|concurrent|sequential|test))*"
)
_EACH: Final = re.compile(rf"{_TESTS.pattern}\.(?:each|for)")


def read(source: bytes, path: str) -> Iterator[Borrowed]:
    """Yield the tests of a source whose cases are made of what it imports from a file of the project."""
    root = root_of(source, path)
    names = _Names(root, posixpath.dirname(path))
    for node in below(root):
        cases, test = _cases(node)
        if cases is not None:
            modules = tuple(sorted(set(names.modules(cases))))
            if modules:
                yield Borrowed(test, " ".join(text(cases).split())[:SHOWN], modules, line_of(cases))


def _cases(node: Node) -> tuple[Node | None, str]:
    """Return what tests are made for each of, and what the first is called."""
    if node.type == "for_in_statement":
        return _if_tests(node.child_by_field_name("right"), node.child_by_field_name("body"))
    function = node.child_by_field_name("function") if node.type == "call_expression" else None
    given = node.child_by_field_name("arguments")
    first = given.named_children[0] if given is not None and given.named_children else None
    if function is None or function.type != "member_expression" or first is None:
        return None, ""
    if _EACH.fullmatch(text(function)):
        return first, _title(node.parent)
    if text(function.child_by_field_name("property")) == "forEach":
        return _if_tests(function.child_by_field_name("object"), first)
    return None, ""


def _if_tests(cases: Node | None, body: Node | None) -> tuple[Node | None, str]:
    calls = (node for node in below(body) if node.type == "call_expression") if body is not None else ()
    tests = (node for node in calls if _TESTS.fullmatch(text(node.child_by_field_name("function"))))
    first = next(tests, None)
    return (cases, _title(first)) if first is not None else (None, "")


def _title(call: Node | None) -> str:
    given = call.child_by_field_name("arguments") if call is not None and call.type == "call_expression" else None
    return text(given.named_children[0]).strip("'\"`")[:SHOWN] if given is not None and given.named_children else ""


class _Names:
    """What the names of a file stand for: imported ones for files, others for their value."""

    def __init__(self, root: Node, folder: str) -> None:
        self._imported: dict[str, str] = {}
        self._made: dict[str, Node] = {}
        for node in below(root):
            if node.type == "import_statement":
                self._import(node, _file(folder, text(node.child_by_field_name("source"))))
            elif node.type == "variable_declarator":
                self._declare(node, folder)

    def _import(self, statement: Node, file: str) -> None:
        clause = next((child for child in statement.named_children if child.type == "import_clause"), None)
        if clause is not None and file:
            self._imported |= {text(part): file for part in below(clause) if part.type == "identifier"}

    def _declare(self, node: Node, folder: str) -> None:
        name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
        if name is None or value is None:
            return
        given = value.child_by_field_name("arguments")
        if text(value.child_by_field_name("function")) == "require" and given is not None and given.named_children:
            file = _file(folder, text(given.named_children[0]))
            kinds = {"identifier", "shorthand_property_identifier_pattern"}
            self._imported |= {text(part): file for part in below(name) if file and part.type in kinds}
        elif name.type == "identifier":
            self._made[text(name)] = value

    def modules(self, value: Node) -> Iterator[str]:
        """Yield the files that the parts of a value come from, each name looked up once."""
        pending, seen = [value], set[str]()
        while pending:
            for node in _outside_cases(pending.pop()):
                name = text(node) if node.type == "identifier" else ""
                if name in self._imported:
                    yield self._imported[name]
                elif name in self._made and name not in seen:
                    seen.add(name)
                    pending.append(self._made[name])


def _file(folder: str, specifier: str) -> str:
    """Return the file of a relative import, without its ending; empty for a package."""
    plain = specifier.strip("'\"`")
    if not plain.startswith("."):
        return ""
    stem = re.sub(r"\.(?:[mc]?[jt]s|[jt]sx)\Z", "", posixpath.normpath(posixpath.join(folder, plain)))
    return stem.removesuffix("/index")


def _outside_cases(value: Node) -> Iterator[Node]:
    """Yield the parts of a list of cases but those of cases that are written down: there every value can be read."""
    if value.type == "array":
        spread = (child for child in value.named_children if child.type == "spread_element")
        yield from (part for child in spread for part in below(child))
    else:
        yield from below(value)
