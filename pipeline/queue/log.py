"""Reads and appends to the journal of orders: under a lock, and on from an offset (ADR-R210)."""

from __future__ import annotations

import fcntl
import json
import os
import secrets
import socket
from contextlib import contextmanager
from itertools import count
from typing import TYPE_CHECKING, Final

from pydantic import ValidationError

from pipeline.engine.journal import stamp, utc_now
from pipeline.errors import UserError
from pipeline.outcomes import Reason
from pipeline.queue import lines
from pipeline.queue.lines import Forgotten, OrderFact, OrderLine, OrderPlaced, Shortened
from pipeline.queue.order import Order, Wanted, folded
from pipeline.runs.files import disk, write_atomic

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Generator
    from pathlib import Path

    from pipeline.engine.journal import Clock

JOURNAL: Final = "orders.jsonl"
_HEAD_BYTES: Final = 64
"""So many bytes at the beginning tell one file from another: a time is among them."""
_LONG_AGO: Final = "1970-01-01T00:00:00.000Z"


class OrderLog:
    """The journal of orders of one repository, as far as it was read."""

    def __init__(self, folder: Path, *, clock: Clock = utc_now) -> None:
        self.folder = folder
        self.path = folder / JOURNAL
        self.orders: dict[str, Order] = {}
        self._clock = clock
        self._hears: Callable[[OrderLine, Order], None] = _nobody
        self._forgotten: dict[str, Forgotten] = {}
        self._until = 0
        self._count = 0
        self._told = 0
        self._offset = 0
        self._head = b""

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
            if os.pread(handle, len(self._head), 0) != self._head:  # some were removed: it is another file
                self._begin_anew()
            content = os.pread(handle, max(os.fstat(handle).st_size - self._offset, 0), self._offset)
        finally:
            os.close(handle)
        whole = content.rfind(b"\n") + 1
        texts = content[:whole].splitlines()
        if not self._offset:
            self._head = content[: min(whole, _HEAD_BYTES)]
            texts = texts[self._begin(texts) :]
        found = [line for line in map(self._line, texts) if line.seq > self._told]
        self._offset += whole
        self._told = max(self._told, self._count)
        for line in found:
            self._hears(line, self.orders[line.data.order])
        return found

    def _begin_anew(self) -> None:
        self.orders.clear()
        self._forgotten.clear()
        self._until = self._count = self._offset = 0

    def _begin(self, texts: list[bytes]) -> int:
        """Take in the first line where it says what was removed; return how many lines that are."""
        if not texts or not _is_head(texts[0]):
            return 0
        try:
            said = Shortened.model_validate_json(texts[0])
        except ValidationError as error:
            raise self._damaged(1, error) from error
        self._forgotten = {one.key: one for one in said.forgotten}
        self._until = said.until
        return 1

    def _line(self, text: bytes) -> OrderLine:
        number = max(self._count, self._until) + 1
        try:
            line = OrderLine.model_validate(json.loads(text))
            if line.seq != number and not self._count < line.seq <= self._until:
                raise ValueError(f"seq is {line.seq}")  # noqa: TRY301  (told as any other)
            self._fold(line)
        except (ValueError, KeyError, RecursionError) as error:
            raise self._damaged(number, error) from error
        self._count = line.seq
        return line

    def _damaged(self, number: int, error: Exception) -> UserError:
        return UserError(
            f"The orders in {self.path} are damaged at line {number} ({str(error).splitlines()[0]}). Put the file "
            "back, or set it aside: runs and claims are as they are, and the queue is empty then.",
            Reason.USAGE,
            path=str(self.path),
            pointer=f"/{number - 1}",
        )

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
        handle = self._lock()
        try:
            self.read_on()
            yield self
        finally:
            os.close(handle)

    def _lock(self) -> int:
        """Return the locked file, open: the one that is there, not one that was replaced while this waited."""
        with disk(self.path):
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            while True:
                handle = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
                fcntl.flock(handle, fcntl.LOCK_EX)
                if os.path.samestat(os.fstat(handle), os.lstat(self.path)):
                    return handle
                os.close(handle)

    def remove(self, names: Collection[str]) -> None:
        """Remove closed orders, by one rename; their keys stay used, and lines keep their numbers.

        Only under `locked`. What a dead writer left half said goes, too.

        Raises:
            UserError: the disk does not take it.
        """
        gone = [one for one in self.orders.values() if one.id in names and not one.is_open]
        if not gone:
            return
        ids = {one.id for one in gone}
        texts = self.path.read_bytes()[: self._offset].splitlines()
        kept = [text for text in texts[_is_head(texts[0]) :] if _order_in(text) not in ids]
        forgotten = [
            Forgotten(order=one.id, key=one.placed.key, what=one.placed.issue or one.placed.run or "") for one in gone
        ]
        said = Shortened(
            at=stamp(self._clock()),
            until=max(self._count, self._until),
            forgotten=(*self._forgotten.values(), *forgotten),
        )
        head = json.dumps(said.model_dump(mode="json", by_alias=True), sort_keys=True).encode()
        write_atomic(self.path, b"".join(text + b"\n" for text in (head, *kept)), mode=0o600)
        self.read_on()

    def add(self, *facts: OrderFact) -> None:
        """Add lines, on disk when this returns; only under `locked`. What a dead writer left half said is cut off.

        Raises:
            UserError: the disk does not take it.
        """
        said = [
            OrderLine(seq=number, at=stamp(self._clock()), host=socket.gethostname(), kind=fact.KIND, data=fact)
            for number, fact in enumerate(facts, max(self._count, self._until) + 1)
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
        there = self._there(wanted)
        if there is not None:
            return there, False
        taken = {*self.orders, *(one.order for one in self._forgotten.values())}
        name = next(name for name in iter(_name, "") if name not in taken)
        placed = OrderPlaced(
            order=name,
            do="run" if wanted.run is None else "resume",
            issue=wanted.issue,
            run=wanted.run,
            options=wanted.options,
            via=wanted.via,
            cause=wanted.cause,
            depth=wanted.depth,
            key=wanted.key or self._key(wanted),
            priority=wanted.priority,
            not_before=None if wanted.not_before is None else stamp(wanted.not_before),
        )
        self.add(placed, *((lines.OrderHeld(order=name),) if wanted.held else ()))
        return self.orders[name], True

    def _there(self, wanted: Wanted) -> Order | None:
        """Return the order with the key that is wanted; without one the open order of its issue or run."""
        if wanted.key is None:
            what, each = wanted.issue or wanted.run, self.orders.values()
            return next((one for one in each if one.is_open and what in {one.placed.issue, one.placed.run}), None)
        if wanted.key in self._forgotten:
            return _removed(self._forgotten[wanted.key])
        return next((one for one in self.orders.values() if one.placed.key == wanted.key), None)

    def _key(self, wanted: Wanted) -> str:
        """Return a key for an order that came without one: the first of its issue or run that was never used."""
        used = {*(one.placed.key for one in self.orders.values()), *self._forgotten}
        keys = (f"{wanted.issue or wanted.run}#{number}" for number in count(1))
        return next(key for key in keys if key not in used)


def _nobody(_line: OrderLine, _order: Order) -> None:
    """Tell nobody."""


def _removed(said: Forgotten) -> Order:
    """Return an order that was removed, as far as it is known."""
    is_run = "/" in said.what
    placed = OrderPlaced(
        order=said.order,
        do="resume" if is_run else "run",
        issue=None if is_run else said.what,
        run=said.what if is_run else None,
        via="gc",
        key=said.key,
    )
    return Order(said.order, placed, 0, _LONG_AGO, state="dropped", note="it closed long ago", closed_at=_LONG_AGO)


def _is_head(text: bytes) -> bool:
    """Return whether a line says what was removed; the words of an order may say so, too."""
    try:
        found: object = json.loads(text)
    except (ValueError, RecursionError):
        return False
    schema: object = found.get("schema") if isinstance(found, dict) else None  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
    return isinstance(schema, str) and schema.startswith("redfirst.orders-shortened/")


def _order_in(text: bytes) -> str | None:
    found: object = json.loads(text).get("data", {}).get("order")
    return found if isinstance(found, str) else None


def _name() -> str:
    return f"o-{secrets.token_hex(3)}"
