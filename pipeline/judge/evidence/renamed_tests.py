"""Follows tests into renamed files, so that earlier measurements hold for them.

Ids hold the path in pytest and node, the name of the file in cargo, and neither in Go. So a test is known by what is
left of its id without these.
"""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from pipeline.judge.evidence.observation import PASSING, Observation, TestRecord

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    Records = Mapping[str, TestRecord]


def moved(before: Records, after: Records, renames: Mapping[str, str]) -> dict[str, str]:
    """Return the new ids, by old id, of tests that moved with a renamed file.

    Args:
        before: The tests under their old names, by id.
        after: The tests under their new names, by id.
        renames: The new path of each renamed file, by its old one.
    """
    if not renames:
        return {}
    there = {(record.path, _name(record)): record.id for record in after.values()}
    found = {
        entry: there.get((renames[record.path], _name(record)))
        for entry, record in before.items()
        if record.path in renames
    }
    return {old: new for old, new in found.items() if new is not None and (old not in after or old == new)}


def carried(before: Observation, after: Observation, moves: Mapping[str, str]) -> Observation:
    """Return the earlier run with moved tests under their new ids.

    Args:
        before: The run.
        after: A run of the tests as they are now.
        moves: From `moved`.
    """
    if not moves:
        return before
    records: dict[str, TestRecord] = {}
    for entry, record in before.records.items():
        now = after.records.get(moves.get(entry, ""))
        update = {"id": now.id, "path": now.path, "function": now.function} if now is not None else {}
        records[moves.get(entry, entry)] = record.model_copy(update=update)
    return before.model_copy(update={"records": records})


def held(before: Observation, after: Observation, moves: Iterable[str]) -> tuple[set[str], set[str]]:
    """Return the moved, unchanged tests that passed before, in two sets: those that still pass, and the others.

    Args:
        before: From `carried`.
        after: The run of the tests as they are now.
        moves: Their ids.
    """
    passed = {entry for entry in moves if before.records[entry].outcome in PASSING}
    same = {e for e in passed if before.records[e].region_sha256 == after.records[e].region_sha256}
    kept = {entry for entry in same if after.records[entry].outcome in PASSING}
    return kept, same - kept


def _name(record: TestRecord) -> str:
    stem = re.escape(PurePosixPath(record.path).stem)
    if record.path in record.id:
        return record.id.replace(record.path, "", 1)
    return re.sub(rf"(?<!\w){stem}(?!\w)", "", record.id, count=1)
