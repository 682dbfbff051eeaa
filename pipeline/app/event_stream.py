"""Reads the events of one run or of all runs of a repository, once or as they come."""

from __future__ import annotations

import json
import os
import time
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final

from pipeline.app.events.model import TYPES, Event, Origin, event_of, full
from pipeline.errors import UserError
from pipeline.outcomes import Reason
from pipeline.queue.orders import OrderLog, log_of
from pipeline.run.folder import POLL_S, Tail, followed
from pipeline.run.records import read_record
from pipeline.run.runs_of_repository import Roster, RunPlace
from pipeline.run.store import key_of_worktree, repository_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pipeline.matrix.engine.journal import Line
    from pipeline.queue.lines import OrderLine
    from pipeline.repo import Repository

_LOOK_S: Final = 1.0
"""Seconds between two looks for runs that were begun."""


@dataclass(frozen=True)
class Wanted:
    """Which events somebody wants.

    Args:
        types: Patterns of types such as `run.*`, whole or short; none: all.
        since: The id of an event: those behind it, of its run. None: all.
    """

    types: tuple[str, ...] = ()
    since: str | None = None

    def has(self, event: Event) -> bool:
        """Return whether an event is of a wanted type."""
        return not self.types or any(_fits(event.type, pattern) for pattern in self.types)


def wanted(types: Sequence[str], since: str | None) -> Wanted:
    """Return which events are wanted.

    Raises:
        UserError: a pattern fits no type that there is.
    """
    for pattern in types:
        if not any(_fits(full(name), pattern) for name in TYPES):
            raise UserError(
                f"No event is of a type like {pattern!r}. There are: {', '.join(TYPES)}.",
                Reason.USAGE,
                details={"accepted": list(TYPES)},
                actions=("redfirst schema event",),
            )
    return Wanted(tuple(types), since)


def events_of_run(place: RunPlace, what: Wanted, *, follow: bool) -> Iterator[Event]:
    """Yield the events of a run in order; with *follow* also what comes, until no process drives it any more.

    Raises:
        UserError: the run's journal is damaged, or has no event of the id that they are wanted since.
    """
    origin = origin_of(place)
    after = _seq_of(what.since, origin)
    lines = followed(place.folder) if follow else iter(Tail(place.folder).lines())
    for line in lines:
        yield from _behind(line, after, origin, what)


def events_of_orders(repository: Repository, what: Wanted, *, follow: bool) -> Iterator[Event]:
    """Yield the events of the orders of a repository; with *follow* also what comes, until it is stopped.

    Raises:
        UserError: the orders are damaged, or has no event of the id that they are wanted since.
    """
    log, origin = log_of(repository, os.environ), orders_origin(repository)
    after = _seq_of(what.since, origin)
    while True:
        for line in log.read_on():
            yield from _behind(line, after, origin, what)
        if not follow:
            return
        time.sleep(POLL_S)


class AllEvents:
    """The events of all runs and orders of a repository, as far as they were read.

    Args:
        repository: Seen from where somebody stands.
        what: Which events are wanted.
        say: Is told of what cannot be read, once.
    """

    def __init__(self, repository: Repository, what: Wanted, say: Callable[[str], None]) -> None:
        self._repository = repository
        self._what = what
        self._say = say
        self._orders: OrderLog | None = log_of(repository, os.environ)
        self._of_orders = orders_origin(repository)
        self._tails: dict[tuple[str, str], tuple[Tail, Origin]] = {}
        self._refused: set[tuple[str, str]] = set()
        self._looked = 0.0

    def read_on(self) -> list[Event]:
        """Return the events that are there since the last time, by time."""
        if time.monotonic() - self._looked >= _LOOK_S or not self._looked:
            self._looked = time.monotonic()
            for place in Roster(self._repository).runs:
                name = (str(place.worktree.path), place.name)
                if name not in self._tails and name not in self._refused:
                    self._tails[name] = (Tail(place.folder), origin_of(place))
        found: list[Event] = []
        for name, (tail, origin) in list(self._tails.items()):
            try:
                lines = tail.lines()
            except (UserError, OSError) as error:
                self._say(str(error))
                self._refused.add(name)
                del self._tails[name]
                continue
            found += [event for line in lines for event in _behind(line, 0, origin, self._what)]
        try:
            ordered = self._orders.read_on() if self._orders is not None else []
            found += [event for line in ordered for event in _behind(line, 0, self._of_orders, self._what)]
        except UserError as error:
            self._say(str(error))
            self._orders = None
        return sorted(found, key=lambda event: event.time)


def events_of_all(repository: Repository, what: Wanted, say: Callable[[str], None], *, follow: bool) -> Iterator[Event]:
    """Yield the events of all runs and orders by time; with *follow* also what comes, until it is stopped.

    What cannot be read is told to *say*, once.
    """
    found = AllEvents(repository, what, say)
    while True:
        yield from found.read_on()
        if not follow:
            return
        time.sleep(POLL_S)


def is_of_orders(repository: Repository, since: str | None) -> bool:
    """Return whether an id is one of an event of orders."""
    return since is not None and since.rpartition("/")[0] == orders_origin(repository).id_of(0).rpartition("/")[0]


def place_of(roster: Roster, what: Wanted, name: str | None) -> RunPlace | None:
    """Return the run whose events are wanted, None for all runs.

    Raises:
        UserError: there is no such run, or the id that they are wanted since is of another one.
    """
    named = roster.find(name) if name is not None else None
    if what.since is None:
        return named
    key, _, run = what.since.rpartition("/")[0].rpartition("/")
    known = {(key_of_worktree(place.worktree.path), place.name): place for place in roster.runs}
    found = known.get((key, run))
    if found is None or (named is not None and named != found):
        other = f"of {named.name} " if named is not None else ""
        raise UserError(
            f"No event {other}has the id {what.since!r}. An id is printed with each event: WORKTREE/RUN/NUMBER.",
            Reason.USAGE,
            actions=("redfirst events",),
        )
    return found


def origin_of(place: RunPlace) -> Origin:
    """Return what the events of a run say of where they come from."""
    try:
        said = json.loads(read_record(place.folder, "run.json"))
        workflow, version = str(said["workflow"]), str(said["workflow_version"])
    except (OSError, ValueError, LookupError, TypeError):
        workflow, version = "", ""
    path = place.worktree.path
    return Origin(key_of_worktree(path), path.name, place.name, workflow, version)


def orders_origin(repository: Repository) -> Origin:
    """Return what the events of orders say of where they come from."""
    return Origin(repository_name(repository), repository.main_checkout.name)


def told_event(repository: Repository, line: OrderLine) -> str:
    """Return the event of a line of orders as one line of JSON; empty where it is none."""
    event = event_of(line, orders_origin(repository))
    return "" if event is None else str(event)


def _behind(line: Line | OrderLine, after: int, origin: Origin, what: Wanted) -> Iterator[Event]:
    event = event_of(line, origin) if line.seq > after else None
    if event is not None and what.has(event):
        yield event


def _seq_of(since: str | None, origin: Origin) -> int:
    if since is None:
        return 0
    number = since.rpartition("/")[2]
    if not number.isdecimal() or since != origin.id_of(int(number)):
        raise UserError(
            f"{since!r} is no id of an event. An id is printed with each event, such as WORKTREE/RUN/NUMBER.",
            Reason.USAGE,
            actions=("redfirst events",),
        )
    return int(number)


def _fits(type_: str, pattern: str) -> bool:
    short = type_.removeprefix("redfirst.").removesuffix(".v1")
    return fnmatchcase(type_, pattern) or fnmatchcase(short, pattern)
