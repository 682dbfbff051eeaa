"""Starts drivers for orders as there is room, and writes down what became of them.

It drives nothing itself, and nothing is lost with it: its drivers die when it does, and the next worker finds in the
list of orders which of them are still to be done, and on disk how far their runs came.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol

from pipeline.errors import UserError
from pipeline.interrupts import NUMBERS, leave_terminal
from pipeline.outcomes import Outcome, Reason
from pipeline.pids import ProcessId
from pipeline.queue import order_lines
from pipeline.queue.drivers import Driver, End, await_any
from pipeline.queue.orders import MOST_DEATHS, Order, OrderLog
from pipeline.queue.pick import Candidate, Room, Verdict, pick

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping
    from pathlib import Path
    from types import FrameType

    from pipeline.queue.slots import FleetSlots, LocalSlots

LOOKS_S: Final = 10.0
"""Seconds between two looks at everything, where nothing happens."""
_GLANCES_S: Final = 1.0
"""Seconds between two looks at whether there are new orders, where no bell tells."""
_BUSY: Final = frozenset({Reason.LOCKED, Reason.CLAIMED_ELSEWHERE, Reason.HUB_UNAVAILABLE})
_BUSY_S: Final = 5.0
"""How long an order waits whose issue somebody else had when it began, or that the hub was needed for."""
_WELL: Final = frozenset({Outcome.COMPLETED, Outcome.COMPLETED_WITH_BLOCKERS, Outcome.PARKED})


class Work(Protocol):
    """What a worker asks about runs and issues, and has done."""

    def look(self, log: OrderLog) -> tuple[list[Candidate], Room]:
        """Return the open orders and what room there is; what is over, or missing, is written into the log."""
        ...

    def argv(self, order: Order) -> tuple[str, ...]:
        """Return the words of `redfirst` that drive an order."""
        ...

    def slots(self, order: Order) -> Mapping[str, int]:
        """Return of which kinds an order needs a slot, and how many there are of each."""
        ...

    def run_at(self, folder: str) -> str | None:
        """Return a run by worktree and name, of its folder."""
        ...

    def rests(self, log: OrderLog) -> Mapping[str, str]:
        """Return a sentence on each parked run that no open order is for, by worktree and name."""
        ...


@dataclass(eq=False)
class Worker:
    """Starts drivers until there is nothing to do, or it is stopped.

    Args:
        log: The orders.
        slots: Of the machine.
        knows: What knows runs and issues.
        folder: Where drivers are started.
        told: Is told of each line about orders that is written from now on, and of its order.
        waits: Is told of each order that does not begin, once for each reason.
        say: Takes what is said of the worker itself.
    """

    log: OrderLog
    slots: LocalSlots | FleetSlots
    knows: Work
    folder: Path
    environ: Mapping[str, str]
    told: Callable[[order_lines.OrderLine, Order], None]
    waits: Callable[[Verdict], None]
    say: Callable[[str], None]
    failed: int = field(default=0, init=False)
    """So many orders came to nothing."""
    _says_stop: bool = field(default=True, init=False)
    _drivers: list[Driver] = field(default_factory=list[Driver], init=False)
    _lost: set[str] = field(default_factory=set[str], init=False)
    _away: bool = field(default=False, init=False)
    _why: dict[str, str] = field(default_factory=dict[str, str], init=False)
    _busy: dict[str, float] = field(default_factory=dict[str, float], init=False)
    _ended: set[str] = field(default_factory=set[str], init=False)
    _signals: int = field(default=0, init=False)
    _bell: int = field(default_factory=lambda: os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK), init=False)
    _looked: float = field(default=-LOOKS_S, init=False)
    _begins_at: float = field(default=-LOOKS_S, init=False)
    _news: bool = field(default=False, init=False)
    _hears: bool = field(default=False, init=False)

    def work(self, *, once: bool) -> bool:
        """Work until nothing is left that can begin (*once*), or until it is stopped; return whether it was."""
        with self._hearing_signals(), self.log.rows.listening():
            while True:
                try:
                    self._turn()
                except order_lines.NotNowError as error:
                    self._is_away(error, once=once)
                handles = [one.handle for one in self._drivers if not self._away or one.ended() is None]
                rests = self._away or self._news or time.monotonic() < self._begins_at
                if not handles and (self._signals or (once and not rests)):
                    return bool(self._signals)
                if self._signals and self._says_stop:
                    self._says_stop = False
                    count = f"{len(self._drivers)} run{'' if len(self._drivers) == 1 else 's'}"
                    self.say(f"stopping {count} as soon as their agents have answered; a second time ends these now")
                rings = [] if self.log.rows.bell is None else [self.log.rows.bell]
                await_any([*handles, self._bell, *rings], LOOKS_S if rings and not rests else _GLANCES_S)
                with contextlib.suppress(BlockingIOError):
                    os.eventfd_read(self._bell)

    def _turn(self) -> None:
        """Write what ended, and begin what can; after a time without orders, nothing before others are back, too."""
        if not self._hears:
            self.log.hears(self._take)
            self._hears = True
        if self._away:
            self.log.read_on()
            self._keep()
            self._away = False
            self._begins_at = time.monotonic() + LOOKS_S
            self.say("the orders can be had again")
        self._settle()
        if not self._signals and time.monotonic() >= self._begins_at and self._is_time():
            self._keep()
            self._begin()

    def _is_away(self, error: order_lines.NotNowError, *, once: bool) -> None:
        """Let the drivers go on where the orders cannot be had for now.

        Raises:
            NotNowError: there is none, and somebody waits for the end.
        """
        if once and not self._drivers:
            raise error
        if not self._away:
            self.say(f"{error.message} Drivers go on, none is begun, and it is tried again")
        self._away = True

    def _keep(self) -> None:
        """Keep the slots of the drivers; stop one whose order another worker has taken over meanwhile."""
        for driver in self._drivers:
            if driver.order not in self._lost and not driver.slots.keep():
                self._lost.add(driver.order)
                self.say(f"another worker has {driver.order}: its driver here is stopped")
                driver.stop()

    def _is_time(self) -> bool:
        """Return whether there may be something to begin: an order, a slot, or a look that is due."""
        self.log.read_on()
        now = time.monotonic()
        if not self._news and now - self._looked < LOOKS_S:
            return False
        self._looked, self._news = now, False
        return True

    def _take(self, line: order_lines.OrderLine, order: Order) -> None:
        self._news = self._news or not isinstance(line.data, order_lines.OrderStarted | order_lines.OrderWorktree)
        self.told(line, order)

    # --- beginning -------------------------------------------------------------------------------------------------

    def _begin(self) -> None:
        try:
            candidates, room = self.knows.look(self.log)
        except UserError as error:
            if isinstance(error, order_lines.NotNowError) or not self._drivers:
                raise
            if self._why.get("") != error.message:
                self.say(f"{error.message} Drivers go on, none is begun, and it is tried again")
            self._why[""] = error.message
            return
        self._why.pop("", None)
        now = time.monotonic()
        own = {driver.order for driver in self._drivers}  # one may have ended since, and its end is not told yet
        free = (one for one in candidates if one.order not in own and self._busy.get(one.order, now) <= now)
        verdicts = pick(free, room)
        for verdict in verdicts:
            if verdict.begins and not self._signals:
                self._start(verdict.order)
            elif self._why.get(verdict.order) != verdict.why:
                self._why[verdict.order] = verdict.why
                self.waits(verdict)
        for run, said in self.knows.rests(self.log).items():
            if self._why.get(run) != said:
                self._why[run] = said
                if run not in self._ended:  # what became of an order of ours is said where it ends
                    self.say(said)
        self._ended.clear()

    def _start(self, name: str) -> None:
        """Start the driver of an order, unless somebody else has, or took the last slot."""
        with contextlib.ExitStack() as unless_written:
            with self.log.locked() as log:
                driver = self._driver(log, log.orders[name])
                if driver is None:
                    self._news = True  # another worker was quicker: there may be something else to begin
                    return
                unless_written.callback(self._drop, driver)
                one = ProcessId.of(driver.pid)  # None where it has ended already
                log.add(
                    order_lines.OrderStarted(
                        order=name,
                        pid=driver.pid,
                        start_time=one.start_time if one is not None else 0,
                        boot_id=one.boot_id if one is not None else "",
                        log=str(driver.log),
                    )
                )
            unless_written.pop_all()
            driver.begin()

    def _driver(self, log: OrderLog, order: Order) -> Driver | None:
        """Return a driver for an order that waits to begin, None where the order or the last slot is taken."""
        is_free = order.state in {"queued", "started"} and not order.is_driven
        slots = self.slots.take(self.knows.slots(order), order.id) if is_free else None
        if slots is None:
            return None
        said = log.folder / "logs" / f"{order.id}-{len(order.drivers) + 1}.log"
        try:
            driver = Driver(
                order.id, self.knows.argv(order), cwd=self.folder, environ=self.environ, log=said, slots=slots
            )
        except BaseException:
            slots.give_back()
            raise
        self._drivers.append(driver)
        if self._signals:  # it came just now, and did not reach this one
            driver.stop()
        return driver

    def _drop(self, driver: Driver) -> None:
        """End a driver that was not begun, since its order could not be written."""
        self._lost.add(driver.order)
        driver.stop()

    # --- ending ----------------------------------------------------------------------------------------------------

    def _settle(self) -> None:
        """Say of each driver that has ended what became of its order."""
        for driver in list(self._drivers):
            end = driver.ended()
            if end is not None:
                if driver.order not in self._lost and driver.slots.keep():  # a worker that was frozen has no say
                    self._write_end(driver.order, end)
                self._lost.discard(driver.order)
                self._drivers.remove(driver)
                driver.close()

    def _write_end(self, name: str, end: End) -> None:
        failed = self.failed
        try:
            with self.log.locked() as log:
                order = log.orders.get(name)  # None where the database was made anew
                if order is not None and order.is_open:
                    log.add(*self._facts(order, end))
        except BaseException:
            self.failed = failed  # it is written again
            raise

    def _facts(self, order: Order, end: End) -> list[order_lines.OrderFact]:
        name = order.id
        interrupted = end.outcome is None or end.reason is Reason.INTERRUPTED
        if interrupted and self._signals:
            return [order_lines.OrderLeft(order=name, why="stopped")]
        if end.outcome is None:
            died = order_lines.OrderLeft(order=name, why="died", note=end.note)
            if order.deaths + 1 < MOST_DEATHS:
                return [died]
            self.failed += 1
            why = f"{MOST_DEATHS} drivers died of it, the last one by {end.note}"
            return [died, order_lines.OrderDropped(order=name, why=why)]
        is_busy = end.outcome is Outcome.REJECTED and end.reason in _BUSY
        if is_busy or end.reason is Reason.SUPERSEDED:
            self._busy[name] = time.monotonic() + _BUSY_S
            return [order_lines.OrderLeft(order=name, why="busy" if is_busy else "superseded", note=end.note)]
        self.failed += end.outcome not in _WELL
        run = self.knows.run_at(end.run) if end.run else None
        self._ended |= {run} if run is not None else set()
        return [
            order_lines.OrderEnded(
                order=name, run=run, outcome=end.outcome.value, reason=str(end.reason or ""), note=end.note
            )
        ]

    # --- signals ---------------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _hearing_signals(self) -> Generator[None]:
        """Take the signals: the first one begins nothing more and asks the drivers to stop, a second one asks again."""
        numbers = [number for number in NUMBERS if signal.getsignal(number) is not signal.SIG_IGN]
        numbers += [] if signal.SIGINT in numbers else [signal.SIGINT]  # one that is sent by name is meant
        old = {number: signal.signal(number, self._hear) for number in numbers}
        try:
            yield
        finally:
            for number, handler in old.items():
                signal.signal(number, handler)

    def _hear(self, number: int, _frame: FrameType | None) -> None:
        if number == signal.SIGHUP:
            leave_terminal()
        self._signals += 1
        for driver in self._drivers:
            driver.stop()
        os.eventfd_write(self._bell, 1)
