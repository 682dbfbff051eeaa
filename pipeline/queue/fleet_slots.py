"""Holds slots of a fleet: locks of a session on Postgres, which the server gives back when their holder dies.

Each driver has a session of its own in its worker, and that also locks the order: no other machine begins it meanwhile.
Slots that are this machine's own stay here.
"""

from __future__ import annotations

from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Final, LiteralString

from pipeline.errors import UserError
from pipeline.queue.postgres import ADVISORY, lock_of_order, refusals, session_with
from pipeline.queue.slots import JOBS, LocalSlots, LocalTaken

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pipeline.queue.postgres import Session


SLOTS: Final = "redfirst slots"
"""What the sessions are called."""
_FREE: Final[LiteralString] = (
    "SELECT count(*) FROM generate_series(0, %s - 1) AS number "  # noqa: S608  (a text of ours)
    f"WHERE hashtextextended(%s || number, 0) NOT IN ({ADVISORY})"
)


class FleetTaken:
    """Slots of a driver: those of this machine, and a session that holds the others with the order."""

    def __init__(
        self, here: LocalTaken, slots: FleetSlots, session: Session, wanted: Mapping[str, int], order: str
    ) -> None:
        self._here = here
        self._slots = slots
        self._session = session
        self._wanted = wanted
        self._order = order

    @property
    def handles(self) -> Sequence[int]:
        """Return those of this machine: a driver has no business with the server, and dies with its worker."""
        return self._here.handles

    def keep(self) -> bool:
        """Take the locks again if the server went away meanwhile; return whether the order is still ours.

        Raises:
            UserError: the server cannot be asked.
        """
        with suppress(UserError), refusals():
            self._session.execute("SELECT 1")
            return True
        self._session.close()
        self._session = self._slots.session()
        with refusals():
            if not lock(self._session, lock_of_order(self._slots.repository, self._order)):
                return False
            for kind, most in self._wanted.items():  # it may have been lost to another one: then there is one too many
                lock_one(self._session, kind, most)
        return True

    def give_back(self) -> None:
        """Let others have them at once."""
        self._here.give_back()
        with suppress(UserError), refusals():
            self._session.execute("SELECT pg_advisory_unlock_all()")
        self._session.close()


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
