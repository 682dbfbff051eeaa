"""Whether a whole run of the tests takes the broad cases, and where its time goes.

Broad is what repeats a rule that other tests hold over many agents, boxes, attacks, languages or instants: more than
an hour of them on two cores. `make test` leaves them out, `make test-all` takes them, and so does whoever names files
or tests. `docs/testing.md` says which promise is held where.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections import Counter, defaultdict
from operator import itemgetter
from pathlib import Path
from typing import Final

import forked
import hypothesis
import pytest

hypothesis.settings.register_profile("patient", deadline=None)  # how long an example takes says how busy a machine is
hypothesis.settings.register_profile("some", deadline=None, max_examples=30)

VARIABLE: Final = "TESTS_BROAD"
ALL: Final = "all"
NONE: Final = "none"


def pytest_configure(config: pytest.Config) -> None:
    """Choose, once for all workers; while tests are collected there is no garbage, and looking for it is a quarter."""
    gc.disable()
    named = config.args_source is not pytest.Config.ArgsSource.TESTPATHS
    os.environ.setdefault(VARIABLE, ALL if named else NONE)
    hypothesis.settings.load_profile("patient" if _takes_all() else "some")
    os.environ.setdefault(forked.SESSION, str(os.getpid()))
    # What looks for pytest on PATH finds the one of the tests: the machine's Python may have none.
    os.environ["PATH"] = os.pathsep.join((str(Path(sys.prefix) / "plain" / "bin"), os.environ["PATH"]))
    # A shell starts what is in the background, and nohup everything, so that it and its children ignore these.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def pytest_report_header() -> str:
    """Say which it is."""
    return "broad cases: all" if _takes_all() else "broad cases: left out; `make test-all` runs them"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave the broad cases out: all of a marked test, or those behind the first ones, `broad(but_first=1)`."""
    if _takes_all():
        return
    met: Counter[str] = Counter()
    left: list[pytest.Item] = []
    for item in items:
        marks = list(item.iter_markers("broad"))
        met[item.nodeid.partition("[")[0]] += bool(marks)
        if any(met[item.nodeid.partition("[")[0]] > mark.kwargs.get("but_first", 0) for mark in marks):
            left.append(item)
    config.hook.pytest_deselected(items=left)
    gone = set(left)
    items[:] = [item for item in items if item not in gone]


def pytest_collection_finish() -> None:
    """Spare the collector of garbage what stays to the end: the thousands of tests that each worker knows."""
    gc.collect()
    gc.freeze()
    gc.enable()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the seconds that the tests of each folder took, on all workers together."""
    spent: defaultdict[str, float] = defaultdict(float)
    for reports in terminalreporter.stats.values():
        for report in reports:
            if isinstance(report, pytest.TestReport):
                spent[report.nodeid.rpartition("::")[0].split("/")[1]] += report.duration
    if len(spent) > 1:
        most = sorted(spent.items(), key=itemgetter(1), reverse=True)
        told = ", ".join(f"{folder} {seconds:.0f}" for folder, seconds in most)
        terminalreporter.write_line(f"seconds by folder: {told}")


def _takes_all() -> bool:
    return os.environ[VARIABLE] == ALL
