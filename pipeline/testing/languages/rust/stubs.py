"""Reads what Rust sources define, for `sources.stubs`; a stub is `todo!()`.

All `impl` blocks of a type are one scope; two traits of it may have functions of one name. Test regions are not
production: nothing in them is stubbed or introduced, and that a stub pass leaves them alone is the gate's to see.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from pipeline.testing.languages.rust.sources import is_for_tests, items, name_in_impl, parse
from pipeline.testing.languages.sources.stubs import WAS, Content, Definition, Parts, Rules
from pipeline.testing.languages.sources.syntax_trees import below, code_of, field_text, line_of, span_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tree_sitter import Node


_DECLARES: Final = frozenset({"use_declaration", "extern_crate_declaration", "inner_attribute_item", "empty_statement"})
_VALUES: Final = frozenset({"const_item", "static_item"})
_SCOPES: Final = frozenset({"trait_item", "mod_item"})
_COMPUTES: Final = frozenset({"call_expression", "macro_invocation", "block", "closure_expression", "if_expression"})


def _read(_: str, source: str) -> Content:
    top = parse(source.encode())
    return Content.of(top, _definitions(top), _others(top))


RULES: Final = Rules(
    _read,
    "todo!()",
    re.compile(r"\{ (?:# ! \[.*?\] )*todo ! \( \)(?: ;)? \}"),
    body="{ #![allow(unused)] todo!() }",  # it compiles even where the project denies unused parameters
    old_body=WAS,
    separator="::",
    modules="inside",
)


def _definitions(
    scope: Node, above: Parts = (), around: str = "", owner: str | None = "", others: tuple[Parts, ...] = ()
) -> Iterator[Definition]:
    """Yield the definitions of a file, a module, a trait or an `impl`.

    Args:
        scope: What has them.
        above: The names around it.
        around: The head of the `impl`.
        owner: What a name has before it when it is introduced; None if it comes with something else.
        others: Other names under which they are found.
    """
    for node, attributes, _ in items(scope):
        if any(map(is_for_tests, attributes)):
            continue
        body, name = node.child_by_field_name("body"), field_text(node, "name")
        head = " ".join((*attributes, code_of(node, without=body)))
        place, also = (*above, name), tuple((*outer, name) for outer in others)
        dotted = f"{owner}{name}" if owner is not None else ""
        if node.type == "impl_item" and body is not None:
            kind, trait = name_in_impl(node, "type"), name_in_impl(node, "trait")
            inner = ((*above, kind), (*above, trait)) if trait else ()
            yield from _definitions(body, tuple(filter(None, (*above, kind, trait))), head, f"{kind}.", inner)
        elif node.type == "function_item" and body is not None:
            code, span = code_of(body), span_of(body)
            yield Definition(place, line_of(node), head, code, around=around, also=also, name=dotted, span=span)
        elif node.type in _SCOPES and body is not None:
            is_module = node.type == "mod_item"
            yield Definition(place, line_of(node), head, around=around, name="" if is_module else dotted)
            yield from _definitions(body, place, around, "" if is_module else None)
        elif name:
            yield Definition(
                place,
                line_of(node),
                " ".join((*attributes, code_of(node))),
                fault="gives {name} a value that is computed" if _is_computed(node) else "",
                around=around,
                is_free=node.type == "mod_item",
                also=also,
                name="" if node.type == "mod_item" else dotted,
                value=(*span, "todo!()") if (span := span_of(_value(node))) is not None else None,
            )


def _value(item: Node) -> Node | None:
    return item.child_by_field_name("value") if item.type in _VALUES else None


def _is_computed(item: Node) -> bool:
    value = _value(item)
    return value is not None and any(node.type in _COMPUTES for node in below(value))


def _others(top: Node) -> Iterator[tuple[str, int]]:
    """Yield the code at a file's top that is no definition and no declaration, mostly macros."""
    for node, attributes, _ in items(top):
        is_known = node.type in _DECLARES or node.type == "impl_item" or field_text(node, "name")
        if not is_known and not any(map(is_for_tests, attributes)):
            yield code_of(node), line_of(node)
