"""Remembers on disk how far each sink was told: what it took, how often the next event was tried, what was given up.

A cursor is written after an event was sent. So a crash sends that event once more, and loses none.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, Literal

from pydantic import Field, ValidationError

from pipeline.frozen import Frozen
from pipeline.matrix.engine.journal import stamp
from pipeline.run.files import disk, write_atomic
from pipeline.safe_names import Timestamp

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

    from pipeline.app.events.model import Event

MOST_GIVEN_UP: Final = 1000
"""So many events that were given up are remembered for a sink, the newest."""


class Cursor(Frozen):
    """How far a sink was told.

    Args:
        since: Earlier events are none of the sink's.
        told: The last event of each journal that it is done with: number and time.
        tries: How often the next event was tried, the last time at `tried_at`; `why` it was not taken then.
        given_up: The ids of events that it did not take.
    """

    document: Literal["redfirst.notices/1"] = Field(default="redfirst.notices/1", alias="schema")
    since: Timestamp
    told: Mapping[str, tuple[int, Timestamp]] = {}
    tries: int = 0
    tried_at: Timestamp | None = None
    why: str = ""
    given_up: tuple[str, ...] = ()

    def has(self, event: Event) -> bool:
        """Return whether the sink is done with an event.

        A journal may be made anew under its old name. Then its numbers begin again, and the times go on.
        """
        journal, number = _place(event)
        told = self.told.get(journal)
        if told is None:
            return event.time < self.since
        return number <= told[0] and event.time <= told[1]

    def past(self, event: Event, *, given_up: bool = False) -> Cursor:
        """Return the cursor once the sink is done with an event."""
        journal, number = _place(event)
        others = tuple(one for one in self.given_up if one != event.id)
        now = self.told if self.has(event) else {**self.told, journal: (number, event.time)}
        done = {"told": now, "tries": 0, "tried_at": None, "why": self.why if given_up else ""}
        return self.model_copy(
            update={**done, "given_up": (*others, event.id)[-MOST_GIVEN_UP:] if given_up else others}
        )

    def after_failure(self, now: datetime, why: str) -> Cursor:
        """Return the cursor once the next event was tried in vain."""
        return self.model_copy(update={"tries": self.tries + 1, "tried_at": stamp(now), "why": why})


def _place(event: Event) -> tuple[str, int]:
    journal, _, number = event.id.rpartition("/")
    return journal, int(number)


def read(path: Path) -> Cursor | None:
    """Return a cursor as it is on disk, None where none is.

    Raises:
        ValueError: it is damaged.
        OSError: it cannot be read.
    """
    try:
        return Cursor.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except ValidationError as error:
        raise ValueError(f"{path} is damaged") from error


def write(path: Path, cursor: Cursor) -> None:
    """Write a cursor: a crash leaves the old one or the new one.

    Raises:
        UserError: the disk does not take it.
    """
    with disk(path):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_atomic(path, cursor.model_dump_json(by_alias=True, indent=1) + "\n", mode=0o600)
