"""Traces which functions, files and processes a test reaches."""

from __future__ import annotations

import os
import sys
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from .workspace import path_of

if TYPE_CHECKING:
    from collections.abc import Generator
    from types import FrameType

    from .workspace import Workspace

_REACH_LIMIT = 300
_IS_FUNCTION = 1  # CO_OPTIMIZED: set for functions, not for modules and class bodies
_PROCESS_EVENTS = {"subprocess.Popen", "os.posix_spawn", "os.exec", "os.system", "os.fork"}


class Tracer:
    """Traces which of the project's functions, files and processes a test reaches; only for a few named tests."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._functions: set[str] | None = None
        self._doors: set[str] = set()
        self._fixtures: dict[int, set[str]] = {}
        self._names: dict[int, tuple[Any, str]] = {}
        self._tables: set[str] = set()
        self._told_of_requests = False
        self._monitored = self._monitor()
        sys.addaudithook(self._audit)

    def _monitor(self) -> bool:
        """Return whether `sys.monitoring` (3.12) traces functions, with which other code costs almost nothing."""
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
        """Start tracing one test."""
        self._functions, self._doors, self._tables = set(), set(), set()
        self._listen_to_django()
        if not self._monitored:
            threading.setprofile(self._profile)
            sys.setprofile(self._profile)

    def stop(self, item: Any) -> dict[str, Any]:
        """Return what the test reached since `start`, itself and through shared fixtures."""
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
        self._doors.update(filter(None, map(self._place_of, self._tables)))
        doors = self._doors - {self._workspace.relative(path_of(item)), ".pdbrc"}
        # of a large test the rest is cut; one of each file is kept, since it is from files that it is seen to be far
        firsts = {name.partition("::")[0]: name for name in sorted(functions, reverse=True)}
        kept = {*sorted(functions)[:_REACH_LIMIT], *firsts.values()}
        return {"functions": sorted(kept), "doors": sorted(doors)}

    def _listen_to_django(self) -> None:
        """Let Django tell of requests: which function answers one is said by a table, which is data of the project."""
        signals: Any = sys.modules.get("django.core.signals")
        if signals is not None and not self._told_of_requests:
            signals.request_started.connect(self._hear_request, weak=False)
            self._told_of_requests = True

    def _hear_request(self, **_said: object) -> None:
        settings = getattr(sys.modules.get("django.conf"), "settings", None)
        self._tables.add(str(getattr(settings, "ROOT_URLCONF", "")))

    def _place_of(self, module: str) -> str:
        return self._workspace.relative(getattr(sys.modules.get(module), "__file__", None) or "")

    @contextmanager
    def paused(self) -> Generator[None, None, None]:
        """Pause tracing: pytest parses whole files to show a failure, which takes minutes when traced."""
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
        """Record the functions that a fixture's set-up enters: the next test that shares it does not run it again."""
        before = set(self._functions or ())
        yield
        self._fixtures[id(definition)] = set(self._functions or ()) - before

    def _profile(self, frame: FrameType, event: str, _argument: object) -> None:
        if event == "call":
            self._note(frame.f_code)

    def _note(self, code: Any) -> str:
        """Record a function of the project; return its name, "" for other code."""
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
