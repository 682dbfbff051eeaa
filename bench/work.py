"""What the queue costs: the processor's time of a run with many drivers at once, as a ratio to fewer: `bench/work.py`.

    python -P bench/work.py [--runs 64] [--jobs 8] [--against 4] [--seconds 1]

Agents are scripted, the first one of each run sleeps, and measurements cost next to nothing (`tests/languages/sums`).
Each run must come to its commits. The time is that of all processes: the worker, its drivers, and git.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def measured(folder: Path, runs: int, jobs: int, seconds: float) -> tuple[float, float, int]:
    """Return the processor's seconds for each run, those by the clock of all, and how many came to nothing."""
    project = import_module("queued.sums_project")
    folder.mkdir()
    queued = project.make(folder, runs, sleep_s=seconds)
    queued.add()
    argv = [str(import_module("kit").REDFIRST), "work", "--once", "--jobs", str(jobs)]
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    subprocess.run(
        argv, cwd=queued.project.root, env=queued.project.environment(), stdout=subprocess.DEVNULL, check=False
    )
    took, after = time.monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return used / runs, took, sum(one["outcome"] != "completed" for one in queued.orders())


def main() -> None:
    """Print the ratio."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=64)
    parser.add_argument("--jobs", type=int, default=8)
    parser.add_argument("--against", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=1.0)
    options = parser.parse_args()
    sys.path[:0] = [str(ROOT / "tests"), str(ROOT)]
    found: dict[int, float] = {}
    with tempfile.TemporaryDirectory(prefix="redfirst-bench-") as place:
        for jobs in (options.against, options.jobs):
            found[jobs], took, failed = measured(Path(place) / str(jobs), options.runs, jobs, options.seconds)
            each = f"{found[jobs]:.2f} s of the processor for each"
            print(f"{options.runs} runs, {jobs} at once: {each}, {took:.0f} s in all, {failed} failed", flush=True)
    print(f"ratio {found[options.jobs] / found[options.against]:.2f}")


if __name__ == "__main__":
    main()
