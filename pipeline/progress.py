"""Records a driver's current activities and their start: measurements, questions to agents, setups."""

from __future__ import annotations

import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable

_TENTHS_BELOW: Final = 10
_MINUTE: Final = 60
_HOUR: Final = 60 * _MINUTE


@dataclass(frozen=True)
class Activity:
    """An activity.

    Args:
        what: Its description.
        began: Its start by the driver's clock.
        began_at: The time of its start for people.
        said: Returns the last lines of what is said in it, as far as anybody may read them.
    """

    what: str
    began: float
    began_at: datetime
    said: Callable[[], tuple[str, ...]] = tuple


@dataclass
class Stopwatch:
    """Measures how long an activity takes."""

    clock: Callable[[], float]
    began: float

    @property
    def seconds(self) -> float:
        """Return the seconds since the activity began."""
        return self.clock() - self.began

    def __str__(self) -> str:
        return duration(self.seconds)


@dataclass
class Progress:
    """The activities of one driver, oldest first; `changed` is called when one begins and when one ends."""

    clock: Callable[[], float] = time.monotonic
    activities: tuple[Activity, ...] = ()
    changed: Callable[[], object] = field(default=lambda: None)

    @contextmanager
    def doing(self, what: str, said: Callable[[], tuple[str, ...]] = tuple) -> Generator[Stopwatch]:
        """Record an activity while the context lasts, and yield its stopwatch; *said* returns its last words."""
        activity = Activity(what, self.clock(), datetime.now(UTC), said)
        self.activities = (*self.activities, activity)
        self.changed()
        try:
            yield Stopwatch(self.clock, activity.began)
        finally:
            self.activities = tuple(other for other in self.activities if other is not activity)
            self.changed()


def duration(seconds: float) -> str:
    """Return a duration in words: `4.2 s`, `42 s`, `2 min 5 s`, `1 h 2 min`."""
    if round(seconds, 1) < _TENTHS_BELOW:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < _MINUTE:
        return f"{whole} s"
    if whole < _HOUR:
        return f"{whole // _MINUTE} min {whole % _MINUTE} s"
    return f"{whole // _HOUR} h {whole % _HOUR // _MINUTE} min"


def few(entries: Iterable[str], most: int = 3, apart: str = ", ") -> str:
    """Return the first entries, and how many more there are: a, b, c and 2 more."""
    told = list(entries)
    more = f"{apart.strip(', ')} and {len(told) - most} more" if len(told) > most else ""
    return f"{apart.join(told[:most])}{more}"


def counted(count: int, noun: str) -> str:
    """Return a count with its noun: 1 test, 2 tests, 3 dispatches."""
    return f"{count} {noun}{'' if count == 1 else 'es' if noun.endswith('ch') else 's'}"
