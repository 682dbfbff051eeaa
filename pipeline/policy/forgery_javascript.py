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
    from collections.abc import Iterator

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
_ENDS: Final = re.compile(r"process\.(?:exit|reallyExit)")
_USES: Final = {
    "Error.prepareStackTrace": "its callers",
    "Error.captureStackTrace": "its callers",
    "import.meta.vitest": "the test runner",
    "require.main": "the program that runs it",
    "require.cache": "the loaded modules",
    "process.execArgv": "how the test runner was started",
    "process.binding": "the inside of the process",
}
_RUNNER: Final = re.compile(r"(?:globalThis|global)\.(?:test|it|describe|expect|jest|vi|__vitest\w*)")
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
    for node in below(root_of(source, path)):
        found = _of(node)
        if found is not None:
            yield found, line_of(node)


def _of(node: Node) -> str | None:
    match node.type:
        case "import_statement" | "export_statement":
            return _imported(_plain(node.child_by_field_name("source")))
        case "call_expression":
            return _called(node)
        case "assignment_expression" | "augmented_assignment_expression":
            name = _dotted(node.child_by_field_name("left"))
            return f"replaces {name}" if _REPLACED.fullmatch(name) else None
        case "member_expression":
            return _used(node)
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
    first = given.named_children[0] if given is not None and given.named_children else None
    if name in _LOADERS:
        return _imported(_plain(first))
    if _ENDS.fullmatch(name) and (first is None or text(first) in {"0", "'0'", '"0"', "undefined"}):
        return f"calls {name}(0) (the end of the process)"
    if name in {"process.on", "process.once", "process.prependListener"} and _plain(first) in {"exit", "beforeExit"}:
        return "waits for the end of the process"
    if name in {"Object.defineProperty", "Reflect.set", "Object.assign"} and _REPLACED.fullmatch(f"{_dotted(first)}.x"):
        return f"replaces what is in {_dotted(first)}"
    return None


def _used(node: Node) -> str | None:
    name = _dotted(node)
    if name in _USES:
        return f"uses {name} ({_USES[name]})"
    if _RUNNER.fullmatch(name):
        return f"uses {name} (the test runner)"
    owner = node.child_by_field_name("object")
    made = (
        text(owner.child_by_field_name("constructor")) if owner is not None and owner.type == "new_expression" else ""
    )
    is_trace = name.endswith(".stack") and (made.endswith("Error") or name == "Error().stack")
    return "reads the trace of an error (its callers)" if is_trace else None


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
