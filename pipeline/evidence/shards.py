"""Splits a test run into parts by file, and merges the parts' results into one observation.

Each part collects everything and runs the tests of its own files, so that together they observe what one run of all
would. What a part says of the tests of another does not count.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pipeline.evidence.observation import Observation, RunState

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from pipeline.evidence.observation import TestRecord

_WORST_FIRST: Final = (RunState.UNUSABLE, RunState.TIMED_OUT, RunState.CRASHED, RunState.COMPLETE)
_TAIL: Final = 8_000
_NAMED: Final = 3


def plan(files: Iterable[str], seconds: Mapping[str, float], parts: int) -> tuple[frozenset[str], ...]:
    """Return the files in at most *parts* groups of about equal running time; the result is deterministic.

    The longest file goes to the shortest part, and so on. One whose length is unknown counts as an average one.
    """
    known = [value for value in seconds.values() if value > 0]
    average = sum(known) / len(known) if known else 1.0
    weights = {path: seconds.get(path, average) for path in files}
    filled: list[tuple[float, list[str]]] = [(0.0, []) for _ in range(max(1, min(parts, len(weights))))]
    for path in sorted(weights, key=lambda path: (-weights[path], path)):
        shortest = min(range(len(filled)), key=lambda at: (filled[at][0], len(filled[at][1]), at))
        filled[shortest] = filled[shortest][0] + weights[path], [*filled[shortest][1], path]
    return tuple(frozenset(paths) for _, paths in filled)


def disagreement(parts: Sequence[Observation]) -> str:
    """Return how the parts' collected tests differ, empty if they agree; a part cut short may lack ids."""
    whole = [part for part in parts if part.state is RunState.COMPLETE]
    cut = [part for part in parts if part.state in {RunState.CRASHED, RunState.TIMED_OUT}]
    if not whole:
        return ""
    first = whole[0]
    for other in whole[1:]:
        differing = sorted(first.records.keys() ^ other.records.keys())
        if differing or first.files != other.files or first.collection_errors != other.collection_errors:
            return _differ(differing or sorted(_moved(first.files, other.files)))
    strange = sorted({entry for part in cut for entry in part.records} - first.records.keys())
    return _differ(strange) if strange else ""


def merged(parts: Sequence[tuple[Collection[str], Observation]], *, command: tuple[str, ...]) -> Observation:
    """Return the merged observation of all parts.

    The worst state is that of all; a part that crashed or ran out of time takes nothing from the others. Where the
    parts did not collect the same, nothing may be concluded: the observation is UNUSABLE and says so.

    Args:
        parts: The files whose tests a part was to run, with what it showed.
        command: What a person would type for the whole.
    """
    seen = [each for _, each in parts]
    worst = min(seen, key=lambda each: _WORST_FIRST.index(each.state))
    if worst.state is RunState.UNUSABLE:
        return worst.model_copy(update={"command": command})
    problem = disagreement(seen)
    if problem:
        return Observation(state=RunState.UNUSABLE, detail=problem, command=command, tail=_tail(seen))
    fullest = max(seen, key=lambda each: (each.state is RunState.COMPLETE, len(each.records)))
    records: dict[str, TestRecord] = dict(fullest.records)
    for files, each in parts:
        records |= {entry: record for entry, record in each.records.items() if record.path in files}
    foreign = {module.name: module for each in seen for module in each.foreign_modules}
    return fullest.model_copy(
        update={
            "state": worst.state,
            "detail": worst.detail,
            "records": {
                entry: records[entry] for entry in (*fullest.records, *(records.keys() - fullest.records.keys()))
            },
            "modules": {name: path for each in seen for name, path in each.modules.items()},
            "foreign_modules": tuple(foreign[name] for name in sorted(foreign)),
            "command": command,
            "tail": _tail(seen),
        }
    )


def _moved(one: Mapping[str, str], other: Mapping[str, str]) -> set[str]:
    return {path for path in one.keys() | other.keys() if one.get(path) != other.get(path)}


def _differ(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_NAMED]) or "a file that cannot be collected"
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return (
        f"the parts of the test run did not collect the same tests ({shown}{more}), so they cannot be put together; "
        "set workers = 1 for this toolchain"
    )


def _tail(seen: Sequence[Observation]) -> str:
    """Return the ends of the parts' output, each shortened to its share."""
    said = [each.tail for each in seen if each.tail]
    return "\n".join(tail[-(_TAIL // len(said)) :] for tail in said)
