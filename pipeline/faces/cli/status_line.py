"""Shows a driver's progress: at the bottom of a terminal, or by a line now and then in a pipe.

Both are told of each line that is said. Nothing here waits, starts a thread or decides anything.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import time
from functools import partial
from typing import TYPE_CHECKING, Final, TextIO, TypeVar

import typer

from pipeline.characters import columns as columns_of
from pipeline.characters import visible
from pipeline.faces.cli.text import terminal_width, wrapped
from pipeline.progress import duration

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator, Mapping
    from types import FrameType

    from pipeline.app.live_view import Display, Standing, Stands, Status

_Measured = TypeVar("_Measured")
_NARROW: Final = 60
_USUAL: Final = 80
_READABLE: Final = 24
"""So many columns say what is done."""
_DOTS: Final = "..."
MARKS: Final[dict[Stands, str]] = {"done": "+", "now": ">", "ahead": ".", "left_out": "-", "failed": "!"}
"""How a run stands in a phase or a task, as one character."""
_OVER: Final = frozenset({"done", "left_out"})
_ERASE: Final = "\r\x1b[J"
"""To the first column, and what is from there to the end of the screen goes: all of a line that became two, too."""

_SILENCES: Final = ((30.0, 15.0), (60.0, 30.0), (600.0, 60.0))
"""Until how long a silence: how often a pipe hears of it."""
_LONG_SILENCE_S: Final = 300.0


@contextlib.contextmanager
def opened_display(
    stream: TextIO | None = None, environ: Mapping[str, str] = os.environ, *, plain: bool = False
) -> Generator[Display]:
    """Lend where progress goes: *stream* (stderr) if it is a terminal that can redraw a line, else lines on it."""
    where = stream or sys.stderr
    if plain or where is None or not _can_redraw(where, environ):
        yield Heartbeat(partial(_say, where))
        return
    line = StatusLine(where)
    with line.put_away_when_suspended():
        try:
            yield line
        finally:
            line.erase()


def _say(stream: TextIO | None, text: str) -> None:
    if stream is not None:  # as it is where stderr is closed
        typer.echo("\n".join(wrapped(visible(text), terminal_width(stream))), file=stream)


def _can_redraw(stream: TextIO, environ: Mapping[str, str]) -> bool:
    return stream.isatty() and environ.get("TERM", "dumb") not in {"", "dumb"} and not environ.get("CI")


class Heartbeat:
    """Says lines, and in a silence what is being done and for how long, less and less often."""

    def __init__(self, emit: Callable[[str], None], clock: Callable[[], float] = time.monotonic) -> None:
        self._emit = emit
        self._clock = clock
        self._silent_since = self._last = clock()

    def __call__(self, text: str) -> None:
        """Say a line."""
        self._emit(text)
        self._silent_since = self._last = self._clock()

    def show(self, standing: Standing | Beating) -> None:
        """Say what is being done, if it is time."""
        now = self._clock()
        silence = self._last - self._silent_since
        if now - self._last < next((each for until, each in _SILENCES if silence < until), _LONG_SILENCE_S):
            return
        self._last = now
        doing, seconds = standing.doing
        where, what = ", ".join(filter(None, standing.place)), " and ".join(doing)
        self._emit(f"    {where}, {duration(seconds)} so far{f': {what}' if what else ''}")


class Beating:
    """Says the lines of a command that drives no run, and breaks a silence as a run does."""

    def __init__(
        self,
        command: str,
        emit: Callable[[str], None] | None = None,
        clock: Callable[[], float] = time.monotonic,
        each_s: float = 1.0,
    ) -> None:
        self._command, self._clock, self._each_s = command, clock, each_s
        self._heartbeat = Heartbeat(partial(_say, sys.stderr) if emit is None else emit, clock)
        self._said, self._since = "", clock()

    def __call__(self, text: str) -> None:
        """Say a line."""
        self._heartbeat(text)
        self._said, self._since = text.strip(), self._clock()

    @property
    def place(self) -> tuple[str, str]:
        """Return the command, as a run would say where it is."""
        return self._command, ""

    @property
    def doing(self) -> tuple[tuple[str, ...], float]:
        """Return what was said last, and for how many seconds it has been done."""
        return ((self._said,) if self._said else ()), self._clock() - self._since

    async def during(self, call: Callable[..., Awaitable[_Measured]], *args: object) -> _Measured:
        """Return what the call returns; a long silence until then is broken."""
        import asyncio

        async def beat() -> None:
            while True:
                await asyncio.sleep(self._each_s)
                self._heartbeat.show(self)

        beating = asyncio.create_task(beat())
        try:
            return await call(*args)
        finally:
            beating.cancel()


class StatusLine:
    """Says lines above some that say how the run stands and are redrawn in place: the phases, agents' words, one line.

    The cursor stays in the first column of the first of them, so that what others print begins there and what is
    erased is all of them.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._standing: Standing | None = None
        self._drawn = False

    def __call__(self, text: str) -> None:
        """Say a line above."""
        self.erase()
        _say(self._stream, text)
        self._draw()

    def show(self, standing: Standing) -> None:
        """Redraw the line."""
        self._standing = standing
        self._draw()

    def erase(self) -> None:
        """Leave nothing of the line."""
        if self._drawn:
            self._write(_ERASE)
            self._drawn = False

    def _draw(self) -> None:
        if self._standing is None or not self._may_write():
            return
        try:
            columns, rows = os.get_terminal_size(self._stream.fileno())
        except OSError:
            return
        self._drawn = True
        # one less: behind the last column some terminals begin another line
        room, status = (columns or _USUAL) - 1, self._standing.status()
        above = lines_above(status, room, rows // 3 - 1, self._stream.encoding)
        shown = "\r\n".join([*above, line_of(status, room, self._stream.encoding)])
        back = f"\x1b[{len(above)}A" if above else ""
        self._write(f"{_ERASE}{shown}\r{back}")

    def _write(self, text: str) -> None:
        data = text.encode(self._stream.encoding, "backslashreplace")
        with contextlib.suppress(OSError):  # the terminal is gone; what counts is told elsewhere
            os.write(self._stream.fileno(), data)  # not through a buffer: Ctrl-Z may come in the middle of a write

    def _may_write(self) -> bool:
        """Return whether the terminal takes it now: not while it is stopped, or another job has it."""
        handle = self._stream.fileno()
        with contextlib.suppress(OSError):  # no terminal that controls jobs
            if os.tcgetpgrp(handle) != os.getpgrp():
                return False
        return bool(select.select([], [handle], [], 0)[1])

    @contextlib.contextmanager
    def put_away_when_suspended(self) -> Generator[None]:
        """Erase the line before Ctrl-Z stops the process; the next second draws it again."""
        before = signal.getsignal(signal.SIGTSTP)
        if before is not signal.SIG_DFL:
            yield
            return

        def suspend(number: int, _frame: FrameType | None) -> None:
            self.erase()
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
            signal.signal(number, suspend)

        signal.signal(signal.SIGTSTP, suspend)
        try:
            yield
        finally:
            signal.signal(signal.SIGTSTP, before)


def lines_above(status: Status, columns: int, most: int, encoding: str = "utf-8") -> list[str]:
    """Return the phases in one line, and what each agent said last, in at most so many lines of so many columns."""
    if columns < _NARROW or most < 1:
        return []
    been = "".join(f"{MARKS[one.stands]} " for one in status.phases if one.stands in _OVER)
    rest = "  ".join(f"{MARKS[one.stands]} {one.phase.words}" for one in status.phases if one.stands not in _OVER)
    lines = [f"{been}{rest}"] if rest else []
    each = max((most - len(lines)) // max(len(status.said), 1), 1)
    lines += [f"  | {line}" for said in status.said for line in said[-each:]]
    return [_cut(_in(visible(line), encoding), columns) for line in lines[:most]]


def line_of(status: Status, columns: int, encoding: str = "utf-8") -> str:
    """Return how a run stands as one line of at most so many columns; parts for which there is no room are left out.

    What is done is shortened for the time of the run and the number of dispatches, as far as it stays readable.
    """
    task = status.task
    if columns < _NARROW:
        task = task.removeprefix("task ").replace(" of ", "/")
    head = f"{status.place}{' ' if columns < _NARROW else ', '}{task}" if task else status.place
    line, doing = f"{head} | {clock_words(status.doing_s)}", visible(" and ".join(status.doing))
    run, number = f"run {clock_words(status.run_s)}", status.spent.partition(", ")[0]
    if columns >= _NARROW:
        rests = (f" | {run} | {number}", f" | {run}", "")
        rooms = (columns - columns_of(f"{line} {rest}") for rest in rests)
        doing = _shortened(doing, next((room for room in rooms if room >= min(_READABLE, columns_of(doing))), 0))
    line = f"{line} {doing}".rstrip()
    for part in (run, (status.spent, number), *status.left):
        longer = [f"{line} | {each}" for each in ((part,) if isinstance(part, str) else part) if each]
        line = next((each for each in longer if columns_of(each) <= columns), line)
    return _cut(_in(visible(line), encoding), columns)


def _in(text: str, encoding: str) -> str:
    return text.encode(encoding, "backslashreplace").decode(encoding)


def clock_words(seconds: float) -> str:
    """Return a time as a clock shows it: `0:42`, `12:05`, `1:02:03`."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def _shortened(text: str, room: int) -> str:
    """Return the words at the beginning of *text* for which there is room, with dots where some are left out."""
    if columns_of(text) <= room:
        return text
    cut = _cut(text, room - len(_DOTS))
    return (cut if text[len(cut)] == " " else cut.rpartition(" ")[0] or cut).rstrip() + _DOTS


def _cut(text: str, room: int) -> str:
    """Return the beginning of *text* for which there is room."""
    taken = 0
    for at, char in enumerate(text):
        taken += columns_of(char)
        if taken > room:
            return text[:at]
    return text
