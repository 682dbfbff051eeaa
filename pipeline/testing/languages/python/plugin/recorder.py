"""The pytest hooks that record one session: its collection, each test, and its end."""

# hooks are named, and explained, by pytest
# ruff: noqa: D102, PTH120, PTH206

from __future__ import annotations

import ast
import json
import os
import signal
import sys
import threading
import time
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from .cases import Cases
from .faults import CHAIN_LIMIT, Faults, is_a
from .mentions import Mentions
from .tracing import Tracer
from .workspace import NOT_OURS, Workspace, nested, path_of

if TYPE_CHECKING:
    from collections.abc import Generator

    from .workspace import Part


def skip_reason(longrepr: Any) -> Any:
    """Return the reason of a skip, whose report is usually (path, line, reason)."""
    return longrepr[2] if isinstance(longrepr, tuple) else longrepr  # pyright: ignore[reportUnknownVariableType]  of Any


def is_same(one: str, other: str) -> bool:
    """Return whether two paths are the same file, through links."""
    try:
        return Path(one).samefile(other)
    except OSError:
        return False


def code_of(item: Any) -> Any:
    """Return the code that a test runs, below its decorators; None where it is not a function."""
    function = getattr(item, "function", None)
    for _ in range(CHAIN_LIMIT):
        function = getattr(function, "__wrapped__", function)
    return getattr(function, "__code__", None)


def is_doctest(node: Any) -> bool:
    """Return whether a node stands for doctests; production and manuals have them without being test files."""
    return any("doctest" in kind.__name__.lower() for kind in type(node).__mro__)


def is_own(node: Any) -> bool:
    """Return whether a node makes a test file of its file: not so doctests, and what a tool says of a source."""
    is_check = path_of(node).endswith(".py") and not isinstance(node, (pytest.Module, pytest.Function))
    return not is_check and not is_doctest(node)


SOCKET_VARIABLE = "REDFIRST_SOCKET"
_HANDLED = [number for number in signal.Signals if number < getattr(signal, "SIGRTMIN", signal.NSIG)]
"""The signals that a program has handlers for. With the thirty real-time ones, which nobody sends, to block them and
to give them back took ten times as long, and a third of the time of a suite of small tests."""


def read_request() -> list[tuple[int, dict[str, Any]]]:
    """Return the socket and the request received from it, once; empty in a process that has none."""
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


class Records:
    """Writes records to the socket, one line each, with the nonce and a running number."""

    def __init__(self, descriptor: int, nonce: str) -> None:
        # a raw descriptor: a file object would warn when the interpreter dies with it, which some projects make fatal
        self._descriptor = descriptor
        self._nonce = nonce
        self._count = 0
        self._owner = os.getpid()

    def write(self, kind: str, **facts: Any) -> None:
        """Write one record; a forked child writes none, because it would repeat its parent's."""
        self.write_all(kind, [facts])

    def write_all(self, kind: str, of_each: list[dict[str, Any]]) -> None:
        """Write a record for each of these facts, all at once: with each write the driver is woken."""
        if os.getpid() != self._owner:
            return
        # a signal in the middle of a record would put what its handler writes there
        masked = signal.pthread_sigmask(signal.SIG_BLOCK, _HANDLED)
        try:
            lines: list[bytes] = []
            for facts in of_each:
                line = {"nonce": self._nonce, "n": self._count, "kind": kind}
                line.update(facts)
                self._count += 1
                text = json.dumps(line, sort_keys=True, ensure_ascii=False)
                lines.append(text.encode("utf-8", "replace") + b"\n")  # a lone surrogate is not valid JSON
            left = b"".join(lines)
            while left:
                left = left[os.write(self._descriptor, left) :]
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, masked)


def canary_outcomes(session: Any) -> dict[str, str]:
    """Return the outcomes that this session reports for a passing and a failing test, unseen by the project's hooks."""
    from _pytest.reports import TestReport
    from _pytest.runner import CallInfo

    class Canary(pytest.Item):
        def runtest(self) -> None:
            """Do nothing: `from_call` gets the body directly."""

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


_BEGAN_NS = time.time_ns()
_OUTCOMES = {"passed": "passed", "failed": "failed", "skipped": "skipped", "rerun": "rerun", "retried": "rerun"}


class _WrittenMeanwhileError(Exception):
    """Tested code created or changed a test file."""


class _OtherModuleError(Exception):
    """Another module was loaded in place of a test file."""


class TestLimitReached(BaseException):
    """A test exceeded its time limit; not an `Exception`, so that tested code does not catch it."""

    __test__ = False


class Recorder:
    """The hooks on one session: its collection, each test, and its end."""

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
        self._ours = {"__main__", *(name for name in sys.modules if name.partition(".")[0] == __package__)}
        self._checkouts = [os.path.realpath(entry) for entry in request["checkouts"]]
        self._limit = request["per_test_s"]
        self._tracer = Tracer(self._workspace) if request["trace"] else None
        self._now = time.monotonic  # tests put other clocks in its place
        self._phases: dict[str, list[dict[str, Any]]] = {}
        self._made: list[dict[str, Any]] = []  # each failure, and so those of which a plugin that runs again tells none
        self._mentions = Mentions(self._workspace)
        self._timed_out = False

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
        before: dict[str, Any] = parser.parse_known_args(args).__dict__
        args.extend(flag for flags in known for flag in flags)
        after: dict[str, Any] = parser.parse_known_args(args).__dict__
        for name, value in after.items():
            if before.get(name) != value:  # plugins look here before the options are parsed for good
                setattr(config.known_args_namespace, name, value)

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
        if path and isinstance(collector, pytest.File) and path not in self._seen_files and is_own(collector):
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
        found: list[dict[str, Any]] = []
        for item in items:
            if self._elsewhere and self._workspace.relative(path_of(item)).startswith(self._elsewhere):
                dropped.append(item)  # another project's, that a setting names in spite of `--ignore`
                continue
            described = self._item(item)
            found.append(described)
            identifier, path = described["id"], described["path"]
            chosen = (self._ids is None or identifier in self._ids) and (self._files is None or path in self._files)
            (kept if chosen and identifier not in self._done else dropped).append(item)
        self._records.write_all("item", found)
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
            "region_sha256": self._region(item, path, parts) if is_own(item) or is_doctest(item) else "",
            "case": self._cases.of(item, parts),
            "own": is_own(item),
        }

    def _region(self, item: Any, path: str, parts: list[Part]) -> str:
        if parts or not isinstance(item, pytest.Function):
            return self._workspace.region_sha256(path, parts)
        code = code_of(item)
        line = code.co_firstlineno if code is not None and self._workspace.relative(code.co_filename) == path else 0
        return self._workspace.made_sha256(path, line)

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
        code = code_of(item)
        if code is None or code.co_name != name:
            return []
        path = self._workspace.relative(code.co_filename)
        nodes = self._workspace.functions(path).get((name, code.co_firstlineno), []) if path else []
        return [(path, node, False) for node in nodes]

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: Any) -> Generator[None, Any, None]:
        identifier = self._faults.portable(item.nodeid)
        self._phases[item.nodeid], self._made = [], []
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
            parts = self._locate(item, self._workspace.relative(path_of(item)))
            reach = {**self._tracer.stop(item), **self._mentions.of(item, parts)}
        phases = self._phases.pop(item.nodeid)
        told = [phase["fault"] for phase in phases]
        phases += [made for made in self._made if made["fault"] not in told]
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
            outcome.get_result().redfirst_fault = fault = self._faults.describe(call.excinfo.value, document)
            self._made.append({"when": call.when, "outcome": "rerun", "reason": "", "fault": fault, "sub": False})

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: Any) -> None:
        phases = self._phases.get(report.nodeid)
        if phases is not None:
            fault = getattr(report, "redfirst_fault", None)
            phases.append(self._phase(report, fault))

    def _phase(self, report: Any, fault: dict[str, Any] | None) -> dict[str, Any]:
        expected = getattr(report, "wasxfail", None)
        outcome = _OUTCOMES.get(report.outcome, "failed")  # a plugin may have words of its own
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
