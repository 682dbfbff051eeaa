"""What production code that looks at its own tests looks like: notes for @check on Python changes (sandbox.md 7).

Code under test shares the interpreter with the test runner, so a forged result cannot be excluded by measuring. What
can be done is to show a reviewer the means of forgery wherever a change brings one in. A note refuses nothing: honest
code imports `ctypes` too.
"""

from __future__ import annotations

import ast
import warnings
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_MODULES: Final[Mapping[str, str]] = {
    "pytest": "the test runner",
    "_pytest": "the test runner's inside",
    "unittest": "a test framework",
    "redfirst_evidence": "the recorder of test results",
    "gc": "every object of the process",
    "ctypes": "the interpreter's memory",
    "atexit": "the end of the process",
}
_ATTRIBUTES: Final[Mapping[tuple[str, str], str]] = {
    ("sys", "modules"): "the loaded modules",
    ("sys", "_getframe"): "its callers",
    ("sys", "settrace"): "every line that runs",
    ("sys", "setprofile"): "every call",
    ("inspect", "stack"): "its callers",
    ("inspect", "currentframe"): "its callers",
    ("os", "_exit"): "the end of the process",
}
_WORDS: Final = ("PYTEST_CURRENT_TEST", "PYTEST_VERSION", "REDFIRST_EVIDENCE", "redfirst-recorder")
_COMPARISONS: Final = frozenset({"__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__", "__contains__"})
_IMPORTERS: Final = frozenset({"__import__", "import_module"})


def notes(path: str, old: bytes | None, new: bytes) -> tuple[str, ...]:
    """Return one sentence for each means of forging test results that `new` has and `old` has not.

    Args:
        path: Where the file is; what is not Python by its name has no notes.
        old: The content before, None for a new file.
        new: The content now.
    """
    if not path.endswith((".py", ".pyw", ".pyi")):
        return ()
    tree = _parse(new)
    if tree is None:
        return (f"{path} is not Python that can be parsed; what it does to its tests was not looked at",)
    before_tree = _parse(old) if old is not None else None
    before = {what for what, _ in _means(before_tree)} if before_tree is not None else set[str]()
    found: dict[str, int] = {}
    for what, line in _means(tree):
        if what not in before:
            found.setdefault(what, line)
    return tuple(f"{path}:{line} {what}; test results can be forged so" for what, line in found.items())


def _parse(content: bytes) -> ast.Module | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an invalid escape in somebody's string
            return ast.parse(content)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _means(tree: ast.Module) -> Iterator[tuple[str, int]]:
    for node in ast.walk(tree):
        match node:
            case ast.Import() | ast.ImportFrom():
                yield from ((what, node.lineno) for what in _imports(node))
            case ast.Attribute(value=ast.Name(id=owner), attr=name) if (owner, name) in _ATTRIBUTES:
                yield f"uses {owner}.{name} ({_ATTRIBUTES[owner, name]})", node.lineno
            case ast.Call(func=function, args=[ast.Constant(value=str(name)), *_]) if _name(function) in _IMPORTERS:
                yield from ((what, node.lineno) for what in _module(name))
            case ast.Constant(value=str(text)) if any(word in text for word in _WORDS):
                word = next(word for word in _WORDS if word in text)
                yield f"mentions {word}", node.lineno
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) if name in _COMPARISONS:
                if _answers_always_the_same(node):
                    yield f"defines {name} with the same answer for everything", node.lineno
            case _:
                pass
        yield from _assigned(node)


def _imports(node: ast.Import | ast.ImportFrom) -> Iterator[str]:
    if isinstance(node, ast.Import):
        for alias in node.names:
            yield from _module(alias.name)
        return
    if node.level == 0 and node.module is not None:
        yield from _module(node.module)
        for alias in node.names:
            if what := _ATTRIBUTES.get((node.module, alias.name)):
                yield f"uses {node.module}.{alias.name} ({what})"


def _module(name: str) -> Iterator[str]:
    top = name.partition(".")[0]
    if top in _MODULES:
        yield f"imports {top} ({_MODULES[top]})"


def _name(function: ast.expr) -> str:
    match function:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case _:
            return ""


def _assigned(node: ast.AST) -> Iterator[tuple[str, int]]:
    """Yield comparisons that are given as `__eq__ = lambda *_: True`."""
    if (
        isinstance(node, ast.Assign)
        and isinstance(node.value, ast.Lambda)
        and isinstance(node.value.body, ast.Constant)
    ):
        for target in node.targets:
            if _name(target) in _COMPARISONS:
                yield f"defines {_name(target)} with the same answer for everything", node.lineno


def _answers_always_the_same(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    returned = [part.value for part in ast.walk(node) if isinstance(part, ast.Return)]
    answers = [value.value for value in returned if isinstance(value, ast.Constant)]
    # NotImplemented is a Name: "ask the other side" is an honest answer
    return bool(returned) and len(answers) == len(returned) and len(set(map(repr, answers))) == 1
