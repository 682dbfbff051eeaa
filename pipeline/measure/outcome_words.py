"""Describes the outcome of tests in words, with the reason why it does not count."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from pipeline.evidence.observation import Ended
from pipeline.progress import counted
from pipeline.reports.untrusted_text import one_line

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pipeline.evidence.observation import Observation, TestRecord

_SAID: Final = {
    Ended.PASSED: "passes",
    Ended.FAILED: "fails",
    Ended.SKIPPED: "is skipped, and only a test that passes counts",
    Ended.XFAILED: "is expected to fail and does, and only a test that passes counts",
    Ended.XPASSED: "is expected to fail and passes",
    Ended.STRICT_XPASS: "is marked as a strict xfail and passes",
    Ended.TIMED_OUT: "does not end in time",
    Ended.CRASHED: "ends the whole test process",
}


def seen(record: TestRecord | None) -> str:
    """Return the outcome of a test in words, with the beginning of its fault or reason."""
    if record is None:
        return "is not among the tests that were collected"
    words = "was collected but not run" if record.outcome is None else _SAID[record.outcome]
    why = record.fault.raised.message if record.fault is not None else record.reason
    return f"{words}: {one_line(why)}" if why else words


def in_sum(outcomes: Iterable[Ended | None]) -> str:
    """Return how many tests there are and how they ended, the most first; the parts are the whole."""
    counts = Counter("did not run" if outcome is None else str(outcome).replace("_", " ") for outcome in outcomes)
    parts = ", ".join(f"{count} {word}" for word, count in counts.most_common())
    return f"{counted(counts.total(), 'test')}{f': {parts}' if parts else ''}"


def named(ids: Iterable[str], observation: Observation) -> str:
    """Return test ids in words, each with its outcome unless it simply failed; other sentences stay."""
    records = observation.records
    return ", ".join(
        f"{entry} {seen(records[entry])}"
        if entry in records and records[entry].outcome not in {Ended.FAILED, Ended.PASSED}
        else entry
        for entry in ids
    )
