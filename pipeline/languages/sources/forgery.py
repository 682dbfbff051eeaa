"""What production code that looks at its own tests looks like: notes for @check on changes (sandbox.md 7).

Code under test shares the process with the test runner, so a forged result cannot be excluded by measuring. What can be
done is to show a reviewer the means of forgery wherever a change brings one in. A note refuses nothing: honest code
imports `ctypes` too. Python is read here; each other language by a module of its own, which is loaded only where a
file of that language is judged.
"""

from __future__ import annotations

import ast
import itertools
import re
import warnings
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol

from pipeline.languages.python.forgery_changes import IMPORTERS, changes
from pipeline.languages.sources.weakening import MAX_BYTES, SCRIPTS

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
_COMPILED: Final = (
    *(".pyc", ".pyo", ".pyd", ".so", ".dylib", ".dll", ".node", ".wasm", ".o", ".a", ".lib", ".class", ".jar"),
    *(".syso", ".s", ".asm"),  # go links each of the first kind that lies in a package, and assembles the second
)
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


class _Reader(Protocol):
    def __call__(self, source: bytes, path: str) -> Iterator[tuple[str, int]]: ...


def notes(path: str, old: bytes | None, new: bytes, own: Collection[str] = ()) -> tuple[str, ...]:
    """Return one sentence for each means of forging test results that `new` has and `old` has not.

    Args:
        path: Where the file is; its ending tells the language. Of one that is not known there are no notes.
        old: The content before, None for a new file.
        new: The content now.
        own: First names of the project's own modules; those on the file's own way are.
    """
    if path.lower().endswith(_COMPILED):
        return (f"{path} is compiled or machine code, which nobody reads; test results can be forged so",)
    if path.endswith((".py", ".pyw", ".pyi")):
        read: _Reader | None = partial(_python, own=frozenset((*own, *path.rpartition(".")[0].split("/"))))
    else:
        read = _reader(path) if max(len(new), len(old or b"")) <= MAX_BYTES else None
    if read is None:
        is_large = len(new) > MAX_BYTES and _reader(path) is not None
        return (f"{path} is too large; what it does to its tests was not looked at",) if is_large else ()
    try:
        found = list(read(new, path))
    except SyntaxError:
        return (f"{path} is not Python that can be parsed; what it does to its tests was not looked at",)
    try:
        # most changes bring no means at all: the old content is read only where there is something to compare
        before = {what for what, _ in read(old, path)} if found and old is not None else set[str]()
    except SyntaxError:
        before = set[str]()
    first: dict[str, int] = {}
    for what, line in found:
        if what not in before:
            first.setdefault(what, line)
    return tuple(f"{path}:{line} {what}; test results can be forged so" for what, line in first.items())


def _reader(path: str) -> _Reader | None:
    # each parser is a shared library that only projects of its language need
    if path.endswith(".rs"):
        from pipeline.languages.rust import forgery as forgery_rust  # noqa: PLC0415

        return forgery_rust.means
    if path.endswith(".go"):
        from pipeline.languages.go import forgery as forgery_go  # noqa: PLC0415

        return forgery_go.means
    if path.endswith(SCRIPTS):
        from pipeline.languages.javascript import forgery as forgery_javascript  # noqa: PLC0415

        return forgery_javascript.means
    return None


def _python(source: bytes, path: str, own: Collection[str]) -> Iterator[tuple[str, int]]:
    tree = _parse(source)
    if tree is None:
        raise SyntaxError(path)
    nodes = list(ast.walk(tree))
    return itertools.chain(_means(nodes), changes(nodes, own))


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
