"""Orders a graph of steps: two that conflict get an edge between them before any step starts.

Each step waits for what it depends on; of two steps that conflict and that no path joins, the later one in order waits
for the earlier one (an *after* edge). What a step sees is what stands before it in this graph, and nothing else: so it
does not matter which of two steps that run side by side ends first.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pipeline.matrix.scheduling.patterns import Pattern


class Posture(StrEnum):
    """How a step uses files. A shared writer changes what others read at that moment, an isolated one a copy."""

    READER = "reader"
    ISOLATED = "isolated"
    SHARED = "shared"
    SCRATCH = "scratch"


@dataclass(frozen=True)
class Step:
    """A step to be ordered: its dependencies, and which files it reads and writes.

    Args:
        id: Its name, of which there is one.
        depends_on: The ids of steps that have to be usable before it begins.
        posture: What it does to files.
        reads: What it may read.
        writes: What it may change.
    """

    id: str
    depends_on: tuple[str, ...] = ()
    posture: Posture = Posture.READER
    reads: tuple[Pattern, ...] = ()
    writes: tuple[Pattern, ...] = ()


@dataclass(frozen=True)
class Conflict:
    """The reason why two steps may not run side by side: pairs of patterns with a path in common."""

    earlier: str
    later: str
    patterns: tuple[str, str]


@dataclass(frozen=True)
class Plan:
    """The planned order of a graph's steps.

    Args:
        order: The ids of all steps, each behind what it waits for.
        after: Of each step, the conflicts because of which it waits for steps that it does not depend on.
        waves: Of each step, the number of the start that it belongs to if each step took equally long, from 1.
        above: Of each step, those before it in the graph, as a bit for each place in `order`.
    """

    order: tuple[str, ...]
    after: Mapping[str, tuple[Conflict, ...]]
    waves: Mapping[str, int]
    above: Mapping[str, int]

    def before(self, id_: str) -> tuple[str, ...]:
        """Return the ids of all steps that must end before a step, in order."""
        return tuple(self.order[at] for at in _bits(self.above[id_]))


class CycleError(ValueError):
    """The steps wait for each other; `cycle` names them in a circle, the first one again at the end."""

    def __init__(self, cycle: tuple[str, ...]) -> None:
        super().__init__(" -> ".join(cycle))
        self.cycle = cycle


def conflict_of(earlier: Step, later: Step) -> Conflict | None:
    """Return the conflict between two steps, None if they may run side by side."""
    if {earlier.posture, later.posture} not in _CONFLICTS:
        return None
    pairs = ((one, other) for one in _area(earlier) for other in _area(later))
    found = next(((one.text, other.text) for one, other in pairs if one.meets(other)), None)
    return None if found is None else Conflict(earlier.id, later.id, found)


_CONFLICTS: Final = (
    {Posture.ISOLATED},
    {Posture.SHARED},
    {Posture.ISOLATED, Posture.SHARED},
    {Posture.READER, Posture.SHARED},
)
"""Postures that conflict where the areas meet; a scratch copy is nobody else's, an isolated one is put back later."""


def _area(step: Step) -> tuple[Pattern, ...]:
    return step.reads if step.posture is Posture.READER else step.writes


def planned(steps: Sequence[Step], *, side_by_side: int) -> Plan:
    """Return the order in which the steps run.

    Args:
        steps: As they stand in the file; where an order is open, this is it.
        side_by_side: How many steps may run at the same time.

    Raises:
        CycleError: steps wait for each other.
    """
    by_id = {step.id: step for step in steps}
    order = _topological(steps)
    bit = {id_: 1 << at for at, id_ in enumerate(order)}
    earlier = _Earlier(bit)
    above: dict[str, int] = {}
    after: dict[str, tuple[Conflict, ...]] = {}
    for id_ in order:
        step, known = by_id[id_], 0
        for dependency in step.depends_on:
            known |= above[dependency] | bit[dependency]
        conflicts: list[Conflict] = []
        rest = earlier.in_conflict_with(step) & ~known
        while rest:  # the latest first: what stands before it needs no edge of its own
            other = order[rest.bit_length() - 1]
            found = conflict_of(by_id[other], step)
            if found is not None:
                conflicts.append(found)
            known |= above[other] | bit[other]
            rest &= ~known
        above[id_], after[id_] = known, tuple(reversed(conflicts))
        earlier.add(step)
    waits = {id_: (*by_id[id_].depends_on, *(found.earlier for found in after[id_])) for id_ in order}
    return Plan(order, after, _waves(order, waits, side_by_side), above)


def _topological(steps: Sequence[Step]) -> tuple[str, ...]:
    at = {step.id: place for place, step in enumerate(steps)}
    waiting = {step.id: len(set(step.depends_on)) for step in steps}
    followers: defaultdict[str, list[str]] = defaultdict(list)
    for step in steps:
        for dependency in set(step.depends_on):
            followers[dependency].append(step.id)
    free = [at[id_] for id_, count in waiting.items() if count == 0]
    heapq.heapify(free)
    order: list[str] = []
    while free:
        id_ = steps[heapq.heappop(free)].id
        order.append(id_)
        for follower in followers[id_]:
            waiting[follower] -= 1
            if waiting[follower] == 0:
                heapq.heappush(free, at[follower])
    if len(order) < len(steps):
        raise CycleError(_cycle(steps, set(order)))
    return tuple(order)


def _cycle(steps: Sequence[Step], ordered: set[str]) -> tuple[str, ...]:
    left = {step.id: step for step in steps if step.id not in ordered}
    path: list[str] = []
    here = next(iter(left))
    while here not in path:  # each step that is left waits for one that is left
        path.append(here)
        here = next(one for one in left[here].depends_on if one in left)
    return (*path[path.index(here) :], here)


class _Earlier:
    """The steps ordered so far, grouped by posture and area and found by folder: few of a thousand steps conflict."""

    def __init__(self, bit: Mapping[str, int]) -> None:
        self._bit = bit
        self._groups: dict[tuple[Posture, tuple[Pattern, ...]], int] = {}
        self._members: list[tuple[Step, int]] = []
        self._at: defaultdict[tuple[str, ...], set[int]] = defaultdict(set)
        self._below: defaultdict[tuple[str, ...], set[int]] = defaultdict(set)

    def add(self, step: Step) -> None:
        key = (step.posture, _area(step))
        group = self._groups.setdefault(key, len(self._members))
        if group == len(self._members):
            self._members.append((step, 0))
            for pattern in _area(step):
                self._at[pattern.folder].add(group)
                for length in range(len(pattern.folder) + 1):
                    self._below[pattern.folder[:length]].add(group)
        first, members = self._members[group]
        self._members[group] = (first, members | self._bit[step.id])

    def in_conflict_with(self, step: Step) -> int:
        """Return the bits of the earlier steps that conflict with *step*."""
        near: set[int] = set()
        for folder in {pattern.folder for pattern in _area(step)}:
            near |= self._below[folder].union(*(self._at[folder[:length]] for length in range(len(folder))))
        found = 0
        for first, members in (self._members[group] for group in near):
            if conflict_of(first, step) is not None:
                found |= members
        return found


def _bits(number: int) -> Iterator[int]:
    while number:
        lowest = number & -number
        yield lowest.bit_length() - 1
        number ^= lowest


def _waves(order: Sequence[str], waits: Mapping[str, Sequence[str]], side_by_side: int) -> dict[str, int]:
    """Return the wave in which each step starts: after its dependencies, at most `side_by_side` steps in one."""
    waves: dict[str, int] = {}
    started: defaultdict[int, int] = defaultdict(int)
    for id_ in order:
        wave = 1 + max((waves[one] for one in waits[id_]), default=0)
        while started[wave] >= side_by_side:
            wave += 1
        waves[id_] = wave
        started[wave] += 1
    return waves
