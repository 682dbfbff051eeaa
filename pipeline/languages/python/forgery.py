"""Python code that looks at its own tests, or ends them: see `sources.forgery`."""

from __future__ import annotations

import ast
import itertools
import re
import warnings
from typing import TYPE_CHECKING, Final

from pipeline.languages.python.forgery_changes import IMPORTERS, changes

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

_MODULES: Final[Mapping[str, str]] = {
    "pytest": "the test runner",
    "_pytest": "the test runner's inside",
    "unittest": "a test framework",
    "redfirst_evidence": "the recorder of test results",
    "gc": "every object of the process",
    "ctypes": "the interpreter's memory",
    "atexit": "the end of the process",
    "runpy": "code that is loaded later",
    "zipimport": "code that is loaded later",
}
_DESCRIPTORS: Final = "what others have opened"
_ATTRIBUTES: Final[Mapping[tuple[str, str], str]] = {
    ("sys", "modules"): "the loaded modules",
    ("sys", "argv"): "the command line",
    ("sys", "meta_path"): "how modules are loaded",
    ("sys", "path_hooks"): "how modules are loaded",
    ("sys", "_getframe"): "its callers",
    ("traceback", "extract_stack"): "its callers",
    ("traceback", "walk_stack"): "its callers",
    ("sys", "settrace"): "every line that runs",
    ("sys", "setprofile"): "every call",
    ("sys", "addaudithook"): "every file that is opened",
    ("sys", "monitoring"): "every line that runs",
    ("inspect", "stack"): "its callers",
    ("inspect", "currentframe"): "its callers",
    ("os", "_exit"): "the end of the process",
    ("os", "chdir"): "where relative names of files lead",
    ("os", "fchdir"): "where relative names of files lead",
    **{("os", name): _DESCRIPTORS for name in ("write", "writev", "pwrite", "sendfile", "fdopen", "dup", "dup2")},
    ("socket", "fromfd"): _DESCRIPTORS,
}
_WORDS: Final = (
    *("PYTEST_CURRENT_TEST", "PYTEST_VERSION", "PY_IGNORE_IMPORTMISMATCH"),
    *("REDFIRST_SOCKET", "redfirst-recorder", "/proc/"),
)
_ANYWHERE: Final[Mapping[str, str]] = {
    "tb_frame": "its callers",
    "f_back": "its callers",
    "f_locals": "what its callers hold",
    "f_globals": "what its callers hold",
    "gi_frame": "a frame",
    "cr_frame": "a frame",
    "pluginmanager": "pytest's plugins",
    "pycache_prefix": "where compiled code is kept",
    "cache_from_source": "where compiled code is kept",
}
"""Names of attributes that mean the same whatever has them."""
_TEST_FILE: Final = re.compile(r"(?:.*/)?(?:test_\w+|\w+_test|conftest)\.py")
_COMPARISONS: Final = frozenset({"__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__", "__contains__"})
_RUNS_TEXT: Final = frozenset({"exec", "eval"})


def means(source: bytes, path: str, own: Collection[str]) -> Iterator[tuple[str, int]]:
    """Yield what the file could forge results with, with its line; its own modules are those on its way, too.

    Raises:
        SyntaxError: it cannot be parsed.
    """
    tree = _parse(source)
    if tree is None:
        message = "is not Python that can be parsed"
        raise SyntaxError(message)
    nodes = list(ast.walk(tree))
    return itertools.chain(_means(nodes), changes(nodes, frozenset((*own, *path.rpartition(".")[0].split("/")))))


def _parse(content: bytes) -> ast.Module | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an invalid escape in somebody's string
            return ast.parse(content)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _means(nodes: Iterable[ast.AST]) -> Iterator[tuple[str, int]]:
    for node in nodes:
        match node:
            case ast.Import() | ast.ImportFrom():
                yield from ((what, node.lineno) for what in _imports(node))
            case ast.Attribute(value=ast.Name(id=owner), attr=name) if (owner, name) in _ATTRIBUTES:
                yield f"uses {owner}.{name} ({_ATTRIBUTES[owner, name]})", node.lineno
            case ast.Attribute(attr=name) if name in _ANYWHERE:
                yield f"uses {name} ({_ANYWHERE[name]})", node.lineno
            case ast.FunctionDef(name=name) if name.startswith("pytest_"):
                yield f"defines {name}, as a plugin of pytest does", node.lineno
            case ast.Call():
                yield from ((what, node.lineno) for what in _called(node))
            case ast.Constant(value=str(text)) if any(word in text for word in _WORDS):
                word = next(word for word in _WORDS if word in text)
                yield f"mentions {word}", node.lineno
            case ast.Constant(value=str(text)) if _TEST_FILE.fullmatch(text):
                yield f"mentions {text}", node.lineno
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
            if what := _ATTRIBUTES.get((node.module, alias.name), _ANYWHERE.get(alias.name)):
                yield f"uses {node.module}.{alias.name} ({what})"


def _module(name: str) -> Iterator[str]:
    top = name.partition(".")[0]
    if top in _MODULES:
        yield f"imports {top} ({_MODULES[top]})"


def _called(call: ast.Call) -> Iterator[str]:
    match call:
        case ast.Call(func=function, args=[ast.Constant(value=str(name)), *_]) if _name(function) in IMPORTERS:
            yield from _module(name)
        case ast.Call(func=ast.Name(id=name)) if name in _RUNS_TEXT:
            yield f"calls {name} (code that nobody reads)"
        case _ if _takes_descriptor(call):
            yield f"takes a descriptor ({_DESCRIPTORS})"
        case _:
            pass


def _takes_descriptor(call: ast.Call) -> bool:
    """Return whether a file or socket is made of a descriptor: `open(4)`, `socket.socket(fileno=4)`."""
    match call:
        case ast.Call(func=ast.Name(id="open"), args=[ast.Constant(value=int()), *_]):
            return True
        case ast.Call(func=function):
            return _name(function) == "socket" and any(given.arg == "fileno" for given in call.keywords)


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
