"""Rust code that looks at its own tests, or ends them: see `forgery`.

Importing this module loads the parser.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from pipeline.languages.rust import asserts as rust_asserts
from pipeline.languages.sources.forgery_marks import OURS, answers_always_the_same, is_inside, said
from pipeline.languages.sources.suite_walk import line_of, text

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from tree_sitter import Node

    from pipeline.languages.sources.forgery_marks import Means

_CALLS: Final = {
    "current_exe": "the name of the program that runs it",
    "set_hook": "what a panic says",
    "set_current_dir": "where relative names of files lead",
    "take_hook": "what a panic says",
    "_exit": "the end of the process",
    "atexit": "the end of the process",
    "quick_exit": "the end of the process",
    "from_raw_fd": "what others have opened",
    "dup2": "what others have opened",
    "dup3": "what others have opened",
    "syscall": "calls of the kernel by their number",
    "libc::write": "what others have opened",
}
_CONDITION: Final = re.compile(r"#!?\[\s*cfg(?:_attr)?\s*\((?P<what>.*)\)\s*\]", re.DOTALL)
_TEST_MODULE: Final = re.compile(r"(?:test|all\((?:[^()]*,)?\s*test\s*(?:,.*)?\))", re.DOTALL)
_TEST: Final = re.compile(r"(?<![\w\"=])test(?![\w\"])")
_BEFORE_MAIN: Final = re.compile(r"#\[\s*(?:\w+::)*ctor\b|#\[.*link_section.*init_array", re.DOTALL)
_LINKED: Final = re.compile(r"(?<![\w\"])(?:no_mangle\b|export_name\s*=\s*\"(?P<name>[^\"]*)\")")
_PATH: Final = re.compile(r"#!?\[\s*path\s*=\s*\"(?P<path>[^\"]*)\"")
_MACHINE: Final = frozenset({"asm", "global_asm", "naked_asm"})
_STRING: Final = re.compile(r"\"([^\"]*)\"")
_SOURCE: Final = ".rs"
_WORDS: Final = re.compile(
    rf"test result:|running 1 test\b|\btest .{{0,80}}\.\.\. ok\b|--nocapture|--test-threads|RUST_TEST_\w+|NEXTEST\w*"
    rf"|{OURS}"
)
_STRINGS: Final = frozenset({"string_literal", "raw_string_literal"})
_COMPARISONS: Final = frozenset({"eq", "ne", "cmp", "partial_cmp"})
_ASSERTIONS: Final = frozenset({"assert", "assert_eq", "assert_ne", "matches", "panic", "unreachable", "todo"})
_FUNCTIONS: Final = frozenset({"function_item", "closure_expression"})


def means(source: bytes, path: str, own: Collection[str]) -> Iterator[Means]:  # noqa: ARG001  (of every language)
    """Yield the means of forging test results in a source, outside of its test modules."""
    stack = [rust_asserts.parse(source).root_node]
    while stack:
        node = stack.pop()
        if node.type == "mod_item" and _is_for_tests(node):
            continue
        found = _of(node)
        if found is not None:
            yield found, line_of(node)
        stack.extend(reversed(node.children))


def _of(node: Node) -> str | None:
    match node.type:
        case "attribute_item" | "inner_attribute_item":
            return _attribute(node)
        case "macro_invocation":
            return _invoked(node)
        case "macro_definition" if text(node.child_by_field_name("name")) in _ASSERTIONS:
            return f"defines the macro {text(node.child_by_field_name('name'))} anew"
        case "call_expression":
            return _called(node)
        case "function_item":
            name = text(node.child_by_field_name("name"))
            same = answers_always_the_same(node.child_by_field_name("body"), _FUNCTIONS, last_counts=True)
            return f"defines {name} with the same answer for everything" if same and name in _COMPARISONS else None
        case kind if kind in _STRINGS:
            word = said(text(node), _WORDS)
            return f"mentions {word}" if word is not None else None
        case _:
            return None


def _invoked(node: Node) -> str | None:
    name = text(node.child_by_field_name("macro")).replace(" ", "").rpartition("::")[2]
    if name == "cfg":
        return "asks whether tests are built (cfg!)" if _TEST.search(text(node)) else None
    if name in _MACHINE:
        return f"writes machine code ({name}!)"
    if name == "include":
        names = _STRING.findall(text(node))
        return _included(names[-1] if names else "what is computed")
    return None


def _included(path: str) -> str | None:
    return None if path.endswith(_SOURCE) else f"includes {path} (code that nobody reads)"


def _attribute(node: Node) -> str | None:
    words = text(node)
    if _BEFORE_MAIN.match(words):
        return "runs before the tests do"
    if (linked := _LINKED.search(words)) is not None:
        return f"links as {linked['name'] or _name_after(node)} (what others call by this name)"
    if (named := _PATH.match(words)) is not None:
        return _included(named["path"])
    condition = _CONDITION.fullmatch(words)
    if condition is None or _TEST.search(condition["what"]) is None or _gives_a_test_module(node):
        return None
    return f"is built otherwise for tests (#[cfg({' '.join(condition['what'].split())[:60]})])"


def _gives_a_test_module(attribute: Node) -> bool:
    following = _item_after(attribute)
    return following is not None and following.type == "mod_item" and _is_for_tests(following)


def _name_after(attribute: Node) -> str:
    following = _item_after(attribute)
    return text(following.child_by_field_name("name")) if following is not None else ""


def _item_after(attribute: Node) -> Node | None:
    following = attribute.next_named_sibling
    while following is not None and following.type in {"attribute_item", "line_comment", "block_comment"}:
        following = following.next_named_sibling
    return following


def _is_for_tests(module: Node) -> bool:
    before = module.prev_named_sibling
    while before is not None and before.type in {"attribute_item", "line_comment", "block_comment"}:
        condition = _CONDITION.fullmatch(text(before)) if before.type == "attribute_item" else None
        if condition is not None and _TEST_MODULE.fullmatch(condition["what"].strip()):
            return True
        before = before.prev_named_sibling
    return False


def _called(node: Node) -> str | None:
    function = node.child_by_field_name("function")
    name = text(function).replace(" ", "")
    last = name.rpartition("::")[2]
    if last == "exit" and text(node.child_by_field_name("arguments")).replace(" ", "") == "(0)":
        return None if is_inside(node, {"function_item"}, "main") else "calls exit(0) (the end of the process)"
    if function is not None and function.type == "field_expression":
        is_thread = text(function.child_by_field_name("value")).replace(" ", "").endswith("thread::current()")
        asks = text(function.child_by_field_name("field")) == "name"
        return "asks for the name of its thread (the name of the test)" if is_thread and asks else None
    used = next((known for known in (last, name) if known in _CALLS), None)
    return f"uses {used} ({_CALLS[used]})" if used is not None else None
