"""Runs redfirst as its console script does, and writes where the time went: `breakdown.py OUT ARGUMENT...`.

Each function named in `instrument` is timed without the ones that it calls and that are named there too. That is sound
only while one dispatch is under way at a time, so the benchmark runs without a second reviewer.
"""

from __future__ import annotations

import functools
import inspect
import json
import os
import sys
import time
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import redfirst
from pipeline.agents.backends.scripted import ScriptedBackend
from pipeline.agents.dispatch import dispatcher
from pipeline.app import ports
from pipeline.matrix.engine.journal import Journal
from pipeline.matrix.routing.advance import MatrixMachine
from pipeline.repo import Repository
from pipeline.run.checkout import PrivateCheckout
from pipeline.run.run import Run
from pipeline.sandbox.boxes import canary
from pipeline.sandbox.boxes.bubblewrap import Bubblewrap
from pipeline.sandbox.boxes.nobox import NoBox
from pipeline.sandbox.views import copies, decoy_repository, shadow
from pipeline.sandbox.views.views import Views
from pipeline.testing.languages.python import environment as pytest_environment
from pipeline.testing.languages.python.toolchain import PytestToolchain

if TYPE_CHECKING:
    from collections.abc import Callable

DISPATCHES, MEASUREMENTS = "dispatch: the rest", "measure: our side"


class Clock:
    """Exclusive times by label, and counts."""

    def __init__(self) -> None:
        self.ms: defaultdict[str, float] = defaultdict(float)
        self.counts: defaultdict[str, int] = defaultdict(int)
        self.stack: list[list[Any]] = []

    def enter(self, label: str) -> None:
        self.counts[label] += 1
        self.stack.append([label, time.perf_counter(), 0.0])

    def leave(self) -> None:
        label, began, inner = self.stack.pop()
        whole = time.perf_counter() - began
        self.ms[label] += 1000 * (whole - inner)
        if self.stack:
            self.stack[-1][2] += whole

    def within(self, label: str) -> bool:
        return any(entry[0] == label for entry in self.stack)


CLOCK = Clock()


def clocked(owner: object, name: str, label: str | Callable[..., str]) -> None:
    """Replace a function or method of the program by one that is timed under a label, made from its arguments."""
    call: Any = getattr(owner, name)

    def labelled(*args: object) -> str:
        return label if isinstance(label, str) else label(*args)

    @functools.wraps(call)
    def timed(*args: Any, **kwargs: Any) -> Any:
        CLOCK.enter(labelled(*args))
        try:
            return call(*args, **kwargs)
        finally:
            CLOCK.leave()

    @functools.wraps(call)
    async def awaited(*args: Any, **kwargs: Any) -> Any:
        CLOCK.enter(labelled(*args))
        try:
            return await call(*args, **kwargs)
        finally:
            CLOCK.leave()

    setattr(owner, name, awaited if inspect.iscoroutinefunction(call) else timed)


def boxed(*_: object) -> str:
    """Return whose process a box runs."""
    if CLOCK.within(MEASUREMENTS):
        return "measure: test process"
    return "canary: process" if CLOCK.within("canary") else "agent: process"


def git_process(_: object, argv: tuple[str, ...], *__: object) -> str:
    words = (word for word, before in zip(argv, ("", *argv), strict=False) if before != "-c")
    CLOCK.counts[f"git {next(word for word in words if not word.startswith('-'))}"] += 1
    return "git processes"


def instrument() -> None:
    clocked(ports, "open_box", "canary")
    clocked(canary, "prove", "canary")
    clocked(Bubblewrap, "run", boxed)
    clocked(NoBox, "run", boxed)
    clocked(ScriptedBackend, "run", "agent: our side")
    clocked(PytestToolchain, "run_tests", MEASUREMENTS)
    clocked(pytest_environment, "find_environment", "test environment")
    clocked(dispatcher.Dispatcher, "dispatch", DISPATCHES)
    clocked(Views, "open", "view: open")
    clocked(decoy_repository.Decoy, "make", "view: decoy")
    clocked(decoy_repository.Decoy, "advance", "view: decoy")
    clocked(shadow, "scan", "view: scan")
    clocked(PrivateCheckout, "fill", "view: fill (but git)")
    clocked(PrivateCheckout, "move", "view: move (but git)")
    clocked(shadow.Shadow, "clean", "view: put back")
    clocked(copies, "remove_tree", "view: removal")
    clocked(dispatcher, "inspect", "gate (but scan)")
    clocked(Repository, "_start", git_process)
    clocked(Journal, "append", "journal")
    clocked(Run, "write_artifact", "artifacts")
    clocked(MatrixMachine, "advance", "routing")
    for name in ("fsync", "fdatasync"):
        clocked(os, name, "fsyncs")


def count_processes(event: str, _: tuple[object, ...]) -> None:
    if event == "subprocess.Popen":
        CLOCK.counts["processes"] += 1


def main() -> None:
    out = Path(sys.argv[1])
    sys.argv = ["redfirst", *sys.argv[2:]]
    instrument()
    sys.addaudithook(count_processes)
    CLOCK.ms["interpreter and imports"] = 1000 * (time.time() - float(os.environ["BENCH_BEGAN"]))
    CLOCK.enter("everything else")
    try:
        redfirst.main()
    finally:
        CLOCK.leave()
        CLOCK.counts["dispatches"], CLOCK.counts["measurements"] = CLOCK.counts[DISPATCHES], CLOCK.counts[MEASUREMENTS]
        figures = {f"ms {name}": value for name, value in CLOCK.ms.items()}
        figures |= {f"n {name}": float(value) for name, value in CLOCK.counts.items()}
        out.write_text(json.dumps(figures), encoding="utf-8")


if __name__ == "__main__":
    main()
