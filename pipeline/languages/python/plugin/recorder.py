"""The pytest hooks that record one session."""

# hooks are named, and explained, by pytest
# ruff: noqa: D102, PTH120, PTH206
from __future__ import annotations

import ast
import os
import signal
import sys
import threading
import time
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

import pytest

from .canaries import canary_outcomes
from .collecting import Collecting
from .faults import is_a
from .nodes import is_doctest, path_of, skip_reason
from .syntax import imports
from .tracing import REACH_LIMIT, Tracer
from .workspace import NOT_OURS

if TYPE_CHECKING:
    from collections.abc import Generator


class TestLimitReached(BaseException):
    """A test exceeded its time limit; not an `Exception`, so that tested code does not catch it."""

    __test__ = False


class Recorder(Collecting):
    """The hooks on one session: its collection, each test, and its end."""

    def __init__(self, descriptor: int, request: dict[str, Any]) -> None:
        super().__init__(descriptor, request)
        self._ours = {"__main__", *(name for name in sys.modules if name.partition(".")[0] == __package__)}
        self._checkouts = [os.path.realpath(entry) for entry in request["checkouts"]]
        self._limit = request["per_test_s"]
        self._tracer = Tracer(self._workspace) if request["trace"] else None
        self._now = time.monotonic  # tests put other clocks in its place
        self._phases: dict[str, list[dict[str, Any]]] = {}
        self._imported: dict[str, list[tuple[int, str, str]]] = {}
        self._timed_out = False

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
            reach = {**self._tracer.stop(item), **self._looked_at(item)}
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
        """Give the display of a failure as much time as a test has: several sub-tests of one test may fail."""
        left = signal.getitimer(signal.ITIMER_REAL)[0]
        if self._limit is None or not left:
            yield
            return
        signal.setitimer(signal.ITIMER_REAL, self._limit)
        yield
        signal.setitimer(signal.ITIMER_REAL, left)

    def _reported(self, item: Any, call: Any) -> Generator[None, Any, None]:
        outcome: Any = yield
        if outcome.excinfo is None and call.excinfo is not None and not is_a(call.excinfo.value, "Skipped", "SkipTest"):
            # it travels with the report, which sub-tests and re-runs make several of
            document = self._workspace.relative(path_of(item)) if is_doctest(item) else ""
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
            reason = self._faults.text(skip_reason(report.longrepr))
        elif outcome == "failed" and fault is None:
            reason = self._faults.text(report.longrepr)
            if reason.startswith(("[XPASS(strict)]", "Unexpected success")):
                outcome = "strict_xpass"
        elif outcome == "passed" and fault is not None:
            # an exception ended this phase, and somebody rewrote the report afterwards
            outcome = "failed"
        sub = hasattr(report, "context")  # pytest's own sub-tests, and those of the plugin that came before them
        return {"when": report.when, "outcome": outcome, "reason": reason, "fault": fault, "sub": sub}

    def _looked_at(self, item: Any) -> dict[str, list[str]]:
        """Return the project's files whose imported names a test mentions, for production that is only looked at.

        And those whose paths are texts in it: what a test of a file's absence looks for.
        """
        parts = self._locate(item, self._workspace.relative(path_of(item)))
        tree = self._workspace.tree(parts[-1][0]) if parts else None
        if tree is None:
            return {"references": [], "named": []}
        path, node, _ = parts[-1]
        package = str(getattr(getattr(item, "module", None), "__package__", "") or "")
        within = list(ast.walk(node))
        mentioned = {part.id for part in within if isinstance(part, ast.Name)}
        inside = {id(part) for part in within}
        if path not in self._imported:
            found = [(id(part), *pair) for part in ast.walk(tree) for pair in imports(part, package)]
            self._imported[path] = found
        modules = {module for part, local, module in self._imported[path] if part in inside or local in mentioned}
        loaded = [getattr(sys.modules.get(name), "__file__", None) or self._workspace.file_of(name) for name in modules]
        references = sorted({self._workspace.relative(name) for name in loaded if name} - {""})
        texts = {part.value for part in within if isinstance(part, ast.Constant) and isinstance(part.value, str)}
        named = sorted({self._workspace.file_at(text) for text in texts} - {""})
        return {"references": references[:REACH_LIMIT], "named": named[:REACH_LIMIT]}

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_sessionfinish(self, session: Any) -> Generator[None, Any, None]:
        yield
        own, foreign = self._modules()
        self._records.write("modules", own=own, foreign=foreign)
        self._records.write("session_end", exitstatus=int(session.exitstatus), canaries=canary_outcomes(session))

    def _modules(self) -> tuple[dict[str, str], dict[str, str]]:
        own: dict[str, str] = {}
        foreign: dict[str, str] = {}
        tops = self._workspace.top_level_names()
        library = os.path.dirname(os.path.realpath(os.__file__))
        for name, module in list(sys.modules.items()):
            origin = getattr(module, "__file__", None)
            if not isinstance(origin, str) or name in self._ours:
                continue
            path = self._workspace.relative(origin)
            real = self._workspace.real(origin)
            installed = bool(NOT_OURS.intersection(real.split(os.sep)))
            if path:
                own[name] = path
            elif (any(real.startswith(place + os.sep) for place in self._checkouts) and not installed) or (
                name.partition(".")[0] in tops and (installed or not real.startswith(library + os.sep))
            ):
                foreign[name] = real
        return own, foreign
