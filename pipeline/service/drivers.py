"""Processes that drive runs, as others see them: who one is, when it ends, and that it should."""

from __future__ import annotations

import os
import select
import signal
from typing import TYPE_CHECKING

from pipeline.runs.lease import driver_of

if TYPE_CHECKING:
    from pathlib import Path


def ended_within(folder: Path, seconds: float) -> bool:
    """Return whether nobody drives a run any more; waited for so long at most."""
    driver = _driver(folder)
    if driver is None:
        return True
    try:
        waiting = select.poll()
        waiting.register(driver, select.POLLIN)
        return bool(waiting.poll(seconds * 1000))
    finally:
        os.close(driver)


def asked_to_stop(folder: Path) -> bool:
    """Ask the driver of a run to stop; return whether there is one."""
    driver = _driver(folder)
    if driver is None:
        return False
    try:
        signal.pidfd_send_signal(driver, signal.SIGTERM)
    except ProcessLookupError:
        return False
    finally:
        os.close(driver)
    return True


def _driver(folder: Path) -> int | None:
    """Return a descriptor of the process that drives a run, None where none does."""
    pid = driver_of(folder)
    if pid is None:
        return None
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return None
    if driver_of(folder) == pid:  # it was this very process that held the lease
        return handle
    os.close(handle)
    return None
