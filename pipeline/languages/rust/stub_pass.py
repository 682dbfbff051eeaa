"""Reads Rust sources to judge stub passes (see `sources.stub_pass`).

All `impl` blocks of a type are one scope; two traits of it may have functions of one name. Test regions are not
production; that a stub pass leaves them alone is the gate's to see.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from pipeline.languages.rust.sources import is_for_tests, items, owner_of, parse, trait_of
from pipeline.languages.sources import stubs
from pipeline.languages.sources.stubs import Content, Definition, Rules
from pipeline.languages.sources.syntax_trees import below, code_of, field_text, first_error, line_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tree_sitter import Node

    from pipeline.evidence.red_classes import Symbol
    from pipeline.languages.named_definitions import Parts
    from pipeline.languages.sources.stubs import StubFault

_DECLARES: Final = frozenset({"use_declaration", "extern_crate_declaration", "inner_attribute_item", "empty_statement"})
_VALUES: Final = frozenset({"const_item", "static_item"})
_SCOPES: Final = frozenset({"trait_item", "mod_item"})
_COMPUTES: Final = frozenset({"call_expression", "macro_invocation", "block", "closure_expression", "if_expression"})


def stub_faults(
    before: Mapping[str, str], after: Mapping[str, str], symbols: Sequence[Symbol]
) -> tuple[StubFault, ...]:
    """Return the changes that are no stubs; see `protocol.Toolchain.stub_faults`."""
    return stubs.stub_faults(_RULES, before, after, symbols)


def _read(path: str, source: str) -> Content:  # noqa: ARG001  (all languages are asked alike)
    top = parse(source.encode())
    if (error := first_error(top)) is not None:
        return Content(error="cannot be parsed", error_line=line_of(error))
    return Content([*_definitions(top, (), "")], [*_others(top)])


_RULES: Final = Rules(_read, "todo!()", re.compile(r"\{ (?:# ! \[.*?\] )*todo ! \( \)(?: ;)? \}"), "::")


def _definitions(scope: Node, above: Parts, around: str) -> Iterator[Definition]:
    for node, attributes, _ in items(scope):
        if any(map(is_for_tests, attributes)):
            continue
        body = node.child_by_field_name("body")
        head = " ".join((*attributes, code_of(node, without=body)))
        name = field_text(node, "name")
        if node.type == "impl_item" and body is not None:
            yield from _definitions(body, tuple(filter(None, (*above, owner_of(node), trait_of(node)))), head)
        elif node.type == "function_item" and body is not None:
            yield Definition((*above, name), line_of(node), head, code_of(body), around=around)
        elif node.type in _SCOPES and body is not None:
            yield Definition((*above, name), line_of(node), head, around=around)
            yield from _definitions(body, (*above, name), around)
        elif name:
            fault = "gives {name} a value that is computed" if _is_computed(node) else ""
            whole = " ".join((*attributes, code_of(node)))
            is_module = node.type == "mod_item"
            yield Definition((*above, name), line_of(node), whole, fault=fault, around=around, is_free=is_module)


def _is_computed(item: Node) -> bool:
    value = item.child_by_field_name("value") if item.type in _VALUES else None
    return value is not None and any(node.type in _COMPUTES for node in below(value))


def _others(top: Node) -> Iterator[tuple[str, int]]:
    """Yield the code at a file's top that is no definition and no declaration, mostly macros."""
    for node, attributes, _ in items(top):
        is_known = node.type in _DECLARES or node.type == "impl_item" or field_text(node, "name")
        if not is_known and not any(map(is_for_tests, attributes)):
            yield code_of(node), line_of(node)
