"""Defines what keeps the rows of orders: a database in the user's state, or a server for several machines. No I/O."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

from pipeline.errors import UserError
from pipeline.outcomes import Reason

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from contextlib import AbstractContextManager


class NotNowError(UserError):
    """The orders cannot be had for now: their server is away, or somebody holds them. A later call may work."""


class Row(NamedTuple):
    """A line as it is kept: its number, the moment, its kind, and its data as JSON."""

    seq: int
    at: str
    kind: str
    data: str


class Found(NamedTuple):
    """What a look found.

    Attributes:
        made: Says which database it is: another one where it was made anew. None where there is none yet.
        rows: The lines behind the one that was asked for; all of a database that was made anew.
        held: The orders that a living worker of any machine holds, where there is a server that knows.
    """

    made: object
    rows: list[Row]
    held: frozenset[str] = frozenset()


class Rows(Protocol):
    """The rows of the orders of one repository; every call may raise a UserError."""

    @property
    def where(self) -> str:
        """Return where they are, for people."""
        ...

    @property
    def is_there(self) -> bool:
        """Return whether somebody ever placed an order."""
        ...

    @property
    def bell(self) -> int | None:
        """Return a descriptor that can be read once there is news, while somebody is `listening`; None: look again."""
        ...

    def listening(self) -> AbstractContextManager[None]:
        """Keep a connection meanwhile, where one is worth it."""
        ...

    def read(self, made: object, seq: int) -> Found:
        """Return the lines behind number *seq* of the database *made*."""
        ...

    def transaction(self) -> AbstractContextManager[None]:
        """Hold the lock of writers, in a transaction: all that is written below is there at the end, or nothing."""
        ...

    # --- only in a `transaction` -----------------------------------------------------------------------------------

    def find(self, key: str) -> tuple[str, str] | None:
        """Return name and issue or run of the order with a key, of all that ever were."""
        ...

    def has(self, name: str) -> bool:
        """Return whether an order ever had this name."""
        ...

    def insert(self, name: str, key: str, what: str) -> None:
        """Keep name and key of a new order for ever."""
        ...

    def add(self, at: str, lines: Iterable[tuple[str, str, str]]) -> None:
        """Add lines, each by its kind, the name of its order, and its data."""
        ...

    def remove(self, names: Collection[str]) -> None:
        """Remove the lines of these orders."""
        ...


def unreadable(where: str, line: int, error: Exception) -> UserError:
    """Return what is said of a line that cannot be read."""
    return UserError(
        f"The orders in {where} are damaged at line {line} ({str(error).splitlines()[0]}). Put them back, or set them "
        "aside: runs and claims are as they are, and the queue is empty then.",
        Reason.USAGE,
        path=where,
        pointer=f"/{line - 1}",
    )
