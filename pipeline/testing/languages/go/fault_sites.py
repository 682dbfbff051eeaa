"""Selects nodes of a Go syntax tree for small faults. Types, imports and logging are left alone.

Go refuses a variable that is not used. What is left out therefore stays in the text, behind `if false`.

Tags of the build's own, and `cgo`, are not in the source: files with these keep their faults.
"""

from __future__ import annotations

import re
from itertools import takewhile
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final

from tree_sitter import Language, Node
from tree_sitter_go import language

from pipeline.testing.languages.sources.faults import Rank, quoted
from pipeline.testing.languages.sources.faults.operators import Edit, Grammar, replaced, source_of
from pipeline.testing.languages.sources.faults.platforms import Platform, Truth, every, opposite, some

if TYPE_CHECKING:
    from collections.abc import Iterator


_SYSTEMS: Final = frozenset({
    "aix", "android", "darwin", "dragonfly", "freebsd", "hurd", "illumos", "ios", "js", "linux", "nacl", "netbsd",
    "openbsd", "plan9", "solaris", "wasip1", "windows", "zos",
})  # fmt: skip
_PROCESSORS: Final = frozenset({
    "386", "amd64", "amd64p32", "arm", "arm64", "armbe", "arm64be", "loong64", "mips", "mips64", "mips64le",
    "mips64p32", "mips64p32le", "mipsle", "ppc", "ppc64", "ppc64le", "riscv", "riscv64", "s390", "s390x", "sparc",
    "sparc64", "wasm",
})  # fmt: skip
_NEVER: Final = frozenset({"ignore", "gccgo"})  # what is run by hand, and another compiler
_HERE: Final = {"linux": "linux", "darwin": "darwin", "win32": "windows"}
_MACHINES: Final = {"x86_64": "amd64", "aarch64": "arm64"}
_BUILD: Final = re.compile(rb"//go:build\s+(?P<what>.+)")
_TOKENS: Final = re.compile(r"&&|\|\||[!()]|[\w.]+")
_DEEPEST: Final = 50
_CONSTANTS: Final = """
(source_file [(const_declaration (const_spec name: (_) @name value: (expression_list . (_) @value .)))
 (var_declaration (var_spec name: (_) @name value: (expression_list . (_) @value .)))
 (var_declaration (var_spec_list (var_spec name: (_) @name value: (expression_list . (_) @value .))))])
[(const_spec name: (_) @bound) (var_spec name: (_) @bound) (parameter_declaration name: (_) @bound)
 (short_var_declaration left: (expression_list (_) @bound))
 (assignment_statement left: (expression_list (_) @bound))]
"""


def _uncompiled(path: str, top: Node, on: Platform) -> Iterator[Node]:
    if every([_by_name(PurePosixPath(path).stem, on), _by_constraint(top, on)]) is False:
        yield top


def _by_name(stem: str, on: Platform) -> Truth:
    if stem.startswith(("_", ".")):
        return False
    words = stem.removesuffix("_test").split("_")[1:]
    if not words or words[-1] not in _SYSTEMS | _PROCESSORS:
        return True
    count = 2 if words[-1] in _PROCESSORS and words[-2:-1] and words[-2] in _SYSTEMS else 1
    return every(_tag(word, on) for word in words[-count:])


def _by_constraint(top: Node, on: Platform) -> Truth:
    """Return whether the constraint before the package clause holds; one of before Go 1.17 (`+build`) is not read."""
    for node in takewhile(lambda node: node.type != "package_clause", top.children):
        if (found := _BUILD.fullmatch((node.text or b"").rstrip())) is not None:
            return _any(_TOKENS.findall(found["what"].decode("utf-8", "replace")), on, 0)
    return True


def _any(tokens: list[str], on: Platform, depth: int) -> Truth:
    """Return whether an expression holds; its tokens are taken from the front."""
    found = [[_one(tokens, on, depth)]]
    while tokens[:1] in (["||"], ["&&"]):
        if tokens.pop(0) == "||":
            found.append([])
        found[-1].append(_one(tokens, on, depth))
    return some(map(every, found))


def _one(tokens: list[str], on: Platform, depth: int) -> Truth:
    if not tokens or depth > _DEEPEST:
        return None
    first = tokens.pop(0)
    if first == "!":
        return opposite(_one(tokens, on, depth + 1))
    if first == "(":
        found = _any(tokens, on, depth + 1)
        del tokens[:1]
        return found
    return _tag(first, on)


def _tag(tag: str, on: Platform) -> Truth:
    system, machine = _HERE.get(on.system), _MACHINES.get(on.machine)
    if tag in _SYSTEMS:
        return tag == system if system is not None else None
    if tag in _PROCESSORS:
        return tag == machine if machine is not None else None
    if tag == "unix":
        return system != "windows" if system is not None else None
    return False if tag in _NEVER else None


_ROLES: Final = r"""
[(import_declaration) (type_declaration) (array_type) (type_arguments)] @skipped
([(call_expression function: (_) @_log) (expression_statement (call_expression function: (_) @_log))] @skipped
 (#match? @_log "^(log|slog|logger|\\w*[.](log|logger))[.]\\w+$"))

[(function_declaration name: (_) @name) (method_declaration name: (_) @name) (func_literal)] @function
((call_expression function: (_) @_said) @message (#any-of? @_said "errors.New" "fmt.Errorf" "panic"))

(if_statement condition: (_) @branch)
(for_statement body: (block (_)) @body)
(binary_expression left: (_) @conjunct operator: "&&" right: (_) @conjunct)
(binary_expression left: (_) @disjunct operator: "||" right: (_) @disjunct)
[(binary_expression operator: _ @token) (true) @token (false) @token]
(statement_list (assignment_statement operator: _ @token))
(unary_expression ["!" "-"] @sign)
[(int_literal) (float_literal)] @number
(interpreted_string_literal) @text
(return_statement (expression_list) @values)
((statement_list (expression_statement (call_expression function: (_) @_ends)) @ending) (#eq? @_ends "panic"))
((statement_list (expression_statement (call_expression function: (_) @_ends)) @effect) (#not-eq? @_ends "panic"))
(statement_list [(inc_statement) (dec_statement) (assignment_statement) (send_statement) (defer_statement)
 (go_statement) (continue_statement) (break_statement)] @effect)
"""
_NUMBERS: Final = re.compile(rb"u?int(?:8|16|32|64)?|uintptr|float(?:32|64)|byte|rune")
_NILS: Final = (b"error", b"*", b"[]", b"map[", b"func(", b"chan ", b"interface{", b"any")


def _returned(node: Node, function: Node) -> Iterator[Edit]:
    """Yield the edits that return zero values instead, and no error instead of one."""
    given = [source_of(child) for child in node.named_children if "comment" not in child.type]
    zeros = [_zero(kind) for kind in _types(function.child_by_field_name("result"))]
    if len(given) == len(zeros):  # else it is one call that returns all of them
        for new in (zeros, [*given[:-1], zeros[-1]] if zeros[-1] == b"nil" else zeros):
            text = b", ".join(new)
            yield replaced(node, text, f"returns {quoted(text)}", Rank.DECISION)


def _types(result: Node | None) -> Iterator[bytes]:
    """Yield the types of a function's results, one for each value."""
    if result is None or result.type != "parameter_list":
        yield source_of(result) if result is not None else b""
        return
    for each in result.named_children:
        kind = each.child_by_field_name("type")
        if kind is not None:
            yield from [source_of(kind)] * max(1, len(each.children_by_field_name("name")))


def _zero(kind: bytes) -> bytes:
    if kind.startswith(_NILS):
        return b"nil"
    if kind in {b"bool", b"string"}:
        return b"false" if kind == b"bool" else b'""'
    return b"0" if _NUMBERS.fullmatch(kind) else b"*new(" + kind + b")"


_GRAMMAR: Final = Grammar(
    language=Language(language()),
    roles=_ROLES,
    own={"values": _returned},
    hint=re.compile(rb"\bruntime\.GO(?:OS|ARCH)\b"),
    names={b"runtime.GOOS": _HERE, b"runtime.GOARCH": _MACHINES},
    constants=_CONSTANTS,
    uncompiled=_uncompiled,
    stop=b"var _ = thisIsCompiled",
)
GRAMMARS: Final = {".go": _GRAMMAR}
