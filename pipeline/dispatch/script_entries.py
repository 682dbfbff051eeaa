"""Finds the used entries of a script from the results on disk, so that a resumed run continues where it was."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeline.engine.machine import TRUNK

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from pipeline.routing.vocabulary import Role
    from pipeline.runs.info import DispatchRecord, DispatchResult


def used_entries(
    record: DispatchRecord,
    records: Iterable[DispatchRecord],
    results: Mapping[str, DispatchResult],
    script_of: Callable[[Role], str | None],
) -> frozenset[int]:
    """Return the entries of this dispatch's script that finished dispatches have used.

    What lanes beside this one take is theirs, whichever of them is first; the trunk has seen all.

    Args:
        record: The dispatch that begins.
        records: All dispatches of the run.
        results: Those that are finished, by name.
        script_of: The script of a role.
    """
    used: set[int] = set()
    for other in records:
        result = results.get(other.dispatch)
        is_seen = record.lane == TRUNK or other.lane in {TRUNK, record.lane}
        is_same = script_of(other.role) == script_of(record.role)
        if is_seen and is_same and result is not None and result.entry is not None:
            used.add(result.entry)
    return frozenset(used)
