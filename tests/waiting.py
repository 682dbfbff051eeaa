"""How tests wait for what other processes bring about: long, since only a failure takes all of it."""

from __future__ import annotations

import itertools
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PATIENCE_S: Final = 120.0

_NAPS: Final = itertools.count(1)


def own_nap() -> str:
    """Return a number of seconds that nothing else on this machine sleeps, another run of these tests included."""
    return f"90000.{os.getpid():08}{next(_NAPS):04}"


def waits_for_a_lock(pid: int) -> bool:
    """Return whether a process waits for a lock that another one holds."""
    return any("->" in line and f" {pid} " in line for line in Path("/proc/locks").read_text().splitlines())


def alive(marker: str) -> dict[int, str]:
    """Return the other processes that have *marker* in their command line, with that line."""
    found: dict[int, str] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit() and folder.name != str(os.getpid()):
            try:
                line = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue
            found |= {int(folder.name): line.rstrip()} if marker in line else {}
    return found


def wait_until(holds: Callable[[], bool], otherwise: str = "it does not come about") -> None:
    """Return when something holds that another process brings about; an `AssertionError` if it never does."""
    end = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < end, otherwise
        time.sleep(0.01)


def longer_limits(first_s: float) -> Iterator[float]:
    """Yield limits in seconds, each four times the one before, for a test of what a limit ends after it has begun.

    The first is enough where nothing else runs; a busy machine may not even have started a program by then.
    """
    limit = first_s
    while limit < PATIENCE_S:
        yield limit
        limit *= 4
