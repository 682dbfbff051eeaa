"""JavaScript and TypeScript code that looks at its own tests, or ends them: see `forgery`.

Importing this module loads the parsers.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from pipeline.languages.javascript.asserts import FUNCTIONS
from pipeline.languages.javascript.tree import root_of
from pipeline.languages.sources.forgery_marks import OURS, answers_always_the_same, said
from pipeline.languages.sources.suite_walk import below, line_of, text

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from tree_sitter import Node

    from pipeline.languages.sources.forgery_marks import Means

_MODULES: Final = re.compile(
    r"(?:node:test|vitest|jest|mocha|ava|tap|tape|jasmine|chai|expect|sinon)(?:/.*)?|@(?:jest|vitest|testing-library)/.*"
    r"|jest-.*|(?:node:)?(?:inspector|v8|vm)(?:/.*)?"
)
_INSTALLED: Final = re.compile(r"(?:.*/)?node_modules/.*")
_LOADERS: Final = frozenset({"require", "import", "createRequire", "require.resolve", "process.getBuiltinModule"})
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
    "module.constructor": "how modules are loaded",
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
_WATCHED: Final = re.compile(r"node:(?:assert(?:/strict)?|module)")
"""Modules of node's own that change tests where they are changed."""
_HOOKS: Final = frozenset({"register", "registerHooks", "syncBuiltinESMExports"})
"""What of `node:module` changes what is loaded."""
_PROCESS: Final = "node:process"
_SHARED: Final = re.compile(
    r"(?:(?:globalThis|global|window)\.)?(?:Object|Array|Function|Promise|Error|Reflect|process|expect|jest|vi)"
)
"""What is the same for the tests; `const base = Object` hides what is done to it."""
_RUNNER: Final = re.compile(
    r"(?:globalThis|global)\.(?:test|it|describe|expect|jest|vi|__vitest\w*)|(?:expect|jest)\.\w+"
    r"|vi\.(?:fn|hoisted|(?:do|un|do[uU]n)?[mM]ock\w*|spyOn|stub\w+|import\w+)"
)
_AROUND: Final = frozenset({"beforeEach", "afterEach", "beforeAll", "afterAll"})
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
_PROXY: Final = "makes a Proxy (which answers whatever it is asked)"


def means(source: bytes, path: str, own: Collection[str]) -> Iterator[Means]:  # noqa: ARG001  (of every language)
    """Yield the means of forging test results in a source."""
    nodes = tuple(below(root_of(source, path)))
    watched = _watched(nodes)
    for node in nodes:
        found = _of(node) or _changes(node, watched)
        if found is not None:
            yield found, line_of(node)


def _watched(nodes: Iterable[Node]) -> frozenset[str]:
    """Return the names that stand for one of the watched modules, or for something in it."""
    found: set[str] = set()
    for node in sorted(nodes, key=lambda one: one.start_byte):
        if node.type == "import_statement" and _WATCHED.fullmatch(_module(node.child_by_field_name("source"))):
            found.update(_identifiers(node))
        elif node.type == "variable_declarator":
            root = _root(node.child_by_field_name("value"))
            if root in found or _WATCHED.fullmatch(root):
                found.update(_identifiers(node.child_by_field_name("name")))
    return frozenset(found)


def _module(name: Node | None) -> str:
    """Return the module of node's own that a string would name, in its long spelling; no other is called so."""
    return f"node:{_plain(name).removeprefix('node:')}"


def _root(node: Node | None) -> str:
    """Return the name with which an expression begins, or the module that it loads; empty for anything else."""
    while node is not None:
        if node.type in {"member_expression", "subscript_expression"}:
            node = node.child_by_field_name("object")
        elif node.type in {"await_expression", "parenthesized_expression"} and node.named_children:
            node = node.named_children[0]
        elif node.type == "call_expression" and _dotted(node.child_by_field_name("function")) in _LOADERS:
            return _module(_first(node))
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


def _changes(node: Node, watched: frozenset[str]) -> str | None:
    """Return in which way what asserts, or loads modules, is changed."""
    if node.type == "assignment_expression":
        left = node.child_by_field_name("left")
        is_member = left is not None and left.type in {"member_expression", "subscript_expression"}
        return f"replaces {_dotted(left)}" if is_member and _is_watched(left, watched) else None
    if node.type != "call_expression":
        return None
    function = node.child_by_field_name("function")
    name = _dotted(function)
    if name in _SETTERS:
        return f"replaces what is in {_dotted(_first(node))}" if _is_watched(_first(node), watched) else None
    is_hook = name.rpartition(".")[2] in _HOOKS and _is_watched(function, watched)
    return f"calls {name} (how modules are loaded)" if is_hook else None


def _is_watched(node: Node | None, watched: frozenset[str]) -> bool:
    root = _root(node)
    return root in watched or _WATCHED.fullmatch(root) is not None


def _of(node: Node) -> str | None:
    match node.type:
        case "import_statement" | "export_statement":
            return _imported(_plain(node.child_by_field_name("source"))) or _renamed(node)
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
        case "identifier" if text(node) == "parentPort":
            return "uses parentPort (what the test runner hears)"
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


def _renamed(node: Node) -> str | None:
    """Return what an import takes out of `process`, or that it calls it otherwise."""
    if _module(node.child_by_field_name("source")) != _PROCESS:
        return None
    for part in below(node):
        is_whole = part.type == "identifier" and part.parent is not None and part.parent.type != "import_specifier"
        if part.type == "import_specifier":
            found = _CHANNEL.fullmatch(f"process.{text(part.child_by_field_name('name'))}")
            if found is not None:
                return _over(found["name"])
        elif is_whole and text(part) != "process":
            return _other_name("process")
    return None


def _other_name(name: str) -> str:
    return f"gives {name} another name (what is done to it is not seen)"


def _imported(module: str) -> str | None:
    if _INSTALLED.fullmatch(module):
        return f"imports {module} (an installed package by its file)"
    return f"imports {module} (the test runner, or the inside of the process)" if _MODULES.fullmatch(module) else None


def _called(node: Node) -> str | None:
    name = _dotted(node.child_by_field_name("function"))
    given = node.child_by_field_name("arguments")
    first = _first(node)
    if name in _AROUND:
        return f"calls {name} (the test runner)"
    if name == "Proxy.revocable":
        return _PROXY
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
    if name == "Proxy":
        return _PROXY
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
    """Return what a pattern takes out of `process`, or that another name is given to what is everybody's."""
    pattern, value = node.child_by_field_name("name"), node.child_by_field_name("value")
    owner = _dotted(value)
    if pattern is None or pattern.type != "object_pattern":
        if _root(value) == _PROCESS and _dotted(value).endswith("()") and text(pattern) != "process":
            return _other_name("process")
        return _other_name(owner) if _SHARED.fullmatch(owner) and owner != text(pattern) else None
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
