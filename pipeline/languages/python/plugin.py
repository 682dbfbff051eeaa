"""The harness's own pytest plugin: writes down what happened, as JSON lines, and changes nothing (architecture 7).

This file is copied out of the package and runs alone in the interpreter of the measured project: Python 3.8 syntax,
pytest 6 and later, no import of ours. It records facts; `pipeline/evidence` judges them. The request comes, and the
records go, over the socket whose number is in `REDFIRST_SOCKET`: nobody can open it by name, or read what was written.
Code under test shares this interpreter: forgery is made conspicuous here, not impossible (ADR-R41). It stays one
file because it travels alone, and has no assertions worth rewriting: PYTEST_DONT_REWRITE.
"""

# os.path: resolving links is a decision here, not a habit. Hooks are named, and explained, by pytest.
# ruff: noqa: PTH100, PTH113, PTH114, PTH118, PTH120, PTH206, D102
from __future__ import annotations

import ast
import builtins
import hashlib
import json
import os
import re
import signal
import sys
import threading
import time
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator
    from types import FrameType

    _Part = tuple[str, Any, bool]  # a file, a class or function in it, and whether that class inherits the test

SOCKET_VARIABLE = "REDFIRST_SOCKET"
_BEGAN_NS = time.time_ns()
_MESSAGE_LIMIT = 2000
_CHAIN_LIMIT = 8
_FRAME_LIMIT = 60
_REACH_LIMIT = 300
_CASE_VALUES = 1000
_CASE_LENGTH = 64 * 1024
_NAME_DEPTH = 8
_EXAMPLE = "<doctest>"
_IS_FUNCTION = 1  # CO_OPTIMIZED: set for functions, not for modules and class bodies
_NOT_OURS = {"site-packages", "dist-packages", "node_modules", ".tox", ".nox", "__pypackages__"}
_PROCESS_EVENTS = {"subprocess.Popen", "os.posix_spawn", "os.exec", "os.system", "os.fork"}
_BUILT_IN = {*dir(builtins), "NoneType", "function", "coroutine", "generator", "method"}
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
# what makes the same of the same whoever runs it; a set has an order of its own in each process
_STEADY = {
    "abs", "all", "any", "bool", "bytes", "chr", "dict", "divmod", "enumerate", "float", "hex", "int", "len", "list",
    "max", "min", "ord", "pow", "range", "repr", "reversed", "round", "slice", "sorted", "str", "sum", "tuple", "zip",
}  # fmt: skip
_RUNNER_FILES = re.compile(r"[\\/]_pytest[\\/](raises|python_api|recwarn)\.py$")

_NAME_PATTERNS = (
    re.compile(r"module '(?P<owner>[^']+)' has no attribute '(?P<name>[^']+)'"),
    re.compile(r"<module '(?P<owner>[^']+)'.*> does not have the attribute '(?P<name>[^']+)'"),
    re.compile(r"object at (?P<owner>[\w.]+) has no attribute '(?P<name>[^']+)'"),
    re.compile(r"type object '(?P<owner>[^']+)' has no attribute '(?P<name>[^']+)'"),
    re.compile(r"'(?P<owner>[^']+)' object has no attribute '(?P<name>[^']+)'"),
    re.compile(r"cannot import name '(?P<name>[^']+)' from (?:partially initialized module )?'(?P<owner>[^']+)'"),
    re.compile(r"No module named '(?P<name>[^']+)'"),
    re.compile(r"name '(?P<name>[^']+)' is not defined"),
)


class TestLimitReached(BaseException):
    """A single test took too long; not an `Exception`, so that the tested code does not swallow it."""

    __test__ = False


class Workspace:
    """Where the measured files are, and what their sources look like.

    `roots` are (folder, its path inside the workspace): the workspace itself first, then the places where editable
    installs see parts of it.
    """

    def __init__(self, roots: list[tuple[str, str]]) -> None:
        self._top = roots[0][0]
        places = {place: inside for root, inside in roots for place in (root, os.path.realpath(root))}
        self.roots = sorted(places.items(), key=lambda pair: -len(pair[0]))
        self._relative: dict[str, str] = {}
        self._folders: dict[str, str] = {}
        self._trees: dict[str, ast.Module | None] = {}
        self._lines: dict[str, list[str]] = {}
        self._functions: dict[str, dict[tuple[str, int], list[Any]]] = {}
        self._tops: tuple[tuple[str, ...], set[str]] = ((), set())

    def relative(self, name: str) -> str:
        """Return the path inside the workspace with `/`, or "" for a file outside it or not the project's own."""
        if name not in self._relative:
            self._relative[name] = self._find(name)
        return self._relative[name]

    def _find(self, name: str) -> str:
        if not name or name.startswith("<"):
            return ""
        for candidate in (os.path.abspath(name), self.real(name)):
            for root, inside in self.roots:
                if candidate.startswith(root + os.sep) and not self._in_environment(candidate):
                    parts = candidate[len(root) + 1 :].split(os.sep)
                    return "" if _NOT_OURS.intersection(parts) else "/".join([*filter(None, [inside]), *parts])
        return ""

    def real(self, name: str) -> str:
        """Return the path without links; hundreds of modules share a few folders, which are looked at once."""
        folder, last = os.path.split(os.path.abspath(name))
        if folder not in self._folders:
            self._folders[folder] = os.path.realpath(folder)
        found = os.path.join(self._folders[folder], last)
        return os.path.realpath(found) if os.path.islink(found) else found

    def _in_environment(self, candidate: str) -> bool:
        """Return whether the file belongs to a virtual environment that lies inside the workspace."""
        return any(
            candidate.startswith(prefix + os.sep)
            for prefix in (sys.prefix, sys.base_prefix)
            if any(prefix.startswith(root + os.sep) for root, _ in self.roots)
        )

    def absolute(self, relative: str) -> Path:
        """Return where a file of the workspace is."""
        return Path(self._top, relative)

    def sha256(self, relative: str) -> str:
        """Return the hash of the file's raw bytes, or "" when it cannot be read."""
        try:
            return hashlib.sha256(self.absolute(relative).read_bytes()).hexdigest()
        except OSError:
            return ""

    def tree(self, relative: str) -> ast.Module | None:
        """Return the syntax tree, or None for what is not valid Python."""
        if relative not in self._trees:
            try:
                source = self.absolute(relative).read_bytes()
                self._trees[relative] = ast.parse(source)
                self._lines[relative] = source.decode("utf-8", "surrogateescape").splitlines(True)
            except (OSError, SyntaxError, ValueError):
                self._trees[relative] = None
        return self._trees[relative]

    def functions(self, relative: str) -> dict[tuple[str, int], list[Any]]:
        """Return the syntax nodes around each function and its own, by its name and its first line."""
        if relative not in self._functions:
            self._functions[relative] = found = {}
            pending: list[tuple[Any, list[Any]]] = [(self.tree(relative), [])]
            while pending:
                node, around = pending.pop()
                inside = [*around, node] if isinstance(node, _SCOPES) else around
                if inside is not around and not isinstance(node, ast.ClassDef):
                    found[node.name, _first_line(node)] = inside
                pending += [(child, inside) for child in ast.iter_child_nodes(node)] if node is not None else []
        return self._functions[relative]

    def region_sha256(self, relative: str, parts: list[_Part]) -> str:
        """Return the hash of a test's lines, its decorators and those of its classes included; else the file's.

        Of a class that inherits the test its bases and attributes count, too: they say what is tested.
        """
        if not parts:
            return self.sha256(relative)
        digest = hashlib.sha256()
        for path, owner, inherits in parts[:-1]:
            spans = list(owner.decorator_list)
            if inherits:
                own = [part for part in owner.body if not isinstance(part, _SCOPES)]
                spans += [*owner.bases, *(keyword.value for keyword in owner.keywords), *own]
            for part in spans:
                self._feed(digest, self._lines[path], part.lineno, part.end_lineno)
        path, node, _ = parts[-1]
        self._feed(digest, self._lines[path], _first_line(node), node.end_lineno)
        return digest.hexdigest()

    @staticmethod
    def _feed(digest: Any, lines: list[str], first: int, last: int) -> None:
        digest.update("".join(lines[first - 1 : last]).encode("utf-8", "surrogateescape") + b"\0")

    def top_level_names(self) -> set[str]:
        """Return the modules and packages that the workspace offers for import at top level."""
        inside = [entry for entry in (os.path.abspath(part or ".") for part in sys.path) if self._is_inside(entry)]
        roots = [root for root, _ in self.roots]
        offered = [*roots, *(os.path.join(root, "src") for root in roots), *inside]
        places = tuple(dict.fromkeys(offered))
        if self._tops[0] != places:
            self._tops = (places, {name for place in places for name in _importable(place)})
        return self._tops[1]

    def _is_inside(self, place: str) -> bool:
        return any(place == root or place.startswith(root + os.sep) for root, _ in self.roots) and not (
            _NOT_OURS.intersection(place.split(os.sep)) or self._in_environment(place)
        )


def _first_line(node: Any) -> int:
    return min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])


def _importable(place: str) -> Iterator[str]:
    try:
        entries = list(os.scandir(place))
    except OSError:
        return
    for entry in entries:
        if entry.name.endswith(".py") and entry.name not in ("conftest.py", "setup.py", "__init__.py"):
            yield entry.name[:-3]
        elif os.path.isfile(os.path.join(entry.path, "__init__.py")):  # is_dir() raises for a link to itself
            yield entry.name


class Records:
    """The way out: one line per record, each with the nonce and the next number."""

    def __init__(self, descriptor: int, nonce: str) -> None:
        # a raw descriptor: a file object would warn when the interpreter dies with it, which some projects make fatal
        self._descriptor = descriptor
        self._nonce = nonce
        self._count = 0
        self._owner = os.getpid()

    def write(self, kind: str, **facts: Any) -> None:
        """Write one record; a forked child writes none, because it would repeat its parent's."""
        if os.getpid() != self._owner:
            return
        # a signal in the middle of a record would put what its handler writes there
        masked = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        try:
            line = {"nonce": self._nonce, "n": self._count, "kind": kind}
            line.update(facts)
            self._count += 1
            text = json.dumps(line, sort_keys=True, ensure_ascii=False)
            left = text.encode("utf-8", "replace") + b"\n"  # a lone surrogate is not valid JSON
            while left:
                left = left[os.write(self._descriptor, left) :]
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, masked)


class Faults:
    """Turns an exception into facts that do not depend on how pytest prints it."""

    def __init__(self, workspace: Workspace, redact: dict[str, str]) -> None:
        self._workspace = workspace
        self._qualnames: dict[tuple[str, int], str] = {}
        known = {
            **redact,
            **{root: inside or "." for root, inside in workspace.roots},
            sys.prefix: "<env>",
            sys.base_prefix: "<python>",
        }
        self._redact = sorted(known.items(), key=lambda pair: -len(pair[0]))

    def describe(self, error: BaseException, document: str = "") -> dict[str, Any]:
        """Return the facts; *document* is the file whose examples were run, if it was that."""
        decisive, frames = self._decisive(error, document)
        own = next((frame for frame in reversed(frames) if frame["path"]), None)
        return {
            "chain": [self._raised(link) for link in _chain(decisive)],
            "frames": frames[-_FRAME_LIMIT:],
            "missing": self._missing(decisive),
            "expectation": _failed_expectation(decisive),
            "bare": own is not None and self._bare(own),
            "missing_fixture": str(getattr(decisive, "argname", "") or "")
            if _is(decisive, "FixtureLookupError")
            else "",
        }

    def text(self, value: object) -> str:
        """Return the text without addresses and places of this machine, shortened."""
        try:
            found = str(value)
        except BaseException as error:
            found = f"<{type(error).__name__} while printing>"
        return re.sub(r"\bat 0x[0-9a-fA-F]+", "at 0x..", self.portable(found))[:_MESSAGE_LIMIT]

    def portable(self, found: str) -> str:
        """Return the text, at its full length, without places of this machine: a test id has to stay distinct."""
        for path, label in self._redact:
            found = found.replace(path, label)
        return found.encode("utf-8", "replace").decode("utf-8")

    def _decisive(self, error: BaseException, document: str) -> tuple[BaseException, list[dict[str, Any]]]:
        """Return the exception that the tested code raised, out of wrappers of pytest and doctest, and of groups."""
        frames = self._frames(error, document)
        for _ in range(_CHAIN_LIMIT):
            inner: Any = None
            if _is(error, "CollectError", "ConftestImportFailure"):
                inner = error.__cause__
            elif _is(error, "BaseExceptionGroup"):
                inner = next(iter(getattr(error, "exceptions", ())), None)
            elif _is(error, "MultipleDoctestFailures"):
                inner = next(iter(getattr(error, "failures", ())), None)
            elif _is(error, "UnexpectedException"):
                inner = getattr(error, "exc_info", (None, None))[1]
            if not isinstance(inner, BaseException):
                break
            error = inner
            frames += self._frames(error, document)
        if document and _is(error, "DocTestFailure"):
            test, example = getattr(error, "test", None), getattr(error, "example", None)
            line = (getattr(test, "lineno", 0) or 0) + getattr(example, "lineno", 0) + 1
            frames.append({"path": document, "module": "", "line": line, "function": _EXAMPLE})
        if isinstance(error, SyntaxError) and error.filename:
            path = self._workspace.relative(error.filename)
            frames.append({"path": path, "module": "", "line": error.lineno or 0, "function": "<syntax>"})
        return error, frames

    def _frames(self, error: BaseException, document: str) -> list[dict[str, Any]]:
        frames: list[dict[str, Any]] = []
        entry = error.__traceback__
        while entry is not None:
            code = entry.tb_frame.f_code
            path = self._workspace.relative(code.co_filename)
            function = self._qualname(path, entry.tb_lineno) if path else code.co_name
            if document and code.co_filename.startswith("<doctest "):
                path, function = document, _EXAMPLE
            module = str(entry.tb_frame.f_globals.get("__name__", ""))
            frames.append({"path": path, "module": module, "line": entry.tb_lineno or 0, "function": function})
            entry = entry.tb_next
        return frames

    def _qualname(self, path: str, line: int) -> str:
        """Return the dotted name of the innermost function around the line: code objects have one only from 3.11 on."""
        if (path, line) not in self._qualnames:
            self._qualnames[path, line] = self._enclosing(path, line)
        return self._qualnames[path, line]

    def _enclosing(self, path: str, line: int) -> str:
        tree = self._workspace.tree(path)
        names: list[str] = []
        scope: ast.AST | None = tree
        while scope is not None:
            scope = next((child for child in ast.walk(scope) if child is not scope and _spans(child, line)), None)
            if isinstance(scope, _SCOPES):
                names.append(scope.name)
        return ".".join(names) or "<module>"

    def _raised(self, error: BaseException) -> dict[str, Any]:
        names = [kind.__module__ + "." + kind.__qualname__ for kind in type(error).__mro__ if kind is not object]
        said: object = error
        if _is(error, "DocTestFailure"):
            want = getattr(getattr(error, "example", None), "want", "")
            said = "expected " + repr(want) + ", got " + repr(getattr(error, "got", ""))
        return {"kind": names[0], "bases": names[1:], "message": self.text(said)}

    def _missing(self, error: BaseException) -> dict[str, Any] | None:
        if not isinstance(error, (NameError, AttributeError, ImportError)):
            return None
        found = next(filter(None, (pattern.search(str(error)) for pattern in _NAME_PATTERNS)), None)
        groups = found.groupdict() if found else {}
        name = groups.get("name") or str(getattr(error, "name", None) or "")
        owner = groups.get("owner") or ""
        known = True
        if isinstance(error, ImportError):
            known = self._offers(owner or name)
        elif isinstance(error, AttributeError):
            holder = getattr(error, "obj", None)
            module = owner if owner in sys.modules else ""
            if holder is not None and not module:
                kind = holder if isinstance(holder, type) else type(holder)
                module = getattr(holder, "__name__", "") if isinstance(holder, type(sys)) else str(kind.__module__)
                owner = module if isinstance(holder, type(sys)) else module + "." + kind.__qualname__
            known = self._offers(module) if module else owner not in _BUILT_IN
        return {"name": name, "owner": owner, "first_party": known}

    def _offers(self, module: str) -> bool:
        return module.partition(".")[0] in self._workspace.top_level_names()

    def _bare(self, frame: dict[str, Any]) -> bool:
        """Return whether the failing line only says that it fails, without looking at anything."""
        tree = self._workspace.tree(frame["path"])
        line = frame["line"]
        around = [
            node
            for node in ast.walk(tree or ast.Module(body=[], type_ignores=[]))
            if isinstance(node, (ast.Assert, ast.Raise, ast.Expr)) and node.lineno <= line <= (node.end_lineno or 0)
        ]
        if not around:
            return False
        node = around[-1]
        if isinstance(node, ast.Assert):
            looks = (ast.Name, ast.Call, ast.Attribute, ast.Subscript, ast.Await, ast.NamedExpr)
            return not any(isinstance(part, looks) for part in ast.walk(node.test))
        if isinstance(node, ast.Raise):
            raised = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
            return isinstance(raised, ast.Name) and raised.id == "AssertionError"
        called = node.value.func if isinstance(node.value, ast.Call) else None
        name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
        return name == "fail"


def _spans(node: ast.AST, line: int) -> bool:
    return isinstance(node, _SCOPES) and node.lineno <= line <= (node.end_lineno or 0)


def _chain(error: BaseException) -> list[BaseException]:
    found: list[BaseException] = []
    link: BaseException | None = error
    while link is not None and link not in found and len(found) < _CHAIN_LIMIT:
        found.append(link)
        link = link.__cause__ or (None if link.__suppress_context__ else link.__context__)
    return found


def _is(error: BaseException, *names: str) -> bool:
    return any(kind.__name__ in names for kind in type(error).__mro__)


def _failed_expectation(error: BaseException) -> bool:
    """Return whether `pytest.raises` or `pytest.warns`, or an example, found its expectation unmet."""
    if _is(error, "DocTestFailure"):
        return True
    if not _is(error, "Failed", "AssertionError"):
        return False
    entry = error.__traceback__
    while entry is not None:
        if _RUNNER_FILES.search(entry.tb_frame.f_code.co_filename):
            return True
        entry = entry.tb_next
    return False


class Cases:
    """Says what the values of a parametrised test are: ids need not show them, and other ones would be another test."""

    def __init__(self, workspace: Workspace, faults: Faults) -> None:
        self._workspace = workspace
        self._portable = faults.portable
        self._written: dict[tuple[int, ...], tuple[Any, set[str]]] = {}
        self._names: dict[str, _Names] = {}

    def of(self, item: Any, parts: list[_Part]) -> dict[str, Any] | None:
        """Return the hash of the values and whether all of them are written down; None unless they are plain data."""
        callspec = getattr(item, "callspec", None)
        values = {**getattr(callspec, "funcargs", {}), **getattr(callspec, "params", {})}  # pytest 7 had two places
        if not values:
            return None
        budget = [_CASE_VALUES, _CASE_LENGTH]
        try:
            text = "".join(part for name in sorted(values) for part in (name, "=", *self._plain(values[name], budget)))
        except (_NotPlainError, RecursionError):
            return None
        digest = hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()
        return {
            "sha256": digest,
            "written": bool(parts) and self._names_written(parts) >= set(values),
        }

    def _plain(self, value: Any, budget: list[int]) -> Iterator[str]:
        """Yield the value as text: the same for the same plain data, and for nothing else."""
        kind = _kind(value)
        budget[0] -= 1
        inner: list[Any] = []
        if kind is str:
            text = self._portable(value) if len(value) <= _CASE_LENGTH else value
        elif kind is int:
            text = hex(value) if value.bit_length() <= _CASE_LENGTH else "x" * _CASE_LENGTH * 2
        elif kind in (bool, float, bytes, type(None)):
            text = repr(value) if kind is not bytes or len(value) <= _CASE_LENGTH else "x" * _CASE_LENGTH * 2
        elif kind in (tuple, list, dict):
            text = ""
            inner = [part for pair in value.items() for part in pair] if kind is dict else value
        else:
            raise _NotPlainError
        budget[1] -= len(text)
        if min(budget) < 0 or len(inner) > budget[0]:
            raise _NotPlainError
        yield kind.__name__ + ":" + str(len(inner) or len(text)) + ":" + text
        for part in inner:
            yield from self._plain(part, budget)

    def _names_written(self, parts: list[_Part]) -> set[str]:
        """Return the parameters of a test whose values a decorator gives, made of nothing but what its file says."""
        key = tuple(id(node) for _, node, _ in parts)
        if key not in self._written:
            for path in {path for path, _, _ in parts} - self._names.keys():
                self._names[path] = _Names(self._workspace.tree(path))
            given = [(path, *_given(each)) for path, node, _ in parts for each in node.decorator_list]
            found = {name for path, names, cases in given if self._names[path].is_written(cases) for name in names}
            self._written[key] = parts, found
        return self._written[key][1]


def _kind(value: object) -> Any:
    """Return the class itself: what derives from a plain one may behave otherwise."""
    return type(value)


class _WrittenMeanwhileError(Exception):
    """A file of tests that what is tested has made or changed."""


class _OtherModuleError(Exception):
    """A module that is not the file of tests is in its place."""


class _NotPlainError(Exception):
    """A value is an object, or there is too much of it."""


def _given(decorator: Any) -> tuple[list[str], Any]:
    """Return the names and the expression of the values of a `parametrize`."""
    if not isinstance(decorator, ast.Call) or getattr(decorator.func, "attr", "") != "parametrize":
        return [], None
    given = dict(enumerate(decorator.args))
    named = {keyword.arg: keyword.value for keyword in decorator.keywords}
    names, cases = given.get(0, named.get("argnames")), given.get(1, named.get("argvalues"))
    parts = names.elts if isinstance(names, (ast.Tuple, ast.List)) else [names]
    said = [part.value for part in parts if isinstance(part, ast.Constant) and isinstance(part.value, str)]
    return [name.strip() for text in said for name in text.split(",")], cases


class _Names:
    """What the names of a test file stand for, where that can be read off it. In doubt nothing is written down."""

    def __init__(self, tree: ast.Module | None) -> None:
        self._values: dict[str, ast.expr] = {}
        self._bound: dict[str, int] = {}
        self._touched: set[str] = set()
        for part in ast.walk(tree or ast.Module(body=[], type_ignores=[])):
            for name in _bound(part):
                self._bound[name] = self._bound.get(name, 0) + 1
        for statement in tree.body if tree is not None else ():
            targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
            value = getattr(statement, "value", None)
            if isinstance(statement, (ast.Assign, ast.AnnAssign)) and value is not None and self._is_steady(value):
                self._values.update({each.id: value for each in targets if isinstance(each, ast.Name)})
            elif not isinstance(statement, _SCOPES):  # it may change what a name stands for
                self._touched.update(part.id for part in ast.walk(statement) if isinstance(part, ast.Name))

    def is_written(self, value: ast.expr | None, depth: int = _NAME_DEPTH) -> bool:
        """Return whether a value is made of literals, of such names, and of functions that are always the same."""
        if value is None or not depth or not self._is_steady(value):
            return False
        parts = [part for part in ast.walk(value) if isinstance(part, ast.Name)]
        inside = {part.id for part in parts if not isinstance(part.ctx, ast.Load)}
        return all(self._is_known(name, depth) for name in {part.id for part in parts} - inside)

    def _is_known(self, name: str, depth: int) -> bool:
        bound = self._bound.get(name, 0)
        if name == "pytest" or (name in _STEADY and not bound):
            return True
        return bound == 1 and name not in self._touched and self.is_written(self._values.get(name), depth - 1)

    @staticmethod
    def _is_steady(value: ast.expr) -> bool:
        """Return whether an expression calls nothing but functions of that kind; what its names are is not asked."""
        methods = {id(part.func) for part in ast.walk(value) if isinstance(part, ast.Call)}
        for part in ast.walk(value):
            if isinstance(part, (ast.Set, ast.SetComp, ast.Lambda, ast.Await, ast.Yield, ast.YieldFrom, ast.NamedExpr)):
                return False
            if isinstance(part, ast.Call) and isinstance(part.func, ast.Name) and part.func.id not in _STEADY:
                return False
            if isinstance(part, ast.Call) and not isinstance(part.func, (ast.Name, ast.Attribute)):
                return False
            if isinstance(part, ast.Attribute) and not (_root(part) == "pytest" or _is_method(part, methods)):
                return False
        return True


def _bound(part: ast.AST) -> list[str]:
    """Return the names that a part of a file gives a meaning to."""
    if isinstance(part, ast.Name):
        return [] if isinstance(part.ctx, ast.Load) else [part.id]
    if isinstance(part, (ast.Import, ast.ImportFrom)):
        return [alias.asname or alias.name.partition(".")[0] for alias in part.names]
    return [part.name] if isinstance(part, _SCOPES) else []


def _root(part: ast.expr) -> str:
    while isinstance(part, ast.Attribute):
        part = part.value
    return part.id if isinstance(part, ast.Name) else ""


def _is_method(part: ast.Attribute, called: set[int]) -> bool:
    """Return whether a method of a literal is called: `'a b'.split()`."""
    return id(part) in called and isinstance(part.value, (ast.Constant, ast.JoinedStr))


class Tracer:
    """Notes which of the project's functions, files and processes a test touches; used for a few named tests only."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._functions: set[str] | None = None
        self._doors: set[str] = set()
        self._fixtures: dict[int, set[str]] = {}
        self._names: dict[int, tuple[Any, str]] = {}
        self._monitored = self._monitor()
        sys.addaudithook(self._audit)

    def _monitor(self) -> bool:
        """Return whether functions are told by `sys.monitoring` (3.12): what is not the project's costs once only."""
        monitoring: Any = getattr(sys, "monitoring", None)
        try:
            monitoring.use_tool_id(monitoring.PROFILER_ID, __name__)
        except (AttributeError, ValueError):  # an older Python; or somebody else profiles
            return False
        disable = monitoring.DISABLE

        def entered(code: Any, _offset: int) -> Any:
            return None if self._note(code) else disable

        events = monitoring.events
        for event in (events.PY_START, events.PY_RESUME):
            monitoring.register_callback(monitoring.PROFILER_ID, event, entered)
        monitoring.set_events(monitoring.PROFILER_ID, events.PY_START | events.PY_RESUME)
        return True

    def start(self) -> None:
        self._functions, self._doors = set(), set()
        if not self._monitored:
            threading.setprofile(self._profile)
            sys.setprofile(self._profile)

    def stop(self, item: Any) -> dict[str, Any]:
        """Return what was touched since `start`, and by the shared fixtures that the test uses."""
        if not self._monitored:
            sys.setprofile(None)
            stop_threads: Any = threading.setprofile
            stop_threads(None)
        functions = self._functions or set()
        self._functions = None
        definitions = getattr(getattr(item, "_fixtureinfo", None), "name2fixturedefs", {})
        for found in definitions.values():
            for definition in found:
                functions |= self._fixtures.get(id(definition), set())
        # examples are read again to show the one that fails, and doctest looks for settings of the debugger
        doors = self._doors - {self._workspace.relative(_path_of(item)), ".pdbrc"}
        return {"functions": sorted(functions)[:_REACH_LIMIT], "doors": sorted(doors)[:_REACH_LIMIT]}

    @contextmanager
    def paused(self) -> Generator[None, None, None]:
        """Note nothing meanwhile: pytest parses whole files to show a failure, and tracing that takes minutes."""
        functions, self._functions = self._functions, None
        profile = sys.getprofile()
        if not self._monitored:
            sys.setprofile(None)
        try:
            yield
        finally:
            self._functions = functions
            if not self._monitored:
                sys.setprofile(profile)

    def fixture(self, definition: Any) -> Generator[None, Any, None]:
        """Note what a fixture's set-up enters: the second test that shares it does not run it again."""
        before = set(self._functions or ())
        yield
        self._fixtures[id(definition)] = set(self._functions or ()) - before

    def _profile(self, frame: FrameType, event: str, _argument: object) -> None:
        if event == "call":
            self._note(frame.f_code)

    def _note(self, code: Any) -> str:
        """Note a function of the project; return its name, "" for other code."""
        known = self._names.get(id(code))  # equal code may stand in two files
        if known is None:
            path = self._workspace.relative(code.co_filename) if code.co_flags & _IS_FUNCTION else ""
            known = code, path and path + "::" + getattr(code, "co_qualname", code.co_name)
            self._names[id(code)] = known
        if known[1] and self._functions is not None:
            self._functions.add(known[1])
        return known[1]

    def _audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self._functions is None:
            return
        if event in _PROCESS_EVENTS:
            self._doors.add("process")
        elif event == "open" and arguments and isinstance(arguments[0], (str, bytes)):
            path = self._workspace.relative(os.fsdecode(arguments[0]))
            if path and not path.endswith((".py", ".pyc")):
                self._doors.add(path)


class Recorder:
    """The plugin proper: hooks that watch one session."""

    def __init__(self, descriptor: int, request: dict[str, Any]) -> None:
        self._records = Records(descriptor, request["nonce"])
        self._workspace = Workspace([(root, inside) for root, inside in request["roots"]])
        self._faults = Faults(self._workspace, request["redact"])
        self._cases = Cases(self._workspace, self._faults)
        self._checkouts = [os.path.realpath(entry) for entry in request["checkouts"]]
        self._ids = None if request["ids"] is None else set(request["ids"])
        self._files = None if request["files"] is None else set(request["files"])
        self._done = set(request["done"])
        self._limit = request["per_test_s"]
        self._calming = request["calming"]
        self._tracer = Tracer(self._workspace) if request["trace"] else None
        self._now = time.monotonic  # tests put other clocks in its place
        self._phases: dict[str, list[dict[str, Any]]] = {}
        self._seen_files: set[str] = set()
        self._imported: dict[str, list[tuple[int, str, str]]] = {}
        self._timed_out = False
        self._records.write("session_start", python=sys.version.split()[0], pytest=pytest.__version__)

    # -- before and while collecting

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_load_initial_conftests(
        self, early_config: Any, parser: Any, args: list[str]
    ) -> Generator[None, Any, None]:
        self._calm(early_config, parser, args)
        result: Any = yield
        if result.excinfo is not None:
            self._collection_error(str(getattr(result.excinfo[1], "path", "")), result.excinfo[1])

    def _calm(self, config: Any, parser: Any, args: list[str]) -> None:
        """Turn off what plugins do to a run: now it is known which of them are loaded, and their options."""
        known = [flags for flags in self._calming if not parser.parse_known_and_unknown_args(flags)[1]]
        if not known:
            return
        before = self._options(parser, args)
        args.extend(flag for flags in known for flag in flags)
        for name, value in self._options(parser, args).items():
            if before.get(name) != value:  # plugins look here before the options are parsed for good
                setattr(config.known_args_namespace, name, value)

    @staticmethod
    def _options(parser: Any, args: list[str]) -> dict[str, Any]:
        known: dict[str, Any] = parser.parse_known_args(args).__dict__
        return known

    def pytest_sessionstart(self, session: Any) -> None:
        config = session.config
        self._records.write(
            "layout",
            testpaths=[str(entry) for entry in config.getini("testpaths")],
            python_files=[str(entry) for entry in config.getini("python_files")],
        )

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_make_collect_report(self, collector: Any) -> Generator[None, Any, None]:
        path = self._workspace.relative(_path_of(collector))
        if path and isinstance(collector, pytest.File) and path not in self._seen_files and not _is_doctest(collector):
            self._seen_files.add(path)
            self._records.write("file", path=path, sha256=self._workspace.sha256(path))
            self._note_written_meanwhile(_path_of(collector))
        outcome: Any = yield
        if outcome.excinfo is not None:
            return
        report = outcome.get_result()
        if isinstance(collector, pytest.Module) and report.outcome == "passed":
            self._note_other_module(collector, path)
        call = getattr(report, "call", None)
        if report.outcome == "failed" and call is not None and call.excinfo is not None:
            self._collection_error(_path_of(collector), call.excinfo.value)

    def pytest_plugin_registered(self, plugin: Any) -> None:
        name = getattr(plugin, "__file__", None)
        if isinstance(name, str) and os.path.split(name)[1] == "conftest.py":
            self._note_written_meanwhile(name)

    def _note_written_meanwhile(self, name: str) -> None:
        """Write down a file of tests that came, or was changed, after this process began: then it is not the tests'."""
        try:
            changed = os.lstat(name).st_ctime_ns
        except OSError:
            return
        if changed > _BEGAN_NS and self._workspace.relative(name):
            self._collection_error(name, _WrittenMeanwhileError("it was written while the tests ran"))

    def _note_other_module(self, collector: Any, path: str) -> None:
        """Write down that what was loaded is not the file of tests; pytest lets that pass where it is told to."""
        module = getattr(collector, "_obj", None)
        if module is None or isinstance(collector, pytest.Package):
            return
        origin = getattr(module, "__file__", None)
        name = origin[:-1] if isinstance(origin, str) and origin.endswith((".pyc", ".pyo")) else origin
        own = _path_of(collector)
        if not isinstance(name, str) or not (self._workspace.relative(name) == path or _is_same(name, own)):
            self._collection_error(own, _OtherModuleError(f"{origin} was loaded in its place"))

    def _collection_error(self, name: str, error: BaseException) -> None:
        if _is(error, "ConftestImportFailure"):
            name = str(getattr(error, "path", name))
        path = self._workspace.relative(name) or "."
        self._records.write("collection_error", path=path, fault=self._faults.describe(error))

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_collection_modifyitems(self, config: Any, items: list[Any]) -> Generator[None, Any, None]:
        yield
        kept: list[Any] = []
        dropped: list[Any] = []
        for item in items:
            described = self._item(item)
            self._records.write("item", **described)
            identifier, path = described["id"], described["path"]
            chosen = (self._ids is None or identifier in self._ids) and (self._files is None or path in self._files)
            (kept if chosen and identifier not in self._done else dropped).append(item)
        if dropped:
            items[:] = kept
            config.hook.pytest_deselected(items=dropped)

    def _item(self, item: Any) -> dict[str, Any]:
        path = self._workspace.relative(_path_of(item))
        callspec = getattr(item, "callspec", None)
        suffix = "[" + callspec.id + "]" if callspec is not None else ""
        function = item.nodeid[: -len(suffix)] if suffix and item.nodeid.endswith(suffix) else item.nodeid
        parts = self._locate(item, path)
        return {
            "id": self._faults.portable(item.nodeid),
            "function": self._faults.portable(function),
            "path": path,
            "region_sha256": self._workspace.region_sha256(path, parts),
            "case": self._cases.of(item, parts),
            "doctest": _is_doctest(item),
        }

    def _locate(self, item: Any, path: str) -> list[_Part]:
        """Return the classes of a test and the test itself, last; [] for tests that are not written as one."""
        tree = self._workspace.tree(path)
        if tree is None or not isinstance(item, pytest.Function):
            return []
        classes = [node.name for node in item.listchain() if isinstance(node, pytest.Class)]
        name = getattr(item, "originalname", None) or item.name.partition("[")[0]
        nodes = _nested(tree, [*classes, name])
        if nodes:
            return [(path, node, False) for node in nodes]
        owners = _nested(tree, classes)
        inherited = self._inherited(item, name)
        above = [node for _, node, _ in inherited[:-1]]
        if not all(isinstance(node, ast.ClassDef) for node in above):
            return []  # it is made by a function, which may have been given anything
        if owners or [node.name for node in above] == classes:
            return [*((path, node, True) for node in owners), *inherited] if inherited else []
        return []

    def _inherited(self, item: Any, name: str) -> list[_Part]:
        """Return where a test is written that its class inherits, or that its module imports; [] if nowhere here."""
        function = getattr(item, "function", None)
        for _ in range(_CHAIN_LIMIT):
            function = getattr(function, "__wrapped__", function)
        code = getattr(function, "__code__", None)
        if code is None or code.co_name != name:
            return []
        path = self._workspace.relative(code.co_filename)
        nodes = self._workspace.functions(path).get((name, code.co_firstlineno), []) if path else []
        return [(path, node, False) for node in nodes]

    # -- while running

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: Any) -> Generator[None, Any, None]:
        identifier = self._faults.portable(item.nodeid)
        self._phases[item.nodeid] = []
        self._timed_out = False
        began = self._now()
        self._records.write("start", id=identifier)
        self._arm(identifier)
        if self._tracer is not None:
            self._tracer.start()
        outcome: Any = yield
        self._disarm()
        reach = None
        if self._tracer is not None:
            reach = {**self._tracer.stop(item), "references": self._references(item)}
        phases = self._phases.pop(item.nodeid)
        if outcome.excinfo is not None:
            return  # KeyboardInterrupt or pytest.exit: the test has no result, whatever its first phases were
        taken = round(self._now() - began, 4)
        self._records.write("test", id=identifier, phases=phases, reach=reach, timed_out=self._timed_out, seconds=taken)

    def _arm(self, identifier: str) -> None:
        if self._limit is None or threading.current_thread() is not threading.main_thread():
            return

        def ring(_number: int, _frame: object) -> None:
            self._timed_out = True
            self._records.write("limit", id=identifier)
            raise TestLimitReached(f"the test ran longer than {self._limit} s")

        signal.signal(signal.SIGALRM, ring)
        signal.setitimer(signal.ITIMER_REAL, self._limit)

    def _disarm(self) -> None:
        if self._limit is not None:
            signal.setitimer(signal.ITIMER_REAL, 0)

    @pytest.hookimpl(hookwrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any) -> Generator[None, Any, None]:
        if self._tracer is None:
            yield
        else:
            yield from self._tracer.fixture(fixturedef)

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_makereport(self, item: Any, call: Any) -> Generator[None, Any, None]:
        with self._own_time(), self._tracer.paused() if self._tracer is not None else nullcontext():
            yield from self._reported(item, call)

    @contextmanager
    def _own_time(self) -> Generator[None, None, None]:
        """Show a failure in time of its own, as much as a test has: several sub-tests of one test may fail."""
        left = signal.getitimer(signal.ITIMER_REAL)[0]
        if self._limit is None or not left:
            yield
            return
        signal.setitimer(signal.ITIMER_REAL, self._limit)
        yield
        signal.setitimer(signal.ITIMER_REAL, left)

    def _reported(self, item: Any, call: Any) -> Generator[None, Any, None]:
        outcome: Any = yield
        if outcome.excinfo is None and call.excinfo is not None and not _is(call.excinfo.value, "Skipped", "SkipTest"):
            # it travels with the report, which sub-tests and re-runs make several of
            document = self._workspace.relative(_path_of(item)) if _is_doctest(item) else ""
            outcome.get_result().redfirst_fault = self._faults.describe(call.excinfo.value, document)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: Any) -> None:
        phases = self._phases.get(report.nodeid)
        if phases is not None:
            fault = getattr(report, "redfirst_fault", None)
            phases.append(self._phase(report, fault))

    def _phase(self, report: Any, fault: dict[str, Any] | None) -> dict[str, Any]:
        expected = getattr(report, "wasxfail", None)
        outcome = report.outcome
        reason = "" if expected is None else self._faults.text(expected)
        if expected is not None:
            outcome = "xfailed" if outcome == "skipped" else "xpassed"
        elif outcome == "skipped":
            reason = self._faults.text(_skip_reason(report.longrepr))
        elif outcome == "failed" and fault is None:
            reason = self._faults.text(report.longrepr)
            if reason.startswith(("[XPASS(strict)]", "Unexpected success")):
                outcome = "strict_xpass"
        elif outcome == "passed" and fault is not None:
            # an exception ended this phase, and somebody rewrote the report afterwards
            outcome = "failed"
        sub = hasattr(report, "context")  # pytest's own sub-tests, and those of the plugin that came before them
        return {"when": report.when, "outcome": outcome, "reason": reason, "fault": fault, "sub": sub}

    def _references(self, item: Any) -> list[str]:
        """Return the project's files whose imported names the test mentions, for production that is only looked at."""
        parts = self._locate(item, self._workspace.relative(_path_of(item)))
        tree = self._workspace.tree(parts[-1][0]) if parts else None
        if tree is None:
            return []
        path, node, _ = parts[-1]
        package = str(getattr(getattr(item, "module", None), "__package__", "") or "")
        within = list(ast.walk(node))
        mentioned = {part.id for part in within if isinstance(part, ast.Name)}
        inside = {id(part) for part in within}
        if path not in self._imported:
            found = [(id(part), *pair) for part in ast.walk(tree) for pair in _imports(part, package)]
            self._imported[path] = found
        modules = {module for part, local, module in self._imported[path] if part in inside or local in mentioned}
        loaded = [getattr(sys.modules.get(name), "__file__", None) for name in modules]
        return sorted({self._workspace.relative(name) for name in loaded if name} - {""})[:_REACH_LIMIT]

    # -- at the end

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_sessionfinish(self, session: Any) -> Generator[None, Any, None]:
        yield
        own, foreign = self._modules()
        self._records.write("modules", own=own, foreign=foreign)
        self._records.write("session_end", exitstatus=int(session.exitstatus), canaries=_canaries(session))

    def _modules(self) -> tuple[dict[str, str], dict[str, str]]:
        own: dict[str, str] = {}
        foreign: dict[str, str] = {}
        tops = self._workspace.top_level_names()
        library = os.path.dirname(os.path.realpath(os.__file__))
        for name, module in list(sys.modules.items()):
            origin = getattr(module, "__file__", None)
            if not isinstance(origin, str) or name in ("__main__", __name__):
                continue
            path = self._workspace.relative(origin)
            real = self._workspace.real(origin)
            installed = bool(_NOT_OURS.intersection(real.split(os.sep)))
            if path:
                own[name] = path
            elif (any(real.startswith(place + os.sep) for place in self._checkouts) and not installed) or (
                name.partition(".")[0] in tops and (installed or not real.startswith(library + os.sep))
            ):
                foreign[name] = real
        return own, foreign


def _skip_reason(longrepr: Any) -> Any:
    """Return the words of a skip, whose report is usually (path, line, words)."""
    return longrepr[2] if isinstance(longrepr, tuple) else longrepr  # pyright: ignore[reportUnknownVariableType]  of Any


def _path_of(node: Any) -> str:
    """Return the node's file; `path` exists from pytest 7 on, `fspath` before."""
    return str(getattr(node, "path", None) or getattr(node, "fspath", ""))


def _is_same(one: str, other: str) -> bool:
    """Return whether both are the same file now, by way of links."""
    try:
        return Path(one).samefile(other)
    except OSError:
        return False


def _is_doctest(node: Any) -> bool:
    """Return whether the node stands for doctests: production and manuals have them, and are no test files for that."""
    return any("doctest" in kind.__name__.lower() for kind in type(node).__mro__)


def _nested(scope: ast.AST, names: list[str]) -> list[ast.AST]:
    """Return the definitions of names, each in the one before; [] where one of them is none."""
    found: list[ast.AST] = []
    for name in names:
        inner = _defined(found[-1] if found else scope, name)
        if inner is None:
            return []
        found.append(inner)
    return found


def _defined(scope: ast.AST, name: str) -> ast.AST | None:
    """Return the last definition of a name directly in a scope, looking into `if`, `try` and `with`."""
    found: ast.AST | None = None
    pending: list[ast.AST] = list(getattr(scope, "body", []))
    while pending:
        node = pending.pop(0)
        if isinstance(node, _SCOPES):
            found = node if node.name == name else found
        elif isinstance(node, (ast.If, ast.Try, ast.With)):
            pending[:0] = [child for child in ast.iter_child_nodes(node) if isinstance(child, ast.stmt)]
    return found


def _imports(node: ast.AST, package: str) -> Iterator[tuple[str, str]]:
    """Yield (local name, module) for an import statement, the imported name also as a possible submodule."""
    if isinstance(node, ast.Import):
        for alias in node.names:
            yield alias.asname or alias.name.partition(".")[0], alias.name
    elif isinstance(node, ast.ImportFrom):
        base = package.rsplit(".", node.level - 1)[0] if node.level and package else ""
        module = ".".join(filter(None, (base, node.module or "")))
        for alias in node.names:
            yield alias.asname or alias.name, module
            yield alias.asname or alias.name, module + "." + alias.name


def _canaries(session: Any) -> dict[str, str]:
    """Return how this session would report a test that passes and one that fails, unseen by the project's hooks."""
    from _pytest.reports import TestReport
    from _pytest.runner import CallInfo

    class Canary(pytest.Item):
        def runtest(self) -> None:
            """Do nothing: `from_call` is given the body directly."""

        def reportinfo(self) -> tuple[str, int, str]:
            return "", 0, self.name

        def repr_failure(self, excinfo: Any, style: Any = None) -> str:  # noqa: ARG002  (pytest names them)
            return "canary"  # nobody reads it, and showing the failing line would parse this file

    def fail() -> None:
        raise AssertionError("canary")

    answers: dict[str, str] = {}
    for name, body in (("pass", lambda: None), ("fail", fail)):
        make: Any = getattr(Canary, "from_parent")  # noqa: B009  its keyword arguments have no type
        item = make(session, name="redfirst-canary-" + name)
        run: Any = CallInfo.from_call
        call = run(body, when="call")
        answers[name] = str(TestReport.from_item_and_call(item, call).outcome)
    return answers


def _read_request() -> list[tuple[int, dict[str, Any]]]:
    """Return the socket and the request that came over it, once; nothing in a process that has none."""
    number = os.environ.pop(SOCKET_VARIABLE, None)
    os.environ.pop("PY_IGNORE_IMPORTMISMATCH", None)  # a module in the place of another is what is looked for
    if number is None:
        return []
    descriptor = int(number)
    os.set_inheritable(descriptor, False)
    parts: list[bytes] = []
    while part := os.read(descriptor, 1 << 16):
        parts.append(part)
    return [(descriptor, json.loads(b"".join(parts)))]


_WAITING = _read_request()  # as early as this: whoever is imported later finds nothing to read


def pytest_addoption(pluginmanager: Any) -> None:
    """Register the recorder at the earliest moment; a second pytest in the same process finds no request."""
    if _WAITING:
        pluginmanager.register(Recorder(*_WAITING.pop()), "redfirst-recorder")
