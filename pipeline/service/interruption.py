"""Decides what a signal does to a driver, from its first step to its last (contract 1).

Before the run is there nothing is left of the attempt. While it is driven, what costs nothing to do again (a
measurement, a sandbox that is tried) is stopped at once, and so is a person's desk, which stays. A dispatch of an agent
may end first, since it is paid for; a second signal ends it. What has begun to be published is brought to its end.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
from typing import TYPE_CHECKING

import anyio

from pipeline.errors import UserError
from pipeline.interrupts import NUMBERS, leave_terminal
from pipeline.outcomes import Reason
from pipeline.steps.asking.stopping import waiting_for

if TYPE_CHECKING:
    from collections.abc import Generator
    from types import FrameType

    from pipeline.steps.context import DriverContext


class Interruption:
    """The signals that a driver has got, and what follows of them at each moment."""

    def __init__(self) -> None:
        self._count = 0
        self._told = False
        self._ctx: DriverContext | None = None
        self._scope = anyio.CancelScope()
        self._loop = asyncio.get_running_loop()

    @contextlib.contextmanager
    def listening(self, before: str, again: str | None = None) -> Generator[None]:
        """Take the signals while the body runs, which must drive a run or begin to.

        Args:
            before: What is true of a run that this driver did not come to drive.
            again: The command that begins it once more, where it is not the one that was given.

        Raises:
            UserError: reason `interrupted`: a signal came before there was a run to drive.
        """
        numbers = [number for number in NUMBERS if signal.getsignal(number) is not signal.SIG_IGN]
        numbers += [] if signal.SIGINT in numbers else [signal.SIGINT]  # one that is sent by name is meant
        old = {number: signal.signal(number, self._hear) for number in numbers}
        try:
            with self._scope:
                yield
                return
        finally:
            for number, handler in old.items():
                signal.signal(number, handler)
        raise UserError(f"Interrupted: {before}.", Reason.INTERRUPTED, actions=(again,) if again else ())

    async def checkpoint(self) -> None:
        """Stop here if a signal came while nothing was waited for."""
        if self._count:
            self._scope.cancel()
        await anyio.lowlevel.checkpoint()

    @contextlib.contextmanager
    def driving(self, ctx: DriverContext) -> Generator[None]:
        """Let the signals stop what the body drives, and nothing around it."""
        self._ctx, self._scope = ctx, anyio.CancelScope()
        if self._count:
            ctx.learnt.stopping = "soon"
        try:
            with self._scope:
                yield
        finally:
            self._scope = anyio.CancelScope()  # over: what is left to do is short, and must be done

    def _hear(self, number: int, _frame: FrameType | None) -> None:
        if number == signal.SIGHUP:
            leave_terminal()
        self._count += 1
        if self._ctx is not None and self._ctx.stopping == "no":
            self._ctx.learnt.stopping = "soon"
        self._loop.call_soon_threadsafe(self._react)  # no word and no cancellation in the midst of another one

    def _react(self) -> None:
        working = [] if self._ctx is None else waiting_for(self._ctx, person=False)
        if self._ctx is None or not working or self._count > 1:
            self._scope.cancel()
        elif not self._told:
            self._told = True
            names = " and ".join(working)
            self._ctx.say(f"it stops once {names} answered. A second Ctrl-C stops now: it is asked again later")
