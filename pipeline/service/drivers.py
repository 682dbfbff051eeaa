"""Finds the process that drives a run, waits for its end, and asks it to end."""

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


def stopped_within(folder: Path, *waits: float) -> bool:
    """Ask the driver of a run to stop, once for each wait, the second time at once; return whether nobody drives it."""
    return any(not asked_to_stop(folder) or ended_within(folder, seconds) for seconds in waits)


def _driver(folder: Path) -> int | None:
    """Return a descriptor of the process that drives a run, None where none does."""
    driver = driver_of(folder)
    handle = None if driver is None else driver.open()
    if handle is None or driver_of(folder) == driver:  # it was this very process that held the lease
        return handle
    os.close(handle)
    return None
