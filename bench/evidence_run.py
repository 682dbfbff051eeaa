"""Runs redfirst as its console script does, and writes how long evidence took: `evidence_run.py OUT ARGUMENT...`.

Each function named in `STAGES` is timed with everything that it calls; where one stands for several calls, their sum.
"""

from __future__ import annotations

import functools
import json
import sys
import time
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import redfirst
from pipeline.steps import sanity, write_tests
from pipeline.steps.evidence import green
from pipeline.testing.languages.python.toolchain import PytestToolchain
from pipeline.testing.languages.rust.toolchain import CargoToolchain
from pipeline.testing.measure import mutation, probes

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

STAGES: Final[tuple[tuple[object, str, str], ...]] = (
    (sanity, "measure", "baseline"),
    (write_tests, "measure_red", "red"),
    (green, "measure_candidate", "green"),
    (probes, "repeat", "repeat"),
    (probes, "revert_check", "revert"),
    (probes, "mutation_probe", "mutants"),
    (mutation, "measure", "mutants: runs"),
    (PytestToolchain, "run_tests", "test runs"),
    (CargoToolchain, "run_tests", "test runs"),
)

TAKEN: defaultdict[str, float] = defaultdict(float)
CALLS: defaultdict[str, float] = defaultdict(float)


def timed(call: Callable[..., Awaitable[Any]], label: str) -> Callable[..., Awaitable[Any]]:
    @functools.wraps(call)
    async def awaited(*args: Any, **kwargs: Any) -> Any:
        began = time.perf_counter()
        try:
            return await call(*args, **kwargs)
        finally:
            TAKEN[label] += time.perf_counter() - began
            CALLS[label] += 1

    return awaited


def main() -> None:
    out = Path(sys.argv[1])
    sys.argv = ["redfirst", *sys.argv[2:]]
    for owner, name, label in STAGES:
        setattr(owner, name, timed(getattr(owner, name), label))
    began = time.perf_counter()
    try:
        redfirst.main()
    finally:
        TAKEN["run"] = time.perf_counter() - began
        calls = {f"calls of {label}": count for label, count in CALLS.items()}
        out.write_text(json.dumps({**TAKEN, **calls}), encoding="utf-8")


if __name__ == "__main__":
    main()
