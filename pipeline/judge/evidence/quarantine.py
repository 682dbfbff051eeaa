"""Quarantined tests: known to be unreliable, each with an owner and a day from which it counts again.

A quarantined test is run and shown like every other one. It is no regression while it is quarantined, and what it does
is no reason to refuse the work of others. A test of a task itself is never excused.
"""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003  (dataclasses read it)
from dataclasses import dataclass, field
from datetime import date  # noqa: TC003  (pydantic reads it at run time)
from typing import TYPE_CHECKING, Annotated

from pydantic import Field, StringConstraints

from pipeline.judge.evidence.observation import TestRecord, Value

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from pipeline.judge.evidence.red_tests import RedTests

Said = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]


class Quarantined(Value):
    """`[[quarantine]]`: one test, by its id, or by its function with all cases; excused until the end of `expires`."""

    id: Annotated[Said, Field(description="The test's id, or its function's")]
    owner: Annotated[Said, Field(description="Who mends it")]
    expires: Annotated[date, Field(description="The last day on which it is excused, YYYY-MM-DD")]
    why: Annotated[Said, Field(description="What is wrong with it")]

    def names(self, record: TestRecord) -> bool:
        """Return whether the entry names a test."""
        return self.id in {record.id, record.function}

    def __str__(self) -> str:
        return f"{self.id}: {self.why} (owner {self.owner}, until {self.expires.isoformat()})"


@dataclass(frozen=True)
class Standing:
    """The effect of the quarantine on a set of tests.

    Args:
        excused: The tests that do not count, by id.
        in_force: The entries that excuse them.
        expired: Entries whose day has passed: their tests count.
        own: Entries that name a test of a task itself: it counts.
        unknown: Entries that name no test that there is.
    """

    excused: Mapping[str, Quarantined] = field(default_factory=dict[str, Quarantined])
    in_force: tuple[Quarantined, ...] = ()
    expired: tuple[Quarantined, ...] = ()
    own: tuple[Quarantined, ...] = ()
    unknown: tuple[Quarantined, ...] = ()

    def without(self, kept: Mapping[str, TestRecord]) -> dict[str, TestRecord]:
        """Return the expected results without those of excused tests."""
        return {entry: record for entry, record in kept.items() if entry not in self.excused}

    def lines(self) -> tuple[str, ...]:
        """Return one line for each entry, for people."""
        return (
            *(f"quarantined, does not count: {entry}" for entry in self.in_force),
            *(f"quarantine expired, counts again: {entry}" for entry in self.expired),
            *(f"quarantined, and counts all the same, as a test of a task itself: {entry}" for entry in self.own),
            *(f"quarantined, and there is no such test: {entry}" for entry in self.unknown),
        )


def standing(
    entries: Iterable[Quarantined],
    records: Collection[TestRecord],
    today: date,
    ledgers: Collection[RedTests] = (),
) -> Standing:
    """Return the effect of quarantine entries on the tests of a run.

    Args:
        entries: The configuration's.
        records: All tests that there are.
        today: The day that counts.
        ledgers: The evidence of the tasks in question; their tests are never excused.
    """
    excused: dict[str, Quarantined] = {}
    in_force: list[Quarantined] = []
    expired: list[Quarantined] = []
    own: list[Quarantined] = []
    unknown: list[Quarantined] = []
    for entry in entries:
        named = [record for record in records if entry.names(record)]
        if today > entry.expires:
            expired.append(entry)
        elif not named:
            unknown.append(entry)
        elif any(ledger.owns(record) for ledger in ledgers for record in named):
            own.append(entry)
        else:
            excused |= {record.id: entry for record in named}
            in_force.append(entry)
    return Standing(excused, tuple(in_force), tuple(expired), tuple(own), tuple(unknown))
