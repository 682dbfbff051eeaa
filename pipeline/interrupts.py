"""Handles the signals that stop redfirst: Ctrl-C, SIGTERM, and SIGHUP of a closed terminal, all alike.

Whatever redfirst starts has a process group of its own, so that the terminal's signal reaches this process alone.
Light on purpose: this module is on the path of every command.
"""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from types import FrameType

NUMBERS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_terminals: list[int] = []


class StoppedError(Exception):
    """A command was interrupted. A KeyboardInterrupt would end within typer, without a message."""


def as_ctrl_c() -> None:
    """Make SIGTERM and SIGHUP act like Ctrl-C, unless they were ignored at the start (`nohup`)."""
    _terminals[:] = [stream for stream in (1, 2) if os.isatty(stream)]
    for number in NUMBERS[1:]:
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _hand_on)


def leave_terminal() -> None:
    """Redirect output from a closed terminal to nowhere: a failing write would stop the remaining work."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    for stream in _terminals:
        os.dup2(nothing, stream)
    os.close(nothing)


def ignore() -> None:
    """Ignore all stop signals during the last steps of this process."""
    for number in NUMBERS:
        signal.signal(number, signal.SIG_IGN)


def _hand_on(number: int, frame: FrameType | None) -> None:
    if number == signal.SIGHUP:
        leave_terminal()
    handler = signal.getsignal(signal.SIGINT)
    if not callable(handler):  # started in the background of a shell, where Ctrl-C is ignored
        raise KeyboardInterrupt
    handler(signal.SIGINT, frame)
