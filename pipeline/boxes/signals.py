"""Starts commands with default signal handling, even if this process ignores some signals.

A shell starts what it puts in the background with SIGINT and SIGQUIT ignored, `nohup` with SIGHUP, and a child inherits
that for good. Tests that interrupt a program of theirs would then measure how redfirst was started.
"""

from __future__ import annotations

import contextlib
import signal
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Generator

_IGNORED_IN_BACKGROUND: Final = (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP)


@contextlib.contextmanager
def default_for_children() -> Generator[None]:
    """Handle the signals that this process ignores while children are started, for which they are then default."""
    ignored = [number for number in _IGNORED_IN_BACKGROUND if signal.getsignal(number) is signal.SIG_IGN]
    for number in ignored:
        signal.signal(number, lambda _number, _frame: None)
    try:
        yield
    finally:
        for number in ignored:
            signal.signal(number, signal.SIG_IGN)
