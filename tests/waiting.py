"""How tests wait for what other processes bring about: long, since only a failure takes all of it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PATIENCE_S: Final = 120.0


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
