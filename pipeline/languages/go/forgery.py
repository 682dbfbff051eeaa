"""Go code that looks at its own tests, or ends them: see `forgery`.

Importing this module loads the parser.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from pipeline.languages.go.tree import root_of
from pipeline.languages.sources.forgery_marks import OURS, answers_always_the_same, is_inside, said
from pipeline.languages.sources.suite_walk import below, line_of, text

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from tree_sitter import Node

    from pipeline.languages.sources.forgery_marks import Means

_PACKAGES: Final = {
    "testing": "the test framework",
    "unsafe": "the memory of the process",
    "plugin": "code that is loaded later",
    "C": "code that nobody reads",
}
_CALLS: Final = {
    ("runtime", "Caller"): "its callers",
    ("runtime", "Callers"): "its callers",
    ("runtime", "Stack"): "its callers",
    ("debug", "Stack"): "its callers",
    ("os", "Executable"): "the name of the program that runs it",
    ("syscall", "Kill"): "the end of the process",
    ("os", "NewFile"): "what others have opened",
    ("os", "Chdir"): "where relative names of files lead",
    **{
        (package, name): "what others have opened"
        for package in ("syscall", "unix")
        for name in ("Write", "Dup2", "Dup3")
    },
    ("reflect", "NewAt"): "the memory of the process",
    **{(package, "Exit"): "the end of the process" for package in ("syscall", "unix")},
    **{
        (package, name): "calls of the kernel by their number"
        for package in ("syscall", "unix")
        for name in ("Syscall", "Syscall6", "RawSyscall", "RawSyscall6")
    },
}
_ENDS: Final = frozenset({("os", "Exit"), ("syscall", "Exit"), ("log", "Fatal"), ("log", "Fatalf"), ("log", "Fatalln")})
_STREAMS: Final = frozenset({("os", "Stdout"), ("os", "Stderr"), ("os", "Args")})
_WORDS: Final = re.compile(
    rf"(?<!\w)-test\.\w*|\btest\.(?:v|run|paniconexit0|timeout|testlogfile|count|short|coverprofile|list)\b"
    rf"|--- (?:PASS|FAIL|SKIP)|=== RUN|(?<=\A[\"`])\.test(?:\.exe)?(?=[\"`]\Z)|(?<=\A[\"`])PASS(?=(?:\\n)?[\"`]\Z)"
    rf"|{OURS}"
)
_STRINGS: Final = frozenset({"interpreted_string_literal", "raw_string_literal"})
_COMPARISONS: Final = frozenset({"Equal", "Equals", "Compare", "Cmp", "Less", "Is"})
_LINKS: Final = re.compile(r"//go:linkname\s+\S+(?:\s+(?P<to>\S+))?")


def means(source: bytes, path: str, own: Collection[str]) -> Iterator[Means]:  # noqa: ARG001  (of every language)
    """Yield the means of forging test results in a source; those of a test file are its own business."""
    if path.endswith("_test.go"):
        return
    for node in below(root_of(source)):
        found = _of(node)
        if found is not None:
            yield found, line_of(node)


def _of(node: Node) -> str | None:
    match node.type:
        case "import_spec":
            return _imported(text(node.child_by_field_name("path")).strip('"`'))
        case "call_expression":
            return _called(node)
        case "assignment_statement":
            names = [_member(child) for child in (node.child_by_field_name("left") or node).named_children]
            stream = next((name for name in names if name in _STREAMS), None)
            return f"replaces {'.'.join(stream)}" if stream is not None else None
        case "comment":
            linked = _LINKS.match(text(node))
            return f"reaches into another package ({linked['to'] or 'go:linkname'})" if linked is not None else None
        case "method_declaration":
            name = text(node.child_by_field_name("name"))
            same = answers_always_the_same(node.child_by_field_name("body"), {"func_literal"})
            return f"defines {name} with the same answer for everything" if same and name in _COMPARISONS else None
        case kind if kind in _STRINGS:
            word = said(text(node), _WORDS) if node.parent is None or node.parent.type != "import_spec" else None
            return f"mentions {word}" if word is not None else None
        case _:
            return None


def _imported(package: str) -> str | None:
    top = package.partition("/")[0]
    return f"imports {package} ({_PACKAGES[top]})" if top in _PACKAGES else None


def _called(node: Node) -> str | None:
    name = _member(node.child_by_field_name("function"))
    if name is None:
        return None
    if name in _ENDS and (is_inside(node, {"function_declaration"}, "init") or _is_at_load(node)):
        return f"calls {'.'.join(name)} while its package is loaded (the end of the process)"
    if name == ("os", "Exit") and text(node.child_by_field_name("arguments")) == "(0)":
        is_program = is_inside(node, {"function_declaration"}, "main")
        return None if is_program else "calls os.Exit(0) (the end of the process)"
    return f"uses {'.'.join(name)} ({_CALLS[name]})" if name in _CALLS else None


def _member(node: Node | None) -> tuple[str, str] | None:
    if node is None or node.type != "selector_expression":
        return None
    return text(node.child_by_field_name("operand")), text(node.child_by_field_name("field"))


def _is_at_load(node: Node) -> bool:
    """Return whether a node is part of a variable of the package."""
    around: Node | None = node
    while around is not None and around.type not in {"function_declaration", "method_declaration"}:
        if around.type == "var_declaration":
            return around.parent is not None and around.parent.type == "source_file"
        around = around.parent
    return False
