"""What a killed driver can leave: a box that was being set up at that very instant.

Between bubblewrap's fork and its child's own parent-death signal there is a moment in which the parent can die; the
child then waits for it for ever, with nothing of an agent in it yet. Every driver clears such processes at its start.
"""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path
from typing import Final

from pipeline.dispatch.children import LIMITS

_REAPERS: Final = frozenset({"systemd", "init"})


def clear_orphans(processes: Path = Path("/proc")) -> int:
    """Kill our own boxes that have lost their driver; return how many there were.

    Ours is what runs as our user, is called bwrap, and carries our limits in its arguments; lost is what init or a
    user's systemd has adopted (a living box is the child of its driver, or of another bwrap).
    """
    if os.getpid() == 1:  # then a living box is the child of process 1, too
        return 0
    found = 0
    for entry in processes.iterdir():
        if entry.name.isdigit() and _is_lost_box(entry, processes):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(int(entry.name), signal.SIGKILL)
                found += 1
    return found


def _is_lost_box(entry: Path, processes: Path) -> bool:
    with contextlib.suppress(OSError, ValueError, IndexError):
        argv = (entry / "cmdline").read_bytes().split(b"\0")
        if os.path.basename(argv[0]) != b"bwrap" or LIMITS[-2].encode() not in argv:  # noqa: PTH119  (bytes)
            return False
        if entry.stat().st_uid != os.getuid():
            return False
        parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
        return parent == 1 or (processes / str(parent) / "comm").read_text().strip() in _REAPERS
    return False
