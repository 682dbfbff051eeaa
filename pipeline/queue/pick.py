"""Decides which orders begin now, and says of each other one why it does not. No I/O.

The same facts give the same answer: what a person has answered, and what was interrupted, goes on first; then by
priority, then as `issue ready` lists issues, then as they were placed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


@dataclass(frozen=True)
class Candidate:
    """An open order, and what is known of it.

    Args:
        order: Its name.
        what: The issue or run, for people.
        number: When it was placed, as a number that grows.
        priority: Higher ones first.
        goes_on: It has a run that was answered or interrupted.
        ready: The place of its issue in `issue ready`; None where it is not there.
        hindered: Why it cannot begin, whatever else is free; empty where it can.
        providers: Whose models its agents ask.
        writes: What its plan says it will change; nothing where there is no plan yet.
    """

    order: str
    what: str
    number: int
    priority: int = 0
    goes_on: bool = False
    ready: int | None = None
    hindered: str = ""
    providers: frozenset[str] = frozenset()
    writes: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Room:
    """What is free. None: without a limit.

    Args:
        jobs: Drivers that may begin, of all repositories.
        here: Of this repository.
        providers: Of each provider that somebody asks.
        full: Why nobody may begin: the disk, what today cost; empty where nothing is in the way.
        writes: What runs that are driven now will change, by what they are called.
        waits: Whether who would change the same waits for them.
    """

    jobs: int
    here: int | None = None
    providers: Mapping[str, int] = field(default_factory=dict[str, int])
    full: str = ""
    writes: Mapping[str, frozenset[str]] = field(default_factory=dict[str, frozenset[str]])
    waits: bool = False


@dataclass(frozen=True)
class Verdict:
    """Whether an order begins now; `why` says why not."""

    order: str
    what: str
    why: str = ""

    @property
    def begins(self) -> bool:
        """Return whether it begins."""
        return not self.why


def pick(candidates: Iterable[Candidate], room: Room) -> tuple[Verdict, ...]:
    """Return a verdict on each order, in the order in which they are looked at."""
    jobs, here, providers, writes = room.jobs, room.here, dict(room.providers), dict(room.writes)
    verdicts: list[Verdict] = []
    for one in sorted(candidates, key=_rank):
        taken = [name for name in sorted(one.providers) if providers.get(name, 1) < 1]
        met = next((run for run, paths in writes.items() if meet(one.writes, paths)), None) if room.waits else None
        why = (
            one.hindered
            or room.full
            or ("all slots are taken (limits.work.jobs)" if jobs < 1 else "")
            or ("all slots here are taken (limits.work.per_repo)" if here is not None and here < 1 else "")
            or (f"all slots of {taken[0]} are taken (limits.work.per_provider)" if taken else "")
            or (f"{met} is about to change the same files (limits.work.overlap)" if met is not None else "")
        )
        verdicts.append(Verdict(one.order, one.what, why))
        if not why:
            jobs -= 1
            here = None if here is None else here - 1
            providers |= {name: providers[name] - 1 for name in one.providers if name in providers}
            writes[one.what] = one.writes
    return tuple(verdicts)


def _rank(one: Candidate) -> tuple[bool, int, bool, int, int]:
    return (not one.goes_on, -one.priority, one.ready is None, one.ready or 0, one.number)


def meet(some: Iterable[str], others: Iterable[str]) -> bool:
    """Return whether a path is among both, or lies below one of the other's."""
    known = tuple(others)
    return any(one == other or _is_below(one, other) or _is_below(other, one) for one in some for other in known)


def _is_below(path: str, folder: str) -> bool:
    return path.startswith(f"{folder.rstrip('/')}/")
