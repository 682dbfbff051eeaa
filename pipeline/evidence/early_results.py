"""Judges a candidate from a first stage of its tests, before all of them are run (matrix 5).

A part can only condemn. That the task's own tests hold, and that nothing else is lost, is said by the run of all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeline.evidence.compare import NOTHING, GreenFacts, judge_green

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from pipeline.evidence.observation import Observation, TestRecord
    from pipeline.evidence.red_tests import RedTests

WORTH_S = 10.0
"""The shortest test run, in seconds, that is worth two stages: starting one costs a second or two."""
SHARE = 0.3
"""The largest share of the whole run that a first stage may take, which is wasted where the candidate is GREEN."""


def is_long(seconds: Mapping[str, float]) -> bool:
    """Return whether a run of all tests is long enough for a first stage; not if their times are unknown.

    Args:
        seconds: How long the tests of each file take.
    """
    return sum(seconds.values()) >= WORTH_S


def first_stage(own: Collection[str], near: Iterable[str], seconds: Mapping[str, float]) -> frozenset[str]:
    """Return the test files of the first stage: the task's own, then the nearest others within the share.

    Empty where two stages save nothing: the whole is short, its length is unknown, or the own files are most of it.

    Args:
        own: The files of the task's own tests.
        near: The files of impacted tests, the nearest first.
        seconds: How long the tests of each file take; one that is unknown counts as nothing.
    """
    limit = sum(seconds.values()) * SHARE
    taken = sum(seconds.get(path, 0.0) for path in set(own))
    if not own or not is_long(seconds) or taken > limit:
        return frozenset()
    chosen = set(own)
    for path in near:
        if path not in chosen:
            taken += seconds.get(path, 0.0)
            if taken > limit:
                break
            chosen.add(path)
    return frozenset(chosen)


def judge_part(
    ledger: RedTests | None,
    part: Observation,
    kept: Mapping[str, TestRecord],
    *,
    tests_to_change: frozenset[str] = frozenset(),
    unread_before: Collection[str] = (),
    must_pass: Collection[str] = (),
    seen_failing: Mapping[str, TestRecord] = NOTHING,
) -> GreenFacts:
    """Return the GREEN facts of a run of some tests; one that was not run proves nothing.

    Everything is collected in any case, so a test that is gone is gone, and one that was changed was changed.
    """
    records = part.records
    known = {entry: record for entry, record in kept.items() if entry not in records or records[entry].ran}
    verdict = judge_green(
        ledger,
        part,
        known,
        tests_to_change=tests_to_change,
        unread_before=unread_before,
        must_pass=must_pass,
        seen_failing=seen_failing,
    )
    return verdict.model_copy(
        update={
            "not_green": _proven(verdict.not_green, records),
            "whole_file_ids": _proven(verdict.whole_file_ids, records),
        }
    )


def _proven(entries: Sequence[str], records: Mapping[str, TestRecord]) -> tuple[str, ...]:
    return tuple(entry for entry in entries if entry not in records or records[entry].ran)
