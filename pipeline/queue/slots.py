"""Holds slots of drivers. On this machine each is a locked file, which the kernel gives back when its holder dies.

The worker takes a slot and hands it to the driver that it starts, too: it is free once the driver is gone, and the
worker has taken that in or is gone itself, whoever killed whom.

Slots of a fleet are locks of a session on Postgres, which the server gives back when their holder dies. Each driver has
a session of its own in its worker, and that also locks the order: no other machine begins it meanwhile.
"""

from __future__ import annotations

import fcntl
import os
import re
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, LiteralString

from pipeline.errors import UserError
from pipeline.queue.postgres import ADVISORY, lock_of_order, refusals, session_with
from pipeline.run.files import disk

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from pipeline.queue.postgres import Session

JOBS = "jobs"
"""The kind of the slots that every driver of this machine needs."""


class LocalTaken:
    """Slots of this machine: the kernel holds them for whoever has their descriptors open, as a driver does, too."""

    def __init__(self, handles: Sequence[int]) -> None:
        self.handles = handles

    def keep(self) -> bool:
        """Return whether they are still taken, which the kernel sees to."""
        return True

    def give_back(self) -> None:
        """Close what was taken here; a slot that a driver was handed stays taken till that ends."""
        for handle in self.handles:
            os.close(handle)


class LocalSlots:
    """The slots of all workers of this user on this machine."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def free(self, kind: str, most: int) -> int:
        """Return how many of the first *most* slots of a kind are free."""
        handles = [handle for number in range(most) if (handle := self._taken(kind, number)) is not None]
        LocalTaken(handles).give_back()
        return len(handles)

    def take(self, wanted: Mapping[str, int], order: str) -> LocalTaken | None:
        """Take a slot of each kind, of which there are so many; None if one is not free. Orders need none here.

        Raises:
            UserError: the disk does not take their files.
        """
        del order
        found: list[int] = []
        for kind, most in wanted.items():
            handle = next((one for number in range(most) if (one := self._taken(kind, number)) is not None), None)
            if handle is None:
                LocalTaken(found).give_back()
                return None
            found.append(handle)
        return LocalTaken(found)

    def _taken(self, kind: str, number: int) -> int | None:
        folder = self.folder / re.sub(r"[^A-Za-z0-9_-]", "_", kind)
        with disk(folder):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            handle = os.open(folder / str(number), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(handle)
            return None
        return handle


# --- of a fleet --------------------------------------------------------------------------------------------------

SLOTS: Final = "redfirst slots"
"""What the sessions are called."""
_FREE: Final[LiteralString] = (
    "SELECT count(*) FROM generate_series(0, %s - 1) AS number "  # noqa: S608  (a text of ours)
    f"WHERE hashtextextended(%s || number, 0) NOT IN ({ADVISORY})"
)


@dataclass
class FleetTaken:
    """Slots of a driver: those of this machine, and a session that holds the others with the order."""

    here: LocalTaken
    slots: FleetSlots
    session: Session
    wanted: Mapping[str, int]
    order: str

    @property
    def handles(self) -> Sequence[int]:
        """Return those of this machine: a driver has no business with the server, and dies with its worker."""
        return self.here.handles

    def keep(self) -> bool:
        """Take the locks again if the server went away meanwhile; return whether the order is still ours.

        Raises:
            UserError: the server cannot be asked.
        """
        with suppress(UserError), refusals():
            self.session.execute("SELECT 1")
            return True
        self.session.close()
        self.session = self.slots.session()
        with refusals():
            if not lock(self.session, lock_of_order(self.slots.repository, self.order)):
                return False
            for kind, most in self.wanted.items():  # it may have been lost to another one: then there is one too many
                lock_one(self.session, kind, most)
        return True

    def give_back(self) -> None:
        """Let others have them at once."""
        self.here.give_back()
        with suppress(UserError), refusals():
            self.session.execute("SELECT pg_advisory_unlock_all()")
        self.session.close()


class FleetSlots:
    """The slots of all workers of a fleet.

    Args:
        here: Those of this machine.
        dsn: The database.
        repository: The name of the repository, the same on all machines.
    """

    def __init__(self, here: LocalSlots, dsn: str, repository: str) -> None:
        self.repository = repository
        self._here = here
        self._dsn = dsn

    def session(self) -> Session:
        """Return a session for the locks of one driver.

        Raises:
            UserError: the server does not take it.
        """
        return session_with(self._dsn, SLOTS)

    def free(self, kind: str, most: int) -> int:
        """Return how many of the first *most* slots of a kind are free.

        Raises:
            UserError: the server cannot be asked.
        """
        if kind == JOBS:
            return self._here.free(kind, most)
        with self.session() as session, refusals():
            found = session.execute(_FREE, (most, name_of(kind, ""))).fetchone()
            return found[0] if found is not None else 0

    def take(self, wanted: Mapping[str, int], order: str) -> FleetTaken | None:
        """Take the order, and a slot of each kind, of which there are so many; None if one is not free.

        Raises:
            UserError: the disk or the server does not take it.
        """
        here = self._here.take({kind: most for kind, most in wanted.items() if kind == JOBS}, order)
        if here is None:
            return None
        shared = {kind: most for kind, most in wanted.items() if kind != JOBS}
        with ExitStack() as undo:
            undo.callback(here.give_back)
            session = self.session()
            taken = FleetTaken(here, self, session, shared, order)
            undo.pop_all()
            undo.callback(taken.give_back)
            with refusals():
                if lock(session, lock_of_order(self.repository, order)) and all(
                    lock_one(session, kind, most) for kind, most in shared.items()
                ):
                    undo.pop_all()
                    return taken
        return None


def name_of(kind: str, number: object) -> str:
    """Return the name of the lock of a slot."""
    return f"redfirst slot {kind} {number}"


def lock(session: Session, name: str) -> bool:
    """Take a lock for as long as the session lasts, if it is free; return whether it was."""
    return session.execute("SELECT pg_try_advisory_lock(hashtextextended(%s, 0))", (name,)).fetchone() == (True,)


def lock_one(session: Session, kind: str, most: int) -> bool:
    """Take the first slot of a kind that is free; return whether one was."""
    return any(lock(session, name_of(kind, number)) for number in range(most))
