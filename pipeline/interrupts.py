"""What stops redfirst: Ctrl-C, SIGTERM, and SIGHUP, with which a terminal closes. All three mean the same.

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
_STREAMS: Final = (1, 2)
_terminals: list[int] = []


class StoppedError(Exception):
    """A command was interrupted; a KeyboardInterrupt would end within typer, without a word."""


def as_ctrl_c() -> None:
    """Let SIGTERM and SIGHUP do what Ctrl-C does; who was started with them ignored (`nohup`) goes on ignoring them."""
    _terminals[:] = [stream for stream in _STREAMS if os.isatty(stream)]
    for number in NUMBERS[1:]:
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _hand_on)


def leave_terminal() -> None:
    """Say no more to a terminal that has closed: a write to it would fail, and so would what is still to be done."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    for stream in _terminals:
        os.dup2(nothing, stream)
    os.close(nothing)


def ignore() -> None:
    """Let nothing interrupt the last steps of this process."""
    for number in NUMBERS:
        signal.signal(number, signal.SIG_IGN)


def _hand_on(number: int, frame: FrameType | None) -> None:
    if number == signal.SIGHUP:
        leave_terminal()
    handler = signal.getsignal(signal.SIGINT)
    if not callable(handler):  # started in the background of a shell, where Ctrl-C is ignored
        raise KeyboardInterrupt
    handler(signal.SIGINT, frame)
