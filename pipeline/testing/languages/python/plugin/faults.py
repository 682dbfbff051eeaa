"""Describes exceptions as facts."""

from __future__ import annotations

import ast
import builtins
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .special_methods import names_of, wanted
from .workspace import SCOPES

if TYPE_CHECKING:
    from .workspace import Workspace

CHAIN_LIMIT = 8
_MESSAGE_LIMIT = 2000
_FRAME_LIMIT = 60
_SPECIAL_LIMIT = 40
_EXAMPLE = "<doctest>"
_BUILT_IN = {"", *dir(builtins), "NoneType", "function", "coroutine", "generator", "method"}
_PATCHERS = {"unittest.mock", "mock.mock", "_pytest.monkeypatch"}
_RUNNER_FILES = re.compile(r"[\\/]_pytest[\\/](raises|python_api|recwarn)\.py$")

_NAME_PATTERNS = (
    re.compile(r"module '(?P<owner>[^']+)' has no attribute '(?P<name>[^']+)'"),
    re.compile(r"<module '(?P<owner>[^']+)'.*> (?:has no|does not have the) attribute '(?P<name>[^']+)'"),
    re.compile(r"object at (?P<owner>[\w.]+) has no attribute '(?P<name>[^']+)'"),
    re.compile(r"type object '(?P<owner>[^']+)' has no attribute '(?P<name>[^']+)'"),
    re.compile(r"'(?P<owner>[^']+)' object has no attribute '(?P<name>[^']+)'"),
    re.compile(r"cannot import name '(?P<name>[^']+)' from (?:partially initialized module )?'(?P<owner>[^']+)'"),
    re.compile(r" (?:has no|does not have the) attribute '(?P<name>[^']+)'$"),
    re.compile(r"No module named '(?P<name>[^']+)'"),
    re.compile(r"name '(?P<name>[^']+)' is not defined"),
)


class Faults:
    """Describes exceptions independently of how pytest prints them."""

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
        """Return the facts about an exception; *document* is the file of a failed example, if it was one."""
        decisive, frames = self._decisive(error, document)
        own = next((frame for frame in reversed(frames) if frame["path"]), None)
        return {
            "chain": [self._raised(link) for link in _chain(decisive)],
            "frames": frames[-_FRAME_LIMIT:],
            "missing": self._missing(decisive),
            "special": self._special(decisive),
            "expectation": _failed_expectation(decisive),
            "bare": own is not None and self._bare(own),
            "missing_fixture": str(getattr(decisive, "argname", "") or "")
            if is_a(decisive, "FixtureLookupError")
            else "",
        }

    def text(self, value: object) -> str:
        """Return the text of a value without memory addresses and local paths, shortened."""
        try:
            found = str(value)
        except BaseException as error:
            found = f"<{type(error).__name__} while printing>"
        return re.sub(r"\bat 0x[0-9a-fA-F]+", "at 0x..", self.portable(found))[:_MESSAGE_LIMIT]

    def portable(self, found: str) -> str:
        """Return the text without local paths at full length: test ids must stay distinct."""
        for path, label in self._redact:
            found = found.replace(path, label)
        return found.encode("utf-8", "replace").decode("utf-8")

    def _decisive(self, error: BaseException, document: str) -> tuple[BaseException, list[dict[str, Any]]]:
        """Return the exception that tested code raised, unwrapped from those of pytest and doctest and from groups."""
        frames = self._frames(error, document)
        for _ in range(CHAIN_LIMIT):
            inner: Any = None
            if is_a(error, "CollectError", "ConftestImportFailure"):
                inner = error.__cause__
            elif is_a(error, "BaseExceptionGroup"):
                inner = next(iter(getattr(error, "exceptions", ())), None)
            elif is_a(error, "MultipleDoctestFailures"):
                inner = next(iter(getattr(error, "failures", ())), None)
            elif is_a(error, "UnexpectedException"):
                inner = getattr(error, "exc_info", (None, None))[1]
            if not isinstance(inner, BaseException):
                break
            error = inner
            frames += self._frames(error, document)
        if document and is_a(error, "DocTestFailure"):
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
        """Return the dotted name of the innermost function at a line: code objects have one only from 3.11 on."""
        if (path, line) not in self._qualnames:
            names: list[str] = []
            scope: ast.AST | None = self._workspace.tree(path)
            while scope is not None:
                scope = next((child for child in ast.walk(scope) if child is not scope and _spans(child, line)), None)
                if isinstance(scope, SCOPES):
                    names.append(scope.name)
            self._qualnames[path, line] = ".".join(names) or "<module>"
        return self._qualnames[path, line]

    def _raised(self, error: BaseException) -> dict[str, Any]:
        names = [kind.__module__ + "." + kind.__qualname__ for kind in type(error).__mro__ if kind is not object]
        said: object = error
        if is_a(error, "DocTestFailure"):
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
            holder = _to_be_patched(error) if holder is None else holder
            module = owner if owner in sys.modules else ""
            if holder is not None and not module:
                kind = holder if isinstance(holder, type) else type(holder)
                module = getattr(holder, "__name__", "") if isinstance(holder, type(sys)) else str(kind.__module__)
                owner = module if isinstance(holder, type(sys)) else module + "." + kind.__qualname__
            known = self._offers(module) if module else owner not in _BUILT_IN
        return {"name": name, "owner": owner, "first_party": known}

    def _special(self, error: BaseException) -> list[dict[str, Any]]:
        """Return the special methods of the workspace's classes of which one would have kept the error away."""
        named = dict.fromkeys((method, *names_of(cls)) for cls, method in wanted(error))
        return [
            {"name": method, "owner": module + "." + cls, "first_party": True}
            for method, module, cls in named
            if self._offers(module)
        ][:_SPECIAL_LIMIT]

    def _offers(self, module: str) -> bool:
        """Return whether a module is the workspace's by its name, or because it (or one around it) lies there."""
        if module.partition(".")[0] in self._workspace.top_level_names():
            return True
        while module and module not in sys.modules:
            module = module.rpartition(".")[0]
        loaded: Any = sys.modules.get(module)
        if isinstance(getattr(loaded, "__file__", None), str):
            return bool(self._workspace.relative(loaded.__file__))
        places = getattr(loaded, "__path__", ())  # it has no `__init__.py`
        return any(self._workspace.relative(place) and any(Path(place).rglob("*.py")) for place in places)

    def _bare(self, frame: dict[str, Any]) -> bool:
        """Return whether the failing line fails unconditionally, without looking at any value."""
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


def _to_be_patched(error: BaseException) -> Any:
    """Return the object in which `mock` or `monkeypatch` missed an attribute: their error has only its text."""
    entry: Any = error.__traceback__
    while entry is not None and entry.tb_next is not None:
        entry = entry.tb_next
    frame = entry.tb_frame if entry is not None else None
    return frame.f_locals.get("target") if frame and frame.f_globals.get("__name__") in _PATCHERS else None


def _spans(node: ast.AST, line: int) -> bool:
    return isinstance(node, SCOPES) and node.lineno <= line <= (node.end_lineno or 0)


def _chain(error: BaseException) -> list[BaseException]:
    found: list[BaseException] = []
    link: BaseException | None = error
    while link is not None and link not in found and len(found) < CHAIN_LIMIT:
        found.append(link)
        link = link.__cause__ or (None if link.__suppress_context__ else link.__context__)
    return found


def is_a(error: BaseException, *names: str) -> bool:
    """Return whether an exception's class or a base has one of these names."""
    return any(kind.__name__ in names for kind in type(error).__mro__)


def _failed_expectation(error: BaseException) -> bool:
    """Return whether `pytest.raises`, `pytest.warns` or a documentation example failed."""
    if is_a(error, "DocTestFailure"):
        return True
    if not is_a(error, "Failed", "AssertionError"):
        return False
    entry = error.__traceback__
    while entry is not None:
        if _RUNNER_FILES.search(entry.tb_frame.f_code.co_filename):
            return True
        entry = entry.tb_next
    return False
