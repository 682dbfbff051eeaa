"""Records pytest's collection: test files, tests, and files that could not be collected."""

# hooks are named, and explained, by pytest
# ruff: noqa: D102
from __future__ import annotations

import ast
import os
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest

from .cases import Cases
from .channel import Records
from .faults import CHAIN_LIMIT, Faults, is_a
from .nodes import is_doctest, is_same, path_of
from .syntax import nested
from .workspace import Workspace

if TYPE_CHECKING:
    from collections.abc import Generator

    from .syntax import Part

_BEGAN_NS = time.time_ns()


class _WrittenMeanwhileError(Exception):
    """Tested code created or changed a test file."""


class _OtherModuleError(Exception):
    """Another module was loaded in place of a test file."""


class Collecting:
    """The hooks on the collection of one session."""

    def __init__(self, descriptor: int, request: dict[str, Any]) -> None:
        self._records = Records(descriptor, request["nonce"])
        self._workspace = Workspace([(root, inside) for root, inside in request["roots"]])
        self._faults = Faults(self._workspace, request["redact"])
        self._cases = Cases(self._workspace, self._faults)
        self._ids = None if request["ids"] is None else set(request["ids"])
        self._files = None if request["files"] is None else set(request["files"])
        self._done = set(request["done"])
        self._elsewhere = tuple(folder + "/" for folder in request["elsewhere"])
        self._calming = request["calming"]
        self._seen_files: set[str] = set()
        self._records.write("session_start", python=sys.version.split()[0], pytest=pytest.__version__)

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_load_initial_conftests(
        self, early_config: Any, parser: Any, args: list[str]
    ) -> Generator[None, Any, None]:
        self._calm(early_config, parser, args)
        result: Any = yield
        if result.excinfo is not None:
            self._collection_error(str(getattr(result.excinfo[1], "path", "")), result.excinfo[1])

    def _calm(self, config: Any, parser: Any, args: list[str]) -> None:
        """Switch off plugins that disturb a run, once it is known which of them are loaded."""
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
        path = self._workspace.relative(path_of(collector))
        if path and isinstance(collector, pytest.File) and path not in self._seen_files and not is_doctest(collector):
            self._seen_files.add(path)
            self._records.write("file", path=path, sha256=self._workspace.sha256(path))
            self._note_written_meanwhile(path_of(collector))
        outcome: Any = yield
        if outcome.excinfo is not None:
            return
        report = outcome.get_result()
        if isinstance(collector, pytest.Module) and report.outcome == "passed":
            self._note_other_module(collector, path)
        call = getattr(report, "call", None)
        if report.outcome == "failed" and call is not None and call.excinfo is not None:
            self._collection_error(path_of(collector), call.excinfo.value)

    def pytest_plugin_registered(self, plugin: Any) -> None:
        name = getattr(plugin, "__file__", None)
        if isinstance(name, str) and os.path.split(name)[1] == "conftest.py":
            self._note_written_meanwhile(name)

    def _note_written_meanwhile(self, name: str) -> None:
        """Record a test file that was created or changed after this process began: tested code wrote it."""
        try:
            changed = os.lstat(name).st_ctime_ns
        except OSError:
            return
        if changed > _BEGAN_NS and self._workspace.relative(name):
            self._collection_error(name, _WrittenMeanwhileError("it was written while the tests ran"))

    def _note_other_module(self, collector: Any, path: str) -> None:
        """Record that the loaded module is not the test file; pytest can be told to ignore that."""
        module = getattr(collector, "_obj", None)
        if module is None or isinstance(collector, pytest.Package):
            return
        origin = getattr(module, "__file__", None)
        name = origin[:-1] if isinstance(origin, str) and origin.endswith((".pyc", ".pyo")) else origin
        own = path_of(collector)
        if not isinstance(name, str) or not (self._workspace.relative(name) == path or is_same(name, own)):
            self._collection_error(own, _OtherModuleError(f"{origin} was loaded in its place"))

    def _collection_error(self, name: str, error: BaseException) -> None:
        if is_a(error, "ConftestImportFailure"):
            name = str(getattr(error, "path", name))
        path = self._workspace.relative(name) or "."
        self._records.write("collection_error", path=path, fault=self._faults.describe(error))

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_collection_modifyitems(self, config: Any, items: list[Any]) -> Generator[None, Any, None]:
        yield
        kept: list[Any] = []
        dropped: list[Any] = []
        for item in items:
            if self._elsewhere and self._workspace.relative(path_of(item)).startswith(self._elsewhere):
                dropped.append(item)  # another project's, that a setting names in spite of `--ignore`
                continue
            described = self._item(item)
            self._records.write("item", **described)
            identifier, path = described["id"], described["path"]
            chosen = (self._ids is None or identifier in self._ids) and (self._files is None or path in self._files)
            (kept if chosen and identifier not in self._done else dropped).append(item)
        if dropped:
            items[:] = kept
            config.hook.pytest_deselected(items=dropped)

    def _item(self, item: Any) -> dict[str, Any]:
        path = self._workspace.relative(path_of(item))
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
            "doctest": is_doctest(item),
        }

    def _locate(self, item: Any, path: str) -> list[Part]:
        """Return the classes of a test and the test itself, last; [] if it is not written as a function."""
        tree = self._workspace.tree(path)
        if tree is None or not isinstance(item, pytest.Function):
            return []
        classes = [node.name for node in item.listchain() if isinstance(node, pytest.Class)]
        name = getattr(item, "originalname", None) or item.name.partition("[")[0]
        nodes = nested(tree, [*classes, name])
        if nodes:
            return [(path, node, False) for node in nodes]
        owners = nested(tree, classes)
        inherited = self._inherited(item, name)
        above = [node for _, node, _ in inherited[:-1]]
        if not all(isinstance(node, ast.ClassDef) for node in above):
            return []  # it is made by a function, which may have been given anything
        if owners or [node.name for node in above] == classes:
            return [*((path, node, True) for node in owners), *inherited] if inherited else []
        return []

    def _inherited(self, item: Any, name: str) -> list[Part]:
        """Return where an inherited or imported test is written; [] if not in the workspace."""
        function = getattr(item, "function", None)
        for _ in range(CHAIN_LIMIT):
            function = getattr(function, "__wrapped__", function)
        code = getattr(function, "__code__", None)
        if code is None or code.co_name != name:
            return []
        path = self._workspace.relative(code.co_filename)
        nodes = self._workspace.functions(path).get((name, code.co_firstlineno), []) if path else []
        return [(path, node, False) for node in nodes]
