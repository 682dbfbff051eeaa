"""Runs redfirst as its console script does, and writes where the time went: `breakdown.py OUT ARGUMENT...`.

Each function named below is timed without the ones below it that it calls. That is sound only while one dispatch is
under way at a time, so the benchmark runs without a second reviewer.
"""

from __future__ import annotations

import functools
import inspect
import json
import os
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import redfirst

STARTED = time.perf_counter()
TESTS = "tests"


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


def clocked(owner: Any, name: str, label: Callable[..., str]) -> None:
    """Replace a function or method of the program by one that is timed under a label made from its arguments."""
    call = inspect.getattr_static(owner, name)
    kind = type(call) if isinstance(call, classmethod | staticmethod) else None
    plain = call.__func__ if kind is not None else call

    @functools.wraps(plain)
    def timed(*args: Any, **kwargs: Any) -> Any:
        CLOCK.enter(label(*args))
        try:
            return plain(*args, **kwargs)
        finally:
            CLOCK.leave()

    @functools.wraps(plain)
    async def awaited(*args: Any, **kwargs: Any) -> Any:
        CLOCK.enter(label(*args))
        try:
            return await plain(*args, **kwargs)
        finally:
            CLOCK.leave()

    chosen = awaited if inspect.iscoroutinefunction(plain) else timed
    setattr(owner, name, kind(chosen) if kind is not None else chosen)


def instrument() -> None:
    from pipeline.backends.scripted import ScriptedBackend
    from pipeline.dispatch import canary, dispatcher, view
    from pipeline.dispatch.bubblewrap import Bubblewrap
    from pipeline.dispatch.nobox import NoBox
    from pipeline.git import Repository
    from pipeline.routing.machine import MatrixMachine
    from pipeline.runs import files, run
    from pipeline.runs.checkout import PrivateCheckout
    from pipeline.runs.journal import Journal
    from pipeline.steps import measuring, sanity
    from pipeline.toolchains import pytest_environment
    from pipeline.toolchains.pytest import PytestToolchain

    def as_said(label: str) -> Callable[..., str]:
        return lambda *_: label

    def process(*_: object) -> str:
        return (
            "tests: process"
            if CLOCK.within(TESTS)
            else "canary: process"
            if CLOCK.within("canary")
            else "agent: process"
        )

    def git_command(_: object, argv: tuple[str, ...], *__: object) -> str:
        CLOCK.counts[f"git {next(word for word in argv if not word.startswith('-') and '=' not in word)}"] += 1
        return "git processes"

    clocked(canary, "prove", as_said("canary"))
    clocked(Bubblewrap, "run", process)
    clocked(NoBox, "run", process)
    clocked(ScriptedBackend, "run", as_said("agent: our side"))
    clocked(PytestToolchain, "run_tests", as_said(TESTS))
    clocked(pytest_environment, "find_environment", as_said("test environment"))
    clocked(dispatcher.Dispatcher, "dispatch", as_said("dispatch: the rest"))
    clocked(view, "make_decoy", as_said("decoy"))
    clocked(view, "scan", as_said("scan"))
    clocked(dispatcher, "inspect", as_said("gate"))
    clocked(view.ShadowView, "close", as_said("removing views"))
    clocked(measuring, "remove_tree", as_said("removing views"))
    clocked(PrivateCheckout, "fill", as_said("filling views"))
    clocked(Repository, "_start", git_command)
    clocked(Repository, "find", as_said("finding the repository"))
    clocked(Journal, "append", as_said("journal"))
    clocked(run.Run, "write_artifact", as_said("artifacts"))
    clocked(MatrixMachine, "advance", as_said("routing"))
    clocked(sanity, "baseline_of", as_said("reading evidence"))
    for name in ("fsync", "fdatasync"):
        clocked(os, name, as_said("fsyncs"))
    del files


def heard(event: str, _: tuple[Any, ...]) -> None:
    if event == "subprocess.Popen":
        CLOCK.counts["processes"] += 1


def main() -> None:
    out = Path(sys.argv[1])
    sys.argv = ["redfirst", *sys.argv[2:]]
    began = float(os.environ["BENCH_BEGAN"])
    from pipeline.cli import driving

    instrument()
    sys.addaudithook(heard)
    CLOCK.ms["interpreter and imports"] = 1000 * (time.time() - began)
    CLOCK.enter("everything else")
    try:
        redfirst.main()
    finally:
        CLOCK.leave()
        counts = CLOCK.counts
        counts["dispatches"], counts["measurements"] = counts["dispatch: the rest"], counts[TESTS]
        figures = {f"ms {k}": v for k, v in CLOCK.ms.items()} | {f"n {k}": float(v) for k, v in counts.items()}
        out.write_text(json.dumps(figures))
    del driving


if __name__ == "__main__":
    main()
