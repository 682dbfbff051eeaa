"""Boxes that were being set up when their driver was killed are cleared by the next driver; no other process is."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from pipeline.dispatch.children import LIMITS
from pipeline.dispatch.orphans import clear_orphans

SLEEPER = "import time; time.sleep(60)"


def adopted(argv: list[str]) -> int:
    """Start a process whose parent ends at once, so that init adopts it; return its id."""
    starter = "import os, sys; pid = os.fork(); pid and (print(pid, flush=True), os._exit(0)); os.close(1); os.execv(sys.executable, sys.argv[1:])"  # noqa: E501
    done = subprocess.run([sys.executable, "-c", starter, *argv], stdout=subprocess.PIPE, text=True, check=True)
    return int(done.stdout)


def is_alive(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    return False


def ends(pid: int) -> bool:
    deadline = time.monotonic() + 10
    while is_alive(pid) and time.monotonic() < deadline:
        os.sched_yield()
    return not is_alive(pid)


def test_a_box_without_its_driver_is_killed_and_nothing_else_is() -> None:
    ours = ["bwrap", "-c", SLEEPER, LIMITS[-2]]
    lost = adopted(ours)
    foreign = adopted(["bwrap", "-c", SLEEPER, "somebody else's"])
    living = subprocess.Popen(ours, executable=sys.executable)
    try:
        parent = Path(f"/proc/{lost}/stat").read_text().rpartition(")")[2].split()[1]
        assert parent == "1", "this machine has a reaper of its own: the test cannot make an orphan"
        clear_orphans()  # a driver of another test may have done it already
        assert ends(lost)
        assert is_alive(foreign)
        assert is_alive(living.pid)
    finally:
        for pid in (lost, foreign, living.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        living.wait()
