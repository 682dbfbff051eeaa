"""Go tests whose cases are a variable of another package: see `borrowed_cases`.

Importing this module loads the parser.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from pipeline.languages.go.tree import root_of
from pipeline.languages.sources.borrowed_cases import SHOWN, Borrowed
from pipeline.languages.sources.suite_walk import below, line_of, text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tree_sitter import Node

_TEST: Final = re.compile(r"(?:Test|Fuzz)(?![a-z])\w*")


def read(source: bytes, path: str) -> Iterator[Borrowed]:  # noqa: ARG001  (of every language)
    """Yield the tests of a source that run once for each element of another package's variable."""
    root = root_of(source)
    packages = dict(_imported(root))
    for function in root.named_children:
        name = text(function.child_by_field_name("name"))
        if function.type in {"function_declaration", "method_declaration"} and _TEST.fullmatch(name):
            for node in below(function):
                yield from _ranged(node, name, packages)


def _imported(root: Node) -> Iterator[tuple[str, str]]:
    for node in below(root):
        if node.type == "import_spec":
            place = text(node.child_by_field_name("path")).strip('"`')
            yield text(node.child_by_field_name("name")) or place.rpartition("/")[2], place


def _ranged(node: Node, test: str, packages: Mapping[str, str]) -> Iterator[Borrowed]:
    """Yield the loop if it runs sub-tests; another one is over what is tested more often than not."""
    clause = next((child for child in node.named_children if child.type == "range_clause"), None)
    cases = clause.child_by_field_name("right") if clause is not None else None
    if cases is None or cases.type != "selector_expression" or not any(map(_runs, below(node))):
        return
    package = packages.get(text(cases.child_by_field_name("operand")))
    if package is not None:
        parts = package.split("/")
        places = tuple("/".join(parts[at:]) for at in range(len(parts)))
        yield Borrowed(test, text(cases)[:SHOWN], places, line_of(cases))


def _runs(node: Node) -> bool:
    return node.type == "call_expression" and text(node.child_by_field_name("function")).endswith(".Run")
