"""The journal of orders: appended under a lock, read on from an offset (ADR-R210)."""

from __future__ import annotations

import fcntl
import json
import os
import secrets
import socket
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from pipeline.engine.journal import stamp, utc_now
from pipeline.errors import UserError
from pipeline.outcomes import Reason
from pipeline.queue import lines
from pipeline.queue.lines import OrderFact, OrderLine, OrderPlaced
from pipeline.queue.order import Order, Wanted, folded
from pipeline.runs.files import disk

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from pathlib import Path

    from pipeline.engine.journal import Clock

JOURNAL: Final = "orders.jsonl"


class OrderLog:
    """The journal of orders of one repository, as far as it was read."""

    def __init__(self, folder: Path, *, clock: Clock = utc_now) -> None:
        self.folder = folder
        self.path = folder / JOURNAL
        self.orders: dict[str, Order] = {}
        self._clock = clock
        self._hears: Callable[[OrderLine, Order], None] = _nobody
        self._count = 0
        self._offset = 0

    def hears(self, told: Callable[[OrderLine, Order], None]) -> None:
        """Let somebody be told of each line that is read from now on, with its order as it stands then.

        Raises:
            UserError: the journal is damaged.
        """
        self.read_on()
        self._hears = told

    def read_on(self) -> list[OrderLine]:
        """Take in the lines that are there since the last time, and return them; one that is not whole yet waits.

        Raises:
            UserError: one of them is damaged.
        """
        try:
            handle = os.open(self.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except FileNotFoundError:
            return []
        try:
            content = os.pread(handle, max(os.fstat(handle).st_size - self._offset, 0), self._offset)
        finally:
            os.close(handle)
        whole = content.rfind(b"\n") + 1
        found = [self._line(text) for text in content[:whole].splitlines()]
        self._offset += whole
        for line in found:
            self._hears(line, self.orders[line.data.order])
        return found

    def _line(self, text: bytes) -> OrderLine:
        number = self._count + 1
        try:
            line = OrderLine.model_validate(json.loads(text))
            if line.seq != number:
                raise ValueError(f"seq is {line.seq}")  # noqa: TRY301  (told as any other)
            self._fold(line)
        except (ValueError, KeyError, RecursionError) as error:
            raise UserError(
                f"The orders in {self.path} are damaged at line {number} ({str(error).splitlines()[0]}). Put the file "
                "back, or set it aside: runs and claims are as they are, and the queue is empty then.",
                Reason.USAGE,
                path=str(self.path),
                pointer=f"/{number - 1}",
            ) from error
        self._count = number
        return line

    def _fold(self, line: OrderLine) -> None:
        data = line.data
        if isinstance(data, OrderPlaced):
            self.orders[data.order] = Order(data.order, data, line.seq, line.at)
        else:
            self.orders[data.order] = folded(self.orders[data.order], data, line.at)

    @contextmanager
    def locked(self) -> Generator[OrderLog]:
        """Hold the lock under which lines are added, with everything read that is there.

        Raises:
            UserError: the journal is damaged, or the disk does not take it.
        """
        with disk(self.path):
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            handle = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            self.read_on()
            yield self
        finally:
            os.close(handle)

    def add(self, *facts: OrderFact) -> None:
        """Add lines, on disk when this returns; only under `locked`. What a dead writer left half said is cut off.

        Raises:
            UserError: the disk does not take it.
        """
        said = [
            OrderLine(seq=number, at=stamp(self._clock()), host=socket.gethostname(), kind=fact.KIND, data=fact)
            for number, fact in enumerate(facts, self._count + 1)
        ]
        texts = [json.dumps(line.model_dump(mode="json", by_alias=True), sort_keys=True) for line in said]
        with disk(self.path), self.path.open("r+b") as file:
            file.truncate(self._offset)
            file.seek(self._offset)
            try:
                file.write("".join(f"{text}\n" for text in texts).encode())
                file.flush()
            except OSError:
                os.ftruncate(file.fileno(), self._offset)  # a half line would look like a crash
                raise
            os.fdatasync(file.fileno())
        self.read_on()

    def place(self, wanted: Wanted) -> tuple[Order, bool]:
        """Place an order, unless one with its key is there; return it, and whether it is new. Only under `locked`."""
        key = wanted.key or self._key(wanted)
        there = next((one for one in self.orders.values() if one.placed.key == key), None)
        if there is not None:
            return there, False
        name = next(name for name in iter(_name, "") if name not in self.orders)
        placed = OrderPlaced(
            order=name,
            do="run" if wanted.run is None else "resume",
            issue=wanted.issue,
            run=wanted.run,
            options=wanted.options,
            via=wanted.via,
            cause=wanted.cause,
            depth=wanted.depth,
            key=key,
            priority=wanted.priority,
            not_before=None if wanted.not_before is None else stamp(wanted.not_before),
        )
        self.add(placed, *((lines.OrderHeld(order=name),) if wanted.held else ()))
        return self.orders[name], True

    def _key(self, wanted: Wanted) -> str:
        """Return a key that no order has if none of this issue or run is open."""
        what = wanted.issue or wanted.run
        closed = sum(what in {one.placed.issue, one.placed.run} for one in self.orders.values() if not one.is_open)
        return f"{what}#{closed + 1}"


def _nobody(_line: OrderLine, _order: Order) -> None:
    """Tell nobody."""


def _name() -> str:
    return f"o-{secrets.token_hex(3)}"
