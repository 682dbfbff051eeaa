"""JavaScript and TypeScript code that looks at its own tests, or ends them: see `forgery`.

Importing this module loads the parsers.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from pipeline.policy.forgery_marks import OURS, answers_always_the_same, said
from pipeline.policy.javascript_rules import FUNCTIONS
from pipeline.policy.javascript_syntax import root_of
from pipeline.policy.suite_walk import below, line_of, text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tree_sitter import Node

    from pipeline.policy.forgery_marks import Means

_MODULES: Final = re.compile(
    r"(?:node:test|vitest|jest|mocha|ava|tap|tape|jasmine|chai|expect|sinon)(?:/.*)?|@(?:jest|vitest|testing-library)/.*"
    r"|jest-.*|(?:node:)?(?:inspector|v8|vm)(?:/.*)?"
)
_LOADERS: Final = frozenset({"require", "import", "createRequire", "require.resolve"})
_REPLACED: Final = re.compile(
    r"process\.(?:stdout|stderr|exit|reallyExit|on|emit|env|argv)\b.*|process\.exitCode|console\.\w+"
    r"|(?:globalThis|global|window)\.(?:test|it|describe|expect|assert|jest|vi|process|Error)\b"
    r"|(?:Object|Array|Function|Promise|Error)\.prototype\b.*|Object\.is|Error\.prepareStackTrace|assert\.\w+"
)
_RUNS_TEXT: Final = re.compile(r"(?:(?:globalThis|global|window)\.)?(?:eval|Function)")
_ENDS: Final = re.compile(r"process\.(?:exit|reallyExit)")
_USES: Final = {
    "Error.prepareStackTrace": "its callers",
    "Error.captureStackTrace": "its callers",
    "import.meta.vitest": "the test runner",
    "require.main": "the program that runs it",
    "require.cache": "the loaded modules",
    "process.execArgv": "how the test runner was started",
    "process.binding": "the inside of the process",
    "process.chdir": "where relative names of files lead",
}
_CHANNEL: Final = re.compile(r"(?:(?:globalThis|global)\.)?process\.(?P<name>send|channel|connected|_\w+)")
_ALL_GLOBALS: Final = re.compile(
    r"(?:Object\.getOwnProperty(?:Symbols|Names|Descriptors)|Reflect\.ownKeys)\((?:globalThis|global|window)\)"
)
_SETTERS: Final = frozenset(
    f"{owner}.{name}"
    for owner, names in {
        "Object": ("defineProperty", "defineProperties", "assign", "setPrototypeOf"),
        "Reflect": ("defineProperty", "set", "deleteProperty", "setPrototypeOf"),
    }.items()
    for name in names
)
_ASSERTS: Final = re.compile(r"(?:node:)?assert(?:/strict)?")
_RUNNER: Final = re.compile(r"(?:globalThis|global)\.(?:test|it|describe|expect|jest|vi|__vitest\w*)")
_WRITERS: Final = ("writeSync", "writevSync", "createWriteStream", "writeFileSync")
_DESCRIPTOR: Final = re.compile(r"\(\s*(?:[^,()]*,\s*\{[^}]*\bfd\s*:\s*)?(?P<number>\d+)\b")
_OF_TEXT: Final = re.compile(r"\beval\s*:\s*true\b")
_NAMES: Final = frozenset({"jest", "vi", "vitest", "describe", "it", "test", "expect"})
_WORDS: Final = re.compile(
    rf"JEST_WORKER_ID|VITEST(?:_\w+)?|NODE_TEST_CONTEXT|MOCHA_\w+|TAP version|\bnot ok \d|(?<!\w)ok \d+\b|# Subtest"
    rf"|{OURS}"
)
_VARIABLES: Final = re.compile(rf"JEST_WORKER_ID|VITEST(?:_\w+)?|NODE_TEST_CONTEXT|{OURS}")
_STRINGS: Final = frozenset({"string_fragment"})
_EQUALITIES: Final = frozenset(
    {"equals", "isEqual", "compare", "valueOf", "[Symbol.hasInstance]", "[Symbol.toPrimitive]"}
)
_OWN: Final = "asymmetricMatch"


def means(source: bytes, path: str) -> Iterator[Means]:
    """Yield the means of forging test results in a source."""
    nodes = tuple(below(root_of(source, path)))
    asserts = _asserts(nodes)
    for node in nodes:
        found = _of(node) or _changes(node, asserts)
        if found is not None:
            yield found, line_of(node)


def _asserts(nodes: Iterable[Node]) -> frozenset[str]:
    """Return the names that stand for `node:assert`, or for something in it."""
    found: set[str] = set()
    for node in sorted(nodes, key=lambda one: one.start_byte):
        if node.type == "import_statement" and _ASSERTS.fullmatch(_plain(node.child_by_field_name("source"))):
            found.update(_identifiers(node))
        elif node.type == "variable_declarator":
            root = _root(node.child_by_field_name("value"))
            if root in found or _ASSERTS.fullmatch(root):
                found.update(_identifiers(node.child_by_field_name("name")))
    return frozenset(found)


def _root(node: Node | None) -> str:
    """Return the name with which an expression begins, or the module that it loads; empty for anything else."""
    while node is not None:
        if node.type in {"member_expression", "subscript_expression"}:
            node = node.child_by_field_name("object")
        elif node.type in {"await_expression", "parenthesized_expression"} and node.named_children:
            node = node.named_children[0]
        elif node.type == "call_expression" and _dotted(node.child_by_field_name("function")) in _LOADERS:
            return _plain(_first(node))
        else:
            return text(node) if node.type == "identifier" else ""
    return ""


def _identifiers(node: Node | None) -> Iterator[str]:
    kinds = {"identifier", "shorthand_property_identifier_pattern"}
    return (text(one) for one in below(node) if one.type in kinds) if node is not None else iter(())


def _first(call: Node) -> Node | None:
    """Return the first argument."""
    given = call.child_by_field_name("arguments")
    return given.named_children[0] if given is not None and given.named_children else None


def _changes(node: Node, asserts: frozenset[str]) -> str | None:
    """Return in which way what asserts is changed."""
    if node.type == "assignment_expression":
        left = node.child_by_field_name("left")
        is_member = left is not None and left.type in {"member_expression", "subscript_expression"}
        return f"replaces {_dotted(left)}" if is_member and _root(left) in asserts else None
    if node.type == "call_expression" and _dotted(node.child_by_field_name("function")) in _SETTERS:
        return f"replaces what is in {_dotted(_first(node))}" if _root(_first(node)) in asserts else None
    return None


def _of(node: Node) -> str | None:
    match node.type:
        case "import_statement" | "export_statement":
            return _imported(_plain(node.child_by_field_name("source")))
        case "call_expression":
            return _called(node)
        case "new_expression":
            return _made(node)
        case "assignment_expression" | "augmented_assignment_expression":
            name = _dotted(node.child_by_field_name("left"))
            return f"replaces {name}" if _REPLACED.fullmatch(name) else None
        case "member_expression" | "subscript_expression":
            return _used(node)
        case "variable_declarator":
            return _taken(node)
        case "property_identifier" if _VARIABLES.fullmatch(text(node)):
            return f"mentions {text(node)}"
        case "unary_expression" | "binary_expression":
            return _asked(node)
        case "method_definition" | "pair" | "field_definition" | "public_field_definition":
            return _compared(node)
        case kind if kind in _STRINGS:
            word = said(text(node), _WORDS)
            return f"mentions {word}" if word is not None else None
        case _:
            return None


def _imported(module: str) -> str | None:
    return f"imports {module} (the test runner, or the inside of the process)" if _MODULES.fullmatch(module) else None


def _called(node: Node) -> str | None:
    name = _dotted(node.child_by_field_name("function"))
    given = node.child_by_field_name("arguments")
    first = _first(node)
    if name == "Symbol.for":
        return "calls Symbol.for (what all modules share)"
    if _ALL_GLOBALS.fullmatch(f"{name}({_dotted(first)})"):
        return "looks through what is global"
    if name in _LOADERS:
        computed = name == "import" and first is not None and first.type not in {"string", "template_string"}
        return "imports what is computed (code that nobody reads)" if computed else _imported(_plain(first))
    if _RUNS_TEXT.fullmatch(name):
        return f"calls {name} (code that nobody reads)"
    if name.endswith(_WRITERS) and (descriptor := _DESCRIPTOR.match(text(given))) is not None:
        return f"writes to descriptor {descriptor['number']} (what others have opened)"
    if _ENDS.fullmatch(name) and (first is None or text(first) in {"0", "'0'", '"0"', "undefined"}):
        return f"calls {name}(0) (the end of the process)"
    if name in {"process.on", "process.once", "process.prependListener"} and _plain(first) in {"exit", "beforeExit"}:
        return "waits for the end of the process"
    if name in {"Object.defineProperty", "Reflect.set", "Object.assign"} and _REPLACED.fullmatch(f"{_dotted(first)}.x"):
        return f"replaces what is in {_dotted(first)}"
    return None


def _made(node: Node) -> str | None:
    name = _dotted(node.child_by_field_name("constructor"))
    if _RUNS_TEXT.fullmatch(name):
        return f"calls {name} (code that nobody reads)"
    is_text = name.endswith("Worker") and _OF_TEXT.search(text(node.child_by_field_name("arguments"))) is not None
    return "runs text in a worker (code that nobody reads)" if is_text else None


def _used(node: Node) -> str | None:
    name = _dotted(node)
    if name in _USES:
        return f"uses {name} ({_USES[name]})"
    if (channel := _CHANNEL.fullmatch(name)) is not None:
        return _over(channel["name"])
    if _RUNNER.fullmatch(name):
        return f"uses {name} (the test runner)"
    owner = node.child_by_field_name("object")
    made = (
        text(owner.child_by_field_name("constructor")) if owner is not None and owner.type == "new_expression" else ""
    )
    is_trace = name.endswith(".stack") and (made.endswith("Error") or name == "Error().stack")
    return "reads the trace of an error (its callers)" if is_trace else None


def _taken(node: Node) -> str | None:
    """Return what a pattern takes out of `process`."""
    pattern, owner = node.child_by_field_name("name"), _dotted(node.child_by_field_name("value"))
    if pattern is None or pattern.type != "object_pattern":
        return None
    keys = (text(part.child_by_field_name("key") or part) for part in pattern.named_children)
    found = next(filter(None, (_CHANNEL.fullmatch(f"{owner}.{key}") for key in keys)), None)
    return _over(found["name"]) if found is not None else None


def _over(name: str) -> str:
    return f"uses process.{name} (what the test runner hears)"


def _asked(node: Node) -> str | None:
    if node.type == "unary_expression":
        name = text(node.child_by_field_name("argument")).strip("()")
        is_typeof = text(node.child_by_field_name("operator")) == "typeof"
        return f"asks whether there is {name} (the test runner)" if is_typeof and name in _NAMES else None
    sides = [node.child_by_field_name(side) for side in ("left", "right")]
    is_test = any(_plain(side) == "test" for side in sides)
    named = any(text(side).endswith(("NODE_ENV", '["NODE_ENV"]', "['NODE_ENV']")) for side in sides)
    return "asks whether NODE_ENV is test" if is_test and named else None


def _compared(node: Node) -> str | None:
    name = text(
        node.child_by_field_name("name") or node.child_by_field_name("key") or node.child_by_field_name("property")
    )
    if name == _OWN:
        return f"defines {_OWN} (what a test runner asks instead of comparing)"
    value = node.child_by_field_name("value") or node
    body = value.child_by_field_name("body")
    same = answers_always_the_same(body, FUNCTIONS) or (body is not None and body.type in {"true", "false", "number"})
    return f"defines {name} with the same answer for everything" if same and name in _EQUALITIES else None


def _dotted(node: Node | None) -> str:
    """Return a name with its owners; a member that is a string in brackets is one as well."""
    if node is None:
        return ""
    if node.type == "parenthesized_expression" and len(node.named_children) == 1:
        return _dotted(node.named_children[0])
    if node.type == "member_expression":
        return f"{_dotted(node.child_by_field_name('object'))}.{text(node.child_by_field_name('property'))}"
    if node.type == "subscript_expression":
        return f"{_dotted(node.child_by_field_name('object'))}.{_plain(node.child_by_field_name('index'))}"
    return (
        "".join(text(node).split())
        if node.type != "call_expression"
        else f"{_dotted(node.child_by_field_name('function'))}()"
    )


def _plain(node: Node | None) -> str:
    """Return what a string literal says; a template counts if there is nothing in it that changes."""
    if node is None or node.type not in {"string", "template_string"}:
        return ""
    return "".join(text(part) for part in node.named_children if part.type == "string_fragment")
