"""Selects nodes of a Rust syntax tree for small faults. Test regions, types, patterns and macros are left alone.

A statement that is left out stays in the text, behind `if false`: without it a variable would be unused, or not moved,
and the change would say nothing.

What the system and the processor decide is certain. Features, names of the build's own, `test` and the profile are
not: cargo compiles a crate with and without `test`, and which features are on is not in the source.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from tree_sitter import Language, Node, Query, QueryCursor
from tree_sitter_rust import language

from pipeline.testing.languages.sources.faults import Rank
from pipeline.testing.languages.sources.faults.operators import Edit, Grammar, replaced, source_of
from pipeline.testing.languages.sources.faults.platforms import Platform, Truth, every, opposite, some

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


_RUST: Final = Language(language())
_ATTRIBUTES: Final = Query(_RUST, "[(attribute_item) (inner_attribute_item)] @attribute")
_NOT_HERE: Final = frozenset({"miri", "doc"})  # tests are run by neither
_WHOLE: Final = frozenset(
    {"match_arm", "field_initializer", "shorthand_field_initializer", "parameter", "field_pattern"}
)
_SYSTEMS: Final = {"linux": "linux", "darwin": "macos", "win32": "windows"}
_FAMILIES: Final = {"linux": "unix", "darwin": "unix", "win32": "windows"}
_PROCESSORS: Final = frozenset({"x86_64", "aarch64"})  # both 64 bits wide, and little-endian
_CONSTANTS: Final = """
(source_file (const_item name: (_) @name value: (_) @value))
[(const_item name: (_) @bound) (static_item name: (_) @bound) (let_declaration pattern: (identifier) @bound)
 (parameter pattern: (identifier) @bound)]
"""


def _uncompiled(_path: str, top: Node, on: Platform) -> Iterator[Node]:
    for attribute in QueryCursor(_ATTRIBUTES).captures(top).get("attribute", ()):
        if _attribute(attribute, on) is False:
            owner = attribute.parent
            if attribute.type == "attribute_item" and (owner is None or owner.type not in _WHOLE):
                owner = _meant(attribute)
            if owner is not None:
                yield owner


def _meant(attribute: Node) -> Node | None:
    """Return what an attribute stands on."""
    found = attribute.next_named_sibling
    while found is not None and (found.type == "attribute_item" or "comment" in found.type):
        found = found.next_named_sibling
    return found


def _attribute(item: Node, on: Platform) -> Truth:
    """Return whether what an attribute stands on is compiled, None also of one that is no condition."""
    inner = [child for child in item.named_children if child.type == "attribute"]
    return _condition(_parts(inner[0]), on) if inner else None


def _condition(parts: list[Node], on: Platform) -> Truth:
    match [part.text for part in parts if part.type == "identifier"], parts:
        case [b"cfg"], [_, arguments] if arguments.type == "token_tree":
            return every(_predicate(one, on) for one in _listed(arguments))
        case [b"cfg_attr"], [_, arguments] if arguments.type == "token_tree":
            first, *others = _listed(arguments) or [[]]
            # what it adds may be a condition, which counts where its own holds
            added = every(truth for one in others if (truth := _condition(one, on)) is False)
            return some([opposite(_predicate(first, on)), added])
        case _:
            return None


def _predicate(parts: list[Node], on: Platform) -> Truth:
    match parts:
        case [word]:
            return _word((word.text or b"").decode("utf-8", "replace"), on)
        case [how, arguments] if arguments.type == "token_tree":
            truths = [_predicate(one, on) for one in _listed(arguments)]
            if how.text == b"not":
                return opposite(truths[0]) if len(truths) == 1 else None
            return every(truths) if how.text == b"all" else some(truths) if how.text == b"any" else None
        case [key, sign, value] if sign.text == b"=":
            return _property((key.text or b"").decode(), (value.text or b"").decode("utf-8", "replace").strip('"'), on)
        case _:
            return None


def _word(word: str, on: Platform) -> Truth:
    if word in {"true", "false"}:
        return word == "true"
    if word in {"unix", "windows"}:
        return _property("target_family", word, on)
    return False if word in _NOT_HERE else None


def _property(key: str, value: str, on: Platform) -> Truth:
    is_known = on.machine in _PROCESSORS
    facts = {
        "target_os": _SYSTEMS.get(on.system),
        "target_family": _FAMILIES.get(on.system),
        "target_arch": on.machine if is_known else None,
        "target_pointer_width": "64" if is_known else None,
        "target_endian": "little" if is_known else None,
    }
    if (value in {"msvc", "apple"}) and on.system in _SYSTEMS:
        only = {("target_env", "msvc"): "win32", ("target_vendor", "apple"): "darwin"}.get((key, value))
        return False if only is not None and only != on.system else None
    said = facts.get(key)
    return said == value if said is not None else None


def _parts(node: Node) -> list[Node]:
    """Return what a node is made of, without comments and what holds it together."""
    return [child for child in node.children if "comment" not in child.type]


def _listed(tree: Node) -> list[list[Node]]:
    """Return what stands between the commas of a token tree."""
    found: list[list[Node]] = [[]]
    for child in _parts(tree)[1:-1]:
        if child.type == ",":
            found.append([])
        else:
            found[-1].append(child)
    return [one for one in found if one]


def _holds(node: Node, on: Platform) -> Truth:
    """Return whether `cfg!(...)` is true."""
    if node.type != "macro_invocation":
        return None
    macro = node.child_by_field_name("macro")
    tree = node.named_children[-1]
    if macro is None or macro.text not in {b"cfg", b"std::cfg", b"core::cfg"} or tree.type != "token_tree":
        return None
    return every(_predicate(one, on) for one in _listed(tree))


_ROLES: Final = r"""
[(attribute_item) (inner_attribute_item) (macro_definition) (use_declaration) (type_arguments) (type_parameters)
 (array_type) (let_condition) (tuple_struct_pattern) (struct_pattern) (or_pattern) (range_pattern)
 (macro_invocation (token_tree))
] @skipped
((attribute_item) @_test . [(attribute_item) (line_comment) (block_comment)]*
 . [(function_item) (mod_item) (impl_item) (trait_item) (const_item) (static_item)] @skipped
 (#match? @_test "^#\\[(cfg\\((all\\((.*,)?)?\\s*test\\b|(\\w+::)*(\\w*test|test_case|quickcheck|bench)\\b)"))

(function_item name: (_) @name)
[(mod_item name: (_) @name) (trait_item name: (_) @name) (impl_item type: (_) @name)]
[(function_item) (closure_expression) (async_block)] @function
((call_expression function: (field_expression field: (_) @_said)) @message (#eq? @_said "expect"))

(if_expression condition: (_expression) @branch)
(match_pattern condition: (_expression) @guard)
(while_expression condition: (_expression) @loop)
(for_expression body: (block (_)) @body)
(binary_expression left: (_) @conjunct operator: "&&" right: (_) @conjunct)
(binary_expression left: (_) @disjunct operator: "||" right: (_) @disjunct)
[(binary_expression operator: _ @token) (compound_assignment_expr operator: _ @token) (boolean_literal) @token]
(unary_expression ["!" "-"] @sign)
[(integer_literal) (float_literal)] @number
(string_literal) @text
(return_expression (_) @value)
(function_item return_type: (_) body: (block (_expression) @value .))
((function_item return_type: (_) body: (block (expression_statement (_) @value) @_last .)) (#not-match? @_last ";$"))
((expression_statement [(return_expression) (macro_invocation macro: (_) @_ends)] ";") @ending
 (#any-of? @_ends "panic" "bail" "unreachable"))
(expression_statement
 [(call_expression) (assignment_expression) (compound_assignment_expr) (await_expression) (try_expression)
  (continue_expression) (break_expression)] ";") @effect
"""
_ZEROS: Final[Mapping[bytes, bytes]] = {b"Result": b"Ok(Default::default())", b"Option": b"None", b"bool": b"false"}
_NO_VALUES: Final = frozenset({b"None", b"false", b"()", b"String::new()", b"Default::default()", b"0"})


def _returned(node: Node, function: Node) -> Iterator[Edit]:
    """Yield the edit that returns the type's default value instead; if there is none, it does not compile."""
    result = function.child_by_field_name("return_type")
    kind = source_of(result) if result is not None and function.type == "function_item" else b""
    if kind and not kind.startswith((b"!", b"impl", b"dyn", b"&mut")) and source_of(node) not in _NO_VALUES:
        name = kind.split(b"<")[0].rsplit(b"::")[-1].strip()
        new = _ZEROS.get(name, b"Default::default()")
        yield replaced(node, new, f"returns `{new.decode()}`", Rank.DECISION)


_GRAMMAR: Final = Grammar(
    language=_RUST,
    roles=_ROLES,
    own={"value": _returned},
    hint=re.compile(rb"\bcfg\s*!|consts::OS"),
    names=dict.fromkeys((b"std::env::consts::OS", b"env::consts::OS"), _SYSTEMS),
    constants=_CONSTANTS,
    atom=_holds,
    uncompiled=_uncompiled,
    stop=b'compile_error!("is this compiled?");',
    in_parts=True,
)
GRAMMARS: Final = {".rs": _GRAMMAR}
